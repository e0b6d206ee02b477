"""torch.autograd.functional: Jacobians, Hessians and their products with vectors.

Products with a vector in forward direction (jvp, hvp) differentiate a product in backward direction once more with
respect to its vector, which is exact."""

from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd.dual import close_level, new_level
from torchlike._src.tensor.backward import grad
from torchlike._src.tensor.dual import is_dual, make_dual, tangent_at
from torchlike._src.tensor.modes import enable_grad, is_grad_enabled, set_grad_enabled
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, what: str, function: str) -> tuple[bool, tuple]:
    """(whether it was a tuple, a tuple of tensors)."""
    was_tuple = isinstance(value, tuple)
    items = value if was_tuple else (value,)
    for k, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"value at index {k}" if was_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(item)}."
            )
    return was_tuple, items


def _inputs(inputs: tuple, create_graph: bool, need_graph: bool) -> tuple:
    """Fresh leaves with the inputs' data; with create_graph, views of the inputs, so that results depend on them."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs)
    return tuple(x.detach().requires_grad_(need_graph) for x in inputs)


def _finish(value: Any, create_graph: bool) -> Any:
    """Without create_graph, results carry no history."""
    if isinstance(value, tuple):
        return tuple(_finish(v, create_graph) for v in value)
    return value if create_graph else value.detach()


def _unpack(items: tuple, was_tuple: bool) -> Any:
    return items if was_tuple else items[0]


def _vector(v: Any, like: tuple, is_tuple: bool, missing: str) -> tuple:
    """The user's vector, checked against what it multiplies; 1 for a single element."""
    if v is None:
        if len(like) != 1 or like[0].nelement() != 1:
            raise RuntimeError(missing)
        return (torch.ones_like(like[0]),)
    given = v if isinstance(v, tuple) else (v,)
    if len(given) != len(like):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for k, (a, b) in enumerate(zip(given, like, strict=True)):
        if a.size() != b.size():
            lead = f"Entry {k} in " if is_tuple else ""
            raise RuntimeError(f"{lead}v has invalid size: should be {b.size()} but got {a.size()}.")
    return given


def _grad(outputs: Sequence, inputs: tuple, weights: Sequence, create_graph: bool, keep: bool | None = None) -> list:
    """autograd.grad over the outputs that require it; None where there is no path."""
    pairs = [(o, w) for o, w in zip(outputs, weights, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    return list(
        grad(
            [o for o, _ in pairs],
            inputs,
            [w for _, w in pairs],
            retain_graph=keep,
            create_graph=create_graph,
            allow_unused=True,
        )
    )


def _independent(k: int, what: str = "output") -> RuntimeError:
    return RuntimeError(
        f"The {what} of the user-provided function is independent of input {k}. This is not allowed in strict mode."
    )


def _check_outputs(outputs: tuple, strict: bool) -> None:
    if strict:
        for k, o in enumerate(outputs):
            if not o.requires_grad:
                raise RuntimeError(
                    f"Output {k} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )


def _filled(grads: Sequence, like: tuple, strict: bool, error: Callable[[int], RuntimeError]) -> tuple:
    """Zeros where there is no gradient; in strict mode an error."""
    out = []
    for k, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise error(k)
            g = torch.zeros_like(x)
        out.append(g)
    return tuple(out)


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T J): the product of `v`, shaped like the outputs, with the Jacobian."""
    with enable_grad():
        inputs_tuple, given = _as_tuple(inputs, "inputs", "vjp")
        xs = _inputs(given, create_graph, True)
        outputs_tuple, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", "vjp")
        _check_outputs(outputs, strict)
        vector = _vector(
            v, outputs, outputs_tuple,
            "The vector v can only be None if the user-provided function returns a single Tensor with a single "
            "element.",
        )  # fmt: skip
    with set_grad_enabled(True if create_graph else is_grad_enabled()):
        product = _filled(_grad(outputs, xs, vector, create_graph), xs, strict, _independent)
    return (
        _unpack(_finish(outputs, create_graph), outputs_tuple),
        _unpack(_finish(product, create_graph), inputs_tuple),
    )


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), J v): the product of the Jacobian with `v`, shaped like the inputs."""
    with enable_grad():
        inputs_tuple, given = _as_tuple(inputs, "inputs", "jvp")
        xs = _inputs(given, create_graph, True)
        vector = _vector(
            v, xs, inputs_tuple,
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element.",
        )  # fmt: skip
        outputs_tuple, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", "jvp")
        _check_outputs(outputs, strict)
        dummies = tuple(torch.zeros_like(o, requires_grad=True) for o in outputs)
        backward = _filled(_grad(outputs, xs, dummies, True), xs, strict, _independent)
        product = _filled(
            _grad(backward, dummies, vector, create_graph), outputs, strict,
            lambda k: RuntimeError(
                f"The gradient with respect to the input is independent of entry {k} in the grad_outputs when using "
                "the double backward trick to compute forward mode gradients. This is not allowed in strict mode."
            ),
        )  # fmt: skip
    return (
        _unpack(_finish(outputs, create_graph), outputs_tuple),
        _unpack(_finish(product, create_graph), outputs_tuple),
    )


def _functions() -> Any:
    from torchlike import func  # when it is needed: `import torch` stays quick

    return func


def _basis(tensors: tuple) -> tuple:
    """For each tensor (total number of elements, *shape): row k is 1 at element k of all of them."""
    total = sum(t.nelement() for t in tensors)
    parts = []
    before = 0
    for t in tensors:
        part = torch.zeros(total, t.nelement(), dtype=t.dtype, device=t.device)
        part[before : before + t.nelement()] = torch.eye(t.nelement(), dtype=t.dtype, device=t.device)
        before += t.nelement()
        parts.append(part.reshape(total, *t.size()))
    return tuple(parts)


def _batched_rows(outputs: tuple, xs: tuple, create_graph: bool) -> tuple:
    """For each output for each input the Jacobian, all rows in one backward pass."""

    def pull(*weights: Tensor) -> tuple:
        return _filled(_grad(outputs, xs, weights, create_graph, True), xs, False, _independent)

    found = _functions().vmap(pull)(*_basis(outputs))
    rows = [f.split([o.nelement() for o in outputs]) for f in found]
    return tuple(
        tuple(r[k].reshape(o.size() + x.size()) for r, x in zip(rows, xs, strict=True)) for k, o in enumerate(outputs)
    )


def _forward_jacobian(func: Callable, inputs: Any, strict: bool, vectorize: bool) -> Any:
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    inputs_tuple, xs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    outputs_tuple = False

    def push(*tangents: Tensor) -> tuple:
        nonlocal outputs_tuple
        level = new_level()
        try:
            duals = [make_dual(x, t, level) for x, t in zip(xs, tangents, strict=True)]
            outputs_tuple, outputs = _as_tuple(func(*duals), "outputs", "None")
            return tuple(tangent_at(o, level) if is_dual(o, level) else torch.zeros_like(o) for o in outputs)
        finally:
            close_level(level)

    columns = _functions().vmap(push)(*_basis(xs))
    rows = []
    for c in columns:
        size = c.size()[1:]
        parts = c.split([x.nelement() for x in xs])
        rows.append([p.movedim(0, -1).reshape(size + x.size()) for p, x in zip(parts, xs, strict=True)])
    result: Any = rows if inputs_tuple else tuple(r[0] for r in rows)  # lists, as in PyTorch
    return result if outputs_tuple else result[0]


def jacobian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian of `func` at `inputs`: output shape + input shape for each pair of an output and an input."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). '
                'Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _forward_jacobian(func, inputs, strict, vectorize)
    with enable_grad():
        inputs_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
        xs = _inputs(given, create_graph, True)
        outputs_tuple, outputs = _as_tuple(func(*xs), "outputs of the user-provided function", "jacobian")
        _check_outputs(outputs, strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                    "together. Please either set `strict=False` or `vectorize=False`."
                )
            found = _finish(_batched_rows(outputs, xs, create_graph), create_graph)
            return _unpack(tuple(_unpack(r, inputs_tuple) for r in found), outputs_tuple)
        rows: list = []
        for o in outputs:
            columns: list[list] = [[] for _ in xs]
            flat = o.reshape(-1)
            for j in range(o.nelement()):
                found = _grad((flat[j],), xs, (torch.ones_like(flat[j]),), create_graph, True)
                for k, (g, x) in enumerate(zip(found, xs, strict=True)):
                    if strict and g is None:
                        raise RuntimeError(
                            f"Output {len(rows)} of the user-provided function is independent of input {k}. This is "
                            "not allowed in strict mode."
                        )
                    if strict and create_graph and not g.requires_grad:
                        raise RuntimeError(
                            "The jacobian of the user-provided function is independent of "
                            f"input {k}. This is not allowed in strict mode when create_graph=True."
                        )
                    columns[k].append(torch.zeros_like(x) if g is None else g)
            rows.append(
                tuple(
                    torch.stack(c).reshape(o.size() + x.size())
                    if c
                    else torch.zeros(o.size() + x.size(), dtype=x.dtype)
                    for c, x in zip(columns, xs, strict=True)
                )
            )
    result = _finish(tuple(rows), create_graph)
    per_output = tuple(_unpack(r, inputs_tuple) for r in result)
    return _unpack(per_output, outputs_tuple)


def _scalar(outputs: Any, function: str) -> Tensor:
    """The single value that a Hessian is of."""
    was_tuple, items = _as_tuple(outputs, "outputs of the user-provided function", function)
    if was_tuple or not isinstance(outputs, Tensor):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if items[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return items[0].squeeze()


def hessian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a `func` that returns one number: input shape + input shape for each pair of inputs."""
    inputs_tuple, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*xs: Tensor) -> tuple:
        out = _scalar(func(*xs), "hessian")
        _check_outputs((out,), strict)
        found = _grad((out,), xs, (torch.ones_like(out),), True)
        filled = _filled(found, xs, strict, _independent)
        if strict:
            for k, g in enumerate(filled):
                if not g.requires_grad:
                    raise RuntimeError(
                        "While computing the hessian, found that the jacobian of the user-provided function with "
                        f"respect to input {k} is independent of the input. This is not allowed in strict mode. You "
                        "should ensure that your function is twice differentiable and that the jacobian depends on the "
                        "inputs (this would be violated by a linear function for example)."
                    )
        return filled

    if outer_jacobian_strategy == "forward-mode":
        forward = _functions().grad(lambda *xs: _scalar(func(*xs), "hessian"), tuple(range(len(given))))
        rows = jacobian(forward, given, create_graph, strict, vectorize, outer_jacobian_strategy)
        return rows if inputs_tuple else rows[0][0]
    rows = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if inputs_tuple else rows[0][0]


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), v^T H): the product of `v`, shaped like the inputs, with the Hessian."""
    with enable_grad():
        inputs_tuple, given = _as_tuple(inputs, "inputs", "vhp")
        xs = _inputs(given, create_graph, True)
        vector = _vector(
            v, xs, inputs_tuple,
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element.",
        )  # fmt: skip
        output = _scalar(func(*xs), "vhp")
        _check_outputs((output,), strict)
        jac = _filled(_grad((output,), xs, (torch.ones_like(output),), True), xs, strict, _independent)
    with set_grad_enabled(True if create_graph else is_grad_enabled()):
        product = _filled(_grad(jac, xs, vector, create_graph), xs, strict, lambda k: _independent(k, "jacobian"))
    return _finish(output, create_graph), _unpack(_finish(product, create_graph), inputs_tuple)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(*inputs), H v): the product of the Hessian with `v`, shaped like the inputs."""
    with enable_grad():
        inputs_tuple, given = _as_tuple(inputs, "inputs", "hvp")
        xs = _inputs(given, create_graph, True)
        vector = _vector(
            v, xs, inputs_tuple,
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element.",
        )  # fmt: skip
        output = _scalar(func(*xs), "hvp")
        _check_outputs((output,), strict)
        jac = _filled(_grad((output,), xs, (torch.ones_like(output),), True), xs, strict, _independent)
        dummies = tuple(torch.zeros_like(x, requires_grad=True) for x in xs)
        twice = _filled(_grad(jac, xs, dummies, True), xs, strict, lambda k: _independent(k, "jacobian"))
        product = _filled(_grad(twice, dummies, vector, create_graph), xs, strict, lambda k: _independent(k, "hessian"))
    return _finish(output, create_graph), _unpack(_finish(product, create_graph), inputs_tuple)
