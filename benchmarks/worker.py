"""Run one workload in this process and report the time of every step. Started by run.py."""

import argparse
import importlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import peak_memory_mb, report


def load(framework, workload, variant):
    """The workload's `step`, and a function that says how many programs were compiled."""
    options = {"variant": variant} if variant else {}
    if framework == "jax":
        import jax

        compiled = []

        def count(event, duration, **_):
            if event == "/jax/core/compile/backend_compile_duration":
                compiled.append(duration)

        jax.monitoring.register_event_duration_secs_listener(count)
        module = importlib.import_module(f"workloads_jax.{workload}")
        return module.setup(**options), lambda: {"compiles": len(compiled)}

    import torch

    module = importlib.import_module(f"workloads.{workload}")
    if framework == "torchlike":
        import torchlike

        return module.setup(**options), getattr(torchlike, "stats", dict)
    if torch.__name__ != "torch" or not hasattr(torch, "_C"):
        raise SystemExit("`import torch` does not give PyTorch here")
    if framework == "torch.compile":
        import torch._dynamo.utils

        counters = torch._dynamo.utils.counters
        step = module.setup(**options, wrap=torch.compile)
        return step, lambda: {"compiles": counters["stats"]["unique_graphs"]}
    return module.setup(**options), dict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--variant", default="")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--started", type=float, required=True)
    arguments = parser.parse_args()

    before = time.perf_counter()
    step, stats = load(arguments.framework, arguments.workload, arguments.variant)
    setup = time.perf_counter() - before
    seconds, units, labels, values = [], [], [], []
    first = None
    for i in range(arguments.steps):
        start = time.perf_counter()
        result = step(i)
        seconds.append(time.perf_counter() - start)
        # A step returns its value, or (value, units of work), or (value, units, the kind of step).
        parts = result if isinstance(result, tuple) else (result,)
        value, count, label = parts + (1, "")[len(parts) - 1 :]
        values.append(float(value))
        units.append(count)
        labels.append(label)
        if first is None:
            first = time.time() - arguments.started
    report(
        {
            "start_to_first_step": first,
            "import_and_setup": setup,
            "seconds": seconds,
            "units": units,
            "labels": labels,
            "values": values,
            "peak_mb": peak_memory_mb(),
            "stats": {key: value for key, value in stats().items() if isinstance(value, int | float | str)},
        }
    )


if __name__ == "__main__":
    main()
