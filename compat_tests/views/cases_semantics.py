# ruff: noqa: B023, E501 - functions are called at once; long lists of short cases
"""What is shared, what is counted and what is refused: the rest of in-place semantics."""

import copy
import pickle

from compat_tests import case, raises, tensor


def attempt(function):
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def describe(t):
    return [t, t.shape, t.stride(), t.storage_offset(), t.is_contiguous(), t._version, t._is_view(), t.is_leaf]


CHANGES = {
    "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(0, 1),
    "swapaxes_": lambda t: t.swapaxes_(0, 1),
    "unsqueeze_": lambda t: t.unsqueeze_(1),
    "squeeze_": lambda t: t.squeeze_(),
    "squeeze_(0)": lambda t: t.squeeze_(0),
}


@case
@case.params("name", list(CHANGES))
def case_shape_changed_in_place(torch, name):
    change = CHANGES[name]

    def plain():
        x = torch.arange(6.0).view(2, 3).clone()
        row = x[0]
        same = change(x) is x
        out = [same, describe(x), row]
        x.add_(10)
        out += [row.clone(), row._version]
        row.zero_()
        return [*out, x.clone(), x._version]

    def of_view():
        base = torch.arange(12.0)
        v = base[3:9].view(2, 3)
        change(v)
        v.add_(1)
        return [describe(v), base.clone(), v._base is base]

    def tracked():
        w = tensor(torch, (2, 3), seed=1, requires_grad=True)
        x = w * 2
        change(x)
        name = x.grad_fn.name()
        x.mul_(3)
        (x * x).sum().backward()
        return [name, x.detach().clone(), w.grad]

    def tracked_view():
        w = tensor(torch, (2, 3), seed=1, requires_grad=True)
        v = (w * 2)[0:2]
        change(v)
        (v * v).sum().backward()
        return [v.grad_fn.name(), w.grad]

    def leaf():
        w = tensor(torch, (2, 3), seed=1, requires_grad=True)
        error = attempt(lambda: change(w) is w)
        with torch.no_grad():
            change(w)
        return [error, w.shape, w._version, w.requires_grad]

    return [attempt(f) for f in (plain, of_view, tracked, tracked_view, leaf)]


@case
def case_data(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.data.mul_(10)
    y.sum().backward()
    out = [x.grad, y.detach(), y._version, x.data.requires_grad, x.data is x]
    x.data[0] = 7
    out += [x.detach().clone(), x._version]
    new = torch.zeros(2, 2)
    x.data = new
    new[0, 0] = 5
    out += [x.detach().clone(), x.shape, x.requires_grad, x.is_leaf, x.data_ptr() == new.data_ptr()]
    return [
        *out,
        raises(torch, lambda: setattr(x, "data", 3)),
        raises(torch, lambda: setattr(x, "data", torch.tensor([1]))),
    ]


@case
def case_data_hides_damage(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    y.data.zero_()
    y.sum().backward()
    seen = y.detach().clone()
    a = torch.ones(2, requires_grad=True)
    b = (a * 2).exp()
    b.detach().zero_()
    return [seen, raises(torch, lambda: b.sum().backward())]


@case
def case_set_and_resize(torch):
    a, b = torch.arange(4.0), torch.zeros(2)
    b.set_(a)
    b[0] = 9
    out = [a.clone(), b.clone(), a.data_ptr() == b.data_ptr(), a.is_set_to(b)]
    c = torch.arange(6.0)
    c.resize_(2, 2)
    out += [c.clone(), c.shape]
    d = torch.arange(6.0).view(2, 3)
    d.resize_(3, 2)
    out += [d.clone()]
    e = torch.zeros(0)
    e.set_()
    return [*out, e.shape, attempt(lambda: torch.ones(2, requires_grad=True).resize_(3).shape)]


@case
def case_pointers(torch):
    x = torch.zeros(3, 4)
    return [
        x.view(-1).data_ptr() == x.data_ptr(),
        x[1].data_ptr() - x.data_ptr(),
        x.detach().data_ptr() == x.data_ptr(),
        x.clone().data_ptr() == x.data_ptr(),
        x.data.data_ptr() == x.data_ptr(),
        x.t().data_ptr() == x.data_ptr(),
        (x + 1).data_ptr() == x.data_ptr(),
        x.untyped_storage().data_ptr() == x[1].untyped_storage().data_ptr(),
        x.untyped_storage().nbytes(),
        x[1:].untyped_storage().nbytes(),
        torch.zeros(0).data_ptr(),
        x.contiguous() is x,
        x.t().contiguous() is x,
        x.to(torch.float32) is x,
        x.reshape(3, 4) is x,
        x.float() is x,
        x.cpu() is x,
        x.to("cpu", copy=True) is x,
    ]


@case
def case_detached(torch):
    x = torch.zeros(4)
    d = x.detach()
    d.add_(1)
    u = torch.ones(4, requires_grad=True)
    d.mul_(u)
    out = [x.requires_grad, d.requires_grad, x._version, d._version, x.clone()]
    w = torch.ones(2, 3, requires_grad=True)
    y = w * 2
    e = y[0].detach()
    e[1] = 9
    v = y.t().detach()
    s = torch.ones(2, requires_grad=True)
    v[0] = s * 5
    v.sum().backward()
    return [*out, y.detach(), e, e._is_view(), v.detach(), s.grad, raises(torch, lambda: y[0].detach_())]


@case
def case_many_views(torch):
    w = torch.ones(6, requires_grad=True)
    x = w * 1
    rows = x.view(3, 2)
    for k, row in enumerate([rows[0], rows[1], rows[2]]):
        row.mul_(k + 1)
    x[2:4].add_(rows[0])
    rows[:, 1] = rows[:, 0] * 2
    (x * x).sum().backward()
    return [x.detach(), rows.detach(), w.grad, x._version, rows._version, rows.grad_fn.name()]


@case
def case_buffer_filled_in_a_loop(torch):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    buffer = torch.zeros(3, 4)
    first = buffer[0]
    for k in range(3):
        buffer[k] = w[k] * torch.arange(4.0)
    late = buffer[1]
    out = [first.requires_grad, first.is_leaf, late.requires_grad]
    (first.sum() + (buffer * buffer).sum() + late.sum()).backward()
    return [*out, buffer.detach(), w.grad]


@case
def case_overlap(torch):
    x = torch.zeros(1, 3)
    e = x.expand(4, 3)
    return [
        raises(torch, lambda: e.add_(1)),
        attempt(lambda: e.zero_() is e),
        attempt(lambda: e.copy_(torch.ones(4, 3)) is e),
        x,
    ]


@case
def case_inplace_shape_and_dtype_errors(torch):
    x, i = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    return [
        attempt(function)
        for function in (
            lambda: x.add_(torch.zeros(2, 3)),
            lambda: x.add_(torch.zeros(4)),
            lambda: torch.zeros(1, 3).add_(torch.zeros(2, 3)),
            lambda: i.add_(1.5),
            lambda: i.div_(2),
            lambda: i.add_(torch.zeros(3)),
            lambda: i.mul_(True),
            lambda: x.mul_(1j),
            lambda: x.copy_(torch.zeros(2)),
            lambda: x.copy_(torch.zeros(2, 3)),
            lambda: x.copy_(torch.zeros(1, 1, 3)),
            lambda: torch.zeros(2, 3).copy_(torch.arange(3)),
            lambda: x.copy_([1, 2, 3]),
            lambda: x.fill_(torch.zeros(2)),
            lambda: i.fill_(2.7),
            lambda: i.fill_(1j),
            lambda: x.clone().fill_(float("nan")),
            lambda: x.relu_() is x,
            lambda: x.sqrt_() is x,
            lambda: i.sqrt_(),
            lambda: i.masked_fill_(i == 0, 2.5),
            lambda: x.masked_fill_(torch.ones(3), 1),
            lambda: x.clamp_(min=1),
            lambda: x.unsqueeze_(5),
            lambda: x.t_() is x,
        )
    ]


@case
def case_operand_overwritten_in_place(torch):
    def run(change):
        w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        u = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
        x = w * 2
        change(x, u)
        x.sum().backward()
        return [x.detach(), w.grad, u.grad, x.grad_fn.name()]

    changes = [
        lambda x, u: x.mul_(u), lambda x, u: x.div_(u), lambda x, u: x.pow_(2), lambda x, u: x.pow_(u), lambda x,
        u: x.exp_(), lambda x, u: x.sigmoid_(), lambda x, u: x.sub_(u, alpha=2), lambda x, u: x.addcmul_(u, u),
        lambda x, u: x.mul_(x), lambda x, u: x.copy_(u), lambda x, u: x.zero_(), lambda x, u: x.fill_(3), lambda x,
        u: x.clamp_(1.5, 5), lambda x, u: x.lerp_(u, 0.25), lambda x, u: x.tanh_().mul_(x), lambda x, u: x.relu_(),
        lambda x, u: x.masked_fill_(x > 3, 0), lambda x, u: x.__imul__(u), lambda x, u: x.__itruediv__(2), lambda x,
        u: x.__ipow__(3), lambda x, u: x.sin_().cos_(), lambda x, u: x.index_add_(0, torch.tensor([0, 0]), u[:2]),
        lambda x, u: x.index_fill_(0, torch.tensor([1]), 4), lambda x, u: x.cumsum_(0), lambda x, u: x.neg_(), lambda x,
        u: x.abs_(),
    ]  # fmt: skip
    return [attempt(lambda: run(change)) for change in changes]


@case
def case_parameters(torch):
    p = torch.nn.Parameter(torch.ones(2, 2))
    before = id(p)
    with torch.no_grad():
        p.copy_(torch.zeros(2, 2))
        p.add_(3)
        p[0, 0] = 7
    out = [id(p) == before, type(p).__name__, p.requires_grad, p.is_leaf, p.detach().clone(), p._version]
    p.data = p.data.double()
    v = p.view(-1)
    return [*out, p.dtype, type(p).__name__, type(v).__name__, type(p.data).__name__, type(p.detach()).__name__,
            type(p * 1).__name__, type(p[0]).__name__, isinstance(p, torch.Tensor), raises(torch, lambda: p.add_(1))]  # fmt: skip


@case
def case_deepcopy(torch):
    x = torch.arange(6.0).view(2, 3)
    both = copy.deepcopy({"x": x, "row": x[0], "again": x})
    both["x"][0, 0] = 99
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.full((2,), 3.0)
    w.extra = [1, 2]
    c = copy.deepcopy(w)
    p = copy.deepcopy(torch.nn.Parameter(torch.ones(2)))
    s = copy.copy(x)
    s[0, 0] = -1
    return [
        both["row"], both["again"] is both["x"], x, c, c.grad, c.grad is w.grad, c.extra, c.extra is w.extra, c.is_leaf,
        type(p).__name__, p, copy.deepcopy(x.t()).stride(), copy.deepcopy(x[1]).storage_offset(),
        raises(torch, lambda: copy.deepcopy(w * 2)),
    ]  # fmt: skip


@case
def case_pickle(torch):
    x = torch.arange(6.0).view(2, 3)
    w = torch.ones(2, requires_grad=True)
    values = [
        x, x[1], w, torch.tensor(True), torch.tensor([1 + 2j]), torch.nn.Parameter(torch.zeros(1)), torch.zeros(0, 3),
        torch.ones(2, dtype=torch.bfloat16), torch.Size([1, 2]), torch.float32, torch.device("cpu"), x.t(),
    ]  # fmt: skip
    back = pickle.loads(pickle.dumps(values))
    return [
        *back, [type(b).__name__ for b in back], back[2].requires_grad, back[2].is_leaf, back[-1].stride(),
        back[1].storage_offset(), attempt(lambda: pickle.loads(pickle.dumps(w * 2)).requires_grad),
    ]  # fmt: skip


@case
def case_inference(torch):
    with torch.inference_mode():
        x = torch.zeros(3)
        y = x + 1
        x.add_(1)
        out = [
            x.is_inference(),
            y.is_inference(),
            y.requires_grad,
            torch.is_inference_mode_enabled(),
            x[0].is_inference(),
        ]
    w = torch.ones(3, requires_grad=True)
    twice = x * 2
    return [
        *out, torch.zeros(1).is_inference(), raises(torch, lambda: x.add_(1)),
        raises(torch, lambda: (w * x).sum().backward()), raises(torch, lambda: x.requires_grad_()),
        (x + 1).is_inference(), x.clone().is_inference(), attempt(lambda: x._version), x.detach().is_inference(), twice,
    ]  # fmt: skip


@case
def case_requires_grad(torch):
    i = torch.ones(2, dtype=torch.int64)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    return [
        raises(torch, lambda: i.requires_grad_()),
        raises(torch, lambda: setattr(i, "requires_grad", True)),
        raises(torch, lambda: torch.ones(2, dtype=torch.int64, requires_grad=True)),
        raises(torch, lambda: y.requires_grad_(False)),
        raises(torch, lambda: setattr(y, "requires_grad", False)),
        attempt(lambda: y.requires_grad_() is y),
        raises(torch, lambda: y.numpy()),
        raises(torch, lambda: x.numpy()),
        attempt(lambda: x.detach().numpy()),
        attempt(lambda: y.tolist()),
        raises(torch, lambda: i.backward()),
        raises(torch, lambda: y.backward()),
        raises(torch, lambda: setattr(x, "grad", torch.ones(3))),
        raises(torch, lambda: setattr(x, "grad", 3)),
        raises(torch, lambda: x.detach().register_hook(print)),
    ]


@case
def case_view_errors(torch):
    x = torch.zeros(2, 3)
    z = torch.zeros(())
    return [
        attempt(function)
        for function in (
            lambda: x.view(4), lambda: x.view(-1, -1), lambda: x.view(-1, 4), lambda: x.t().view(6), lambda: x.view(0, -1),
            lambda: x.view(-2, 3), lambda: x.view("a"), lambda: x.view(2.0, 3), lambda: x.view(), lambda: x.reshape(5),
            lambda: x.reshape(), lambda: x.permute(0), lambda: x.permute(0, 0), lambda: x.permute(0, 2), lambda: x.transpose(0, 2),
            lambda: torch.zeros(1, 1, 1).t(), lambda: x.squeeze(2), lambda: x.squeeze((0, 1)).shape, lambda: x.unsqueeze(3),
            lambda: x.unsqueeze(-4), lambda: x.expand(3), lambda: x.expand(4, 3), lambda: x.expand(-1, 2, 3), lambda: x.expand(2, 2, 4),
            lambda: x.expand(5, -1, -1).shape, lambda: x.select(0, 2), lambda: x.select(3, 0), lambda: z.select(0, 0), lambda: x.narrow(0, 0, 3),
            lambda: x.narrow(0, -1, 1), lambda: x.narrow(0, 3, 1), lambda: x.narrow(0, 0, -1), lambda: z.narrow(0, 0, 1),
            lambda: x.split(-1), lambda: x.split(0), lambda: x.split([1, 2]), lambda: x.split([3, -1]), lambda: z.split(1), lambda: x.split(1, 2),
            lambda: x.chunk(0), lambda: z.chunk(2), lambda: len(x.chunk(5)), lambda: z.unbind(), lambda: x.unbind(2), lambda: x.diagonal(0, 0, 0),
            lambda: x.diagonal(0, 0, 3), lambda: x.diagonal(5).shape, lambda: z.diagonal(), lambda: x.unfold(0, 3, 1), lambda: x.unfold(0, 1, 0),
            lambda: x.unfold(0, -1, 1), lambda: z.unfold(0, 1, 1), lambda: x.movedim(0, 2),
            lambda: x.movedim((0, 0), (0, 1)), lambda: x.flatten(1, 0), lambda: x.flatten(0, 2), lambda: z.flatten(),
            lambda: x.unflatten(0, (3, 1)), lambda: x.unflatten(0, ()), lambda: x.unflatten(1, (3, -1)).shape,
            lambda: x.as_strided((2,), (1, 1)), lambda: x.as_strided((7,), (1,)), lambda: x.as_strided((2,), (-1,)),
            lambda: x.as_strided((3,), (1,), 4), lambda: torch.view_as_real(x), lambda: torch.view_as_complex(x),
            lambda: torch.view_as_complex(x.long()), lambda: torch.view_as_complex(torch.zeros(2, 2).t()),
            lambda: torch.imag(x), lambda: torch.real(x) is x, lambda: x.imag, lambda: z.mT, lambda: z.T,
            lambda: x.view(torch.float64), lambda: x.t().view(torch.int16), lambda: z.view(torch.int16),
            lambda: x.view(torch.int16).shape, lambda: x.view(torch.uint8).shape,
            lambda: torch.zeros(2, 4).view(torch.float64).shape, lambda: z.view(torch.int32), lambda: x.tensor_split(0),
            lambda: [p.shape for p in x.tensor_split((1, 2), 1)], lambda: z.tensor_split(2),
            lambda: torch.broadcast_to(x, (2, 2)), lambda: x.swapaxes(0, 2), lambda: x.squeeze(0).shape,
            lambda: x.adjoint().shape, lambda: z.adjoint(), lambda: x.ravel().shape, lambda: x.view_as(z),
            lambda: x.expand_as(z), lambda: x.H.shape, lambda: torch.zeros(1, 2, 3).H, lambda: x.view([3, 2]).shape,
            lambda: x.view(torch.Size([6])).shape, lambda: x.view(size=(6,)).shape,
            lambda: torch.narrow(x, dim=1, start=torch.tensor(1), length=2), lambda: x.reshape(shape=(3, 2)).shape,
            lambda: torch.split(x, split_size_or_sections=2, dim=1)[0].shape,
            lambda: torch.permute(x, dims=(1, 0)).shape, lambda: x.permute(dims=(1, 0)).shape,
            lambda: x.transpose(dim0=0, dim1=1).shape, lambda: x.size(2), lambda: x.stride(2),
        )
    ]  # fmt: skip
