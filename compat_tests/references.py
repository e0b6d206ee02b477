"""The recorded outputs of PyTorch: one JSON file per file of cases, one line per case."""

import json
import pathlib
from typing import Any

from compat_tests.harness import ROOT

FOLDER = ROOT / "reference"
# The release that references are recorded from.
VERSION = "2.13.0"


def reference_file(cases: pathlib.Path) -> pathlib.Path:
    """compat_tests/<area>/cases_x.py -> compat_tests/reference/<area>/cases_x.json"""
    return FOLDER / cases.resolve().relative_to(ROOT).with_suffix(".json")


def load(cases: pathlib.Path) -> dict[str, Any]:
    """The encoded references of a file of cases, by case name."""
    file = reference_file(cases)
    if not file.exists():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    return dict(content["cases"])


def save(cases: pathlib.Path, results: dict[str, Any]) -> bool:
    """Write the references of a file of cases; False if nothing changed."""
    lines = [f"{json.dumps(name)}: {_line(result)}" for name, result in results.items()]
    text = f'{{"torch": "{VERSION}", "cases": {{\n' + ",\n".join(lines) + "\n}}\n"
    file = reference_file(cases)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and moved, so that a reader at the same time sees a whole file.
    temporary = file.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
    return True


def _line(result: Any) -> str:
    return json.dumps(result, ensure_ascii=True, separators=(", ", ": "), allow_nan=False)
