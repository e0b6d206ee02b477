"""Products, column sums and attention give the same numbers in every form that they are computed in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from torchlike._src.core.build_target import Target
from torchlike._src.core.tracing import trace
from torchlike._src.engine.host import compile_host
from torchlike._src.ops import attention, products


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def run(function, *arrays):
    """The results of a function on JAX arrays, by NumPy: XLA would compile every shape."""

    def flat(*arrays):
        out = function(*arrays)
        return out if type(out) is tuple else (out,)

    return compile_host(trace(flat, [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]))(*arrays)


@pytest.mark.parametrize(("rows", "chosen"), [(1, "plain"), (3, "swapped"), (900, "transposed")])
def test_last_with_last(rows, chosen):
    a, b = numbers(rows, 1, 160), numbers(128, 160, seed=1)
    assert products.form(rows, 128, 160, a.dtype) == chosen
    np.testing.assert_allclose(run(products.last_with_last, a, b)[0], a @ b.T, rtol=1e-12, atol=1e-12)


def test_small_and_other_platforms_stay_plain(monkeypatch):
    assert products.form(900, 8, 8, np.dtype("float64")) == "plain"
    assert products.form(900, 128, 160, np.dtype("complex64")) == "plain"
    monkeypatch.setattr(Target, "platform", "gpu")
    assert products.form(900, 128, 160, np.dtype("float64")) == "plain"
    assert not products.sums_by_product(900, 128, np.dtype("float32"))


def test_few_rows_of_float32_are_not_copied():
    a, b = numbers(3, 160).astype("float32"), numbers(128, 160, seed=1).astype("float32")
    traced = jax.make_jaxpr(products.last_with_last)(a, b)
    assert [e.primitive.name for e in traced.eqns] == ["dot_general"]


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_column_sum(keep):
    g = numbers(20, 5, 70)
    assert products.sums_by_product(100, 70, g.dtype)
    found = run(lambda g: products.column_sum(g, keep), g)[0]
    np.testing.assert_allclose(found, g.sum(tuple(range(3 - keep))), rtol=1e-12, atol=1e-12)


def test_column_sum_keeps_infinities():
    g = numbers(100, 70)
    g[3, 4], g[5, 6] = np.inf, np.nan
    found = run(products.column_sum, g)[0]
    assert np.isinf(found).sum() == 1 and np.isnan(found).sum() == 1


ATTENTION = {
    "causal": ((5, 3, 130, 4), (5, 3, 130, 4), True, False, False),
    "more_keys": ((4, 2, 130, 4), (4, 2, 150, 4), True, False, False),
    "fewer_keys": ((4, 2, 150, 4), (4, 2, 90, 4), True, False, False),
    "dropout": ((4, 2, 130, 4), (4, 2, 130, 4), True, False, True),
    "grouped": ((4, 4, 130, 4), (4, 2, 130, 4), True, True, False),
    "broadcast": ((6, 2, 90, 4), (1, 2, 90, 4), False, False, False),
    "heads_only": ((8, 130, 4), (8, 130, 4), False, False, False),
}


def attend(case):
    """The result and the gradients of query, key and value."""
    query, key, is_causal, grouped, dropped = ATTENTION[case]
    p = 0.25 if dropped else 0.0
    arrays = [numbers(*query), numbers(*key, seed=1), numbers(*key, seed=2)]
    arrays += [numbers(*query[:-1], key[-2], seed=3) > -0.7] if dropped else []

    def all_of(q, k, v, keep=None):
        out, kept = attention._attention.fn(q, k, v, None, keep, dropout_p=p, is_causal=is_causal, enable_gqa=grouped)
        g = jnp.asarray(numbers(*out.shape, seed=4))
        return (
            out,
            attention.grad_query(g, k, v, keep, kept, None, p, is_causal, grouped),
            attention.grad_key(g, q, k, v, keep, kept, None, p, is_causal, grouped),
            attention.grad_value(g, v, keep, kept, p, is_causal, grouped),
        )

    return run(all_of, *arrays)


@pytest.mark.parametrize("case", ATTENTION)
def test_attention_in_pieces(case, monkeypatch):
    pieces = attend(case)
    monkeypatch.setattr(attention, "SMALL_SCORES", 1 << 40)
    monkeypatch.setattr(attention, "MAX_BLOCKS", 1)
    for a, b in zip(pieces, attend(case), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_attention_takes_pieces_and_blocks():
    assert [n for *_, n in attention._blocks(130, 130, True)] == [65, 130]
    assert len(attention._blocks(130, 130, False)) == 1
    seen = []
    attention._in_pieces(
        lambda batch, x: (seen.append(batch), (x,))[1], (6, 2, 130, 130), True, False, numbers(6, 2, 1, 1)
    )
    assert seen == [(3, 2), (3, 2)]
