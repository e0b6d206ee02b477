"""`python -m compat_tests.views.matrix`: the mutation and view matrix as a table, MATRIX.md.

Runs cases_matrix.py on torchlike and compares each cell with what PyTorch returned."""

import importlib
import json
import pathlib
from typing import Any

from compat_tests import references
from compat_tests.encoding import differences
from compat_tests.harness import Case, load_cases, run_case

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "cases_matrix.py"
HEAD = """# Views and in-place writes

Written by `python -m compat_tests.views.matrix`. A cell is ✓ if values, strides, offsets, version counters, `_base`,
`grad_fn` names, gradients and error texts are those of PyTorch {version}, and ✗ if anything differs. The last column
counts the views that may follow this one (chains of two), written to and differentiated, that agree.

"""


def cells(case: Case, reference: dict[str, Any]) -> dict[str, bool]:
    """Whether each entry of a case's result agrees."""
    torch = importlib.import_module("torchlike")
    actual = dict(json.loads(json.dumps(run_case(case, torch)))["dict"])
    expected = dict(reference[case.name]["dict"])
    return {key: not differences(expected[key], actual.get(key), None, None) for key in expected}


def table() -> str:
    """The Markdown."""
    reference = references.load(CASES)
    single: dict[str, dict[str, bool]] = {}
    pairs: dict[str, dict[str, bool]] = {}
    for case in load_cases(CASES).values():
        found = cells(case, reference)
        if case.function.__name__ == "case_view":
            single[case.arguments["name"]] = found
        else:
            pairs[case.arguments["first"]] = found
    checks = list(next(iter(single.values())))
    lines = [f"| view | {' | '.join(checks)} | pairs |", f"| --- |{' --- |' * (len(checks) + 1)}"]
    for name, found in single.items():
        good = sum(pairs[name].values())
        marks = " | ".join("✓" if found[check] else "✗" for check in checks)
        lines.append(f"| `{name}` | {marks} | {good} of {len(pairs[name])} |")
    wrong = [f"`{a}` then `{b}`" for a, row in pairs.items() for b, good in row.items() if not good]
    if wrong:
        lines += ["", "Chains that differ: " + ", ".join(wrong) + "."]
    return HEAD.format(version=references.VERSION) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "MATRIX.md").write_text(table(), encoding="utf-8")
