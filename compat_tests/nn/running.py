"""What cases of layers share: a layer is built from text, called, differentiated, and everything visible is noted."""

import warnings
from typing import Any

import numpy as np

from compat_tests import data


def brief(t: Any) -> Any:
    """A tensor as its dtype, shape, first elements and two weighted sums; containers are walked through."""
    if isinstance(t, (tuple, list)):
        return [brief(x) for x in t]
    if isinstance(t, dict):
        return {k: brief(v) for k, v in t.items()}
    if not hasattr(t, "detach"):
        return t
    if t.numel() <= 12:
        return t
    numbers = np.asarray(t.detach().double() if t.is_floating_point() else t.detach(), np.float64).reshape(-1)
    weights = np.cos(np.arange(numbers.size))
    scale = max(float(np.abs(numbers).max()), 1e-3)
    return {
        "shape": list(t.shape),
        "dtype": t.dtype,
        "requires_grad": t.requires_grad,
        "first": numbers[:6],
        "sum": float(numbers.sum() / scale / numbers.size),
        "weighted": float((numbers * weights).sum() / scale / numbers.size),
    }


class Inputs:
    """The names that a layer's text may use: x (normal), p (probabilities), i (class numbers), s (signs)."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.seed = 0

    def _next(self, shape: tuple) -> np.ndarray:
        self.seed += 1
        return data(shape, "float32", self.seed)

    def names(self) -> dict[str, Any]:
        torch = self.torch
        return {
            "torch": torch,
            "nn": torch.nn,
            "F": torch.nn.functional,
            "x": lambda *shape: torch.tensor(self._next(shape)),
            "p": lambda *shape: torch.tensor(1 / (1 + np.exp(-self._next(shape)))),
            "s": lambda *shape: torch.tensor(np.sign(self._next(shape))),
        }


def attempt(function: Any) -> Any:
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def flat(value: Any) -> list:
    """The leaves of nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def run_layer(torch: Any, text: str, inputs: tuple[str, ...], grads: bool = True) -> dict[str, Any]:
    """Everything that can be seen of `eval(text)` and of calling it."""
    names = Inputs(torch).names()
    out: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            layer = eval(text, names)
            out["repr"] = repr(layer)
            out["parameters"] = [[k, type(p).__name__, p.requires_grad] for k, p in layer.named_parameters()]
            out["buffers"] = [k for k, _ in layer.named_buffers()]
            out["attributes"] = {
                k: getattr(v, "__name__", None) or repr(v) for k, v in layer.__dict__.items() if not k.startswith("_")
            }
            if inputs:
                operands = [eval(i, names) for i in inputs]
                for o, written in zip(operands, inputs, strict=True):
                    # Signs are targets, which some losses do not differentiate; masks are constants.
                    if written.startswith("s(") or "mask(" in written or not grads or not isinstance(o, torch.Tensor):
                        continue
                    if o.is_floating_point() and o.is_leaf:
                        o.requires_grad_()
                result = layer(*operands)
                out["result"] = brief(result)
                leaves = [t for t in flat(result) if hasattr(t, "requires_grad") and t.requires_grad]
                if leaves:
                    # Fixed weights, so that no symmetry hides a mistake.
                    weighted = [
                        (t * torch.linspace(-1, 2, t.numel()).reshape(t.shape).to(t.dtype)).sum() for t in leaves
                    ]
                    sum(weighted).backward()
                    out["grads"] = [brief(o.grad) for o in operands if isinstance(o, torch.Tensor) and o.is_leaf]
                    out["parameter grads"] = [brief(p.grad) for p in layer.parameters()]
                out["class"] = type(layer).__name__
                out["repr after"] = repr(layer)
            out["state"] = {
                k: None if "Uninit" in type(v).__name__ else brief(v) for k, v in layer.state_dict().items()
            }
        except Exception as error:
            out["error"] = [type(error).__name__, str(error)]
    out["warnings"] = [
        [w.category.__name__, str(w.message)] for w in caught if "Triggered internally" not in str(w.message)
    ]
    return out
