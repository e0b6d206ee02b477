"""torch.lstm, gru, rnn_tanh, rnn_relu and the cells: layers and directions around the recurrent operators."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.tensor.composite import internal, public
from torchlike._src.tensor.namespace import torch


def _stacked(
    input: Any,
    states: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    projected: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: Any,
    layer: Callable,
) -> tuple:
    """All layers over time-major (or packed) input; states are (layers · directions, B, H) each."""
    per = (4 if has_biases else 2) + projected
    directions = 2 if bidirectional else 1
    packing = None if batch_sizes is None else _Packing(batch_sizes, input.device)
    last: list[list[Any]] = [[] for _ in states]
    x = input
    for k in range(num_layers):
        steps = x if packing is None else packing.unpack(x)
        outs = []
        for d in range(directions):
            n = k * directions + d
            own = list(params[n * per : (n + 1) * per])
            w_hr = own.pop() if projected else None
            weights = tuple(own) if has_biases else (*own, None, None)
            lengths = None if packing is None else packing.lengths
            out, *new = layer(steps, [s[n] for s in states], weights, w_hr, lengths, d == 1)
            outs.append(out)
            for column, state in zip(last, new, strict=True):
                column.append(state)
        x = outs[0] if directions == 1 else torch.cat(outs, -1)
        if packing is not None:
            x = packing.pack(x)
        if dropout and train and k < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    return (x, *(torch.stack(column) for column in last))


class _Packing:
    """Between packed rows (Σ batch_sizes, F) and steps (T, B, F)."""

    def __init__(self, batch_sizes: Any, device: Any) -> None:
        sizes = np.asarray(batch_sizes.tolist(), np.int64)
        self.steps, self.batch = len(sizes), int(sizes[0])
        inside = np.arange(self.batch)[None, :] < sizes[:, None]
        rows = np.flatnonzero(inside.reshape(-1))
        # Places beyond a sequence's end take any row; their results are never used.
        places = np.zeros(self.steps * self.batch, np.int64)
        places[rows] = np.arange(len(rows))
        self.lengths = torch.as_tensor(inside.sum(0), device=device)
        self.rows = torch.as_tensor(rows, device=device)
        self.places = torch.as_tensor(places, device=device)

    def unpack(self, x: Any) -> Any:
        return x.index_select(0, self.places).reshape(self.steps, self.batch, *x.shape[1:])

    def pack(self, x: Any) -> Any:
        return x.reshape(-1, *x.shape[2:]).index_select(0, self.rows)


def _lstm_layer(x: Any, state: list, weights: tuple, w_hr: Any, lengths: Any, reverse: bool) -> Any:
    return internal.lstm_layer(x, *state, *weights, w_hr, lengths, reverse=reverse)[:3]


def _gru_layer(x: Any, state: list, weights: tuple, w_hr: Any, lengths: Any, reverse: bool) -> Any:
    return internal.gru_layer(x, *state, *weights, lengths, reverse=reverse)[:2]


def _tanh_layer(x: Any, state: list, weights: tuple, w_hr: Any, lengths: Any, reverse: bool) -> Any:
    return internal.rnn_layer(x, *state, *weights, lengths, reverse=reverse, relu=False)[:2]


def _relu_layer(x: Any, state: list, weights: tuple, w_hr: Any, lengths: Any, reverse: bool) -> Any:
    return internal.rnn_layer(x, *state, *weights, lengths, reverse=reverse, relu=True)[:2]


def _call(layer: Callable, args: tuple, states_of: Callable, projected_of: Callable) -> tuple:
    """The two overloads: (input, hx, params, …, batch_first), and (data, batch_sizes, hx, params, …) for packed
    input."""
    if isinstance(args[3], (list, tuple)):
        data, batch_sizes, hx, params, has_biases, layers, dropout, train, bidirectional = args
        x = data
        batch_first = False
    else:
        x, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first = args
        batch_sizes = None
    states = states_of(hx)
    if batch_first:
        x = x.transpose(0, 1)
    out, *last = _stacked(
        x, states, params, has_biases, projected_of(states), layers, dropout, train, bidirectional, batch_sizes, layer
    )
    return (out.transpose(0, 1) if batch_first else out, *last)


@public("torch")
def lstm(*args):
    """lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> (output, h, c), or
    lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional) for a packed sequence."""
    return _call(_lstm_layer, args, tuple, lambda s: s[0].shape[-1] != s[1].shape[-1])


@public("torch")
def gru(*args):
    """As lstm, with one state: (output, h)."""
    return _call(_gru_layer, args, lambda h: (h,), lambda s: False)


@public("torch")
def rnn_tanh(*args):
    """As gru, for a plain recurrent network."""
    return _call(_tanh_layer, args, lambda h: (h,), lambda s: False)


@public("torch")
def rnn_relu(*args):
    """As rnn_tanh, with relu."""
    return _call(_relu_layer, args, lambda h: (h,), lambda s: False)


@public("torch")
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """(B, I), ((B, H), (B, H)) -> ((B, H), (B, H)): one step of an LSTM."""
    h, c = internal.lstm_cell_(input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)
    return h, c


@public("torch")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """(B, I), (B, H) -> (B, H): one step of a GRU."""
    return internal.gru_cell_(input, hx, w_ih, w_hh, b_ih, b_hh)


@public("torch")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """(B, I), (B, H) -> (B, H): one step of a plain recurrent network."""
    return internal.rnn_cell_(input, hx, w_ih, w_hh, b_ih, b_hh, relu=False)


@public("torch")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """As rnn_tanh_cell, with relu."""
    return internal.rnn_cell_(input, hx, w_ih, w_hh, b_ih, b_hh, relu=True)
