"""Seconds to import torchlike, JAX and PyTorch, each in a fresh process.

    python benchmarks/import_time.py [--repeats N]

The first process of each is not counted: it reads the files from disk and compiles Python's bytecode.
"""

import argparse
import json
import subprocess
import tempfile

import common
from common import median, ratios, show

CODE = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser, ("jax", "torchlike", "torch"))
    parser.set_defaults(repeats=7)
    arguments = parser.parse_args()
    info, frameworks = common.begin(arguments)

    # Byte code is cached in a folder of this run's own, whatever the machine's settings say about writing it.
    folder = tempfile.TemporaryDirectory()
    environment = {k: v for k, v in common.environment().items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = folder.name

    results = {framework: [] for framework in frameworks}
    for repeat in range(arguments.repeats + 1):
        turn = repeat % len(frameworks)
        for framework in frameworks[turn:] + frameworks[:turn]:
            command = [common.interpreter(framework, arguments), "-c", CODE.format(module=framework)]
            output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            results[framework].append(float(output.stdout.split()[-1]))
    results = {framework: times[1:] for framework, times in results.items()}

    rows = []
    for framework, times in results.items():
        ratio = median(ratios(times, results.get("jax", [])))
        rows.append([f"import {framework}", show(median(times)), show(min(times)), show(ratio)])
    common.print_table(["", "median s", "fastest s", "×jax"], rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": info, "results": results}))


if __name__ == "__main__":
    main()
