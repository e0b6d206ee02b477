"""The host tier against XLA: values, dtypes and shapes of outputs and gradients, over the families of primitives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from torchlike._src.engine import host
from torchlike._src.engine.host import HostUnsupported, compile_host, emit, program

_TOLERANCES = {"float16": 1e-2, "bfloat16": 6e-2, "float64": 1e-9, "complex128": 1e-9}


def randn(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Standard normal numbers (small integers, coin flips) of a dtype."""
    rng = np.random.default_rng([seed, *shape])
    kind = jnp.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) > 0.5
    if kind in "iu":
        return rng.integers(-9 if kind == "i" else 0, 9, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind == "c" else x).astype(jnp.dtype(dtype))


def ints(*shape: int, below: int, seed: int = 0) -> np.ndarray:
    """Indices."""
    return np.random.default_rng([seed, *shape]).integers(0, below, shape).astype(np.int32)


def run_host(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """Trace and run on the host tier."""
    compiled = compile_host(jax.make_jaxpr(function)(*args))
    with np.errstate(all="ignore"):
        return compiled(*jax.tree.leaves(args))


def with_gradient(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """The function's floating outputs and the gradients of their sum of squares."""
    places = [i for i, a in enumerate(args) if jnp.issubdtype(a.dtype, jnp.inexact)]

    def outputs(*inexact: Any) -> list[Any]:
        full = list(args)
        for i, x in zip(places, inexact):
            full[i] = x
        return [o for o in jax.tree.leaves(function(*full)) if jnp.issubdtype(o.dtype, jnp.inexact)]

    def both(*full: Any) -> Any:
        outs, pull = jax.vjp(outputs, *(full[i] for i in places))
        return outs, pull([jnp.conj(o) for o in outs])

    return both


def check(function: Callable[..., Any], *args: Any, gradient: bool = True, tolerance: float | None = None) -> None:
    """The host tier gives what XLA gives, and leaves its inputs alone."""
    if gradient and any(jnp.issubdtype(a.dtype, jnp.inexact) for a in args):
        function = with_gradient(function, *args)
    before = [np.array(a) for a in args]
    got = run_host(function, *args)
    wanted = jax.tree.leaves(jax.jit(function)(*args))
    assert len(got) == len(wanted)
    for a, b in zip(args, before):
        np.testing.assert_array_equal(np.asarray(a), b)
    for g, w in zip(got, map(np.asarray, wanted)):
        assert type(g) is np.ndarray
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            limit = tolerance or _TOLERANCES.get(w.dtype.name, 2e-4)
            wide = np.complex128 if w.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=limit, atol=limit)


def _conv(spec: tuple[str, str, str] = ("NCHW", "OIHW", "NCHW"), **params: Any) -> Callable[..., Any]:
    params = {"window_strides": (1, 1), "padding": "VALID", **params}
    return lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=spec, **params)


def _pool(start: float, body: Any, *window: Any) -> Callable[..., Any]:
    return lambda x: lax.reduce_window(x, np.float32(start), body, *window)


def _layer_norm(x: Any, g: Any, b: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def _mlp(x: Any, w: Any, b: Any, t: Any) -> Any:
    logits = jax.nn.log_softmax(jax.nn.relu(x @ w.T + b))
    return -jnp.mean(jnp.take_along_axis(logits, t[:, None], 1))


def _attention(x: Any, w: Any) -> Any:
    q, k, v = (a.reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for a in jnp.split(x @ w, 3, -1))
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), q @ k.transpose(0, 1, 3, 2), -1e9)
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 8)


def _elementwise(x: Any) -> Any:
    y = jnp.abs(x) + 0.1
    return [
        *(f(x) for f in (jnp.sin, jnp.tanh, jnp.exp, jnp.expm1, jnp.floor, jnp.round, jnp.sign, jnp.cbrt, jnp.arctan)),
        *(f(y) for f in (jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt, lax.lgamma, lax.digamma, lax.erfc)),
        *(f(x) for f in (jax.nn.sigmoid, jax.nn.softplus, jax.nn.silu, lax.erf, lambda v: lax.erf_inv(v * 0.2))),
        jnp.clip(x, -0.5, 0.5), x**3, y**-2, y**0.3, jnp.arctan2(x, y), jnp.maximum(x, 0), jnp.where(x > 0, x, 0),
        jnp.isfinite(x).astype(x.dtype), x > y, x == x,
        lax.reduce_precision(x, 8, 7) if x.dtype == jnp.float32 else x,
    ]  # fmt: skip


def _integers(x: Any, y: Any) -> Any:
    return [
        x + y, x * y, lax.div(x, y), lax.rem(x, y), x // y, x % y, x & y, x | y, x ^ y, ~x, lax.population_count(x),
        lax.clz(x), x << jnp.abs(y), lax.shift_right_logical(x, jnp.abs(y)), x >> jnp.abs(y), jnp.abs(x), jnp.sign(x),
        lax.integer_pow(x, 3), x.sum(), x.max(0), x.min(1), jnp.cumsum(x, 0), jnp.sort(x, 1), jnp.argsort(x, 0),
        jnp.argmax(x, 0), lax.mulhi(x, y) if hasattr(lax, "mulhi") else x, x.astype(jnp.float32), x.astype(bool),
    ]  # fmt: skip


def _complex(x: Any) -> Any:
    y = x * (1 + 2j)
    return [jnp.abs(x), x.real, jnp.conj(y).imag, y / x, jnp.exp(x), jnp.sqrt(y), lax.complex(x.real, x.imag), x @ y.T]


def _shapes(x: Any) -> Any:
    row = x[0]
    return [
        x.reshape(6, -1), x.T, x[1:3, ::2], x[::-1], jnp.concatenate([x, x[:1]]), jnp.stack([x, x], -1), jnp.tile(x, 2),
        jnp.broadcast_to(row[:, None], (6, 2)).reshape(3, 4), jnp.broadcast_to(row, (3, 6)).sum(), jnp.split(x, 2),
        jnp.broadcast_to(row[:, None], (6, 2)).T[0], lax.pad(x, np.float32(1), ((1, -2, 0), (-1, 3, 2))), jnp.ones(3),
        lax.pad(x, np.float32(0), ((-3, 5, 1), (2, -4, 2))), jnp.roll(x, 2, 1), jnp.repeat(x, 2, 0), jnp.triu(x),
        x[:0].sum(0), x.sum().reshape(1, 1) + x, jnp.pad(x, 1, mode="reflect"), jnp.diagonal(x), x, x,
        jnp.broadcast_to(row, (2, 6)).max(0) * jnp.broadcast_to(row, (3, 6)).sum(0), jnp.arange(5000.0)[-1] * row,
    ]  # fmt: skip


def _reductions(x: Any) -> Any:
    return [
        x.sum(), x.sum((0, 2)), x.mean(1), x.max(-1), x.min(0), x.prod(1), x.var(), jnp.cumsum(x, 1), x.argmax(1),
        jnp.cumprod(x, 2), lax.cummax(x, 0, reverse=True), lax.cumlogsumexp(x, 1), jax.nn.logsumexp(x, 1),
        (x > 0).any(0), (x > 0).all((1, 2)), jnp.median(x, 0), lax.reduce(x, np.float32(0.5), lax.add, (1,)),
    ]  # fmt: skip


def _writes(x: Any, u: Any, i: Any) -> Any:
    return [
        x.at[i].set(u), x.at[i].add(u), x.at[:, 1].add(x[:, 0]),
        x.at[i[0]].set(u[0]), x.at[1:3, ::2].add(x[1:3, ::2]), x.at[i, i].add(u[:, 0], mode="drop"),
        lax.dynamic_update_slice(x, u, (i[1], i[0])),
    ]  # fmt: skip


def _merges(x: Any, u: Any, i: Any) -> Any:
    return [x.at[i].multiply(u, mode="clip"), x.at[i].max(u), x.at[i].min(u), x.at[i, i].subtract(u[:, 0], mode="clip")]


def _reads(x: Any, i: Any) -> Any:
    return [
        x[i], jnp.take(x, i, axis=1), jnp.take(x, i + 3, axis=0), jnp.take(x, i - 5, axis=0, mode="clip"), x[i[0]],
        x[:, i], x[i, i], x[i[:, None], i], jnp.take_along_axis(x, i[None], 1),
        lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
        jax.vmap(lambda r, j: lax.dynamic_slice(r, (j,), (2,)), (None, 0))(x[0], i), jax.vmap(lambda j: x[j, 1:3])(i),
    ]  # fmt: skip


def _sorting(x: Any) -> Any:
    return [jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 2), jnp.sort(x, descending=True), jnp.lexsort((x[1], x[0])),
            lax.sort((jnp.round(x), x), num_keys=1)]  # fmt: skip


def _loops(x: Any) -> Any:
    final, (ys, flags) = lax.scan(lambda s, y: (s * y + 1, (s.sum(), y[0] > 0)), x[0], x, reverse=True)
    doubled = x * 2
    # A branch that hands its operand through: what follows must not write over it.
    same = lax.cond(x.sum() > 1e9, lambda a: a * 3, lambda a: a, doubled)
    return [final, ys, flags, lax.fori_loop(0, 3, lambda i, s: s * x[0] + i, x[1]), same + 1, doubled + same,
            lax.switch(ints(1, below=3)[0], [jnp.sin, jnp.cos, jnp.tanh], x), jax.checkpoint(jnp.sin)(x),
            lax.map(lambda r: r.sum(), x), lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)]  # fmt: skip


def _matrices(a: Any, b: Any) -> Any:
    p = a @ a.T + 4 * jnp.eye(4)
    return [jnp.linalg.cholesky(p), jnp.linalg.solve(a, b), jnp.linalg.inv(p), jnp.linalg.det(a),
            jnp.linalg.slogdet(p)[1], jnp.linalg.qr(a)[1], jnp.linalg.svd(a, compute_uv=False), jnp.linalg.eigvalsh(p),
            lax.linalg.triangular_solve(p, b, left_side=True, lower=True, transpose_a=True)]  # fmt: skip


_BIG, _SUM = -np.inf, (0.0, lax.add)
CASES: dict[str, tuple[Any, ...]] = {
    "elementwise": (_elementwise, randn(3, 5)),
    "elementwise-float16": (_elementwise, randn(3, 5, dtype="float16")),
    "shapes": (_shapes, randn(4, 6)[:, :6]),
    "reductions": (_reductions, randn(3, 4, 5)),
    "reads": (_reads, randn(6, 6), np.array([2, 5, 0], np.int32)),
    "writes": (_writes, randn(5, 5), randn(3, 5), np.array([2, 7, 2], np.int32)),
    "sorting": (_sorting, randn(4, 7)),
    "loops": (_loops, randn(5, 3)),
    "matrices": (_matrices, randn(4, 4), randn(4, 2)),
    "mlp": (_mlp, randn(8, 4), randn(10, 4), randn(10), ints(8, below=10)),
    "layer norm": (_layer_norm, randn(4, 6), randn(6), randn(6)),
    "attention": (_attention, randn(2, 5, 8), randn(8, 24)),
    "embedding": (lambda w, i: w[i], randn(10, 6), ints(7, 9, below=10)),
    "dot, several dimensions": (lambda a, b: jnp.einsum("abcd,dba->bc", a, b), randn(2, 3, 4, 5), randn(5, 3, 2)),
    "dot, batched": (lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b), randn(2, 3, 4, 5), randn(2, 6, 4, 5)),
    "dot, vectors": (lambda a, b: [a @ b, jnp.outer(a, b), jnp.ones((3, 4)) @ b], randn(4), randn(4, seed=1)),
    "conv": (_conv(padding=((1, 2), (0, 1)), window_strides=(2, 1)), randn(2, 3, 8, 7), randn(4, 3, 3, 3)),
    "conv, dilated": (_conv(padding=((2, 2), (-1, 1)), rhs_dilation=(2, 3)), randn(2, 3, 9, 9), randn(4, 3, 3, 2)),
    "conv, transposed": (_conv(padding=((2, 2), (1, 1)), lhs_dilation=(2, 3)), randn(2, 3, 5, 4), randn(4, 3, 3, 3)),
    "conv, grouped": (_conv(feature_group_count=2), randn(2, 6, 8, 7), randn(4, 3, 3, 3)),
    "conv, depthwise": (_conv(feature_group_count=6, padding="SAME"), randn(2, 6, 8, 7), randn(12, 1, 3, 3)),
    "conv, channels last": (_conv(("NHWC", "HWIO", "NHWC")), randn(2, 8, 7, 3), randn(3, 3, 3, 4)),
    "conv, 1-d": (_conv(("NCH", "OIH", "NCH"), window_strides=(2,)), randn(2, 3, 9), randn(4, 3, 3)),
    "max pool": (_pool(_BIG, lax.max, (1, 3, 3), (1, 2, 1), ((0, 0), (1, 1), (1, 0))), randn(2, 7, 8)),
    "average pool": (_pool(*_SUM, (1, 2, 3), (1, 2, 2), "SAME"), randn(2, 7, 8)),
    "wide window": (_pool(*_SUM, (1, 70), (1, 1), "SAME", (1, 1), (1, 1)), randn(2, 80)),
    "fft": (lambda x: [jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.fft(x), 7), jnp.fft.fft2(x)], randn(4, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_those_of_xla(name: str) -> None:
    function, *args = CASES[name]
    check(function, *args)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16"])
def test_integers(dtype: str) -> None:
    check(_integers, randn(5, 6, dtype=dtype), randn(5, 6, dtype=dtype, seed=1))


@pytest.mark.parametrize(("dtype", "x64"), [("complex64", False), ("complex128", True)])
def test_complex_numbers(dtype: str, x64: bool) -> None:
    with jax.enable_x64(True) if x64 else nullcontext():
        check(_complex, randn(3, 4, dtype=dtype), gradient=False)


def test_bfloat16() -> None:
    def function(x: Any, w: Any) -> Any:
        return [x @ w, jax.nn.gelu(x), x.sum(0), x.max(1), jnp.sort(x), jnp.cumsum(x, 0), x.astype(jnp.float8_e4m3fn)]

    check(function, randn(4, 8, dtype="bfloat16"), randn(8, 3, dtype="bfloat16"), gradient=False)


def test_conversions_saturate_as_xla_does() -> None:
    x = np.array([1.9, -1.9, -0.5, 300, -300, 3e9, -3e9, 1e20, np.inf, -np.inf, np.nan], np.float32)
    kinds = ("int8", "uint8", "int16", "int32", "uint32", "bool", "float16", "bfloat16", "complex64")
    check(lambda v: [lax.convert_element_type(v, jnp.dtype(k)) for k in kinds], x, gradient=False)


def test_nan_in_reductions_and_sorting() -> None:
    x = np.array([2, np.nan, -0.0, 0.0, np.nan, 1], np.float32)
    check(lambda v: [v.max(), v.argmax(), jnp.sort(v), jnp.argsort(v), lax.top_k(v, 3)], x, gradient=False)


def test_scatter_by_other_operations() -> None:
    check(_merges, randn(5, 5), randn(3, 5), np.array([2, 7, 2], np.int32), gradient=False)


def test_a_failed_cholesky_is_nan() -> None:
    assert np.isnan(run_host(jnp.linalg.cholesky, -np.eye(3, dtype=np.float32))[0][np.tril_indices(3)]).all()


def test_jax_random_numbers() -> None:
    def draw(words: Any) -> Any:
        key = jax.random.wrap_key_data(words)
        a, b = jax.random.split(key)
        return [jax.random.normal(a, (5,)), jax.random.permutation(b, 7), jax.random.bits(key, (3,), "uint8")]

    check(draw, np.array([1, 2], np.uint32), gradient=False)


def test_memory_reuse_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every array counted as big, ufuncs write into each operand that dies, wherever that is allowed."""
    for module in (emit, program):
        monkeypatch.setattr(module, "BIG_BYTES", 0)
    for name in ("mlp", "layer norm", "attention", "loops", "shapes"):
        function, *args = CASES[name]
        check(function, *args)
    x = randn(4, 4)
    source = compile_host(jax.make_jaxpr(lambda v: jnp.exp(-jnp.abs(v)))(x)).source
    assert "exp(v2, out=v2)" in source and "absolute(a0)" in source


def test_lines_are_few() -> None:
    """Broadcasts, no-op conversions and calls leave no line; constants are folded; views of views collapse."""

    def function(x: Any, w: Any, b: Any) -> Any:
        mask = jnp.broadcast_to(jnp.arange(4) < 2, (8, 4)).astype(x.dtype)
        return jax.nn.relu(x @ w.T.T.T + b) * (mask * 1.0)

    source = compile_host(jax.make_jaxpr(function)(randn(8, 3), randn(4, 3), randn(4))).source
    assert len(source.splitlines()) == 2 + 5  # transpose, dot, add, maximum, multiply


def test_outputs_may_be_written_to() -> None:
    """Constants are handed out as copies."""
    function = compile_host(jax.make_jaxpr(lambda x: (jnp.ones((2, 3)), x.sum()))(randn(3)))
    for out in function(randn(3)):
        out[...] = 7
    assert (function(randn(3))[0] == 1).all()


def test_what_is_not_covered_is_named() -> None:
    def callback(x: Any) -> Any:
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((3,), np.float32), x)

    with pytest.raises(HostUnsupported, match="pure_callback") as caught:
        compile_host(jax.make_jaxpr(callback)(randn(3)))
    assert caught.value.primitive == "pure_callback"
    assert "pure_callback" not in host.RULES
