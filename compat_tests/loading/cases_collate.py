"""default_collate, default_convert and collate: every kind of sample."""

import collections
import types

import numpy as np

from compat_tests.harness import case, data, raises, tensor

Point = collections.namedtuple("Point", ["x", "y"])


def both(torch, batch):
    return torch.utils.data.default_collate(batch)


DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64"]


@case
@case.params("dtype", DTYPES)
@case.params("shape", [(), (3,), (2, 3), (0, 2)])
def case_tensors(torch, dtype, shape):
    return both(torch, [tensor(torch, shape, dtype, seed) for seed in range(3)])


@case
@case.params("size", [8, 400])
def case_rows(torch, size):
    """Rows of one tensor, by index, by slice, transposed, reversed, and after a write to it."""
    x = tensor(torch, (size, 4), "float32", 1)
    labels = torch.arange(size)
    rows = [x[i] for i in (3, 0, 7, 3)]
    out = [both(torch, rows), both(torch, [labels[i] for i in (5, 1)]), both(torch, [x[i, 1:3] for i in (5, 1)])]
    x[3] = 1.5
    out += [both(torch, rows), both(torch, [x.T[i] for i in (2, 1)]), both(torch, [x[i : i + 2] for i in (1, 4)])]
    out += [both(torch, [x[i][::2] for i in (2, 1)]), both(torch, [x[1], x[2] * 2, x[0]])]
    out += [both(torch, [x[i].unsqueeze(0) for i in (0, 5)]), both(torch, [x[2:6], x[0:4]]), both(torch, [x, x])]
    out += [both(torch, [x[i, 2] for i in (4, 6)]), both(torch, [x[0].expand(2, 4), x[1].expand(2, 4)])]
    return out


@case
def case_rows_computed(torch):
    x = (tensor(torch, (500, 4), "float32", 1) - 0.5) / 2.0
    return both(torch, [x[i] for i in (3, 0, 7)]), both(torch, [(x[i], x[i] + 1) for i in (3, 0)])


@case
def case_numpy_memory(torch):
    """Tensors over a NumPy array see what is written to it; a batch of them does not."""
    array = data((10, 3))
    x = torch.from_numpy(array)
    batch = both(torch, [x[i] for i in (1, 2)])
    dataset = torch.utils.data.TensorDataset(x)
    loader = torch.utils.data.DataLoader(dataset, 2)
    (first,) = next(iter(loader))
    array[:] = 0
    (second,) = next(iter(loader))
    return batch, first, second, both(torch, [x[i] for i in (1, 2)])


@case
def case_requires_grad(torch):
    x = tensor(torch, (5, 3), requires_grad=True)
    out = both(torch, [x[1], x[4]])
    (out * out).sum().backward()
    with torch.no_grad():
        plain = both(torch, [x[0], x[2]])
    return out, out.grad_fn.name(), x.grad, plain


@case
def case_subclass(torch):
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    return both(torch, [p, p]), both(torch, [torch.tensor([1.0, 2.0]), p])


@case
@case.params("dtype", ["float32", "float64", "int64", "uint8", "bool", "complex64"])
@case.params("shape", [(), (3,), (2, 0)])
def case_arrays(torch, dtype, shape):
    return both(torch, [data(shape, dtype, seed) for seed in range(3)])


@case
def case_array_layouts(torch):
    x = data((4, 6))
    return [
        both(torch, [x.T, x.T]),
        both(torch, [x[:, ::2], x[:, 1::2]]),
        both(torch, [x[0], x[1].astype(np.float32)]),
        both(torch, [np.float32(1.5), np.float32(2)]),
        both(torch, [np.int32(1), np.int32(2)]),
        both(torch, [np.bool_(True), np.bool_(False)]),
        both(torch, [np.float64(1.5), np.float64(2)]),
        both(torch, [np.float16(1.5)]),
    ]


@case
def case_numbers(torch):
    return [
        both(torch, [1, 2, 3]),
        both(torch, [1.0, 2.5]),
        both(torch, [True, False]),
        both(torch, [1, 2.5]),
        both(torch, [2.5, 1]),
        both(torch, [1, True]),
    ]


@case
def case_text(torch):
    return both(torch, ["a", "b"]), both(torch, [b"a", b"b"]), both(torch, [("a", 1), ("b", 2)])


@case
def case_containers(torch):
    ordered = collections.OrderedDict(a=1, b=torch.ones(2))
    default = collections.defaultdict(list, a=1)
    out = both(torch, [default, default])
    proxy = both(torch, [types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})])
    return [
        both(torch, [(1, 2.0), (3, 4.0)]),
        both(torch, [[1, 2.0], [3, 4.0]]),
        both(torch, [{"a": 1, "b": [2]}, {"a": 3, "b": [4]}]),
        both(torch, [Point(1, 2.0), Point(3, 4.0)]),
        both(torch, [ordered, ordered]),
        [type(out).__name__, out["a"], out["new"]],
        [type(proxy).__name__, proxy["a"]],
        both(torch, [collections.deque([1, 2]), collections.deque([3, 4])])[0],
        both(torch, [range(2), range(1, 3)]),
        both(torch, [((1, (2, "a")), [torch.ones(1)]), ((3, (4, "b")), [torch.zeros(1)])]),
        both(torch, [(), ()]),
    ]


@case
def case_errors(torch):
    return [
        raises(torch, lambda: both(torch, [None, None])),
        raises(torch, lambda: both(torch, [{1}, {2}])),
        raises(torch, lambda: both(torch, [{"a": None}])),
        raises(torch, lambda: both(torch, [object(), object()])),
        raises(torch, lambda: both(torch, [1 + 2j])),
        raises(torch, lambda: both(torch, [(1, 2), (3,)])),
        raises(torch, lambda: both(torch, [[1, 2], [3, 4, 5]])),
        raises(torch, lambda: both(torch, [torch.zeros(3), torch.zeros(4)])),
        raises(torch, lambda: both(torch, [np.zeros(3), np.zeros(4)])),
        raises(torch, lambda: both(torch, [np.array(["a"])])),
        raises(torch, lambda: both(torch, [np.array([object()])])),
        raises(torch, lambda: both(torch, [{"a": 1}, {"b": 1}])),
        raises(torch, lambda: both(torch, [])),
    ]


@case
def case_mixed_dtypes(torch):
    return both(torch, [torch.zeros(2), torch.ones(2, dtype=torch.float64)])


@case
def case_collate_map(torch):
    collate = torch.utils.data._utils.collate.collate
    seen = []

    def tensors(batch, *, collate_fn_map=None):
        seen.append(len(batch))
        return torch.cat(batch)

    class Mine:
        pass

    mine = {torch.Tensor: tensors, Mine: lambda batch, *, collate_fn_map=None: len(batch)}
    return [
        collate([torch.ones(1), torch.zeros(2)], collate_fn_map=mine),
        collate([{"a": torch.ones(1), "m": Mine()}] * 2, collate_fn_map=mine),
        collate([torch.nn.Parameter(torch.ones(1))], collate_fn_map={torch.Tensor: tensors}).requires_grad,
        raises(torch, lambda: collate([1, 2])),
        raises(torch, lambda: collate([1, 2], collate_fn_map=mine)),
        seen,
    ]


@case
def case_default_map_changed(torch):
    """A loader over a TensorDataset follows changes of the default map."""
    module = torch.utils.data._utils.collate
    before = dict(module.default_collate_fn_map)
    dataset = torch.utils.data.TensorDataset(torch.arange(4))
    try:
        module.default_collate_fn_map[torch.Tensor] = lambda batch, *, collate_fn_map=None: sum(batch)
        return list(torch.utils.data.DataLoader(dataset, 2)), torch.utils.data.default_collate([np.ones(2), np.ones(2)])
    finally:
        module.default_collate_fn_map.clear()
        module.default_collate_fn_map.update(before)


@case
def case_convert(torch):
    convert = torch.utils.data.default_convert
    return [
        convert(0),
        convert("a"),
        convert(None),
        convert(np.array([1, 2])),
        convert(np.float32(1.5)),
        convert(np.array(["a", "b"])).tolist(),
        convert(Point(0, np.array(1))),
        convert((np.ones(2), 1)),
        convert([np.ones(2), "x", b"y"]),
        convert({"a": np.ones(2), "b": {"c": np.int64(3)}}),
        convert(collections.OrderedDict(a=np.ones(1))),
        list(convert(range(3))),
        convert(torch.ones(2)),
    ]
