"""torch.compile and the module that it returns."""

from collections.abc import Callable
from typing import Any

from torchlike.nn.modules.module import Module

__all__ = ["InvalidBackend", "OptimizedModule"]

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = frozenset((
    "aot_eager", "aot_eager_decomp_partition", "aot_ts", "cudagraphs", "eager", "inductor", "onnxrt", "openxla",
    "openxla_eval", "tensorrt", "tvm",
))  # fmt: skip


class InvalidBackend(RuntimeError):
    """A name that is no backend."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class OptimizedModule(Module):
    """What torch.compile makes of a module: a module around it, whose names get the prefix "_orig_mod.".

    Attributes are read from, and set on, the module itself. Calls run it: its steps are compiled anyway."""

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod

    @property
    def training(self) -> bool:  # type: ignore[override]
        """The module's."""
        return self._modules["_orig_mod"].training  # type: ignore[union-attr]

    @training.setter
    def training(self, value: bool) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is not None:  # the base class's __init__ sets it before there is a module
            module.training = value

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self._modules["_orig_mod"](*args, **kwargs)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules")
        if modules is None or "_orig_mod" not in modules:
            raise AttributeError(f"'OptimizedModule' object has no attribute '{name}'")
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            self._modules["_orig_mod"] = value
        elif name == "training" or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._modules["_orig_mod"])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})


def _checked_backend(backend: Any) -> None:
    if isinstance(backend, str):
        if backend not in BACKENDS:
            raise InvalidBackend(backend)
    elif callable(backend):
        raise NotImplementedError("torchlike: torch.compile(backend=<function>): there is no graph to hand to it")


def compiled(
    model: Callable | None, fullgraph: bool, dynamic: Any, backend: Any, mode: Any, options: Any, disable: bool,
    shapes_spec: Any,
) -> Any:  # fmt: skip
    """torch.compile, after its defaults."""
    if model is None:
        return lambda model: compiled(model, fullgraph, dynamic, backend, mode, options, disable, shapes_spec)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if shapes_spec is not None:
        raise NotImplementedError("torchlike: torch.compile(shapes_spec=...)")
    _checked_backend(backend)
    if isinstance(model, Module):
        return OptimizedModule(model)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model
