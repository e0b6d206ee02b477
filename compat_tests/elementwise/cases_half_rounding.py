"""Where float16 and bfloat16 are rounded: once, after each step, numbers first. Compared exactly."""

from compat_tests import case, tensor

S = 0.3
NUMBERS = {
    "add": lambda t, x, y: x + S,
    "rsub": lambda t, x, y: S - x,
    "alpha": lambda t, x, y: t.add(x, y, alpha=S),
    "number and alpha": lambda t, x, y: t.sub(x, S, alpha=S),
    "rsub alpha": lambda t, x, y: t.rsub(x, y, alpha=S),
    "mul": lambda t, x, y: x * S,
    "div": lambda t, x, y: x / S,
    "rdiv": lambda t, x, y: S / x,
    "scalar tensor": lambda t, x, y: x + t.tensor(S),
    "scalar tensor times": lambda t, x, y: x * t.tensor(S),
    "integers": lambda t, x, y: x + t.arange(1000, 1000 + x.numel()),
    "pow": lambda t, x, y: x.abs() ** S,
    "rpow": lambda t, x, y: S**x,
    "cube": lambda t, x, y: x**3,
    "inverse square": lambda t, x, y: x**-2,
    "fmod": lambda t, x, y: t.fmod(x, S),
    "remainder": lambda t, x, y: x % S,
    "rremainder": lambda t, x, y: t.remainder(S, x),
    "floor_divide": lambda t, x, y: x // S,
    "trunc": lambda t, x, y: t.div(x, S, rounding_mode="trunc"),
    "eq": lambda t, x, y: t.full_like(x, S) == S,
    "le": lambda t, x, y: t.full_like(x, S) <= S,
    "hardshrink": lambda t, x, y: t.nn.functional.hardshrink(x, S),
    "softshrink": lambda t, x, y: t.nn.functional.softshrink(x, S),
    "clamp": lambda t, x, y: x.clamp(-S, S),
}
STEPS = {
    "floor": lambda t, x, y: x // y,
    "trunc": lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
    "xlogy": lambda t, x, y: t.xlogy(x, y.abs()),
    "xlog1py": lambda t, x, y: t.special.xlog1py(x, y.abs()),
    "entr": lambda t, x, y: t.special.entr(x.abs()),
    "ndtr": lambda t, x, y: t.special.ndtr(x),
    "softsign": lambda t, x, y: t.nn.functional.softsign(x),
    "tanhshrink": lambda t, x, y: t.nn.functional.tanhshrink(x),
    "mse": lambda t, x, y: t.nn.functional.mse_loss(x, y, reduction="none"),
    "huber": lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="none", delta=S),
    "smooth_l1": lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, reduction="none", beta=S),
    "soft_margin": lambda t, x, y: t.nn.functional.soft_margin_loss(x, y, reduction="none"),
    "cross": lambda t, x, y: t.linalg.cross(x[:99].reshape(33, 3), y[:99].reshape(33, 3)),
    "trapezoid": lambda t, x, y: t.trapezoid(x.reshape(6, 32), y.reshape(6, 32)),
    "trapezoid dx": lambda t, x, y: t.trapezoid(x.reshape(6, 32), dx=S),
    "cumulative": lambda t, x, y: t.cumulative_trapezoid(x.reshape(6, 32), y.reshape(6, 32)),
    "gradient": lambda t, x, y: t.gradient(x, spacing=S)[0],
    "cosine": lambda t, x, y: t.cosine_similarity(x.reshape(6, 32), y.reshape(6, 32)),
    "distance": lambda t, x, y: t.pairwise_distance(x.reshape(6, 32), y.reshape(6, 32)),
    "logsumexp": lambda t, x, y: x.reshape(6, 32).logsumexp(-1),
    "addr": lambda t, x, y: t.addr(x.reshape(6, 32), y[:6], x[:32], beta=S, alpha=0.7),
    "addbmm": lambda t, x, y: t.addbmm(x[:16].reshape(4, 4), y[:48].reshape(4, 4, 3), x[:48].reshape(4, 3, 4)),
    "addmm": lambda t, x, y: t.addmm(
        x[:16].reshape(4, 4), y[:12].reshape(4, 3), x[:12].reshape(3, 4), beta=S, alpha=0.7
    ),
    "linspace": lambda t, x, y: t.linspace(S, 7.1, 50, dtype=x.dtype),
}


@case(rtol=0, atol=0)
@case.params("dtype", ["bfloat16", "float16"])
def case_rounding(torch, dtype):
    x, y = tensor(torch, (192,), dtype, seed=1) * 3, tensor(torch, (192,), dtype, seed=2) * 3
    return {k: f(torch, x, y) for k, f in {**NUMBERS, **{f"steps of {k}": f for k, f in STEPS.items()}}.items()}


@case(rtol=0, atol=0)
@case.params("dtype", ["bfloat16", "float16"])
def case_a_chain(torch, dtype):
    F = torch.nn.functional
    x, y, z = (tensor(torch, (64,), dtype, seed=k) for k in (1, 2, 3))
    out = []
    for _ in range(3):  # compiled from the second time on
        a = (x * y + z) * y - x
        out.append(F.relu(a) * z + a.sqrt().nan_to_num(0.0) - x / (y.abs() + 1))
    return out


@case(rtol=0, atol=0)
def case_integer_trapezoids_and_spacing(torch):
    y = torch.tensor([[200, 100, 90], [7, 250, 255]], dtype=torch.uint8)
    return [
        torch.trapezoid(y), torch.trapezoid(y, dx=0.5), torch.trapezoid(y, y.flip(1)), torch.cumulative_trapezoid(y),
        torch.linspace(1.5, 10.3, 50, dtype=torch.int64), torch.linspace(-4.3, 50, 37, dtype=torch.int32),
        torch.logspace(0.15, 1.03, 9, dtype=torch.int64), torch.einsum("ij->i", y), torch.unravel_index(y % 4, (2, 2)),
        torch.masked.cumsum(y, 1), torch.masked.cumprod(y, 1),
    ]  # fmt: skip
