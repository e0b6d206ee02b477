"""Recurrent layers, one layer and direction an operator: the products with the inputs at once, then a scan over time.

Backward is `jax.vjp` of the scan, so forward and backward of a step share what the scan keeps. `lengths`, if given,
says how many steps each sequence has: beyond its end a sequence keeps its state."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import TO, T, op

State = tuple[Any, ...]


def _project(x: Any, weight: Any, bias: Any) -> Any:
    """(..., I), (G, I), (G,) -> (..., G)"""
    out = jnp.matmul(x, weight.T)
    return out if bias is None else out + bias


def _lstm_step(projected: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    """(B, 4H), (h, c) -> (h, c); gates in the order input, forget, cell, output."""
    h, c = state
    i, f, g, o = jnp.split(projected + _project(h, w_hh, b_hh), 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h if w_hr is None else jnp.matmul(h, w_hr.T)), c


def _gru_step(projected: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    """(B, 3H), (h,) -> (h,); gates in the order reset, update, new."""
    (h,) = state
    reset, update, new = jnp.split(projected, 3, -1)
    from_h = jnp.split(_project(h, w_hh, b_hh), 3, -1)
    reset = jax.nn.sigmoid(reset + from_h[0])
    update = jax.nn.sigmoid(update + from_h[1])
    new = jnp.tanh(new + reset * from_h[2])
    return ((h - new) * update + new,)


def _tanh_step(projected: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    return (jnp.tanh(projected + _project(state[0], w_hh, b_hh)),)


def _relu_step(projected: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    return (jax.nn.relu(projected + _project(state[0], w_hh, b_hh)),)


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
    """(T, B, I) -> (T, B, H'), and the last state."""
    projected = _project(x, w_ih, b_ih)
    times = jnp.arange(x.shape[0])

    def body(state: State, at: tuple) -> tuple[State, Any]:
        now, time = at
        new = step(now, state, w_hh, b_hh, w_hr)
        if lengths is not None:
            inside = (time < lengths)[:, None]
            new = tuple(jnp.where(inside, a, b) for a, b in zip(new, state, strict=True))
        return new, new[0]

    state, out = lax.scan(body, state, (projected, times), reverse=reverse)
    return (out, *state)


def _lstm_avals(
    input: Aval, h: Aval, c: Aval, w_ih: Aval, w_hh: Aval, b_ih: Any, b_hh: Any, w_hr: Any, lengths: Any, reverse: bool
) -> tuple[Aval, ...]:
    return input.with_shape((*input.shape[:2], h.shape[-1])), h, c


def _avals(
    input: Aval, h: Aval, w_ih: Aval, w_hh: Aval, b_ih: Any, b_hh: Any, lengths: Any, reverse: bool, **unused: Any
) -> tuple[Aval, ...]:
    return input.with_shape((*input.shape[:2], h.shape[-1])), h


@op(namespaces=(), method=False, out=False, shape=_lstm_avals, autocast="lower", outputs=("out", "h", "c"))
def _lstm_layer(
    input: T, h: T, c: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, w_hr: TO, lengths: TO, *, reverse: bool = False
):
    """(T, B, I), (B, H'), (B, H) -> (T, B, H'), (B, H'), (B, H); H' is the size that w_hr projects to, or H."""
    return _run(_lstm_step, input, (h, c), w_ih, w_hh, b_ih, b_hh, w_hr, lengths, reverse)


@op(namespaces=(), method=False, out=False, shape=_avals, outputs=("out", "h"))
def _gru_layer(input: T, h: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, lengths: TO, *, reverse: bool = False):
    """(T, B, I), (B, H) -> (T, B, H), (B, H)"""
    return _run(_gru_step, input, (h,), w_ih, w_hh, b_ih, b_hh, None, lengths, reverse)


@op(namespaces=(), method=False, out=False, shape=_avals, autocast="lower", outputs=("out", "h"))
def _rnn_layer(
    input: T, h: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, lengths: TO, *, reverse: bool = False, relu: bool = False
):
    """(T, B, I), (B, H) -> (T, B, H), (B, H)"""
    step = _relu_step if relu else _tanh_step
    return _run(step, input, (h,), w_ih, w_hh, b_ih, b_hh, None, lengths, reverse)


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
    return _lstm_step(_project(input, w_ih, b_ih), (hx, cx), w_hh, b_hh, None)


@op(namespaces=(), method=False, out=False, check=_cell_check)
def _gru_cell_(input: T, hx: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO):
    """(B, I), (B, H) -> (B, H)"""
    return _gru_step(_project(input, w_ih, b_ih), (hx,), w_hh, b_hh, None)[0]


@op(namespaces=(), method=False, out=False, check=_cell_check, autocast="lower")
def _rnn_cell_(input: T, hx: T, w_ih: T, w_hh: T, b_ih: TO, b_hh: TO, *, relu: bool = False):
    """(B, I), (B, H) -> (B, H)"""
    step = _relu_step if relu else _tanh_step
    return step(_project(input, w_ih, b_ih), (hx,), w_hh, b_hh, None)[0]
