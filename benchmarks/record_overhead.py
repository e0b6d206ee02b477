"""The cost of calling one small operator: PyTorch runs it, torchlike records it.

    python benchmarks/record_overhead.py [--repeats N] [--size ROWS]

200 calls are timed together; what they left pending is run (`synchronize`) outside the timed part.
"""

import argparse
import itertools
import json
import operator
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common
from common import fast, median, ratios, show

CALLS, BLOCKS, WARMUP = 200, 60, 15


def worker(framework, rows):
    """Microseconds per call, for each operator: the median and the tenth percentile over the blocks."""
    import torch
    import torch.nn.functional as F

    synchronize = None
    if framework == "torchlike":
        import torchlike

        synchronize = getattr(torchlike, "synchronize", None)

    def settle(tensor):
        if synchronize is not None:
            synchronize()
        else:
            tensor.sum().item()

    result = {}
    for grad in (False, True):
        a, b, weight = (torch.randn(rows, 32), torch.randn(rows, 32), torch.randn(32, 32))
        bias = torch.zeros(32)
        for tensor in (a, b, weight, bias):
            tensor.requires_grad_(grad)
        cases = {
            "add": (operator.add, (a, b)),
            "mul": (operator.mul, (a, b)),
            "relu": (torch.relu, (a,)),
            "linear": (F.linear, (a, weight, bias)),
        }
        for name, (function, operands) in cases.items():
            times = []
            for _ in range(BLOCKS):
                start = time.perf_counter()
                for _ in itertools.repeat(None, CALLS):
                    out = function(*operands)
                times.append((time.perf_counter() - start) / CALLS * 1e6)
                settle(out)
            times = times[WARMUP:]
            result[name + ("+grad" if grad else "")] = [median(times), fast(times)]
    common.report(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser, ("torch", "torchlike"))
    parser.add_argument("--size", type=int, default=16, help="operands are SIZE x 32 (default: %(default)s)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--started", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.worker, arguments.size)
        return

    info, frameworks = common.begin(arguments)
    results = {framework: [] for framework in frameworks}
    for repeat in range(arguments.repeats):
        for framework in frameworks[:: -1 if repeat % 2 else 1]:
            options = ["--worker", framework, "--size", arguments.size]
            result = common.run_worker(framework, Path(__file__).name, options, arguments, common.environment())
            if "error" in result:
                raise SystemExit(f"{framework}: {result['error']}")
            results[framework].append(result)

    rows = []
    for case in results[frameworks[0]][0]:
        row = [case]
        for i in (0, 1):
            series = {framework: [result[case][i] for result in results[framework]] for framework in frameworks}
            row += [show(median(series.get(framework, []))) for framework in ("torch", "torchlike")]
            row.append(show(median(ratios(series.get("torchlike", []), series.get("torch", [])))))
        rows.append(row)
    header = ["operator", "torch µs", "torchlike µs", "ratio", "torch p10", "torchlike p10", "ratio"]
    common.print_table(header, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": info, "results": results}))


if __name__ == "__main__":
    main()
