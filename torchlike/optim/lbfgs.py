"""L-BFGS.

Scalars that decide where to go (losses, directional derivatives, step lengths) are read, as NumPy scalars of the
parameters' dtype, in which mixed arithmetic with Python floats rounds as PyTorch's 0-d tensors do. Vectors stay
pending."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._src.engine import Value, record
from torchlike._src.ops.declare import RawOp, infer_by_tracing
from torchlike._src.ops.host_rules import floating, note_work
from torchlike._src.tensor.call import write
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap
from torchlike.optim._checks import check, check_lr
from torchlike.optim._kernel import zeros
from torchlike.optim.optimizer import Optimizer, ParamsT

__all__ = ["LBFGS"]


# -- kernels -------------------------------------------------------------------------------------------------


def _flatten(*arrays: Any) -> Any:
    """Any shapes -> (N,), complex numbers as pairs."""
    flat = [jnp.stack([a.real, a.imag], -1).reshape(-1) if jnp.iscomplexobj(a) else a.reshape(-1) for a in arrays]
    return jnp.concatenate(flat)


def _move(t: Any, d: Any, *params: Any) -> tuple:
    """Each parameter plus t times its part of d (N,)."""
    moved = []
    offset = 0
    step = d * t.reshape(()).astype(d.dtype)
    for p in params:
        size = p.size * (2 if jnp.iscomplexobj(p) else 1)
        part = step[offset : offset + size]
        if jnp.iscomplexobj(p):
            part = part.reshape(*p.shape, 2)
            part = part[..., 0] + 1j * part[..., 1]
        moved.append(p + part.reshape(p.shape).astype(p.dtype))
        offset += size
    return tuple(moved)


def _direction(g: Any, scale: Any, *history: Any, count: int) -> tuple:
    """The two-loop recursion: (N,), 0-d, count times (N,) y, (N,) s and 0-d 1/(y.s) -> direction (N,), alphas."""
    y = jnp.stack(history[:count])
    s = jnp.stack(history[count : 2 * count])
    ro = jnp.stack([x.reshape(()) for x in history[2 * count :]])

    def back(q: Any, item: tuple) -> tuple:
        y, s, r = item
        a = jnp.dot(s, q) * r
        return q - a * y, a

    def forth(r: Any, item: tuple) -> tuple:
        y, s, ro, a = item
        return r + (a - jnp.dot(y, r) * ro) * s, 0.0

    alphas: Any
    q, alphas = jax.lax.scan(back, -g, (y, s, ro), reverse=True)
    d, _ = jax.lax.scan(forth, q * scale.reshape(()).astype(q.dtype), (y, s, ro, alphas))
    return (d, *(alphas[k] for k in range(count)))


FLATTEN = RawOp(_flatten, "lbfgs_flatten")
MOVE = RawOp(_move, "lbfgs_move")
DIRECTION = RawOp(_direction, "lbfgs_direction")


def _direction_avals(static: tuple, specs: tuple) -> tuple:
    if any(s is not specs[0].with_shape(s.shape) for k, s in enumerate(specs) if k != 1):
        return infer_by_tracing(DIRECTION, static, specs)
    return (specs[0], *[specs[0].with_shape(())] * dict(static)["count"])


def _direction_on_host(kernel: Any) -> Callable | None:
    """The recursion in NumPy: the history grows with every step, and each length would be traced anew."""
    count, dtype = dict(kernel.static)["count"], floating(kernel.specs[0], *kernel.specs[2:])
    if dtype is None:
        return None
    note_work(kernel, 9 * count, 12 * count * kernel.specs[0].numel)

    def run(g: np.ndarray, scale: np.ndarray, *history: np.ndarray) -> Sequence[np.ndarray]:
        y, s, ro = history[:count], history[count : 2 * count], [x.reshape(()) for x in history[2 * count :]]
        q = np.negative(g)
        alphas: list[Any] = [None] * count
        for k in reversed(range(count)):
            alphas[k] = np.asarray(np.dot(s[k], q) * ro[k])
            q = q - alphas[k] * y[k]
        q = q * scale.reshape(()).astype(dtype)
        for k in range(count):
            q = q + (alphas[k] - np.dot(y[k], q) * ro[k]) * s[k]
        return [q, *alphas]

    return run


DIRECTION.infer, DIRECTION.host_function = _direction_avals, _direction_on_host  # type: ignore[method-assign]


def _operand(x: Any) -> Any:
    return x._read() if isinstance(x, TensorBase) else float(x)


def _scalar(t: Tensor) -> Any:
    """The number in a 0-d tensor, as a NumPy scalar of its dtype."""
    return t._host()[()]


def _tensor(x: Any) -> Any:
    """A NumPy scalar as a tensor again: what PyTorch's state would hold."""
    return torch.tensor(x) if isinstance(x, np.generic) else x


# -- the line search -----------------------------------------------------------------------------------------


def _cubic_minimum(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple | None = None) -> Any:
    """The minimum of the cubic through two points with slopes g, within bounds; their middle if it has none."""
    low, high = bounds or ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = np.sqrt(square)
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


def _strong_wolfe(
    evaluate: Callable[[Any], tuple],
    t: Any,
    d: Tensor,
    f: float,
    g: Tensor,
    slope: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple:
    """A step length that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

    evaluate(t) -> (loss, gradient, slope) at t along d. Returns (loss, gradient, t, number of evaluations)."""
    width = _scalar(d.abs().max())
    f_new, g_new, slope_new = evaluate(t)
    evaluations = 1
    # Each point of the bracket is (t, loss, gradient, slope).
    before: tuple = (0, f, g, slope)
    bracket: list[tuple] = []
    done = False
    iteration = 0
    while iteration < max_ls:
        now = (t, f_new, g_new, slope_new)
        if f_new > (f + c1 * t * slope) or (iteration > 1 and f_new >= before[1]):
            bracket = [before, now]
            break
        if abs(slope_new) <= -c2 * slope:
            bracket = [now]
            done = True
            break
        if slope_new >= 0:
            bracket = [before, now]
            break
        bounds = (t + 0.01 * (t - before[0]), t * 10)
        t = _cubic_minimum(before[0], before[1], before[3], t, f_new, slope_new, bounds=bounds)
        before = now
        f_new, g_new, slope_new = evaluate(t)
        evaluations += 1
        iteration += 1
    if iteration == max_ls:
        bracket = [(0, f, g, slope), (t, f_new, g_new, slope_new)]

    slow = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iteration < max_ls:
        first, second = bracket
        if abs(second[0] - first[0]) * width < tolerance_change:
            break
        t = _cubic_minimum(first[0], first[1], first[3], second[0], second[1], second[3])
        left, right = min(first[0], second[0]), max(first[0], second[0])
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # near an end: allow that once, then stay away from it
            if slow or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                slow = False
            else:
                slow = True
        else:
            slow = False
        f_new, g_new, slope_new = evaluate(t)
        evaluations += 1
        iteration += 1
        now = (t, f_new, g_new, slope_new)
        if f_new > (f + c1 * t * slope) or f_new >= bracket[low][1]:
            bracket[high] = now
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = now
    t, f_new, g_new, _ = bracket[low]
    return f_new, g_new, t, evaluations


# -- the optimizer -------------------------------------------------------------------------------------------


class LBFGS(Optimizer):
    """L-BFGS; `step` needs a closure and may call it many times. One parameter group only.

    params: tensors. lr: step length. max_iter: iterations of one step. max_eval: closure calls of one step (1.25
    max_iter). tolerance_grad, tolerance_change: where to stop. history_size: how many updates are remembered.
    line_search_fn: None or "strong_wolfe".

    ValueError: a negative lr, several groups. RuntimeError: another line search."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        check(len(self.param_groups) == 1, "LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _gather_flat_grad(self) -> Tensor:
        grads = [zeros(p) if p._grad is None else p._grad for p in self._params]
        return wrap(record(FLATTEN, (), [g._read() for g in grads])[0])

    def _add_grad(self, t: Any, d: Tensor) -> None:
        params = self._params
        moved = record(MOVE, (), [_operand(t), d._read(), *(p._read() for p in params)])
        for p, v in zip(params, moved, strict=True):
            write(p, wrap(v))

    def _set_param(self, values: list[Value]) -> None:
        for p, v in zip(self._params, values, strict=True):
            write(p, wrap(v))

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimise the closure's loss a while; returns its first value. The closure computes loss and gradients."""
        with torch.no_grad():
            return self._step(torch.enable_grad()(closure))

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"]
        lr = _scalar(lr.reshape(())) if isinstance(lr, TensorBase) else lr
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        line_search, history_size = group["line_search_fn"], group["history_size"]
        # All state is kept under the first parameter, as in PyTorch, so that loading a state dict converts it.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        orig_loss = closure()
        loss = float(orig_loss)
        evaluations = 1
        state["func_evals"] += 1
        g = self._gather_flat_grad()
        if _scalar(g.abs().max()) <= tolerance_grad:
            return orig_loss
        d, t = state.get("d"), state.get("t")
        ys, ss, ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        scale, previous, previous_loss = state.get("H_diag"), state.get("prev_flat_grad"), state.get("prev_loss")
        n = 0
        while n < max_iter:
            n += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = g.neg()
                ys, ss, ro, scale = [], [], [], 1
            else:
                y, s = g.sub(previous), d.mul(_tensor(t))
                curvature = y.dot(s)
                if _scalar(curvature) > 1e-10:
                    if len(ys) == history_size:
                        del ys[0], ss[0], ro[0]
                    ys.append(y)
                    ss.append(s)
                    ro.append(1.0 / curvature)
                    scale = curvature / y.dot(y)
                d = self._next_direction(state, g, scale, ys, ss, ro, history_size)
            previous = g.clone()
            previous_loss = loss
            t = min(1.0, 1.0 / _scalar(g.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = _scalar(g.dot(d))
            if slope > -tolerance_change:
                break
            used = 0
            small = False
            if line_search is not None:
                if line_search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                evaluate = self._along(closure, d)
                loss, g, t, used = _strong_wolfe(evaluate, t, d, loss, g, slope, max_ls=max_eval - evaluations)
                self._add_grad(t, d)
                small = _scalar(g.abs().max()) <= tolerance_grad
            else:
                self._add_grad(t, d)
                if n != max_iter:
                    loss = float(closure())
                    g = self._gather_flat_grad()
                    small = _scalar(g.abs().max()) <= tolerance_grad
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if n == max_iter or evaluations >= max_eval or small:
                break
            if _scalar(d.mul(_tensor(t)).abs().max()) <= tolerance_change:
                break
            if abs(loss - previous_loss) < tolerance_change:
                break
        state["d"], state["t"] = d, _tensor(t)
        state["old_dirs"], state["old_stps"], state["ro"] = ys, ss, ro
        state["H_diag"], state["prev_flat_grad"], state["prev_loss"] = scale, previous, previous_loss
        return orig_loss

    def _next_direction(
        self, state: dict, g: Tensor, scale: Any, ys: list, ss: list, ro: list, history_size: int
    ) -> Tensor:
        alphas = state.setdefault("al", [None] * history_size)
        count = len(ys)
        if count == 0:
            return g.neg().mul(scale)
        # Zeros to the next power of two change nothing, and spare a program for each length of the history.
        width = min(1 << (count - 1).bit_length(), max(history_size, count))
        rows = [torch.zeros_like(g)._read()] * (width - count)
        numbers = [torch.zeros((), dtype=g.dtype, device=g.device)._read()] * (width - count)
        history = [*map(_operand, ys), *rows, *map(_operand, ss), *rows, *map(_operand, ro), *numbers]
        out = record(DIRECTION, (("count", width),), [g._read(), _operand(scale), *history])
        alphas[:count] = [wrap(v) for v in out[1 : 1 + count]]
        return wrap(out[0])

    def _along(self, closure: Callable[[], Any], d: Tensor) -> Callable[[Any], tuple]:
        """t -> (loss, gradient, slope) at t along d from where the parameters are; they come back there."""
        start = [p._read() for p in self._params]

        def evaluate(t: Any) -> tuple:
            self._add_grad(t, d)
            loss = float(closure())
            g = self._gather_flat_grad()
            self._set_param(start)
            return loss, g, _scalar(g.dot(d))

        return evaluate
