# ruff: noqa: B023 - functions are called at once; long lists of short cases
"""Every view operator against every way of writing and differentiating, alone and in pairs.

`python -m compat_tests.views.matrix` runs these and writes MATRIX.md."""

from compat_tests import case, data

VIEWS = {
    "view": lambda torch, t: t.view(-1),
    "view(2, -1)": lambda torch, t: t.view(2, -1),
    "view_as": lambda torch, t: t.view_as(t),
    "reshape": lambda torch, t: t.reshape(2, -1),
    "flatten": lambda torch, t: t.flatten(),
    "unflatten": lambda torch, t: t.unflatten(0, (2, -1)),
    "transpose": lambda torch, t: t.transpose(0, -1),
    "t": lambda torch, t: t.t(),
    "T": lambda torch, t: t.T,
    "mT": lambda torch, t: t.mT,
    "permute": lambda torch, t: t.permute(*reversed(range(t.dim()))),
    "movedim": lambda torch, t: t.movedim(0, -1),
    "squeeze": lambda torch, t: t.squeeze(),
    "squeeze(0)": lambda torch, t: t.squeeze(0),
    "unsqueeze(0)": lambda torch, t: t.unsqueeze(0),
    "unsqueeze(-1)": lambda torch, t: t.unsqueeze(-1),
    "expand": lambda torch, t: t.expand(2, *t.shape),
    "expand_as": lambda torch, t: t.expand_as(t),
    "narrow": lambda torch, t: t.narrow(0, 1, t.shape[0] - 1),
    "select": lambda torch, t: t.select(0, 1),
    "x[-1]": lambda torch, t: t[-1],
    "x[:]": lambda torch, t: t[:],
    "x[...]": lambda torch, t: t[...],
    "x[None]": lambda torch, t: t[None],
    "x[1:]": lambda torch, t: t[1:],
    "x[..., ::2]": lambda torch, t: t[..., ::2],
    "split": lambda torch, t: t.split(2)[1],
    "split_with_sizes": lambda torch, t: t.split([1, t.shape[0] - 1])[1],
    "chunk": lambda torch, t: t.chunk(2)[0],
    "tensor_split": lambda torch, t: t.tensor_split(2)[0],
    "unbind": lambda torch, t: t.unbind(0)[1],
    "diagonal": lambda torch, t: t.diagonal(),
    "diagonal(1)": lambda torch, t: t.diagonal(1, -1, -2),
    "unfold": lambda torch, t: t.unfold(0, 2, 2),
    "as_strided": lambda torch, t: t.as_strided((2, 2), (1, 3)),
    "as_strided at 1": lambda torch, t: t.as_strided((3,), (2,), 1),
    "view_as_real": lambda torch, t: torch.view_as_real(t),
    "view_as_complex": lambda torch, t: torch.view_as_complex(t.unflatten(-1, (-1, 2))),
    "real": lambda torch, t: torch.real(t),
    "imag": lambda torch, t: torch.imag(t),
    "view(int32)": lambda torch, t: t.view(torch.int32),
    "view(same dtype)": lambda torch, t: t.view(t.dtype),
    "detach": lambda torch, t: t.detach(),
    "data": lambda torch, t: t.data,
}
COMPLEX = ("view_as_real", "real", "imag")


def base(torch, name, **options):
    """Small whole numbers, so that sums are exact."""
    if name in COMPLEX:
        x = data((4, 4), "int32", 1) + 1j * data((4, 4), "int32", 2)
        return torch.tensor(x, dtype=torch.complex64, **options)
    return torch.tensor(data((4, 4), "int32", 1), dtype=torch.float32, **options)


def attempt(function):
    """What it returns, or the error's class and text."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error).split("\nThe above")[0]]


def node(t):
    """The name of the node that made a tensor."""
    return t.grad_fn.name() if t.grad_fn is not None else None


def digest(torch, t):
    """The dtype, shape and one number that any changed, missing or moved element would change."""
    if t is None:
        return None
    flat = torch.view_as_real(t.detach().resolve_conj()) if t.dtype.is_complex else t.detach()
    total = 0
    for k, value in enumerate(flat.reshape(-1).tolist()):
        total += (k % 7 + 1) * value
    return [str(t.dtype), list(t.shape), total]


def real_part(torch, t):
    return torch.view_as_real(t) if t.dtype.is_complex else t


def weights(torch, t):
    n = t.numel()
    return (torch.arange(n, dtype=torch.float32) % 5 + 1).reshape(t.shape)


def loss(torch, *tensors):
    out = 0
    for t in tensors:
        if t.requires_grad:
            t = real_part(torch, t)
            out = out + (t * t * weights(torch, t)).sum()
    return out


def geometry(torch, x, f):
    v = f(torch, x)
    return {
        "shape": v.shape,
        "stride": v.stride(),
        "offset": v.storage_offset(),
        "contiguous": v.is_contiguous(),
        "is view": v._is_view(),
        "of base": v._base is x,
        "pointer": v.data_ptr() - x.data_ptr(),
        "dtype": v.dtype,
        "value": v,
    }


def write_view(torch, x, f):
    v = f(torch, x)
    v.add_(1 if v.dtype == torch.int32 else 100)
    first = [x.clone(), v.clone(), x._version, v._version]
    v.zero_()
    return [*first, x.clone(), v.clone(), x._version, v._version]


def write_base(torch, x, f):
    v = f(torch, x)
    x.mul_(2)
    first = [v.clone(), x._version, v._version]
    x[1:, 1] = 7
    return [*first, v.clone(), x._version, v._version]


def gradient(torch, w, f):
    x = w * 2
    v = f(torch, x)
    out = [v.requires_grad, v.is_leaf, node(v)]
    if v.requires_grad:
        loss(torch, v, x).backward()
    return [*out, w.grad]


def write_tracked_view(torch, w, f):
    x = w * 2
    v = f(torch, x)
    v.mul_(3)
    out = [x.requires_grad, v.requires_grad, node(x), node(v), x._version, v._version]
    loss(torch, x, v).backward()
    return [*out, x.detach().clone(), v.detach().clone(), w.grad]


def write_tracked_base(torch, w, f):
    x = w * 2
    v = f(torch, x)
    x.mul_(3)
    out = [v.requires_grad, node(x), node(v), v._version]
    loss(torch, x, v).backward()
    return [*out, v.detach().clone(), w.grad]


def tracked_value_into_view(torch, x, f):
    v = f(torch, x)
    u = torch.ones_like(v).requires_grad_()
    v.mul_(u)
    out = [x.requires_grad, v.requires_grad, node(x), node(v)]
    loss(torch, x, v).backward()
    return [*out, x.detach().clone(), u.grad]


def view_of_leaf(torch, w, f):
    v = f(torch, w)
    error = attempt(lambda: v.add_(1) is v)
    with torch.no_grad():
        v.mul_(2)
    return [error, w.detach().clone(), w._version, w.is_leaf, v.requires_grad, node(v)]


def made_in_no_grad(torch, w, f):
    x = w * 2
    with torch.no_grad():
        v = f(torch, x)
    out = [v.requires_grad, v._is_view(), v.is_leaf]
    return [*out, attempt(lambda: v.add_(1) is v)]


def saved_then_changed(torch, w, f):
    x = w * 2
    v = f(torch, x)
    y = v * v
    x.add_(1)
    if not y.requires_grad:
        return None
    error = attempt(lambda: real_part(torch, y).sum().backward())
    # Of a view among several, PyTorch says that rather than what happened.
    return error[0] if v.shape != x.shape and "Output" in str(attempt(lambda: v.grad_fn)) else error


CHECKS = {
    "geometry": (geometry, False),
    "write view": (write_view, False),
    "write base": (write_base, False),
    "gradient": (gradient, True),
    "write view with history": (write_tracked_view, True),
    "write base with history": (write_tracked_base, True),
    "tracked value into view": (tracked_value_into_view, False),
    "view of leaf": (view_of_leaf, True),
    "made in no_grad": (made_in_no_grad, True),
    "saved, then changed": (saved_then_changed, True),
}


@case
@case.params("name", list(VIEWS))
def case_view(torch, name):
    f = VIEWS[name]
    return {
        check: attempt(lambda: run(torch, base(torch, name, requires_grad=leaf), f))
        for check, (run, leaf) in CHECKS.items()
    }


def pair(torch, first, second):
    name = first if first in COMPLEX else second if second in COMPLEX and first != "view_as_complex" else first

    def f(torch, t):
        return VIEWS[second](torch, VIEWS[first](torch, t))

    def forward():
        x = base(torch, name)
        v = f(torch, x)
        out = [v.stride(), v.storage_offset(), v.is_contiguous(), v._is_view(), v._base is x]
        v.add_(1 if v.dtype == torch.int32 else 100)
        out += [digest(torch, x), digest(torch, v), x._version, v._version]
        x.mul_(2)
        return [*out, digest(torch, v)]

    def backward():
        w = base(torch, name, requires_grad=True)
        x = w * 2
        v = f(torch, x)
        out = [node(v)]
        v.mul_(3)
        out += [node(v), node(x), v._version]
        loss(torch, x, v).backward()
        return [*out, digest(torch, w.grad)]

    def rebase():
        w = base(torch, name, requires_grad=True)
        x = w * 2
        v = f(torch, x)
        x.mul_(3)
        loss(torch, v).backward()
        return digest(torch, w.grad)

    if first in ("real", "imag") and second.startswith("as_strided"):
        return [attempt(forward)]  # PyTorch gives no gradient to elements outside of the complex view
    return [attempt(forward), attempt(backward), attempt(rebase)]


@case(modes=("default",))
@case.params("first", list(VIEWS))
def case_pairs(torch, first):
    return {second: pair(torch, first, second) for second in VIEWS}
