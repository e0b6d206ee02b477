"""Does memory stay bounded in long loops? Growth of the resident size over 20,000 steps of a tiny model.

    python benchmarks/memory.py [--steps N]

`unread`: training steps whose results nobody ever reads. `list`: every step's `loss.detach()` is kept in a
list, as people do for a plot. A lazy framework must not keep the whole history alive in either.
"""

import argparse
import gc
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common
from common import median, show

CASES = ("unread", "list")


def worker(case, steps):
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    kept = []
    warmup = steps // 10
    sizes = []
    for i in range(warmup + steps):
        if i >= warmup and (i - warmup) % (steps // 10) == 0:
            gc.collect()
            sizes.append(common.resident_kb())
        if i == warmup:
            start = time.perf_counter()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if case == "list":
            kept.append(loss.detach())
    sizes.append(common.resident_kb())
    seconds = time.perf_counter() - start
    last = loss.item()
    total = float(sum(kept)) if kept else last
    common.report(
        {"sizes_kb": sizes, "seconds": seconds, "last": last, "total": total, "peak_mb": common.peak_memory_mb()}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser, ("torch", "torchlike"))
    parser.set_defaults(repeats=1)
    parser.add_argument("--steps", type=int, default=20_000, help="counted steps (default: %(default)s)")
    parser.add_argument("--worker", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--started", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.worker, arguments.steps)
        return

    info, frameworks = common.begin(arguments)
    rows, everything = [], {}
    for case in CASES:
        results = {framework: [] for framework in frameworks}
        for repeat in range(arguments.repeats):
            for framework in frameworks[:: -1 if repeat % 2 else 1]:
                options = ["--worker", case, "--steps", arguments.steps]
                env = common.environment()
                results[framework].append(common.run_worker(framework, Path(__file__).name, options, arguments, env))
        everything[case] = results
        for framework, runs in results.items():
            good = [run for run in runs if "error" not in run]
            if not good:
                rows.append([case, framework, f"failed: {runs[0]['error']}", "", "", "", ""])
                continue
            growth = median([run["sizes_kb"][-1] - run["sizes_kb"][0] for run in good])
            half = median([run["sizes_kb"][-1] - run["sizes_kb"][len(run["sizes_kb"]) // 2] for run in good])
            cells = [growth, half, growth * 1024 / arguments.steps, median([run["peak_mb"] for run in good])]
            speed = median([run["seconds"] for run in good]) / arguments.steps * 1e6
            rows.append([case, framework, *map(show, cells), show(speed)])
    header = ["case", "framework", "growth kB", "in 2nd half kB", "bytes per step", "peak MB", "µs per step"]
    common.print_table(header, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": info, "steps": arguments.steps, "results": everything}))


if __name__ == "__main__":
    main()
