"""What the benchmarks share: separate processes, their results, tables. Imports no framework."""

import compileall
import contextlib
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "BENCHMARK-RESULT "
FRAMEWORKS = ("torch", "torch.compile", "torchlike", "jax")


def report(result):
    """In a worker: hand `result` (anything JSON can hold) to the parent process."""
    print(MARK + json.dumps(result), flush=True)


def peak_memory_mb():
    """Largest resident size this process has had, in MB.

    VmHWM where there is one, because ru_maxrss also counts the parent's memory before exec.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_kb():
    """The resident size of this process now, in kB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def add_arguments(parser, frameworks):
    """The options every benchmark has; `frameworks` are the default ones."""
    parser.add_argument("--frameworks", default=",".join(frameworks), help="comma-separated (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="processes per framework (default: %(default)s)")
    parser.add_argument("--torch-python", default=sys.executable, help="the Python that has PyTorch (default: this)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds a process may take (default: %(default)s)")
    parser.add_argument("--cpus", help="run on these CPUs only, such as 0 or 0,1 (Linux; default: all)")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")


def begin(arguments):
    """Describe the machine, keep to the CPUs asked for, and find the frameworks: (machine, frameworks)."""
    if arguments.cpus:
        # Workers inherit this, and every framework sizes its thread pool by it.
        os.sched_setaffinity(0, [int(cpu) for cpu in arguments.cpus.split(",")])
    info = machine()
    versions = ", ".join(f"{name} {version}" for name, version in info["versions"].items())
    load = "" if info["load"] is None else f", load {info['load']:.1f} at the start"
    print(f"Python {info['python']}; {versions}\n{info['processor']}, {info['cpus']} CPU(s){load}\n")
    frameworks = chosen_frameworks(arguments)
    if not frameworks:
        raise SystemExit("none of these frameworks can be imported")
    if (HERE.parent / "torchlike").is_dir():
        # As pip does when it installs a package; Python may have been told to write no byte code itself.
        compileall.compile_dir(HERE.parent / "torchlike", quiet=1)
    return info, frameworks


def chosen_frameworks(arguments):
    """The frameworks asked for that can be imported; says which cannot."""
    present = []
    for name in arguments.frameworks.split(","):
        if name not in FRAMEWORKS:
            raise SystemExit(f"unknown framework {name!r}: choose from {', '.join(FRAMEWORKS)}")
        module = "torch" if name.startswith("torch.") else name
        test = f"import {module}; assert {module}.__file__, 'not installed'"
        command = [interpreter(name, arguments), "-c", test]
        probe = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if probe.returncode == 0:
            present.append(name)
        else:
            print(f"{name}: left out, {last_line(probe.stderr)}")
    return present


def interpreter(framework, arguments):
    return arguments.torch_python if framework in ("torch", "torch.compile") else sys.executable


def environment(**extra):
    """The environment of a worker: this checkout can be imported, whether or not it is installed."""
    paths = [str(HERE.parent)] if (HERE.parent / "torchlike").is_dir() else []
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **extra}


def caches(folder):
    """Environment variables that put every framework's compilation cache into `folder`."""
    return {
        "TORCHLIKE_CACHE_DIR": f"{folder}/torchlike",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        # JAX would keep only programs that took a second to compile.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
    }


def run_worker(framework, script, options, arguments, env):
    """Run `script` under `framework` in a process of its own: its result, or {"error": why}."""
    python = interpreter(framework, arguments)
    runner = ["-m", "torchlike"] if framework == "torchlike" else []
    command = [python, *runner, str(HERE / script), *map(str, options), "--started", repr(time.time())]
    # Output goes to a file, not a pipe: a compiler process left behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            status = subprocess.run(command, env=env, stdout=out, stderr=err, timeout=arguments.timeout).returncode
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {arguments.timeout:.0f} s"}
        out.seek(0)
        err.seek(0)
        for line in out.read().splitlines():
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))
        return {"error": last_line(err.read()) or f"exit status {status}"}


def last_line(text):
    """The line of a traceback that names the exception (or else the last line)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception", "Interrupt"))]
    return (named or lines or [""])[-1][:300]


def median(values):
    """The median of the values that are there, or None."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def fast(values):
    """The tenth percentile: a step that other work on the machine did not disturb."""
    return sorted(values)[len(values) // 10] if values else None


def ratios(values, references):
    """value / reference for each repeat that has both."""
    return [a / b for a, b in zip(values, references) if a is not None and b]


def show(value, digits=2):
    """A number with about three significant digits, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str | int):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{1 if abs(value) >= 10 else digits}f}"


def print_table(header, rows):
    """Columns as wide as needed, the first two flush left."""
    lines = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for number, line in enumerate(lines):
        cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def machine():
    """What a reader needs to judge the numbers."""
    versions = {}
    for package in ("torch", "torchlike", "jax", "jaxlib", "flax", "optax", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = platform.processor()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": model,
        "cpus": cpus,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }
