"""NumPy's argument names: `axis` for `dim` and `keepdims` for `keepdim`, in functions and methods."""

from compat_tests import case, raises, tensor

REDUCTIONS = (
    "all", "amax", "amin", "any", "argmax", "logsumexp", "max", "mean", "median", "min", "nanmean", "nansum", "prod",
    "std", "sum", "var",
)  # fmt: skip
OTHERS = {
    "argsort": (), "chunk": (2,), "cumprod": (), "cumsum": (), "diff": (), "log_softmax": (), "softmax": (), "sort": (),
    "squeeze": (), "tensor_split": (2,), "topk": (2,), "unbind": (), "unsqueeze": (), "repeat_interleave": (2,),
}  # fmt: skip


def parts(out):
    return list(out) if isinstance(out, tuple) else out


@case
@case.params("name", REDUCTIONS)
def case_reduction(torch, name):
    x = tensor(torch, (3, 4), "float32", seed=1)
    x = x > 0 if name in ("all", "any") else x
    return [
        parts(getattr(torch, name)(x, axis=1, keepdims=True)),
        parts(getattr(x, name)(axis=0)),
        parts(getattr(x, name)(dim=-1, keepdims=True)),
    ]


@case
@case.params("name", list(OTHERS))
def case_along_an_axis(torch, name):
    x = tensor(torch, (3, 4), "float32", seed=1)
    return [parts(getattr(torch, name)(x, *OTHERS[name], axis=0)), parts(getattr(x, name)(*OTHERS[name], axis=1))]


@case
def case_joined_and_indexed(torch):
    x = tensor(torch, (3, 4), "float32", seed=1, requires_grad=True)
    index = torch.tensor([[0, 2, 1, 0]])
    out = [
        torch.cat([x, x], axis=1),
        torch.stack([x, x], axis=0),
        torch.gather(x, axis=0, index=index),
        x.gather(axis=0, index=index),
        x.index_select(axis=1, index=index[0, :2]),
        x.narrow(axis=1, start=1, length=2),
        x.select(axis=1, index=2),
        torch.linalg.norm(x, axis=1, keepdims=True),
        torch.linalg.vector_norm(x, axis=0),
        torch.fft.rfft(x, axis=0).abs(),
        x.detach().clone().unsqueeze_(axis=1),
        x.detach().clone().cumsum_(axis=1),
    ]
    sum(o.sum() for o in out).backward()
    return [*out, x.grad]


@case
def case_errors(torch):
    x = tensor(torch, (3, 4), "float32", seed=1)
    return [
        raises(torch, lambda: torch.sum(x, 0, axis=1)),
        raises(torch, lambda: x.cumprod(0, axis=1)),
        raises(torch, lambda: x.unsqueeze(0, axis=0)),
        raises(torch, lambda: x.sum(0, True, keepdims=True)),
        raises(torch, lambda: torch.cumprod(x)),
        raises(torch, lambda: x.gather()),
        raises(torch, lambda: x.gather(axis=0)),
        raises(torch, lambda: torch.softmax(x)),
        raises(torch, lambda: torch.unsqueeze(x)),
    ]
