"""What a file of cases needs: the `case` decorator and functions that turn behaviour into comparable values."""

import contextlib
import importlib.util
import io
import itertools
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from compat_tests.state import preserved

ROOT = pathlib.Path(__file__).resolve().parent
MODES = ("default", "direct")


class Case:
    """One function of a module `torch`, with one choice of parameters once `expand` has been called."""

    def __init__(self, function: Callable[..., Any], **settings: Any):
        self.function = function
        self.name = function.__name__
        self.settings = settings
        self.axes: list[tuple[tuple[str, ...], Sequence[Any]]] = list(getattr(function, "_case_params", []))
        self.arguments: dict[str, Any] = {}

    def __call__(self, torch: Any) -> Any:
        """The case's raw result on `torch`."""
        return self.function(torch, **self.arguments)

    @property
    def modes(self) -> Sequence[str]:
        return self.settings["modes"]

    def expand(self) -> Iterator["Case"]:
        """The case for each combination of its parameters, named like `case_sum[float32-0]`."""
        choices = [[(names, value) for value in values] for names, values in self.axes]
        for chosen in itertools.product(*choices):
            one = Case(self.function, **self.settings)
            labels = []
            for names, value in chosen:
                values = value if len(names) > 1 else (value,)
                one.arguments.update(zip(names, values, strict=True))
                labels += [str(v) for v in values]
            if labels:
                one.name = f"{self.name}[{'-'.join(labels)}]"
            yield one


class _CaseDecorator:
    """`@case`, `@case(...)` and `@case.params(...)`."""

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        area: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        modes: Sequence[str] = MODES,
        xfail: str | None = None,
    ) -> Any:
        """Register `function(torch, **parameters)` as a case.

        area: the name of the case's folder; may be left out.
        rtol, atol: tolerance of every number in the result; PyTorch's own by dtype if both are left out.
        modes: how torchlike runs it: "default" (recorded and compiled) and "direct" (each operation at once).
        xfail: why torchlike is known to differ; the case must then fail.
        """
        if unknown := set(modes) - set(MODES):
            raise ValueError(f"no such modes: {sorted(unknown)}; there are {MODES}")

        def register(function: Callable[..., Any]) -> Case:
            made = Case(function, area=area, rtol=rtol, atol=atol, modes=tuple(modes), xfail=xfail)
            registry = sys.modules[function.__module__].__dict__.setdefault("_cases", {})
            if made.name in registry:
                raise ValueError(f"two cases are called {made.name}")
            registry[made.name] = made
            return made

        return register if function is None else register(function)

    def params(self, names: str, values: Sequence[Any]) -> Callable[[Any], Any]:
        """Run the case for each of `values`; `names` is one argument name, or several with commas between."""
        axis = (tuple(name.strip() for name in names.split(",")), list(values))

        def attach(target: Any) -> Any:
            if isinstance(target, Case):
                target.axes.append(axis)
            else:
                target._case_params = [*getattr(target, "_case_params", []), axis]
            return target

        return attach


case = _CaseDecorator()


def load_cases(path: pathlib.Path) -> dict[str, Case]:
    """The expanded cases of one cases_*.py by name, in the order of the file."""
    path = path.resolve()
    name = ".".join(["compat_tests", *path.relative_to(ROOT).with_suffix("").parts])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    expanded: dict[str, Case] = {}
    for registered in module.__dict__.get("_cases", {}).values():
        if registered.settings["area"] not in (None, path.parent.name):
            raise ValueError(
                f"{path}: {registered.name} says area {registered.settings['area']!r}, its folder does not"
            )
        for one in registered.expand():
            if one.name in expanded:
                raise ValueError(f"{path}: two cases are called {one.name}")
            expanded[one.name] = one
    forgotten = [
        name for name, value in vars(module).items() if name.startswith("case_") and not isinstance(value, Case)
    ]
    if forgotten:
        raise ValueError(f"{path}: not decorated with @case: {', '.join(forgotten)}")
    return expanded


def case_files(paths: Sequence[pathlib.Path] = ()) -> list[pathlib.Path]:
    """All cases_*.py, or those in `paths`."""
    found: list[pathlib.Path] = []
    for path in paths or [ROOT]:
        found += sorted(path.rglob("cases_*.py")) if path.is_dir() else [path.resolve()]
    return found


def run_case(one: Case, torch: Any, mode: str = "default") -> Any:
    """The encoded result of a case on a module, leaving that module's global state as it was."""
    from compat_tests.encoding import encode

    with preserved(torch), warnings.catch_warnings():
        if torch.__name__ == "torch":
            warnings.simplefilter("ignore")
        else:
            # What PyTorch says to its users, torchlike may say; what JAX or NumPy say of our use of them is ours.
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
        direct = torch.direct_mode() if mode == "direct" else contextlib.nullcontext()
        with direct:
            torch.manual_seed(0)
            return encode(one(torch), torch)


# ------------------------------------------------------------------ for cases to use


def data(shape: int | Sequence[int], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """A reproducible NumPy array.

    Floats and complex numbers are standard normal, integers run from -10 to 10 (unsigned ones from 0 to 20), and
    booleans are fair. `dtype` is a NumPy name, or bfloat16, for which the values come as float32.
    """
    # The legacy generator's streams are frozen by NumPy's policy, those of default_rng() are not.
    random = np.random.RandomState(seed)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if dtype == "bool":
        return np.asarray(random.random_sample(shape) < 0.5)
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    if kind.kind == "c":
        return np.asarray(random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(kind)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -10
        return np.asarray(random.randint(low, low + 21, shape)).astype(kind)
    return np.asarray(random.standard_normal(shape)).astype(kind)


def tensor(
    torch: Any, shape: int | Sequence[int], dtype: str = "float32", seed: int = 0, requires_grad: bool = False
) -> Any:
    """`data(...)` as a tensor of the dtype that `dtype` names."""
    made = torch.tensor(data(shape, dtype, seed), dtype=getattr(torch, dtype))
    return made.requires_grad_() if requires_grad else made


def raises(torch: Any, function: Callable[[], Any]) -> list[str]:
    """[exception type, message] of what `function` raises; an AssertionError if it does not."""
    try:
        function()
    except Exception as error:
        return [type(error).__name__, str(error)]
    raise AssertionError("nothing was raised")


def warns(torch: Any, function: Callable[[], Any]) -> list[Any]:
    """[result of `function`, [[category, message], ...]]; warnings that PyTorch gives once are given each time."""
    before = torch.is_warn_always_enabled() if hasattr(torch, "is_warn_always_enabled") else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if before is not None:
            torch.set_warn_always(True)
        try:
            result = function()
        finally:
            if before is not None:
                torch.set_warn_always(before)
    return [result, [[warning.category.__name__, str(warning.message)] for warning in caught]]


def capture(function: Callable[[], Any]) -> str:
    """What `function` prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        function()
    return text.getvalue()


def grads(torch: Any, function: Callable[..., Any], *inputs: Any) -> dict[str, Any]:
    """The output of `function(*inputs)` and the gradients of the inputs that require them.

    The outputs' gradients are fixed random numbers, so that no symmetry hides a mistake.
    """
    out = function(*inputs)
    outputs = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.requires_grad]
    seeds = [tensor(torch, tuple(o.shape), str(o.dtype).removeprefix("torch."), 100 + i) for i, o in enumerate(outputs)]
    wanted = [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    return {"out": out, "grads": torch.autograd.grad(outputs, wanted, seeds, allow_unused=True)}
