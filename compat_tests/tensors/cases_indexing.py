"""x[...] and x[...] = y: random indices of every kind against PyTorch."""

import random

import numpy as np

from compat_tests import case, data

SHAPES = [(5,), (4, 3), (3, 1, 4), (2, 3, 2, 3), (), (0, 3)]


def attempt(function):
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def random_index(torch, rng, shape):
    """A random index for a tensor of this shape, mostly a valid one."""
    parts = []
    dims = list(shape)
    d = 0
    common = rng.choice([1, 2, 3])  # a length that index arrays share, so that they broadcast

    def integers(n, like):
        high = max(n, 1)
        size = rng.choice([(common,), (common,), (1,), (2, common), ()])
        values = np.array([rng.randrange(-high, high) for _ in range(int(np.prod(size)))], np.int64).reshape(size)
        if like == "list":
            return values.tolist() if values.ndim else int(values)
        if like == "array":
            return values
        return torch.tensor(values, dtype=rng.choice([torch.int64, torch.int64, torch.int32, torch.int16]))

    while d < len(dims):
        n = dims[d]
        kind = rng.choice(
            [
                "int",
                "slice",
                "slice",
                "step",
                "none",
                "ellipsis",
                "tensor",
                "list",
                "array",
                "mask",
                "mask2",
                "bool",
                "stop",
            ]
        )
        if kind == "stop" and parts:
            break
        if kind == "int":
            parts.append(rng.randrange(-n, n) if n else 0)
            d += 1
        elif kind == "slice":
            parts.append(slice(rng.choice([None, 0, 1, -2]), rng.choice([None, n, n - 1, -1, n + 3])))
            d += 1
        elif kind == "step":
            parts.append(slice(rng.choice([None, 1]), None, rng.choice([2, 3])))
            d += 1
        elif kind == "none":
            parts.append(None)
        elif kind == "ellipsis":
            if not any(p is Ellipsis for p in parts):
                parts.append(Ellipsis)
                d += rng.randrange(0, len(dims) - d + 1)
        elif kind == "bool" and rng.random() < 0.3:
            parts.append(rng.choice([True, False]))
        elif kind in ("tensor", "list", "array"):
            parts.append(integers(n, kind))
            d += 1
        elif kind == "mask":
            parts.append(torch.tensor([rng.random() < 0.6 for _ in range(n)], dtype=torch.bool))
            d += 1
        elif kind == "mask2" and d + 1 < len(dims):
            values = np.array([rng.random() < 0.5 for _ in range(n * dims[d + 1])], bool).reshape(n, dims[d + 1])
            parts.append(torch.tensor(values))
            d += 2
        if len(parts) > 7:
            break
    return parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)


@case
@case.params("shape", SHAPES)
@case.params("seed", range(6))
def case_random_getitem(torch, seed, shape):
    rng = random.Random(seed * 100 + len(shape) + (12 if shape == (0, 3) else 0))
    x = torch.arange(int(np.prod(shape)), dtype=torch.int32).reshape(shape)
    out = []
    for _ in range(25):
        index = random_index(torch, rng, shape)

        def run(index=index):
            y = x[index]
            view = y._is_view()
            return [y, view, y.stride() if view else None, y.storage_offset() if view else None]

        out.append(attempt(run))
    return out


@case
@case.params("dtype", ["float32", "int64", "bool", "complex64"])
@case.params("seed", range(6))
def case_random_setitem(torch, seed, dtype):
    rng = random.Random(seed * 10 + 7)
    out = []
    for k in range(25):
        shape = rng.choice(SHAPES[:4])
        x = torch.tensor(data(shape, dtype, 1))
        index = random_index(torch, rng, shape)

        def run(x=x, index=index, k=k):
            part = x[index]
            kind = rng.choice(["number", "tensor", "row", "scalar tensor", "other dtype"])
            if kind == "number":
                value = 3
            elif kind == "tensor":  # the same everywhere: repeated indices have no order
                value = torch.full(tuple(part.shape), 5, dtype=x.dtype)
            elif kind == "row":
                value = torch.full(tuple(part.shape[-1:]), 6, dtype=x.dtype)
            elif kind == "scalar tensor":
                value = torch.tensor(7, dtype=x.dtype)
            else:
                value = torch.tensor(2.7) if dtype != "bool" else torch.tensor(True)
            x[index] = value
            return [x, x._version]

        out.append(attempt(run))
    return out


@case
@case.params("seed", range(6))
def case_random_gradients(torch, seed):
    rng = random.Random(seed + 1000)
    out = []
    for _ in range(15):
        shape = rng.choice(SHAPES[:4])
        index = random_index(torch, rng, shape)

        def run(shape=shape, index=index):
            x = torch.tensor(data(shape, "int32", 1), dtype=torch.float32, requires_grad=True)
            y = x * 2
            part = y[index]
            name = part.grad_fn.name()
            (part * part).sum().backward()
            first, x.grad = x.grad, None
            y = x * 2
            value = torch.full(tuple(part.shape[-1:]), 3.0, requires_grad=True)
            y[index] = value
            (y * y).sum().backward()
            return [
                name,
                y.grad_fn.name(),
                first,
                x.grad,
                value.grad if part.numel() == part[..., :1].numel() else None,
            ]

        out.append(attempt(run))
    return out


@case
def case_index_kinds(torch):
    x = torch.arange(12).reshape(3, 4)
    n = np.array([2, 0])
    return [
        x[np.int64(1)], x[np.int32(-1), 1], x[np.array(2)], x[n], x[n, n], x[n, 1:], x[:, n],
        x[torch.tensor(1)], x[torch.tensor(1), torch.tensor(2)], x[torch.tensor(1):], x[: torch.tensor(2), 1],
        x[[0, 2]], x[[0, 2], [1, 3]], x[[[0, 1], [2, 0]]], x[(0, 1)], x[[True, False, True]], x[[0, 1], ..., None],
        x[range(2)], x[torch.tensor([0, 1], dtype=torch.uint8).bool().nonzero()], x[[]], x[:, []],
        x[torch.tensor([], dtype=torch.int64)], x[True], x[False], x[None, True], x[x > 5], x[x > 100],
        x[(x > 5).nonzero(as_tuple=True)], x[np.array([True, False, True])], x[:, np.array([True, False, True, False])],
        x[1, [True, False, True, True]], x[torch.tensor(True)], x[torch.tensor(2, dtype=torch.int32)], x[-1][-1],
        x[..., -1], x[..., None, 0], x[[torch.tensor(0), torch.tensor(2)]], x[(torch.tensor([0, 1]), [1, 2])], x[1:1],
        x[2:1, 0], x[::2, ::3],
    ]  # fmt: skip


@case
def case_uint8_mask(torch):
    x = torch.arange(3)
    return attempt(lambda: x[torch.tensor([1, 0, 1], dtype=torch.uint8)])


@case
def case_errors(torch):
    x = torch.zeros(3, 4)
    z = torch.tensor(1.0)
    return [
        attempt(function)
        for function in (
            lambda: x[3],
            lambda: x[-4],
            lambda: x[0, 4],
            lambda: x[0, 0, 0],
            lambda: x[..., ...],
            lambda: x[::-1],
            lambda: x[::0],
            lambda: x[1.0],
            lambda: x["a"],
            lambda: x[1.0:2],
            lambda: x[torch.tensor(1.0)],
            lambda: x[torch.tensor([1.0, 2.0])],
            lambda: x[[0.5]],
            lambda: x[np.array([0.5])],
            lambda: x[torch.tensor([0, 3])],
            lambda: x[[0, 3]],
            lambda: x[[0, 1], [0, 1, 2]],
            lambda: x[torch.tensor([True, False])],
            lambda: x[torch.zeros(3, 3, dtype=torch.bool)],
            lambda: x[:, torch.zeros(3, dtype=torch.bool)],
            lambda: z[0],
            lambda: z[None][0, 0],
            lambda: x[{}],
            lambda: x[object()],
            lambda: x.__setitem__(3, 1),
            lambda: x.__setitem__(0, torch.zeros(3)),
            lambda: x.__setitem__((0, 0), torch.zeros(2)),
            lambda: x.__setitem__([0, 1], torch.zeros(3)),
            lambda: x.__setitem__([0, 5], 1),
            lambda: x.__setitem__(slice(None), "a"),
            lambda: x.__setitem__(0, None),
            lambda: x.__setitem__(x != x, torch.zeros(3)),
            lambda: x.__setitem__(0, torch.zeros(2, 4)),
            lambda: x.__setitem__(0, 1j),
            lambda: x.__setitem__(0, torch.tensor(1j)),
            lambda: x.__setitem__([0], torch.zeros(4, dtype=torch.float64)),
            lambda: x.__setitem__([0], 1j),
            lambda: x.select(0, 3),
            lambda: x.select(2, 0),
            lambda: x.narrow(0, 2, 2),
            lambda: x.index_select(0, torch.tensor([3])),
            lambda: x.gather(0, torch.tensor([[3]])),
            lambda: x.take(torch.tensor([12])),
            lambda: torch.zeros(3).take_along_dim(torch.tensor([1.0]), 0),
        )
    ]


@case
def case_setitem_kinds(torch):
    out = []

    def put(index, value, dtype=torch.float32):
        x = torch.arange(12).reshape(3, 4).to(dtype)
        x[index] = value
        out.append(x)

    put(0, torch.tensor([1, 2, 3, 4]))
    put(slice(None), 7)
    put(Ellipsis, 7)
    put(..., torch.arange(4.0))
    put((slice(None), 1), torch.tensor([9.0, 8.0, 7.0]))
    put((slice(None), None, 1), torch.tensor([[9.0], [8.0], [7.0]]))
    put(True, 5)
    put(False, 5)
    put([0, 2], torch.tensor(1.0))
    put(([0, 2], [1, 3]), torch.tensor([1.0, 2.0]))
    put(np.array([0, 2]), np.float64(2.5))
    put(torch.tensor([True, False, True]), torch.tensor(2))
    put((slice(1, None), torch.tensor([True, False, True, True])), 2.5, torch.int64)
    put((..., torch.tensor([True, False, True, True])), torch.tensor([2.5]))
    put((1, torch.tensor([True, False, True, True])), True)
    put((None, torch.tensor([True, False, True])), 8)
    put(torch.tensor([True, False, True]), torch.tensor([[1.0], [2.0]]))
    put(0, torch.zeros(1, 1, 4))
    put([1], torch.ones(1, 4))
    put((0, 0), 3.7, torch.int64)
    put(([0], [0]), 3.7, torch.int64)
    put(0, torch.tensor(3.7), torch.int64)
    put((1, 1), torch.tensor([5.0]))
    put(slice(0, 0), 1)
    x = torch.zeros(3, dtype=torch.int64)
    x[torch.tensor([0, 2])] += 1
    x[1:] -= 2
    x[0] **= 2
    out.append(x)
    y = torch.zeros(2, 3)
    y[0], y[1, 1] = 1, torch.tensor(2)
    y[y == 0] = float("inf")
    out.append(y)
    return out


@case
def case_index_put(torch):
    x = torch.zeros(4)
    i = torch.tensor([1, 1, 3])
    a = x.clone().index_put_((i,), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    b = x.index_put((i,), torch.tensor(5.0))
    return [
        a,
        b,
        attempt(lambda: x.index_put_((i,), torch.zeros(2))),
        attempt(lambda: x.index_put_((i,), torch.tensor(1))),
    ]
