"""Random numbers: PyTorch and torchlike in turn, in one process and one thread each.

    python benchmarks/random_numbers.py [--quick] [--only PATTERN] [--json FILE]

Microseconds per call and their ratio (medians over repeats); with --cpu, of processor time instead of the clock's.
What is drawn is the same to the bit, and so is the state afterwards. `step` trains eight linear layers on
(8, 128, 256), with and without dropout between them: the difference is what dropout costs inside a training step, the
drawing of its masks included.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if (ROOT / "torchlike").is_dir():
    sys.path.insert(0, str(ROOT))


def training(torch, p):
    """A step of eight layers with dropout p between them."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.Dropout(p))])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(8, 128, 256)

    def step():
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def cases():
    """name -> (calls timed together, make(torch) -> call)."""
    out = {
        "Generator()": (200, lambda t: t.Generator),
        "manual_seed": (200, lambda t: lambda: t.manual_seed(3)),
        "get_rng_state": (200, lambda t: t.get_rng_state),
    }
    for n in (3, 1000, 10**4, 10**6, 10**7):
        calls = max(1, min(500, 10**6 // n))
        out[f"rand {n}"] = calls, lambda t, n=n: lambda: t.rand(n)
        out[f"randn {n}"] = calls, lambda t, n=n: lambda: t.randn(n)
    for n in (100, 1000, 60_000, 10**6):
        out[f"randperm {n}"] = max(1, 10**5 // n), lambda t, n=n: lambda: t.randperm(n)
    out["randint 10^6"] = 2, lambda t: lambda: t.randint(0, 10, (10**6,))
    out["bernoulli_ 10^6"] = 2, lambda t: lambda x=t.empty(10**6): x.bernoulli_(0.3)  # noqa: B008 - made before the clock starts
    out["exponential_ 10^6"] = 2, lambda t: lambda x=t.empty(10**6): x.exponential_()  # noqa: B008
    out["multinomial (64, 100), 1"] = 20, lambda t: lambda w=t.ones(64, 100): t.multinomial(w, 1)  # noqa: B008
    out["multinomial 100, 64 of them"] = 100, lambda t: lambda w=t.ones(100): t.multinomial(w, 64, True)  # noqa: B008
    out["poisson 1000"] = 5, lambda t: lambda x=t.full((1000,), 4.0): t.poisson(x)  # noqa: B008
    out["nn.Linear(1024, 1024)"] = 1, lambda t: lambda: t.nn.Linear(1024, 1024)
    for n in (10**4, 10**5, 10**6, 10**7):
        calls = max(1, 10**5 // n)
        out[f"dropout {n}, read"] = (
            calls,
            lambda t, n=n: lambda x=t.ones(n): t.nn.functional.dropout(x, 0.1)[0].item(),  # noqa: B008
        )
    out["step, no dropout"] = 1, lambda t: training(t, 0.0)
    out["step, dropout 0.1"] = 1, lambda t: training(t, 0.1)
    return out


def timed(call, calls, clock):
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three repeats instead of nine")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--jax-random", action="store_true", help="torchlike.config.jax_random = True")
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that others use, too")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    import torch

    import torchlike
    import torchlike.config

    torch.set_num_threads(1)
    torchlike.config.jax_random = options.jax_random
    print(f"PyTorch {torch.__version__}; load {os.getloadavg()[0]:.1f} at the start\n")
    print(f"{'':24}{'PyTorch µs':>14}{'torchlike µs':>14}{'ratio':>8}")
    found = {}
    for name, (calls, make) in cases().items():
        if options.only not in name:
            continue
        both = make(torch), make(torchlike)
        for call in both:
            for _ in range(4):
                call()
        clock = time.process_time if options.cpu else time.perf_counter
        rows = [[timed(call, calls, clock) for call in both] for _ in range(3 if options.quick else 9)]
        theirs, ours = (statistics.median(r[k] for r in rows) for k in (0, 1))
        ratio = statistics.median(b / a for a, b in rows)
        found[name] = {"torch": theirs, "torchlike": ours, "ratio": ratio}
        print(f"{name:24}{theirs:14.1f}{ours:14.1f}{ratio:8.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
