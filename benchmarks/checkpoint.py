"""torch.save and torch.load of a state dict, and what mapping a file costs.

    python benchmarks/checkpoint.py [--mb N]

Each process makes a state dict of N MB (tensors of 10 MB and 200 small ones), and saves or loads it three times; the
fastest counts, in seconds of CPU and of wall time. What was loaded is kept, so that each load needs fresh memory, as
the one of a real program does. `map, one read` maps the file and sums one of the large tensors, and `grown` is how much
the resident size grew by that. torchlike checks the CRC-32 of all that it loads, PyTorch does not."""

import argparse
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common
from common import median, ratios, show

CASES = ("save", "save to memory", "load", "load from memory", "load, trusted", "save, older format",
         "load, older format", "map", "map, one read")  # fmt: skip


def worker(case, megabytes):
    import numpy as np
    import torch

    made = np.random.default_rng(0).standard_normal((10 << 20) // 4, dtype=np.float32)
    state = {f"large.{k}": torch.from_numpy(made + k) for k in range(megabytes // 10)}
    state |= {f"small.{k}": torch.from_numpy(made[:64] + k) for k in range(200)}
    memory = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        older = {"_use_new_zipfile_serialization": "older" not in case}
        if "memory" in case:
            torch.save(state, memory)
        else:
            torch.save(state, path, **older)
        before = common.resident_kb()
        cpu, wall, kept = [], [], []
        for _ in range(3):
            memory.seek(0)
            target = (io.BytesIO() if case.startswith("save") else memory) if "memory" in case else path
            began, at = time.process_time(), time.perf_counter()
            if case.startswith("save"):
                torch.save(state, target, **older)
            elif case.startswith("map"):
                kept.append(torch.load(target, mmap=True))
            else:
                kept.append(torch.load(target, weights_only="trusted" not in case))
            if "one read" in case:
                float(kept[-1]["large.1"].sum())
            wall.append(time.perf_counter() - at)
            cpu.append(time.process_time() - began)
            grown = common.resident_kb() - before
    common.report({"cpu": min(cpu), "wall": min(wall), "grown_kb": grown / 3})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser, ("torch", "torchlike"))
    parser.add_argument("--mb", type=int, default=500, help="size of the state dict (default: %(default)s)")
    parser.add_argument("--cases", default=";".join(CASES), help="some of them, between semicolons (default: all)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--started", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.worker, arguments.mb)
        return

    info, frameworks = common.begin(arguments)
    rows, everything = [], {}
    for case in arguments.cases.split(";"):
        results = everything[case] = {framework: [] for framework in frameworks}
        for repeat in range(arguments.repeats):
            for framework in frameworks[:: -1 if repeat % 2 else 1]:
                options = ["--worker", case, "--mb", arguments.mb]
                found = common.run_worker(framework, Path(__file__).name, options, arguments, common.environment())
                if "error" in found:
                    raise SystemExit(f"{framework}, {case}: {found['error']}")
                results[framework].append(found)
        for framework, runs in results.items():
            cells = []
            for which in ("cpu", "wall"):
                own, other = ([run[which] for run in found] for found in (runs, results.get("torch", [])))
                cells += [show(median(own), 3), show(median(ratios(own, other)))]
            rows.append([case, framework, *cells, show(median([run["grown_kb"] / 1024 for run in runs]))])
    common.print_table(["case", "framework", "CPU s", "×torch", "wall s", "×torch", "grown MB"], rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": info, "results": everything}))


if __name__ == "__main__":
    main()
