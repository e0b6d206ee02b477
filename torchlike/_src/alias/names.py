"""Which module name stands for which, and under which name classes introduce themselves.

While the alias is installed, classes and functions of the public modules carry PyTorch's module path in
`__module__`: `print(type(model))` shows `<class 'torch.nn.modules.linear.Linear'>`, and a pickle names what
PyTorch's own pickle would name. Without the alias they carry torchlike's path, which is then the one that
can be imported.
"""

import os
import sys
import types

ALIAS = "torch"
REAL = "torchlike"
# The folder of the package `torchlike`.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The release of PyTorch whose behaviour is reproduced: what version checks get to see. It carries no local
# part ("+torchlike"), because programs do parse it with `map(int, version.split("."))`.
TORCH_VERSION = "2.13.0"

_LABELLED = (type, types.FunctionType)


def is_alias(name: str) -> bool:
    """Whether `name` is `torch` or a module below it."""
    return name == ALIAS or name.startswith(ALIAS + ".")


def is_public(name: str) -> bool:
    """Whether `name` is a torchlike module that has a twin under `torch`."""
    if name == REAL:
        return True
    return name.startswith(REAL + ".") and name.split(".")[1] not in ("_src", "__main__")


def to_real(name: str) -> str:
    """torch.x.y -> torchlike.x.y"""
    return REAL + name[len(ALIAS) :]


def to_alias(name: str) -> str:
    """torchlike.x.y -> torch.x.y"""
    return ALIAS + name[len(REAL) :]


def mirror(name: str, module: types.ModuleType) -> None:
    """Make the public module `name` known under its alias, and label what it holds accordingly."""
    sys.modules[to_alias(name)] = module
    module.__name__ = to_alias(name)  # what programs compare, and filters of warnings match; `__spec__` keeps the other
    for value in list(vars(module).values()):
        if isinstance(value, _LABELLED) and is_public(getattr(value, "__module__", None) or ""):
            value.__module__ = to_alias(value.__module__)


def mirror_all() -> None:
    """Mirror every public module that is loaded by now."""
    for name, module in list(sys.modules.items()):
        if is_public(name) and module is not None:
            mirror(name, module)


def unmirror_all() -> None:
    """Undo every `mirror`."""
    for name, module in list(sys.modules.items()):
        if not is_public(name) or module is None:
            continue
        if sys.modules.get(to_alias(name)) is module:
            del sys.modules[to_alias(name)]
            module.__name__ = name
        for value in list(vars(module).values()):
            if isinstance(value, _LABELLED) and is_alias(getattr(value, "__module__", None) or ""):
                value.__module__ = to_real(value.__module__)
