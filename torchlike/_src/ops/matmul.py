"""Matrix products: mm, bmm, matmul, linear, the add-multiply family, einsum.

Backward puts an `optimization_barrier` on the incoming gradient: without it XLA's CPU backend fuses transposing
copies of the gradient's producer around the weight-gradient product, which costs more than the product. Half
types accumulate in float32. Products refuse mixed dtypes, as PyTorch's do.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import broadcast_shapes, expand_shape, shape_text
from torchlike._src.ops.declare import TO, Promote, S, T, op
from torchlike._src.ops.products import HALF, barrier, column_sum, dot, last_with_last, untransposed

# -- arithmetic -----------------------------------------------------------------------------------------------


def conj(a: Any) -> Any:
    return jnp.conj(a) if a.dtype.kind == "c" else a


def rows_with_rows(a: Any, b: Any) -> Any:
    """(..., m), (..., n) -> (m, n): contracts all leading dims; the weight gradient's form."""
    lead = tuple(range(a.ndim - 1))
    return dot(a, b, (lead, lead))


def scaled(x: Any, factor: Any) -> Any:
    """`x * factor` for a 0-d number, in x's dtype (integers: the factor is truncated, as PyTorch does)."""
    if x.dtype.kind in "iu":
        factor = factor.astype(x.dtype)
    elif x.dtype.name in HALF:
        return (x.astype(jnp.float32) * factor.astype(jnp.float32)).astype(x.dtype)
    elif x.dtype.kind == "b":
        return x & (factor != 0)
    else:
        factor = (factor.real if factor.dtype.kind == "c" and x.dtype.kind != "c" else factor).astype(x.dtype)
    return x * factor


# -- checks ---------------------------------------------------------------------------------------------------


def same_m1_m2(a: Aval, b: Aval) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {a.dtype.cpp_name} != {b.dtype.cpp_name}"
        )


def no_bool(name: str, a: Aval) -> None:
    if a.dtype.name == "bool":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


def fits(m: int, k: int, k2: int, n: int) -> None:
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})")


def check_mm(input: Aval, mat2: Aval) -> None:
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    fits(*input.shape, *mat2.shape)
    same_m1_m2(input, mat2)
    no_bool("addmm_impl_cpu_", input)


def check_bmm(input: Aval, mat2: Aval) -> None:
    if input.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if mat2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    if input.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {mat2.dtype.scalar_name}")
    no_bool("bmm", input)


def check_dot(input: Aval, tensor: Aval, name: str = "dot") -> None:
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    if input.dtype is not tensor.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {input.dtype.scalar_name} and "
            f"{tensor.dtype.scalar_name}"
        )
    if input.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {shape_text(input.shape)} and src "
            f"{shape_text(tensor.shape)} to have the same number of elements, but got {input.numel} and "
            f"{tensor.numel} elements respectively"
        )
    no_bool(name, input)


def check_vdot(input: Aval, other: Aval) -> None:
    check_dot(input, other, "vdot" if input.dtype.is_complex else "dot")


def check_addmv(input: Aval, mat: Aval, vec: Aval, beta: Any = 1, alpha: Any = 1) -> None:
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    rows, columns = mat.shape
    if columns != vec.shape[0] or input.numel not in (1, rows) or (input.ndim and input.shape[0] not in (1, rows)):
        raise RuntimeError(
            f"size mismatch, got input ({input.shape[0] if input.ndim else 1}), mat ({rows}x{columns}), "
            f"vec ({vec.shape[0]})"
        )
    if not input.dtype is mat.dtype is vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{input.dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}"
        )
    no_bool("addmv_impl_cpu", mat)


def check_mv(input: Aval, vec: Aval) -> None:
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    check_addmv(aval(input.shape[:1], vec.dtype), input, vec)


def check_addmm(input: Aval, mat1: Aval, mat2: Aval, beta: Any = 1, alpha: Any = 1) -> None:
    if mat1.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    fits(*mat1.shape, *mat2.shape)
    if mat1.dtype is not mat2.dtype and input.dtype is mat2.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {mat1.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    expand_shape((mat1.shape[0], mat2.shape[1]), input.shape, input.dtype.type_name)
    no_bool("addmm_impl_cpu_", mat1)


def check_baddbmm(input: Aval, batch1: Aval, batch2: Aval, beta: Any = 1, alpha: Any = 1) -> None:
    same = input.dtype is batch1.dtype
    if batch1.ndim == 3 and batch2.ndim == 3 and not same:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {input.dtype.cpp_name}, batch1: {batch1.dtype.cpp_name}, "
            f"batch2: {batch2.dtype.cpp_name}"
        )
    check_bmm(batch1, batch2)
    expand_shape((*batch1.shape[:2], batch2.shape[2]), input.shape, input.dtype.type_name)


def check_addbmm(input: Aval, batch1: Aval, batch2: Aval, beta: Any = 1, alpha: Any = 1) -> None:
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
            f"{batch2.shape[1]}x{batch2.shape[2]})"
        )
    expand_shape((batch1.shape[1], batch2.shape[2]), input.shape, input.dtype.type_name)
    if not input.dtype is batch1.dtype is batch2.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {input.dtype.cpp_name}, batch1: {batch1.dtype.cpp_name}, "
            f"batch2: {batch2.dtype.cpp_name}"
        )
    no_bool("baddbmm", batch1)


def check_addr(input: Aval, vec1: Aval, vec2: Aval, beta: Any = 1, alpha: Any = 1) -> None:
    for name, v in (("vec1", vec1), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {v.ndim}-D")
    expand_shape((vec1.shape[0], vec2.shape[0]), input.shape, input.dtype.type_name)


def check_outer(input: Aval, vec2: Aval) -> None:
    for name, v in (("self", input), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")


def check_inner(input: Aval, other: Aval) -> None:
    if input.ndim and other.ndim and input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{shape_text(input.shape)} and {shape_text(other.shape)}"
        )
    if input.ndim and other.ndim:
        same_m1_m2(input, other)
        no_bool("addmm_impl_cpu_", input)


def check_matmul(input: Aval, other: Aval) -> None:
    a, b = input, other
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 1:
        check_dot(a, b)
    elif b.ndim == 1:
        rows = math.prod(a.shape[:-1])
        check_mv(aval((rows, a.shape[-1]), a.dtype), b)
    elif b.ndim == 2:
        fits(math.prod(a.shape[:-1]), a.shape[-1], *b.shape)
        same_m1_m2(a, b)
        no_bool("addmm_impl_cpu_", a)
    elif a.ndim <= 2:  # PyTorch folds the batch into the transposed product; its message shows that
        k, n = b.shape[-2:]
        if a.ndim == 1:
            rows = math.prod(b.shape[:-2]) * n
            if k != a.shape[0]:
                raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{k}), vec ({a.shape[0]})")
        else:
            fits(math.prod(b.shape[:-2]) * n, k, a.shape[1], a.shape[0])
        same_m1_m2(a, b)
        no_bool("addmm_impl_cpu_", a)
    else:
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        count = math.prod(batch)
        check_bmm(aval((count, *a.shape[-2:]), a.dtype), aval((count, *b.shape[-2:]), b.dtype))


def matmul_shape(input: Aval, other: Aval) -> Aval:
    a, b = input.shape, other.shape
    if len(a) == 1 and len(b) == 1:
        out: tuple = ()
    elif len(b) == 1:
        out = a[:-1]
    elif len(a) == 1:
        out = (*b[:-2], b[-1])
    else:
        out = (*broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    return aval(out, input.dtype, input.device)


def matmul_name(input: Aval, other: Aval) -> str:
    a, b = input.ndim, other.ndim
    if a == b == 1:
        return "DotBackward0"
    if a == b == 2:
        return "MmBackward0"
    if b == 1 and a == 2:
        return "MvBackward0"
    if a == 1 and b == 2:
        return "SqueezeBackward4"
    return "CloneBackward0" if a == 2 else "UnsafeViewBackward0"


# -- products -------------------------------------------------------------------------------------------------


def wide_dot(a: Any, b: Any, contract: tuple, batch: tuple = ((), ())) -> Any:
    """`dot` whose result stays in float32 for half types."""
    if a.dtype.name in HALF:
        return lax.dot_general(a, b, (contract, batch), preferred_element_type=jnp.float32)
    return dot(a, b, contract, batch)


def _mm(a: Any, b: Any) -> Any:
    return dot(a, untransposed(b), ((1,), (0,)))


def _bmm(a: Any, b: Any) -> Any:
    return dot(a, b, ((2,), (1,)), ((0,), (0,)))


def mm_left(g: Any, right: Any) -> Any:
    """d(a @ b)/da: g @ b^H."""
    return last_with_last(g, conj(right))


def mm_right(g: Any, left: Any) -> Any:
    """d(a @ b)/db: a^H @ g."""
    return dot(conj(left), g, ((0,), (0,)))


def bmm_left(g: Any, right: Any) -> Any:
    return dot(g, conj(right), ((2,), (2,)), ((0,), (0,)))


def bmm_right(g: Any, left: Any) -> Any:
    return dot(conj(left), g, ((1,), (1,)), ((0,), (0,)))


@op(
    check=check_mm,
    shape=lambda input, mat2: aval((input.shape[0], mat2.shape[1]), input.dtype, input.device),
    autocast="lower",
    vjp={
        "input": lambda g, mat2: mm_left(barrier(g), mat2),
        "mat2": lambda g, input: mm_right(barrier(g), input),
    },
)
def mm(input: T, mat2: T):
    """(n, k), (k, m) -> (n, m): the matrix product; both of one dtype."""
    return _mm(input, mat2)


@op(
    check=check_bmm,
    shape=lambda input, mat2: aval((*input.shape[:2], mat2.shape[2]), input.dtype, input.device),
    autocast="lower",
    vjp={
        "input": lambda g, mat2: bmm_left(barrier(g), mat2),
        "mat2": lambda g, input: bmm_right(barrier(g), input),
    },
)
def bmm(input: T, mat2: T):
    """(b, n, k), (b, k, m) -> (b, n, m): one matrix product per batch element; both of one dtype."""
    return _bmm(input, mat2)


@op(
    check=check_mv,
    shape=lambda input, vec: aval(input.shape[:1], input.dtype, input.device),
    vjp={
        "input": lambda g, vec: g[:, None] * conj(vec)[None, :],
        "vec": lambda g, input: dot(g, conj(input), ((0,), (0,))),
    },
)
def mv(input: T, vec: T):
    """(n, k), (k,) -> (n,): the matrix-vector product."""
    return dot(input, vec, ((1,), (0,)))


@op(
    name="dot",
    check=check_dot,
    shape=lambda input, tensor: aval((), input.dtype, input.device),
    vjp={"input": lambda g, tensor: g * conj(tensor), "tensor": lambda g, input: g * conj(input)},
)
def dot_(input: T, tensor: T):
    """(n,), (n,) -> (): the sum of products; complex values are not conjugated."""
    return dot(input, tensor, ((0,), (0,)))


@op(
    check=check_vdot,
    shape=lambda input, other: aval((), input.dtype, input.device),
    vjp={"input": lambda g, other: conj(g) * other, "other": lambda g, input: g * input},
)
def vdot(input: T, other: T):
    """(n,), (n,) -> (): the sum of products, the first operand conjugated."""
    return dot(conj(input), other, ((0,), (0,)))


def _batched(a: Any, b: Any) -> tuple:
    """Both operands with the same batch dims."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.shape[:-2] != batch:
        a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    if b.shape[:-2] != batch:
        b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    return a, b, tuple(range(len(batch)))


def matmul_grad_input(g: Any, other: Any, input_aval: Aval) -> Any:
    b = conj(other)
    if input_aval.ndim == 1 and b.ndim > 1:
        g = g[..., None, :]
    if b.ndim == 1:
        return g[..., None] * b
    g = barrier(g)
    if b.ndim == 2:
        return last_with_last(g, b)
    g, b, batch = _batched(g, b)
    last = g.ndim - 1
    d = dot(g, b, ((last,), (last,)), (batch, batch))
    return d[..., 0, :] if input_aval.ndim == 1 else d


def matmul_grad_other(g: Any, input: Any, other_aval: Aval) -> Any:
    a = conj(input)
    if other_aval.ndim == 1:
        lead = tuple(range(g.ndim))
        return dot(g, a, (lead, lead)) if a.ndim > 1 else g * a
    if a.ndim == 1:
        return a[:, None] * g[..., None, :]
    g = barrier(g)
    if other_aval.ndim == 2:
        return rows_with_rows(a, g)
    a, g, batch = _batched(a, g)
    row = g.ndim - 2
    return dot(a, g, ((row,), (row,)), (batch, batch))


@op(
    check=check_matmul,
    shape=matmul_shape,
    autocast="lower",
    grad_name=matmul_name,
    dunders=("__matmul__",),
    vjp={"input": matmul_grad_input, "other": matmul_grad_other},
)
def matmul(input: T, other: T):
    """(..., n, k), (..., k, m) -> (..., n, m), batch dims broadcast; a 1-d operand is a row or a column whose dim
    is dropped from the result. Both of one dtype."""
    if other.ndim <= 2:
        return dot(input, untransposed(other), ((input.ndim - 1,), (0,)))
    if input.ndim == 1:
        return dot(other, input, ((other.ndim - 2,), (0,)))
    a, b, batch = _batched(input, other)
    return dot(a, b, ((a.ndim - 1,), (b.ndim - 2,)), (batch, batch))


# -- linear and bilinear --------------------------------------------------------------------------------------


def check_linear(input: Aval, weight: Aval, bias: Aval | None) -> None:
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim < 2 or input.ndim == 0:
        if bias is not None and input.ndim:
            raise RuntimeError(f"mat2 must be a matrix, got {weight.ndim}-D tensor")
        check_matmul(input, weight)
        return
    rows = math.prod(input.shape[:-1])
    out_features, in_features = weight.shape
    fits(rows, input.shape[-1], in_features, out_features)
    if bias is None:
        same_m1_m2(input, weight)
        no_bool("addmm_impl_cpu_", input)
    else:
        flat = aval((rows, in_features), input.dtype)
        check_addmm(bias, flat, aval((in_features, out_features), weight.dtype))


def linear_shape(input: Aval, weight: Aval, bias: Aval | None) -> Aval:
    return aval(input.shape[:-1] + weight.shape[:-1], input.dtype, input.device)


def linear_name(input: Aval, weight: Aval, bias: Aval | None) -> str:
    if weight.ndim == 1:
        return matmul_name(input, weight)
    if input.ndim == 2:
        return "MmBackward0" if bias is None else "AddmmBackward0"
    if bias is not None:
        return "ViewBackward0"
    return "SqueezeBackward4" if input.ndim == 1 else "UnsafeViewBackward0"


def linear_grad_input(g: Any, weight: Any) -> Any:
    if weight.ndim == 1:
        return g[..., None] * conj(weight)
    return dot(barrier(g), conj(weight), ((g.ndim - 1,), (0,)))


def linear_grad_weight(g: Any, input: Any, weight_aval: Aval) -> Any:
    if weight_aval.ndim == 1:
        lead = tuple(range(g.ndim))
        return dot(g, conj(input), (lead, lead))
    if g.ndim == 1:
        return g[:, None] * conj(input)
    return rows_with_rows(barrier(g), conj(input))


@op(
    namespaces=("torch.nn.functional",),
    method=False,
    out=False,
    check=check_linear,
    shape=linear_shape,
    autocast="lower",
    grad_name=linear_name,
    vjp={
        "input": linear_grad_input,
        "weight": linear_grad_weight,
        "bias": lambda g, bias_aval: column_sum(barrier(g), max(1, min(bias_aval.ndim, g.ndim))),
    },
)
def linear(input: T, weight: T, bias: TO = None):
    """(..., in), (out, in), (out,) -> (..., out): `input @ weight.T + bias`."""
    contract = ((input.ndim - 1,), (weight.ndim - 1,))
    if bias is not None and input.dtype.name in HALF:  # half types: one rounding, after the bias
        wide = lax.dot_general(input, weight, (contract, ((), ())), preferred_element_type=jnp.float32)
        return (wide + bias.astype(jnp.float32)).astype(input.dtype)
    out = last_with_last(input, weight) if weight.ndim == 2 else dot(input, weight, contract)
    return out if bias is None else out + bias


def check_bilinear(input1: Aval, input2: Aval, weight: Aval, bias: Aval | None) -> None:
    a, b, w = input1, input2, weight
    if a.ndim != b.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {a.ndim} and {b.ndim}")
    for k in range(a.ndim - 1):
        if a.shape[k] != b.shape[k]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {k}: got {a.shape[k]} and {b.shape[k]}"
            )
    for k, x in ((1, a), (2, b)):
        if x.shape[-1] != w.shape[k]:
            raise RuntimeError(
                f"bilinear(): input{k} size does not match weight size: got {x.shape[-1]} but expected {w.shape[k]}"
            )
    if bias is not None and bias.shape[0] != w.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {w.shape[0]}"
        )


def _bilinear(x1: Any, x2: Any, w: Any) -> Any:
    """(n, i), (n, j), (o, i, j) -> (n, o)."""
    left = dot(x1, w, ((1,), (1,)))  # (n, o, j)
    return dot(left, x2, ((2,), (1,)), ((0,), (0,)))


def bilinear_grad_input1(g: Any, input2: Any, weight: Any) -> Any:
    g2, y = g.reshape(-1, g.shape[-1]), conj(input2).reshape(-1, input2.shape[-1])
    right = dot(y, conj(weight), ((1,), (2,)))  # (n, o, i)
    return dot(g2, right, ((1,), (1,)), ((0,), (0,))).reshape(*g.shape[:-1], weight.shape[1])


def bilinear_grad_input2(g: Any, input1: Any, weight: Any) -> Any:
    g2, x = g.reshape(-1, g.shape[-1]), conj(input1).reshape(-1, input1.shape[-1])
    left = dot(x, conj(weight), ((1,), (1,)))  # (n, o, j)
    return dot(g2, left, ((1,), (1,)), ((0,), (0,))).reshape(*g.shape[:-1], weight.shape[2])


def bilinear_grad_weight(g: Any, input1: Any, input2: Any) -> Any:
    g2 = g.reshape(-1, g.shape[-1])
    x, y = (conj(v).reshape(-1, v.shape[-1]) for v in (input1, input2))
    return dot(g2[:, :, None] * x[:, None, :], y, ((0,), (0,)))


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    check=check_bilinear,
    grad_name=lambda input1, input2, weight, bias: "ViewBackward0" if bias is None else "AddBackward0",
    vjp={
        "input1": bilinear_grad_input1,
        "input2": bilinear_grad_input2,
        "weight": bilinear_grad_weight,
        "bias": lambda g: column_sum(g),
    },
)
def bilinear(input1: T, input2: T, weight: T, bias: TO = None):
    """(..., i), (..., j), (o, i, j), (o,) -> (..., o): `input1 @ weight[o] @ input2 + bias[o]`."""
    x1, x2 = (v.reshape(-1, v.shape[-1]) for v in (input1, input2))
    out = _bilinear(x1, x2, weight).reshape(*input1.shape[:-1], weight.shape[0])
    return out if bias is None else out + bias


# -- add and multiply -----------------------------------------------------------------------------------------


def _blend(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * input + alpha * product. With beta 0 PyTorch ignores input, NaN included. A float32 product of half types
    is rounded when input has been added."""
    half = input.dtype if input.dtype.name in HALF and product.dtype == jnp.float32 else None
    if half is not None:
        return _blend(input.astype(jnp.float32), product, beta, alpha).astype(half)
    product = scaled(product, alpha)
    first = jnp.where(beta == 0, jnp.zeros((), input.dtype), scaled(input, beta))
    return product | first if product.dtype.kind == "b" else first + product


def _number_conj(c: Any) -> Any:
    return jnp.conj(c) if c.dtype.kind == "c" else c


@op(
    check=check_addmm,
    inplace=True,
    shape=lambda input, mat1, mat2, beta, alpha: aval((mat1.shape[0], mat2.shape[1]), mat1.dtype, mat1.device),
    autocast="lower",
    vjp={
        "input": lambda g, beta: scaled(g, _number_conj(beta)),
        "mat1": lambda g, mat2, alpha: scaled(mm_left(barrier(g), mat2), _number_conj(alpha)),
        "mat2": lambda g, mat1, alpha: scaled(mm_right(barrier(g), mat1), _number_conj(alpha)),
    },
)
def addmm(input: T, mat1: T, mat2: T, *, beta: S = 1, alpha: S = 1):
    """(n, k), (k, m) -> (n, m): `beta * input + alpha * mat1 @ mat2`; input is broadcast."""
    return _blend(input, wide_dot(mat1, untransposed(mat2), ((1,), (0,))), beta, alpha)


@op(
    check=check_addmv,
    inplace=True,
    shape=lambda input, mat, vec, beta, alpha: aval(mat.shape[:1], mat.dtype, mat.device),
    autocast="lower",
    vjp={
        "input": lambda g, beta: scaled(g, _number_conj(beta)),
        "mat": lambda g, vec, alpha: scaled(g[:, None] * conj(vec)[None, :], _number_conj(alpha)),
        "vec": lambda g, mat, alpha: scaled(dot(g, conj(mat), ((0,), (0,))), _number_conj(alpha)),
    },
)
def addmv(input: T, mat: T, vec: T, *, beta: S = 1, alpha: S = 1):
    """(n, k), (k,) -> (n,): `beta * input + alpha * mat @ vec`."""
    if input.dtype.name in HALF:  # only here are the numbers rounded
        beta, alpha = (n.astype(jnp.float32).astype(input.dtype).astype(jnp.float32) for n in (beta, alpha))
    return _blend(input, wide_dot(mat, vec, ((1,), (0,))), beta, alpha)


@op(
    check=check_baddbmm,
    inplace=True,
    shape=lambda input, batch1, batch2, beta, alpha: aval(
        (*batch1.shape[:2], batch2.shape[2]), batch1.dtype, batch1.device
    ),
    autocast="lower",
    vjp={
        "input": lambda g, beta: scaled(g, _number_conj(beta)),
        "batch1": lambda g, batch2, alpha: scaled(bmm_left(barrier(g), batch2), _number_conj(alpha)),
        "batch2": lambda g, batch1, alpha: scaled(bmm_right(barrier(g), batch1), _number_conj(alpha)),
    },
)
def baddbmm(input: T, batch1: T, batch2: T, *, beta: S = 1, alpha: S = 1):
    """(b, n, k), (b, k, m) -> (b, n, m): `beta * input + alpha * batch1 @ batch2`; input is broadcast."""
    return _blend(input, wide_dot(batch1, batch2, ((2,), (1,)), ((0,), (0,))), beta, alpha)


def _expand_g(g: Any, other: Any) -> Any:
    return jnp.broadcast_to(g, (other.shape[0], *g.shape))


@op(
    check=check_addbmm,
    inplace=True,
    shape=lambda input, batch1, batch2, beta, alpha: aval(
        (batch1.shape[1], batch2.shape[2]), batch1.dtype, batch1.device
    ),
    autocast="lower",
    vjp={
        "input": lambda g, beta: scaled(g, _number_conj(beta)),
        "batch1": lambda g, batch2, alpha: scaled(bmm_left(_expand_g(g, batch2), batch2), _number_conj(alpha)),
        "batch2": lambda g, batch1, alpha: scaled(bmm_right(_expand_g(g, batch1), batch1), _number_conj(alpha)),
    },
)
def addbmm(input: T, batch1: T, batch2: T, *, beta: S = 1, alpha: S = 1):
    """(b, n, k), (b, k, m) -> (n, m): `beta * input + alpha * (batch1 @ batch2).sum(0)`."""
    if input.dtype.name not in HALF:
        return _blend(input, dot(batch1, batch2, ((0, 2), (0, 1))), beta, alpha)
    one = jnp.ones((), jnp.float32)  # PyTorch adds the products one by one
    for k in range(batch1.shape[0]):
        input = _blend(input, wide_dot(batch1[k], batch2[k], ((1,), (0,))), one if k else beta, alpha)
    return input if batch1.shape[0] else _blend(input, jnp.zeros((), jnp.float32), beta, alpha)


def _half_addr(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """Rounded at each step, numbers too."""
    beta, alpha = beta.astype(input.dtype), alpha.astype(input.dtype)
    return _blend(input, (alpha * vec1)[:, None] * vec2[None, :], beta, jnp.ones((), input.dtype))


@op(
    half=_half_addr,
    check=check_addr,
    inplace=True,
    promote=Promote.DEFAULT,
    promote_args=("input", "vec1", "vec2"),
    vjp={
        "input": lambda g, beta: scaled(g, _number_conj(beta)),
        "vec1": lambda g, vec2, alpha: scaled(dot(g, conj(vec2), ((1,), (0,))), _number_conj(alpha)),
        "vec2": lambda g, vec1, alpha: scaled(dot(g, conj(vec1), ((0,), (0,))), _number_conj(alpha)),
    },
)
def addr(input: T, vec1: T, vec2: T, *, beta: S = 1, alpha: S = 1):
    """(n,), (m,) -> (n, m): `beta * input + alpha * outer(vec1, vec2)`; input is broadcast."""
    product = vec1[:, None] & vec2[None, :] if vec1.dtype.kind == "b" else vec1[:, None] * vec2[None, :]
    return _blend(input, product, beta, alpha)


@op(
    check=check_outer,
    aliases=("ger",),
    promote=Promote.DEFAULT,
    grad_name="MulBackward0",
    vjp={
        "input": lambda g, vec2: dot(g, conj(vec2), ((1,), (0,))),
        "vec2": lambda g, input: dot(g, conj(input), ((0,), (0,))),
    },
)
def outer(input: T, vec2: T):
    """(n,), (m,) -> (n, m): the product of every pair."""
    if input.dtype.kind == "b":
        return input[:, None] & vec2[None, :]
    return input[:, None] * vec2[None, :]


def inner_grad(g: Any, this_aval: Aval, other: Any, first: bool) -> Any:
    if this_aval.ndim == 0 or other.ndim == 0:
        return g * conj(other)
    axes = tuple(range(this_aval.ndim - 1, g.ndim) if first else range(other.ndim - 1))
    return dot(g, conj(other), (axes, tuple(range(other.ndim - 1))))


@op(
    check=check_inner,
    grad_name=lambda input, other: "ViewBackward0" if input.ndim and other.ndim else "MulBackward0",
    vjp={
        "input": lambda g, other, input_aval: inner_grad(g, input_aval, other, True),
        "other": lambda g, input, other_aval: inner_grad(g, other_aval, input, False),
    },
)
def inner(input: T, other: T):
    """(..., k), (*, k) -> (..., *): products over the last dims; a 0-d operand scales the other."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return dot(input, other, ((input.ndim - 1,), (other.ndim - 1,)))
