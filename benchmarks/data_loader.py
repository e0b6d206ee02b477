"""What loading costs: PyTorch's DataLoader and torchlike's in turn, by wall time and by CPU time of all processes.

python benchmarks/data_loader.py [--repeats 3] [--only PATTERN]
"""

import argparse
import importlib
import json
import re
import resource
import subprocess
import sys
import time
import warnings

KINDS = ("tensors", "subset", "python", "python, 2 workers", "tensors, 2 workers", "dicts")


def datasets(torch, kind):
    """(dataset, workers)"""
    x, y = torch.randn(20_000, 32), torch.randint(10, (20_000,))
    x.sum().item()

    class Rows(torch.utils.data.Dataset):
        def __getitem__(self, i):
            return x[i], y[i]

        def __len__(self):
            return len(x)

    class Dicts(Rows):
        def __getitem__(self, i):
            return {"x": x[i] * 2, "i": i, "name": str(i)}

    name, _, workers = kind.partition(", ")
    tensors = torch.utils.data.TensorDataset(x, y)
    made = {"tensors": tensors, "subset": torch.utils.data.random_split(tensors, [15_000, 5_000])[0]}
    dataset = made.get(name) or {"python": Rows, "dicts": Dicts}[name]()
    return dataset, 2 if workers else 0


def cpu():
    """Seconds of this process and of its children that have ended."""
    return sum(
        use.ru_utime + use.ru_stime
        for use in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def worker(framework, kind):
    """Print {"wall": s, "cpu": s} for one pass after a pass to warm up."""
    torch = importlib.import_module(framework)
    importlib.import_module(f"{framework}.utils.data")
    dataset, workers = datasets(torch, kind)
    loader = torch.utils.data.DataLoader(dataset, 64, shuffle=True, num_workers=workers)
    for _ in loader:
        pass
    began, used = time.perf_counter(), cpu()
    for _ in loader:
        pass
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": cpu() - used}))


def main():
    """Both in turn, each pass in a process of its own; the least of each, as a ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", nargs=2)
    options = parser.parse_args()
    if options.worker:
        warnings.simplefilter("ignore")
        worker(*options.worker)
        return
    side = f"{'torch':>11} {'torchlike':>10} {'ratio':>6}"
    print(f"{'wall, then CPU':22} {side} {side}")
    for kind in KINDS:
        if not re.search(options.only, kind):
            continue
        times = {"torch": [], "torchlike": []}
        for _ in range(options.repeats):
            for framework, found in times.items():
                command = [sys.executable, __file__, "--worker", framework, kind]
                found.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        row = f"{kind:22}"
        for what in ("wall", "cpu"):
            a, b = (min(t[what] for t in times[f]) for f in ("torch", "torchlike"))
            row += f" {a * 1e3:8.0f} ms {b * 1e3:7.0f} ms {b / a:6.2f}"
        print(row)


if __name__ == "__main__":
    main()
