"""Recurrent layers, one layer and direction an operator: the products with the inputs at once, then a scan over time.

Besides its results an operator returns what its gradient needs of each step; only backward reads that. Backward is a
scan of one product per step; the gradients of weights and inputs are products of all steps at once, after it.
`lengths`, if given, says how many steps each sequence has: beyond its end a sequence keeps its state."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import TO, T, op
from torchlike._src.ops.products import barrier, column_sum, dot, last_with_last

State = tuple[Any, ...]


def _project(x: Any, weight: Any, bias: Any) -> Any:
    """(..., I), (G, I), (G,) -> (..., G)"""
    out = last_with_last(x, weight)
    return out if bias is None else out + bias


def _sum(a: Any, b: Any) -> Any:
    """Two biases, or none."""
    return b if a is None else a if b is None else a + b


# -- steps: (what the inputs give, state, ...) -> (new state, what backward needs) ------------------------------------


def _lstm_step(projected: Any, state: State, hidden: Callable, w_hr: Any) -> tuple[State, Any]:
    """(B, 4H), (h, c) -> (h, c), gates (B, 4H) in the order input, forget, cell, output."""
    h, c = state
    i, f, g, o = jnp.split(projected + hidden(h), 4, -1)
    i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
    c = f * c + i * g
    h = o * jnp.tanh(c)
    return (h if w_hr is None else last_with_last(h, w_hr), c), lax.concatenate([i, f, g, o], 1)


def _gru_step(projected: Any, state: State, hidden: Callable, w_hr: Any) -> tuple[State, Any]:
    """(B, 3H), (h,) -> (h,), (B, 4H): reset, update, new, and what the state gives for new."""
    (h,) = state
    reset, update, new = jnp.split(projected, 3, -1)
    from_h = jnp.split(hidden(h), 3, -1)
    reset = jax.nn.sigmoid(reset + from_h[0])
    update = jax.nn.sigmoid(update + from_h[1])
    new = jnp.tanh(new + reset * from_h[2])
    return ((h - new) * update + new,), lax.concatenate([reset, update, new, from_h[2]], 1)


def _tanh_step(projected: Any, state: State, hidden: Callable, w_hr: Any) -> tuple[State, Any]:
    return (jnp.tanh(projected + hidden(state[0])),), None


def _relu_step(projected: Any, state: State, hidden: Callable, w_hr: Any) -> tuple[State, Any]:
    return (jax.nn.relu(projected + hidden(state[0])),), None


def _run(
    step: Callable,
    x: Any,
    state: State,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    w_hr: Any,
    lengths: Any,
    reverse: bool,
) -> tuple:
    """(T, B, I) -> the states after each step (T, B, ...), the last ones, and what the steps keep for backward."""
    separate = step is _gru_step  # the reset gate multiplies the state's product with its bias
    projected = _project(x, w_ih, b_ih if separate else _sum(b_ih, b_hh))
    transposed = barrier(w_hh.T)

    def hidden(h: Any) -> Any:
        out = dot(h, transposed, ((1,), (0,)))
        return out + b_hh if separate and b_hh is not None else out

    def body(state: State, at: tuple) -> tuple[State, Any]:
        now, inside = at
        new, kept = step(now, state, hidden, w_hr)
        if inside is not None:
            new = tuple(jnp.where(inside, a, b) for a, b in zip(new, state, strict=True))
        return new, (new, kept)

    last, (states, kept) = lax.scan(body, state, (projected, _inside(x, lengths)), reverse=reverse)
    return states, last, kept


def _inside(x: Any, lengths: Any) -> Any:
    """(T, B, 1): whether a step is one of a sequence's own; None if all are."""
    return None if lengths is None else (jnp.arange(x.shape[0])[:, None] < lengths)[..., None]


# -- backward: per step, what the gradients of the state are multiplied with, for all steps at once ------------------


def _before(first: Any, states: Any, reverse: bool) -> Any:
    """The state before each step."""
    if reverse:
        return lax.concatenate([states[1:], first[None]], 0)
    return lax.concatenate([first[None], states[:-1]], 0)


def _pull(
    step: Callable, g: Any, last: State, slopes: tuple, inside: Any, w_hh: Any, w_hr: Any, reverse: bool
) -> tuple:
    """Scan back: gradients of the outputs (T, B, H') and of the last state -> (those of the first state, what `step`
    keeps of each step).

    `step(g of the new state, slopes, w_hr) -> (g of the product with w_hh, g of the old state without it, kept)`."""

    def body(state: State, at: tuple) -> tuple[State, Any]:
        g, slopes, inside = at
        state = (state[0] + g, *state[1:])
        new: Any = state
        old: Any = None
        if inside is not None:
            new = tuple(jnp.where(inside, s, jnp.zeros((), s.dtype)) for s in state)
            old = tuple(jnp.where(inside, jnp.zeros((), s.dtype), s) for s in state)
        product, rest, kept = step(new, slopes, w_hr)
        given = dot(product, w_hh, ((1,), (0,)))
        state = (given if rest[0] is None else given + rest[0], *rest[1:])
        if old is not None:
            state = tuple(a + b for a, b in zip(state, old, strict=True))
        return state, kept

    return lax.scan(body, last, (g, slopes, inside), reverse=not reverse)


def _lstm_back(new: State, slopes: tuple, w_hr: Any) -> tuple:
    dh, dc = new
    by_cell, by_output, through, forget = slopes
    dm = dh if w_hr is None else dot(dh, w_hr, ((1,), (0,)))
    dc = dc + dm * through
    d = lax.concatenate([lax.concatenate([dc, dc, dc], 1) * by_cell, dm * by_output], 1)
    return d, (None, dc * forget), (d, None if w_hr is None else dh)


def _gru_back(new: State, slopes: tuple, w_hr: Any) -> tuple:
    (dh,) = new
    slope, update = slopes
    d = lax.concatenate([dh, dh, dh], 1) * slope
    return d, (dh * update,), (d, dh)


def _rnn_back(new: State, slopes: tuple, w_hr: Any) -> tuple:
    d = new[0] * slopes[0]
    return d, (None,), d


def _parameters(d: Any, x: Any, before: Any, w_ih: Any, from_state: Any = None) -> dict[str, Any]:
    """Gradients of the input and the parameters from those of the steps' products (T, B, G); `from_state` are those of
    the state's products where they differ."""
    d = barrier(d)
    from_state = d if from_state is None else barrier(from_state)
    steps = ((0, 1), (0, 1))
    bias = column_sum(d)
    return {
        "input": dot(d, w_ih, ((2,), (0,))),
        "w_ih": dot(d, x, steps),
        "w_hh": dot(from_state, barrier(before), steps),
        "b_ih": bias,
        "b_hh": bias if from_state is d else column_sum(from_state),
    }


def _lstm_pull(g0, g1, g2, input, h, c, w_ih, w_hh, w_hr, lengths, out3, out4, out5, reverse):
    gates, states, cells = out3, out4, out5
    i, f, g, o = jnp.split(gates, 4, -1)
    squashed = jnp.tanh(cells)
    by_cell = lax.concatenate([g * i * (1 - i), _before(c, cells, reverse) * f * (1 - f), i * (1 - g * g)], 2)
    slopes = barrier((by_cell, squashed * o * (1 - o), o * (1 - squashed * squashed), f))
    first, (d, dh) = _pull(_lstm_back, g0, (g1, g2), slopes, _inside(input, lengths), w_hh, w_hr, reverse)
    found = _parameters(d, input, _before(h, states, reverse), w_ih)
    if w_hr is not None:
        found["w_hr"] = dot(dh, barrier(o * squashed), ((0, 1), (0, 1)))
    return found | {"h": first[0], "c": first[1]}


def _gru_pull(g0, g1, input, h, w_ih, w_hh, lengths, out2, out3, reverse):
    reset, update, new, from_h = jnp.split(out2, 4, -1)
    before = _before(h, out3, reverse)
    slope_new = (1 - update) * (1 - new * new)
    slope_reset = slope_new * from_h * reset * (1 - reset)
    slope_update = (before - new) * update * (1 - update)
    slope, update = barrier((lax.concatenate([slope_reset, slope_update, slope_new * reset], 2), update))
    first, (d, dh) = _pull(_gru_back, g0, (g1,), (slope, update), _inside(input, lengths), w_hh, None, reverse)
    two = 2 * h.shape[-1]
    projected = lax.concatenate([d[..., :two], dh * slope_new], 2)
    return _parameters(projected, input, before, w_ih, d) | {"h": first[0]}


def _rnn_pull(g0, g1, input, h, w_ih, w_hh, lengths, out2, reverse, relu):
    one = jnp.ones((), out2.dtype)
    slope = barrier((out2 > 0).astype(out2.dtype) if relu else one - out2 * out2)
    first, d = _pull(_rnn_back, g0, (g1,), (slope,), _inside(input, lengths), w_hh, None, reverse)
    return _parameters(d, input, _before(h, out2, reverse), w_ih) | {"h": first[0]}


def _lstm_avals(input: Aval, h: Aval, c: Aval, **unused: Any) -> tuple[Aval, ...]:
    out = input.with_shape((*input.shape[:2], h.shape[-1]))
    gates, cells = (input.with_shape((*input.shape[:2], n * c.shape[-1])) for n in (4, 1))
    return out, h, c, gates, out, cells


def _rnn_avals(input: Aval, h: Aval, **unused: Any) -> tuple[Aval, ...]:
    out = input.with_shape((*input.shape[:2], h.shape[-1]))
    return out, h, out


def _gru_avals(input: Aval, h: Aval, **unused: Any) -> tuple[Aval, ...]:
    out = input.with_shape((*input.shape[:2], h.shape[-1]))
    return out, h, input.with_shape((*input.shape[:2], 4 * h.shape[-1])), out


WEIGHTS = ("w_ih", "w_hh", "b_ih", "b_hh")


@op(
    namespaces=(),
    method=False,
    out=False,
    shape=_lstm_avals,
    autocast="lower",
    outputs=("out", "h", "c", "gates", "states", "cells"),
    vjp=dict.fromkeys(("input", "h", "c", *WEIGHTS, "w_hr"), _lstm_pull),
)
def _lstm_layer(
    input: T, h: T, c: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, w_hr: TO, lengths: TO, *, reverse: bool = False
):
    """(T, B, I), (B, H'), (B, H) -> (T, B, H'), (B, H'), (B, H); H' is the size that w_hr projects to, or H. Then, for
    backward, the gates (T, B, 4H), the first result again (which users may change) and the cells (T, B, H)."""
    states, last, gates = _run(_lstm_step, input, (h, c), w_ih, w_hh, b_ih, b_hh, w_hr, lengths, reverse)
    return (states[0], *last, gates, *states)


@op(
    namespaces=(),
    method=False,
    out=False,
    shape=_gru_avals,
    outputs=("out", "h", "gates", "states"),
    vjp=dict.fromkeys(("input", "h", *WEIGHTS), _gru_pull),
)
def _gru_layer(input: T, h: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, lengths: TO, *, reverse: bool = False):
    """(T, B, I), (B, H) -> (T, B, H), (B, H); then, for backward, (T, B, 4H) of the gates and the first result."""
    states, last, gates = _run(_gru_step, input, (h,), w_ih, w_hh, b_ih, b_hh, None, lengths, reverse)
    return (states[0], *last, gates, *states)


@op(
    namespaces=(),
    method=False,
    out=False,
    shape=_rnn_avals,
    autocast="lower",
    outputs=("out", "h", "states"),
    vjp=dict.fromkeys(("input", "h", *WEIGHTS), _rnn_pull),
)
def _rnn_layer(
    input: T, h: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, lengths: TO, *, reverse: bool = False, relu: bool = False
):
    """(T, B, I), (B, H) -> (T, B, H), (B, H); then, for backward, the first result again."""
    step = _relu_step if relu else _tanh_step
    states, last, _ = _run(step, input, (h,), w_ih, w_hh, b_ih, b_hh, None, lengths, reverse)
    return (states[0], *last, *states)


# -- cells ----------------------------------------------------------------------------------------------------


def _cell_check(input: Aval, hx: Aval, w_ih: Aval, w_hh: Aval, **unused: Any) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    if hx.shape[1] != w_hh.shape[1]:
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hx.shape[1]}, expected {w_hh.shape[1]}")
    if input.shape[0] != hx.shape[0]:
        raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden0 batch size {hx.shape[0]}")


@op(namespaces=(), method=False, out=False, check=_cell_check, outputs=("h", "c"))
def _lstm_cell_(input: T, hx: T, cx: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO):
    """(B, I), (B, H), (B, H) -> (B, H), (B, H)"""
    return _lstm_step(_project(input, w_ih, b_ih), (hx, cx), lambda h: _project(h, w_hh, b_hh), None)[0]


@op(namespaces=(), method=False, out=False, check=_cell_check)
def _gru_cell_(input: T, hx: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO):
    """(B, I), (B, H) -> (B, H)"""
    return _gru_step(_project(input, w_ih, b_ih), (hx,), lambda h: _project(h, w_hh, b_hh), None)[0][0]


@op(namespaces=(), method=False, out=False, check=_cell_check, autocast="lower")
def _rnn_cell_(input: T, hx: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, *, relu: bool = False):
    """(B, I), (B, H) -> (B, H)"""
    step = _relu_step if relu else _tanh_step
    return step(_project(input, w_ih, b_ih), (hx,), lambda h: _project(h, w_hh, b_hh), None)[0][0]
