"""Children of a process that has the alias get it too.

A forked child inherits everything. A spawned one starts a fresh interpreter and unpickles "preparation data"
before it imports the parent's main module; one more entry in that data, whose unpickling installs the alias,
reaches every such child and nothing else. (An environment variable would leak into unrelated programs.)
"""

import functools
from types import ModuleType
from typing import Any

from torchlike._src.alias.names import ROOT

# Each has a function get_preparation_data() that returns a dict and ignores entries it does not know.
SPAWNING_MODULES = ("multiprocessing.spawn", "loky.backend.spawn", "joblib.externals.loky.backend.spawn")

# The package itself is not run (that would import JAX, which the child may not need): an empty module stands
# in for it while the hook is imported, and the first `import torch` or `import torchlike` loads it.
_IN_CHILD = """
import importlib.util, os, sys
if "torchlike" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "torchlike", os.path.join(root, "__init__.py"), submodule_search_locations=[root])
    sys.modules["torchlike"] = importlib.util.module_from_spec(spec)
    try:
        import torchlike._src.alias.finder
    finally:
        del sys.modules["torchlike"]
sys.modules["torchlike._src.alias.finder"].install()
"""


class _InstallsOnUnpickling:
    """Pickles as a call that installs the alias."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (_IN_CHILD, {"root": ROOT})


def hook(module: ModuleType) -> None:
    """Make the children that `module` (one of SPAWNING_MODULES) prepares install the alias."""
    original = module.get_preparation_data
    if hasattr(original, "_without_alias"):
        return

    @functools.wraps(original)
    def get_preparation_data(*args: Any, **kwargs: Any) -> dict[str, Any]:
        # First, so that it is unpickled before anything that may name a torch module.
        return {"torchlike": _InstallsOnUnpickling(), **original(*args, **kwargs)}

    get_preparation_data._without_alias = original  # type: ignore[attr-defined]
    module.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]


def unhook(module: ModuleType) -> None:
    """Undo `hook`."""
    original = getattr(module.get_preparation_data, "_without_alias", None)
    if original is not None:
        module.get_preparation_data = original  # type: ignore[attr-defined]
