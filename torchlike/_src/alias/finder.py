"""The meta-path finder that makes `import torch` mean torchlike, and its installation."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from torchlike._src.alias import processes
from torchlike._src.alias.names import (
    ALIAS,
    REAL,
    ROOT,
    is_alias,
    is_public,
    mirror,
    mirror_all,
    to_real,
    unmirror_all,
)


class _AliasLoader:
    """Loads `torch.x` by importing `torchlike.x` and handing out that very module."""

    def __init__(self, target: str, target_loader: Any):
        self._target = target
        self._target_loader = target_loader
        self._target_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        self._target_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the alias's spec on the module. It belongs to torchlike's name, by
        # which relative imports and reload() find their way.
        module.__spec__ = self._target_spec

    # What runpy (`-m torch.x`), inspect and pkgutil ask for.
    def is_package(self, fullname: str) -> bool:
        return bool(self._target_loader.is_package(self._target))

    def get_code(self, fullname: str) -> Any:
        return self._target_loader.get_code(self._target)

    def get_source(self, fullname: str) -> Any:
        return self._target_loader.get_source(self._target)

    def get_filename(self, fullname: str) -> Any:
        return self._target_loader.get_filename(self._target)


class AliasFinder:
    """Answers for `torch` and everything below it, and sees torchlike's own modules being loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Asked for every import of the process: strangers leave at once.
        if fullname.startswith(ALIAS):
            if is_alias(fullname):
                return self._find_alias(fullname)
            if fullname == REAL or is_public(fullname):
                return self._find_own(fullname, path)
        elif fullname in processes.SPAWNING_MODULES:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            return _after_loading(spec, processes.hook)
        return None

    def _find_alias(self, fullname: str) -> ModuleSpec | None:
        target = to_real(fullname)
        if not is_public(target):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        loaded = sys.modules.get(target)
        found = importlib.util.find_spec(target) if loaded is None else getattr(loaded, "__spec__", None)
        if loaded is None and found is None:
            # find_spec() is how programs ask whether there is such a module: they get None. An import gets
            # the reason.
            if _importing():
                raise ModuleNotFoundError(
                    f"No module named {fullname!r} (torchlike does not have this part of PyTorch yet)", name=fullname
                )
            return None
        loader = _AliasLoader(target, getattr(found, "loader", None))
        # Typed as a protocol that _AliasLoader follows by its methods.
        spec = ModuleSpec(fullname, loader, origin=getattr(found, "origin", None))  # type: ignore[arg-type]
        locations = getattr(found, "submodule_search_locations", None)
        if locations is not None:
            spec.submodule_search_locations = list(locations)
        return spec

    def _find_own(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        if fullname != REAL:
            return _after_loading(
                importlib.machinery.PathFinder.find_spec(fullname, path), lambda module: mirror(fullname, module)
            )
        # The package that this hook came from, whatever sys.path has become since (a script's folder replaces
        # the folder that `python -m torchlike` was started in).
        spec = importlib.util.spec_from_file_location(
            REAL, os.path.join(ROOT, "__init__.py"), submodule_search_locations=[ROOT]
        )
        return _after_loading(spec, lambda module: mirror(fullname, module), before=_bind_loaded_children)

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The part of the finder that importlib.metadata asks."""
        from torchlike._src.alias import metadata  # here because importlib.metadata takes long to import

        return metadata.find_distributions(context)


def _importing() -> bool:
    """Whether the finder was asked by an import, not by importlib.util.find_spec()."""
    frame = sys._getframe(1)
    for _ in range(3):  # _find_alias, find_spec, importlib's _find_spec
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return frame.f_code.co_name == "_find_and_load_unlocked"


def _bind_loaded_children(package: ModuleType) -> None:
    # The launcher imports `torchlike._src.alias` before the package itself: give the package the attributes
    # that importing them has given to its predecessor.
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent == REAL:
            setattr(package, child, module)


def _after_loading(
    spec: ModuleSpec | None,
    after: Callable[[ModuleType], None],
    before: Callable[[ModuleType], None] | None = None,
) -> ModuleSpec | None:
    """Have `before` and `after` called around the module's execution, keeping the loader what it is."""
    loader = None if spec is None else spec.loader
    if loader is None or not hasattr(loader, "exec_module"):
        return spec
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        if before is not None:
            before(module)
        execute(module)
        if _finder() is not None:  # not uninstalled meanwhile
            after(module)

    # On the instance: inspect, linecache and pickle still see the plain loader class. Specs are made per
    # import, and so are path loaders.
    loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _finder() -> AliasFinder | None:
    for finder in sys.meta_path:
        if isinstance(finder, AliasFinder):
            return finder
    return None


def installed() -> bool:
    """Whether `import torch` means torchlike in this process."""
    return _finder() is not None


def install() -> None:
    """Make `import torch` (and every `torch.x.y`) mean torchlike in this process and its children.

    Calling it again does nothing. Children started by multiprocessing or joblib get the alias too; programs
    started with `subprocess` do not: start those with `python -m torchlike`.

    Raises:
        RuntimeError: if PyTorch itself has already been imported in this process.
    """
    if installed():
        return
    present = sys.modules.get(ALIAS)
    if present is not None and present is not sys.modules.get(REAL):
        raise RuntimeError(
            "torchlike.install() comes too late: PyTorch itself is already imported in this process "
            f"(from {getattr(present, '__file__', None)}). Call torchlike.install() before the first `import torch`, "
            "or start the program with `python -m torchlike`."
        )
    # In front of all others, so that an installed PyTorch is not found first.
    sys.meta_path.insert(0, AliasFinder())
    mirror_all()
    for name in processes.SPAWNING_MODULES:
        if name in sys.modules:
            processes.hook(sys.modules[name])


def uninstall() -> None:
    """Undo `install`: from now on `import torch` looks for PyTorch itself. Does nothing if not installed.

    References to torchlike that were imported under the name `torch` keep working.
    """
    finder = _finder()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    unmirror_all()
    for name in processes.SPAWNING_MODULES:
        if name in sys.modules:
            processes.unhook(sys.modules[name])
