"""Time the workloads under PyTorch, torch.compile, torchlike and hand-written JAX, side by side.

    python benchmarks/run.py
    python benchmarks/run.py --workloads mlp,varlen:pool --repeats 5 --frameworks torch,torchlike
    python benchmarks/run.py --quick

Every measurement is a process of its own. Within a repeat each framework runs once (with a compilation
cache: once with the cache empty, once filled), and the order changes from repeat to repeat. Ratios are
taken within a repeat, so that whatever else the machine is doing weighs on both sides.
"""

import argparse
import ast
import json
import math
import shutil
import tempfile

import common
import history
from common import HERE, fast, median, ratios, show

ORDER = ("mlp", "cnn", "resnet", "vae", "dcgan", "inference", "gpt", "encoder", "lstm", "reinforce", "varlen", "ops")
CACHED = ("torch.compile", "torchlike", "jax")


def workload_settings(name):
    """STEPS, WARMUP, VARIANTS and UNIT of a workload, read without importing it (and so PyTorch)."""
    path = HERE / "workloads" / f"{name}.py"
    if not path.is_file():
        raise SystemExit(f"unknown workload {name!r}: choose from {', '.join(ORDER)}")
    settings = {"UNIT": "step"}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            targets, values = node.targets[0], node.value
            pairs = zip(targets.elts, values.elts) if isinstance(targets, ast.Tuple) else [(targets, values)]
            wanted = ("STEPS", "WARMUP", "VARIANTS", "UNIT")
            settings.update({target.id: ast.literal_eval(value) for target, value in pairs if target.id in wanted})
    return settings


def select(text):
    """[(name, variant, settings)] for a list such as "mlp,varlen:pool"."""
    chosen = []
    for item in text.split(","):
        name, _, variant = item.partition(":")
        settings = workload_settings(name)
        if variant and variant not in settings["VARIANTS"]:
            raise SystemExit(f"{name} has no variant {variant!r}: choose from {', '.join(settings['VARIANTS'])}")
        chosen += [(name, v, settings) for v in ([variant] if variant else settings["VARIANTS"])]
    return chosen


def measure(name, variant, steps, frameworks, arguments):
    """{framework: [{"cold": result or None, "warm": result}, ... for each repeat]}"""
    results = {framework: [] for framework in frameworks}
    for repeat in range(arguments.repeats):
        turn = repeat % len(frameworks)
        for framework in frameworks[turn:] + frameworks[:turn]:
            if results[framework] and "error" in results[framework][-1]["warm"]:
                results[framework].append(results[framework][-1])  # it failed once; spare the time
                continue
            options = ["--framework", framework, "--workload", name, "--variant", variant, "--steps", steps]
            folder = tempfile.mkdtemp(prefix="benchmark-cache-")
            env = common.environment(**common.caches(folder))

            def once(framework=framework, options=options, env=env):
                return common.run_worker(framework, "worker.py", options, arguments, env)

            result = {"cold": once() if framework in CACHED else None}
            failed = result["cold"] is not None and "error" in result["cold"]
            result["warm"] = result["cold"] if failed else once()
            results[framework].append(result)
            shutil.rmtree(folder, ignore_errors=True)
    return results


def per_unit(result, label, skip=0):
    """Microseconds per unit of the steps called `label`, without the first `skip` steps."""
    steps = zip(result["seconds"][skip:], result["units"][skip:], result["labels"][skip:])
    return [seconds / units * 1e6 for seconds, units, name in steps if name == label]


def mean_per_unit(result, label):
    rows = [row for row in zip(result["seconds"], result["units"], result["labels"]) if row[2] == label]
    return sum(row[0] for row in rows) / sum(row[1] for row in rows) * 1e6


def difference(result, reference, count=10):
    """Largest relative difference between the first values of two runs."""
    pairs = list(zip(result["values"], reference["values"]))[:count]
    return max((abs(a - b) / max(abs(b), 1e-6) if math.isfinite(a) else math.inf) for a, b in pairs)


def summarize(results, label, warmup):
    """{framework: the numbers of its row}; ratios are to "torch" of the same repeat."""
    summary = {}
    for framework, repeats in results.items():
        good = [pair for pair in repeats if "error" not in pair["warm"]]
        if not good:
            summary[framework] = {"error": repeats[0]["warm"]["error"]}
            continue

        def series(measure, kind, repeats=repeats):
            """One number per repeat; kind "cold" falls back to the only run of a framework without a cache."""
            runs = [(pair[kind] or pair["warm"]) for pair in repeats]
            return [None if "error" in run else measure(run) for run in runs]

        summary[framework] = {
            "step_us": series(lambda run: median(per_unit(run, label, warmup)), "warm"),
            "fast_us": series(lambda run: fast(per_unit(run, label, warmup)), "warm"),
            "mean_us": series(lambda run: mean_per_unit(run, label), "cold"),
            "first_cold_s": series(lambda run: run["start_to_first_step"], "cold"),
            "first_warm_s": series(lambda run: run["start_to_first_step"], "warm"),
            "peak_mb": series(lambda run: run["peak_mb"], "warm"),
            "compiles": series(lambda run: run["stats"].get("compiles"), "cold"),
        }
        reference = results.get("torch", [{"warm": {"error": ""}}])[0]["warm"]
        if framework == "torchlike" and "error" not in reference:
            summary[framework]["difference"] = difference(good[0]["warm"], reference)
    return summary


def rows_of(title, summary):
    """The table's rows for one workload, or one of its labels."""
    rows, notes = [], []
    reference = summary.get("torch", {})
    for framework, row in summary.items():
        if "error" in row:
            notes.append(f"{title}, {framework}: not run: {row['error']}")
            continue
        step = ratios(row["step_us"], reference.get("step_us", []))
        quick = ratios(row["fast_us"], reference.get("fast_us", []))
        mean = ratios(row["mean_us"], reference.get("mean_us", []))
        spread = f"{min(step):.2f}-{max(step):.2f}" if len(step) > 1 else "-"
        cells = [
            show(median(row["step_us"])),
            show(median(step)),
            spread,
            show(median(row["fast_us"])),
            show(median(quick)),
            show(median(row["mean_us"])),
            show(median(mean)),
            show(median(row["first_cold_s"])) if framework in CACHED else "-",
            show(median(row["first_warm_s"])),
            show(median(row["peak_mb"])),
            show(median(ratios(row["peak_mb"], reference.get("peak_mb", [])))),
            show(median(row["compiles"])),
            f"{row['difference']:.0e}" if "difference" in row else "-",
        ]
        rows.append([title if not rows else "", framework, *cells])
    return rows, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=",".join(ORDER), help="name or name:variant, comma-separated")
    common.add_arguments(parser, common.FRAMEWORKS)
    parser.add_argument("--steps", type=float, default=1.0, help="multiply every workload's number of steps")
    parser.add_argument("--record", action="store_true", help="append the ratios to history.csv (see history.py)")
    parser.add_argument("--quick", action="store_true", help="one repeat, a third of the steps")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repeats, arguments.steps = 1, arguments.steps / 3

    workloads = select(arguments.workloads)
    info, frameworks = common.begin(arguments)

    header = ["workload", "framework", "µs", "×torch", "spread", "p10 µs", "×torch", "mean µs", "×torch"]
    header += ["cold s", "warm s", "peak MB", "×torch", "compiles", "differs"]
    everything, all_notes = {}, []
    for name, variant, settings in workloads:
        title = f"{name}:{variant}" if variant else name
        warmup = max(2, round(settings["WARMUP"] * arguments.steps))
        steps = max(warmup + 4, round(settings["STEPS"] * arguments.steps))
        results = measure(name, variant, steps, frameworks, arguments)
        labels = next((p["warm"]["labels"] for r in results.values() for p in r if "labels" in p["warm"]), [""])
        for label in dict.fromkeys(labels):
            summary = summarize(results, label, warmup)
            full_title = f"{title} {label}" if label else title
            rows, notes = rows_of(f"{full_title} (per {settings['UNIT']})", summary)
            everything[full_title] = {"summary": summary, "unit": settings["UNIT"], "steps": steps, "warmup": warmup}
            if label in ("", labels[0]):
                everything[full_title]["runs"] = results
            all_notes += [note for note in notes if note not in all_notes]
            common.print_table(header, rows)
            print(flush=True)
    print("\n".join(all_notes))
    if arguments.record:
        history.record(everything, info, arguments.repeats)
        history.compare()
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": info, "repeats": arguments.repeats, "workloads": everything}))


if __name__ == "__main__":
    main()
