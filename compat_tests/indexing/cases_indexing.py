"""Joining, indexing and rearranging: values, gradients, names of graph nodes and errors."""

from compat_tests import case, tensor

CLOSE = {"rtol": 2e-5, "atol": 2e-6}


def outcome(function):
    """The result of `function`, or the error it raises."""
    try:
        result = function()
    except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError, AssertionError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    return list(result) if isinstance(result, tuple) else result


def with_gradients(torch, function, *inputs):
    """Output, name of the graph node and gradients of the inputs."""
    inputs = [i.detach().requires_grad_() if i.is_floating_point() else i for i in inputs]
    out = function(*inputs)
    weights = tensor(torch, tuple(out.shape), "float32", 50)
    wanted = [i for i in inputs if i.requires_grad]
    return {"out": out.detach(), "node": out.grad_fn.name(), "grads": torch.autograd.grad(out, wanted, weights)}


def make(torch, *shape, seed=1):
    return tensor(torch, shape, "float32", seed)


# -- joining ---------------------------------------------------------------------------------------------------


@case(**CLOSE)
def case_cat(torch):
    a, b = make(torch, 2, 3), make(torch, 4, 3, seed=2)
    whole = torch.tensor([[1, 2, 3]])
    return [
        with_gradients(torch, lambda a, b: torch.cat([a, b]), a, b),
        torch.cat([a, whole]),
        torch.cat((whole, whole > 1), -1),
        torch.cat([a, torch.zeros(0)]),
        torch.concat([a, a], dim=1),
        outcome(lambda: torch.cat([a, b], 1)),
        outcome(lambda: torch.cat([a, b[0]])),
        outcome(lambda: torch.cat([])),
        outcome(lambda: torch.cat([a, a], 2)),
        outcome(lambda: torch.cat([a, torch.tensor(1.0)])),
        torch.cat([a.half(), a.bfloat16()]),
    ]


@case(**CLOSE)
def case_stack(torch):
    a, b = make(torch, 2, 3), make(torch, 2, 3, seed=2)
    return [
        with_gradients(torch, lambda a, b: torch.stack([a, b], 1), a, b),
        torch.stack([a, b], -1),
        torch.hstack([a, b]),
        torch.vstack([a[0], b[0]]),
        torch.dstack([a, b]),
        torch.column_stack([a[:, 0], b]),
        outcome(lambda: torch.stack([a, b[0]])),
        outcome(lambda: torch.stack([])),
        outcome(lambda: torch.stack([a, b], 3)),
    ]


# -- gather and scatter -----------------------------------------------------------------------------------------


@case(**CLOSE)
def case_gather(torch):
    x = make(torch, 3, 4)
    index = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
    one = torch.tensor([[3], [0], [2]])
    return [
        with_gradients(torch, lambda x: x.gather(0, index), x),
        with_gradients(torch, lambda x: x.gather(1, one), x),
        with_gradients(torch, lambda x: torch.take_along_dim(x, one, 1), x),
        torch.take_along_dim(x, index),
        outcome(lambda: x.gather(0, torch.tensor([[5]]))),
        outcome(lambda: x.gather(0, torch.tensor([[-2]]))),
        outcome(lambda: x.gather(0, index[0])),
        outcome(lambda: x.gather(0, x)),
        outcome(lambda: x.gather(1, torch.zeros(4, 1, dtype=torch.int64))),
        outcome(lambda: x.gather(2, index)),
    ]


@case(**CLOSE)
def case_scatter(torch):
    x, src = make(torch, 3, 4), make(torch, 2, 4, seed=2)
    index = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
    y = x.clone()
    y.scatter_(0, index, 7.0)
    z = x.clone()
    z.scatter_(1, torch.tensor([[0], [1], [3]]), value=-1)
    return [
        with_gradients(torch, lambda x, src: x.scatter(0, index, src), x, src),
        y,
        z,
        with_gradients(torch, lambda x: x.scatter(0, index, 1.5), x),
        with_gradients(torch, lambda x, src: x.scatter_add(0, index, src), x, src),
        x.scatter(0, index, src, reduce="multiply"),
        x.scatter(0, index, 2, reduce="add"),
        outcome(lambda: x.scatter(0, index, src.double())),
        outcome(lambda: x.scatter(0, index, src[:1])),
        outcome(lambda: x.scatter(0, torch.tensor([[4]]), src)),
        outcome(lambda: x.scatter(0, index, src, reduce="mean")),
    ]


@case(**CLOSE)
@case.params("reduce", ["sum", "prod", "mean", "amax", "amin"])
@case.params("include_self", [True, False])
def case_scatter_reduce(torch, reduce, include_self):
    x, src = make(torch, 3, 4), make(torch, 3, 4, seed=2)
    index = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2], [1, 2, 0, 0]])
    rows = torch.tensor([1, 0, 1])
    out = [with_gradients(torch, lambda x, s: x.scatter_reduce(0, index, s, reduce, include_self=include_self), x, src)]
    if reduce != "sum":
        out.append(
            with_gradients(torch, lambda x, s: x.index_reduce(0, rows, s, reduce, include_self=include_self), x, src)
        )
    return out


@case(**CLOSE)
def case_index_functions(torch):
    x, src = make(torch, 3, 4), make(torch, 2, 4, seed=2)
    rows = torch.tensor([2, 0])
    return [
        with_gradients(torch, lambda x: x.index_select(0, torch.tensor([2, 0, 2])), x),
        with_gradients(torch, lambda x, s: x.index_add(0, rows, s, alpha=2.5), x, src),
        with_gradients(torch, lambda x, s: x.index_copy(0, rows, s), x, src),
        with_gradients(torch, lambda x: x.index_fill(1, torch.tensor([0, -1]), 9.0), x),
        with_gradients(torch, lambda x: x.take(torch.tensor([[0, 5], [-1, 5]])), x),
        with_gradients(
            torch, lambda x, s: x.put(torch.tensor([1, -1]), s[0, :2].contiguous(), accumulate=True), x, src
        ),
        outcome(lambda: x.index_select(0, torch.tensor([3]))),
        outcome(lambda: x.index_select(0, torch.tensor([-1]))),
        outcome(lambda: x.index_add(0, rows, src[:1])),
        outcome(lambda: x.index_add(0, torch.tensor([7, 0]), src)),
        outcome(lambda: x.index_copy(0, rows, src.double())),
        outcome(lambda: x.take(torch.tensor([12]))),
        outcome(lambda: x.index_fill(0, torch.tensor([7]), 1.0)),
        outcome(lambda: x.index_select(0, torch.tensor([[1]]))),
    ]


@case(**CLOSE)
def case_masks(torch):
    x = make(torch, 3, 4)
    mask = x > 0
    return [
        with_gradients(torch, lambda x: x.masked_fill(mask, -float("inf")).exp(), x),
        x.masked_fill(mask[0], 2),
        with_gradients(torch, lambda x, v: x.masked_fill(mask, v), x, torch.tensor(1.5)),
        x[mask],
        x.masked_select(mask[:, :1]),
        with_gradients(torch, lambda x, s: x.masked_scatter(mask, s), x, make(torch, 12, seed=3)),
        outcome(lambda: x.masked_fill(mask.int(), 1)),
        outcome(lambda: x.masked_fill(mask, x)),
    ]


@case(**CLOSE)
def case_advanced_indexing(torch):
    x = make(torch, 3, 4, 5)
    i, j = torch.tensor([0, 2, -1]), torch.tensor([[1], [-4]])
    return [
        with_gradients(torch, lambda x: x[i], x),
        x[:, i],
        x[i, i],
        x[:, j, i],
        x[i, :, i],
        x[..., j],
        x[i[:2], None],
        with_gradients(torch, lambda x: x[1, :, i], x),
        x[[0, 2]],
        x[torch.tensor([True, False, True])],
        x[i, 1:3],
        outcome(lambda: x[torch.tensor([3])]),
        outcome(lambda: x[:, torch.tensor([-5])]),
        outcome(lambda: x[i, torch.zeros(2).long()]),
        outcome(lambda: x[i.float()]),
    ]


@case(**CLOSE)
def case_index_assignment(torch):
    def assigned(change):
        x = make(torch, 3, 4)
        change(x)
        return x

    i = torch.tensor([0, 2])
    return [
        assigned(lambda x: x.__setitem__(i, 1.0)),
        assigned(lambda x: x.__setitem__((slice(None), i), make(torch, 3, 2))),
        assigned(lambda x: x.__setitem__((i, i), make(torch, 1, 2))),
        assigned(lambda x: x.__setitem__(x > 0, 0)),
        assigned(lambda x: x.index_put_((i, i), torch.ones(2), accumulate=True)),
        with_gradients(torch, lambda x, v: x.index_put((i,), v), make(torch, 3, 4), make(torch, 2, 1)),
        with_gradients(torch, lambda x, v: x.index_put((i,), v, accumulate=True), make(torch, 3, 4), make(torch, 4)),
        outcome(lambda: assigned(lambda x: x.__setitem__(i, make(torch, 3)))),
    ]


# -- embedding ---------------------------------------------------------------------------------------------------


@case(**CLOSE)
def case_embedding(torch):
    functional = torch.nn.functional
    weight = make(torch, 6, 3)
    index = torch.tensor([[0, 1, 5], [1, 1, 2]])
    return [
        with_gradients(torch, lambda w: functional.embedding(index, w), weight),
        with_gradients(torch, lambda w: functional.embedding(index, w, padding_idx=1), weight),
        with_gradients(torch, lambda w: functional.embedding(index, w, scale_grad_by_freq=True), weight),
        outcome(lambda: functional.embedding(torch.tensor([6]), weight)),
        outcome(lambda: functional.embedding(torch.tensor([-1]), weight)),
        functional.one_hot(index),
        functional.one_hot(index, 7),
    ]


@case(**CLOSE)
@case.params("mode", ["sum", "mean", "max"])
def case_embedding_bag(torch, mode):
    functional = torch.nn.functional
    weight = make(torch, 6, 3)
    index, offsets = torch.tensor([0, 1, 5, 1, 1, 2]), torch.tensor([0, 2, 2])

    def bag(w, **more):
        return functional.embedding_bag(index, w, offsets, mode=mode, **more).clone()

    return [
        with_gradients(torch, bag, weight),
        with_gradients(torch, lambda w: bag(w, padding_idx=1), weight),
        functional.embedding_bag(index.reshape(2, 3), weight, mode=mode).detach(),
    ]


# -- rearranging ----------------------------------------------------------------------------------------------------


@case(**CLOSE)
def case_triangles(torch):
    x = make(torch, 2, 3, 4)
    return [
        with_gradients(torch, lambda x: x.tril(), x),
        with_gradients(torch, lambda x: x.triu(1), x),
        x.tril(-1),
        x.triu(-2),
        torch.tril_indices(3, 4, 1),
        torch.triu_indices(3, 3),
        outcome(lambda: x[0, 0].tril()),
    ]


@case(**CLOSE)
def case_rolls_and_flips(torch):
    x = make(torch, 3, 4)
    return [
        with_gradients(torch, lambda x: x.roll(1), x),
        with_gradients(torch, lambda x: x.roll((1, -2), (0, 1)), x),
        with_gradients(torch, lambda x: x.flip(0, 1), x),
        x.flip((1,)),
        x.fliplr(),
        x.flipud(),
        x.rot90(),
        x.rot90(-1, (1, 0)),
        outcome(lambda: x.roll((1, 2))),
        outcome(lambda: x.flip(0, 0)),
        outcome(lambda: x[0].fliplr()),
    ]


@case(**CLOSE)
def case_repeats(torch):
    x = make(torch, 2, 3)
    return [
        with_gradients(torch, lambda x: x.repeat(2, 1, 3), x),
        x.repeat((2, 2)),
        with_gradients(torch, lambda x: x.tile(2), x),
        with_gradients(torch, lambda x: x.repeat_interleave(2, 1), x),
        x.repeat_interleave(2),
        x.repeat_interleave(torch.tensor([2, 0]), 0),
        outcome(lambda: x.repeat(2)),
        torch.tile(x, (2, 1, 1)),
    ]


@case(**CLOSE)
def case_diagonals(torch):
    x = make(torch, 3, 4)
    return [
        with_gradients(torch, lambda x: torch.diag(x[0]), x),
        x.diag(1),
        with_gradients(torch, lambda x: torch.diag_embed(x, 1), x),
        with_gradients(torch, lambda x, s: torch.diagonal_scatter(x, s), x, make(torch, 3)),
        torch.diagflat(x[:2, :2]),
        with_gradients(torch, lambda x, s: torch.select_scatter(x, s, 1, -1), x, make(torch, 3)),
        with_gradients(torch, lambda x, s: torch.slice_scatter(x, s, 1, 0, None, 2), x, make(torch, 3, 2)),
        outcome(lambda: torch.select_scatter(x, x[0], 0, 5)),
        outcome(lambda: torch.diag(x[None])),
    ]


@case(**CLOSE)
@case.params("mode", ["constant", "reflect", "replicate", "circular"])
def case_pad(torch, mode):
    pad = torch.nn.functional.pad
    x = make(torch, 2, 3, 4, 5)
    return [
        with_gradients(torch, lambda x: pad(x, (1, 2, 2, 1), mode=mode).clone(), x),
        pad(x[0], (2, 0), mode=mode),
        pad(x, (-1, 1, 0, -1), mode=mode),
        outcome(lambda: pad(x, (1, 1, 1), mode=mode)),
        outcome(lambda: pad(x, (7, 7, 0, 0), mode=mode) if mode != "constant" else pad(x, (1,) * 10)),
        outcome(lambda: pad(x, (1, 1), mode=mode)) if mode != "constant" else pad(x, (1, 1), value=2.5),
        outcome(lambda: pad(x, (1, 1), mode="wrong")),
    ]


@case(**CLOSE)
def case_unfold(torch):
    functional = torch.nn.functional
    x = make(torch, 2, 3, 5, 6)
    columns = functional.unfold(x, (2, 3), padding=1, stride=2)
    return [
        with_gradients(torch, lambda x: functional.unfold(x, 2, 2, 1), x),
        columns,
        functional.fold(columns, (5, 6), (2, 3), padding=1, stride=2),
    ]
