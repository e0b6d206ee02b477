"""Recurrent cells by NumPy, for the host tier: a Python loop over a sequence calls them once or twice a step, and JAX
takes tens of milliseconds to trace their gradients; see `host_rules`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.ops.host_rules import HostFunction, floating, note_multiplications, note_work, of
from torchlike._src.ops.products import sums_by_product


def _shape(forward: Any, states: int) -> tuple[np.dtype, bool] | None:
    """(dtype, whether there are biases) of a cell that these rules cover."""
    specs = forward.specs
    count = len(specs) - 1 - states
    dtype = floating(*specs)
    if dtype is None or count not in (2, 4) or any(s.ndim != 2 for s in specs[: 3 + states]):
        return None
    # Sums over one element, and products with one row, are another matter.
    if any(1 in s.shape for s in specs[: 3 + states]):
        return None
    return dtype, count == 4


def _note(kernel: Any, forward: Any, states: int, times: int, calls: int) -> None:
    rows = forward.specs[0].shape[0]
    w_ih, w_hh = forward.specs[1 + states : 3 + states]
    note_multiplications(kernel, times * rows * (w_ih.numel + w_hh.numel))
    note_work(kernel, calls, 3 * calls * forward.specs[1].numel)


def _sigmoid(x: np.ndarray, one: np.ndarray) -> np.ndarray:
    np.negative(x, x)
    np.exp(x, x)
    np.add(x, one, x)
    return np.divide(one, x, x)


def _gates(given: Sequence[np.ndarray], states: int) -> tuple[np.ndarray, np.ndarray]:
    """What the input and what the (first) state give."""
    w_ih, w_hh, *biases = given[1 + states :]
    a, b = np.dot(given[0], w_ih.T), np.dot(given[1], w_hh.T)
    if biases:
        np.add(a, biases[0], a)
        np.add(b, biases[1], b)
    return a, b


def _gru(given: Sequence[np.ndarray], one: np.ndarray) -> tuple:
    a, b = _gates(given, 1)
    size = given[1].shape[1]
    from_h = b[:, 2 * size :]
    both = _sigmoid(np.add(a[:, : 2 * size], b[:, : 2 * size]), one)
    reset, update = both[:, :size], both[:, size:]
    new = np.multiply(reset, from_h)
    np.add(a[:, 2 * size :], new, new)
    return reset, update, np.tanh(new, new), from_h


@of("_gru_cell_")
def _gru_cell(kernel: Any) -> HostFunction | None:
    found = _shape(kernel, 1)
    if found is None:
        return None
    one = np.ones((), found[0])
    _note(kernel, kernel, 1, 1, 16)

    def run(*given: np.ndarray) -> Sequence[np.ndarray]:
        _, update, new, _ = _gru(given, one)
        out = np.subtract(given[1], new)
        np.multiply(out, update, out)
        return (np.add(out, new, out),)

    return run


def _lstm(given: Sequence[np.ndarray], one: np.ndarray) -> tuple:
    a, b = _gates(given, 2)
    np.add(a, b, a)
    size = given[1].shape[1]
    i, f = a[:, :size], a[:, size : 2 * size]
    g, o = a[:, 2 * size : 3 * size], a[:, 3 * size :]
    _sigmoid(a[:, : 2 * size], one)
    np.tanh(g, g)
    _sigmoid(o, one)
    c = np.multiply(f, given[2])
    np.add(c, np.multiply(i, g), c)
    return i, f, g, o, c


@of("_lstm_cell_")
def _lstm_cell(kernel: Any) -> HostFunction | None:
    found = _shape(kernel, 2)
    if found is None:
        return None
    one = np.ones((), found[0])
    _note(kernel, kernel, 2, 1, 18)

    def run(*given: np.ndarray) -> Sequence[np.ndarray]:
        *_, o, c = _lstm(given, one)
        h = np.tanh(c)
        return np.multiply(o, h, h), c

    return run


@of("_rnn_cell_")
def _rnn_cell(kernel: Any) -> HostFunction | None:
    found = _shape(kernel, 1)
    if found is None or kernel.op.bind(kernel.static, kernel.specs)["relu"]:
        return None
    _note(kernel, kernel, 1, 1, 6)

    def run(*given: np.ndarray) -> Sequence[np.ndarray]:
        a, b = _gates(given, 1)
        np.add(a, b, a)
        return (np.tanh(a, a),)

    return run


def _finish(forward: Any, need: Sequence[bool], states: int, dtype: np.dtype) -> Callable:
    """(operands, gradients of what the input and what the state give, gradients of the states besides) -> results."""
    rows = forward.specs[0].shape[0]
    width = forward.specs[1 + states].shape[0]
    ones = np.ones(rows, dtype) if sums_by_product(rows, width, dtype) else None

    def column_sum(g: np.ndarray) -> np.ndarray:
        return np.dot(ones, g) if ones is not None else np.add.reduce(g, 0)

    def run(given: Sequence[np.ndarray], a: np.ndarray, b: np.ndarray, direct: Sequence[Any]) -> list[np.ndarray]:
        w_ih, w_hh = given[1 + states : 3 + states]
        out = []
        if need[0]:
            out.append(np.dot(a, w_ih))
        if need[1]:
            h = np.dot(b, w_hh)
            out.append(h if direct[0] is None else np.add(h, direct[0], h))
        if states == 2 and need[2]:
            out.append(direct[1])
        weights = need[1 + states :]
        if weights[0]:
            out.append(np.dot(a.T, given[0]))
        if weights[1]:
            out.append(np.dot(b.T, given[1]))
        sums = [column_sum(a)] if weights[2:] and weights[2] else []
        if weights[2:] and weights[3]:
            sums.append(column_sum(b) if b is not a or not sums else sums[0].copy())
        return out + sums

    return run


def _back_shape(kernel: Any, states: int) -> tuple[np.dtype, bool] | None:
    """As `_shape`, of the cell whose gradient this is, if it takes all operands."""
    op = kernel.op
    count = len(op.forward.specs)
    if op.plan != (tuple(range(count)), ()) or len(kernel.specs) != count + sum(op.given):
        return None
    return None if floating(*kernel.specs) is None else _shape(op.forward, states)


@of("_gru_cell_", backward=True)
def _gru_cell_back(kernel: Any) -> HostFunction | None:
    found = _back_shape(kernel, 1)
    if found is None:
        return None
    forward = kernel.op.forward
    size, one = forward.specs[1].shape[1], np.ones((), found[0])
    finish = _finish(forward, kernel.op.need, 1, found[0])
    _note(kernel, forward, 1, 3, 36)

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        *given, grad = arrays
        reset, update, new, from_h = _gru(given, one)
        b = np.empty((len(grad), 3 * size), grad.dtype)
        to_new = b[:, 2 * size :]
        np.subtract(one, update, to_new)
        d_update = np.multiply(to_new, update)
        np.multiply(d_update, np.subtract(given[1], new), d_update)
        np.multiply(to_new, grad, to_new)
        np.multiply(new, new, new)
        np.subtract(one, new, new)
        np.multiply(to_new, new, to_new)
        a = b.copy()
        a[:, size : 2 * size] = b[:, size : 2 * size] = np.multiply(d_update, grad, d_update)
        d_reset = np.multiply(to_new, from_h)
        np.multiply(d_reset, reset, d_reset)
        np.multiply(d_reset, np.subtract(one, reset), d_reset)
        a[:, :size] = b[:, :size] = d_reset
        np.multiply(to_new, reset, to_new)
        return finish(given, a, b, (np.multiply(grad, update),))

    return run


@of("_lstm_cell_", backward=True, partial=True)
def _lstm_cell_back(kernel: Any) -> HostFunction | None:
    found = _back_shape(kernel, 2)
    if found is None:
        return None
    forward = kernel.op.forward
    size, one = forward.specs[1].shape[1], np.ones((), found[0])
    finish = _finish(forward, kernel.op.need, 2, found[0])
    _note(kernel, forward, 2, 3, 40)

    has_h, has_c = kernel.op.given
    count = len(forward.specs)

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        given = arrays[:count]
        i, f, g, o, c = _lstm(given, one)
        grad_h = arrays[count] if has_h else None
        d = np.empty((len(c), 4 * size), c.dtype)
        tanh_c = np.tanh(c)
        if grad_h is None:
            d_c = arrays[-1]
            grad_h = np.zeros_like(c)
        else:
            d_c = np.multiply(grad_h, o)
            np.multiply(d_c, np.subtract(one, np.multiply(tanh_c, tanh_c)), d_c)
            if has_c:
                np.add(d_c, arrays[-1], d_c)
        for k, (gate, other) in enumerate(((i, g), (f, given[2]), (g, i), (o, None))):
            part = d[:, k * size : (k + 1) * size]
            np.multiply(*((grad_h, tanh_c) if other is None else (d_c, other)), part)
            slope = np.subtract(one, np.multiply(g, g) if k == 2 else gate)
            np.multiply(part, slope if k == 2 else np.multiply(slope, gate, slope), part)
        return finish(given, d, d, (None, np.multiply(d_c, f)))

    return run


@of("_rnn_cell_", backward=True)
def _rnn_cell_back(kernel: Any) -> HostFunction | None:
    found = _back_shape(kernel, 1)
    forward = kernel.op.forward
    if found is None or forward.op.bind(forward.static, forward.specs)["relu"]:
        return None
    one = np.ones((), found[0])
    finish = _finish(forward, kernel.op.need, 1, found[0])
    _note(kernel, forward, 1, 3, 14)

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        *given, grad = arrays
        a, b = _gates(given, 1)
        np.add(a, b, a)
        np.tanh(a, a)
        np.multiply(a, a, a)
        np.subtract(one, a, a)
        np.multiply(a, grad, a)
        return finish(given, a, a, (None,))

    return run
