"""Collects cases_*.py, runs each case on torchlike, and compares with what PyTorch returned."""

import importlib
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests import references
from compat_tests.encoding import differences
from compat_tests.harness import MODES, Case, load_cases, run_case


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("torchlike")
    group.addoption(
        "--oracle", action="store_true", help="also run cases on PyTorch itself, and the tests that need it"
    )
    group.addoption("--mode", choices=[*MODES, "all"], default="all", help="how torchlike runs the cases")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.startswith("cases_") and file_path.suffix == ".py":
        return CaseFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--oracle"):
        needing = [item for item in items if "oracle" in getattr(item, "fixturenames", ())]
        if needing:
            config.hook.pytest_deselected(items=needing)
            items[:] = [item for item in items if item not in set(needing)]
    if config.getoption("--shuffle") is not None:
        random.Random(config.getoption("--shuffle")).shuffle(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What a test leaves pending is computed at its end: the next one starts with an empty trace, in any order."""
    flush = sys.modules.get("torchlike._src.engine.flush")
    if flush is not None:
        flush.flush_all("the end of a test")


@pytest.fixture(scope="session")
def oracle() -> Any:
    """PyTorch itself. Tests that ask for it run with --oracle only, and are deselected without."""
    return _oracle()


def _oracle() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = importlib.import_module("torch")
    found = torch.__version__.split("+")[0]
    if found != references.VERSION:
        pytest.exit(f"--oracle needs PyTorch {references.VERSION}, found {found}", returncode=2)
    return torch


class CaseFile(pytest.File):
    """A cases_*.py: one item for each case and mode, and with --oracle one more for PyTorch."""

    def collect(self) -> Iterator[pytest.Item]:
        cases = load_cases(self.path)
        reference = references.load(self.path)
        wanted = self.config.getoption("--mode")
        for name, one in cases.items():
            stored = (reference[name],) if name in reference else None
            for mode in one.modes:
                if wanted in (mode, "all"):
                    yield CaseItem.from_parent(self, name=f"{name}({mode})", one=one, mode=mode, stored=stored)
            if self.config.getoption("--oracle"):
                yield CaseItem.from_parent(self, name=f"{name}(oracle)", one=one, mode="oracle", stored=stored)
        for name in reference.keys() - cases.keys():
            yield OrphanItem.from_parent(self, name=f"{name}(orphan)")


class Different(Exception):
    """A case's result is not the reference's."""


class CaseItem(pytest.Item):
    """A case on torchlike in one mode, or on PyTorch."""

    def __init__(self, *, one: Case, mode: str, stored: tuple[Any] | None, **kwargs: Any):
        super().__init__(**kwargs)
        self.one, self.mode, self.stored = one, mode, stored
        reason = one.settings["xfail"]
        if reason is not None and mode != "oracle":
            self.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    def runtest(self) -> None:
        if self.stored is None:
            raise Different("no reference is recorded: run `python -m compat_tests.record` where PyTorch is installed")
        if self.mode == "oracle":
            torch = _oracle()
            # torch.compile switches it off for the rest of the process.
            torch.distributions.Distribution.set_default_validate_args(__debug__)
            actual = run_case(self.one, torch)
        else:
            actual = run_case(self.one, importlib.import_module("torchlike"), self.mode)
        found = differences(self.stored[0], actual, self.one.settings["rtol"], self.one.settings["atol"])
        if found:
            raise Different("\n".join(found[:20]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Different):
            title = "the recorded reference is stale" if self.mode == "oracle" else "torchlike differs from PyTorch"
            return f"{title}\n{excinfo.value}"
        # From the case's own code on, without pytest's and this file's.
        own = excinfo.traceback.cut(path=pathlib.Path(__file__))[1:]
        excinfo.traceback = own.cut(path=self.path) or own or excinfo.traceback
        return self._repr_failure_py(excinfo, style="short")

    def reportinfo(self) -> tuple[pathlib.Path, int, str]:
        return self.path, self.one.function.__code__.co_firstlineno - 1, self.name


class OrphanItem(pytest.Item):
    """Fails: a recorded reference whose case is gone."""

    def runtest(self) -> None:
        raise Different("a reference without a case: run `python -m compat_tests.record` to remove it")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value)
