"""`python -m compat_tests.record`: run the cases on PyTorch itself and record what they return."""

import argparse
import fnmatch
import importlib
import pathlib
import sys
import traceback
from typing import Any

from compat_tests import references
from compat_tests.harness import ROOT, case_files, load_cases, run_case


def main(arguments: list[str] | None = None) -> int:
    """Record; returns the exit status: 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.record", description=__doc__)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="files or folders of cases (all by default)")
    parser.add_argument("--only", metavar="PATTERN", help="only cases whose area/file::name contains or matches this")
    options = parser.parse_args(arguments)

    oracle = importlib.import_module("torch")
    if oracle.__version__.split("+")[0] != references.VERSION or "torchlike" in str(oracle.__file__):
        print(f"references are recorded from PyTorch {references.VERSION}, found {oracle.__version__}", file=sys.stderr)
        return 2
    oracle.set_num_threads(1)  # sums are split between threads: one gives the same bits on every machine
    failed = recorded = 0
    for path in case_files([p.resolve() for p in options.paths]):
        old = references.load(path)
        new: dict[str, Any] = {}
        for name, one in load_cases(path).items():
            label = f"{path.relative_to(ROOT)}::{name}"
            if options.only and options.only not in label and not fnmatch.fnmatch(label, options.only):
                if name in old:
                    new[name] = old[name]
                continue
            try:
                new[name] = run_case(one, oracle)
                recorded += 1
            except Exception:
                failed += 1
                print(f"FAILED {label}", file=sys.stderr)
                traceback.print_exc()
                if name in old:
                    new[name] = old[name]
        if new and references.save(path, new):
            print(f"wrote {references.reference_file(path).relative_to(ROOT.parent)}: {len(new)} cases")
    print(f"{recorded} recorded, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
