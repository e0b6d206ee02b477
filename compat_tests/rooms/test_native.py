"""The C extension: reference counts, a collector that comes in between, and elementwise functions bit for bit."""

import gc
import itertools
import random
import sys
from importlib import import_module

import numpy as np
import pytest

import torchlike as torch
from torchlike._src.core.native import ABI, NATIVE
from torchlike._src.engine.values import UNREFERENCED
from torchlike._src.random.box_muller import normals_numpy

elements = import_module("torchlike._src.engine.elements")
flush = import_module("torchlike._src.engine.flush")

needs_extension = pytest.mark.skipif(
    NATIVE is None, reason="the C extension is not installed here, or TORCHLIKE_NATIVE=0"
)


@needs_extension
def test_versions_agree():
    assert NATIVE.ABI == ABI


def step(w, x, number):
    """Operators with one to three operands, several results, numbers, views, a gradient that is added up."""
    y = torch.nn.functional.linear(x, w, w[0])
    a, b = (y * number + 1).split(2, 1)
    top = torch.topk(y, 2)
    loss = (torch.relu(a - b) + a / (b * b + 3)).sum() + top[0].mean() - (2 - y[:, 0]).sum()
    loss.backward()
    return loss


def test_no_reference_is_kept_or_lost():
    torch.manual_seed(0)
    w = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(3, 4)

    def rounds(count):
        for _ in range(count):
            w.grad = None
            step(w, x, 1.5).item()
        gc.collect()
        constants = [sys.getrefcount(c) for c in (None, True, False, 0, 1, ())]
        return sys.getallocatedblocks(), constants

    rounds(50)
    blocks, constants = rounds(50)
    more_blocks, more_constants = rounds(1000)
    assert more_blocks - blocks < 3000  # the marks of 1000 cuts, kept for walks, are a block each
    assert max(abs(a - b) for a, b in zip(constants, more_constants, strict=True)) < 500


@needs_extension
def test_an_operation_of_many_operands_keeps_and_loses_nothing():
    torch.manual_seed(0)
    parameters = [torch.randn(3, requires_grad=True) for _ in range(20)]
    optimizer = torch.optim.Adam(parameters, lr=0.01)

    def rounds(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss = sum([(p * p).sum() for p in parameters])
            loss.backward()
            optimizer.step()
        gc.collect()
        return sys.getallocatedblocks()

    rounds(20)
    blocks = rounds(20)
    assert rounds(100) - blocks < 1000


@needs_extension
@pytest.mark.parametrize("mean, std", [(0.0, 1.0), (0.37, 1.618), (0.0, 0.02), (-2.0, 0.0)])
def test_normals_are_those_of_numpy(mean, std):
    words = np.arange(-(1 << 12), 1 << 18, dtype=np.int64) * 10368891 & 0xFFFFFFFF  # spread over all 24-bit numbers
    words = words.astype(np.uint32)
    out = np.empty(words.size, np.float32)
    if not NATIVE.normals(words, out, mean, std):
        pytest.skip("this processor has no fused multiply-add")
    assert out.tobytes() == normals_numpy(words, mean, std).tobytes()
    with pytest.raises(ValueError, match="blocks of 16"):
        NATIVE.normals(words[:8], out[:8], mean, std)
    with pytest.raises(ValueError, match="equally many"):
        NATIVE.normals(words[:32], out[:16], mean, std)


def test_counting_references():
    from torchlike._src.engine.values import Value, refcounts

    values = [Value(None) for _ in range(3)]
    held = values[1]
    assert [n > UNREFERENCED for n in refcounts(values)] == [False, True, False]
    assert held is values[1]
    if NATIVE is not None:
        assert NATIVE.referenced(values) == (1,)
        with pytest.raises(TypeError):
            NATIVE.referenced(())


def test_a_walk_that_fails_leaves_the_tape_usable():
    x = torch.ones(3, requires_grad=True)
    y = x * x
    z = y * y
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = (x * x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


OPERATORS = ("add", "sub", "mul", "div")


def random_program(seed, dtype):
    """A function of three arrays: 3 to 12 elementwise operations, some results kept; and its name for messages."""
    rng = random.Random(seed)
    plan: list[tuple] = []
    for k in range(rng.randint(3, 12)):
        kind = rng.choice((*OPERATORS, *OPERATORS, "relu", "neg", "number", "integer"))
        operands = (rng.randrange(3 + k), rng.randrange(3 + k))
        plan.append((kind, *operands, rng.choice([0.1, -2.5, 3.0, 1e-30, float("inf")]), rng.randrange(-3, 4)))
    kept = sorted(rng.sample(range(len(plan)), rng.randint(1, min(4, len(plan)))))

    def run(arrays):
        values = list(arrays)
        for kind, a, b, number, integer in plan:
            x, y = values[a], values[b]
            if kind in OPERATORS:
                values.append(getattr(torch, kind)(x, y))
            elif kind == "number":
                values.append(x * number)
            elif kind == "integer":
                values.append(integer - x)
            else:
                values.append(getattr(torch, kind)(x))
        return [values[3 + k] for k in kept]

    return run


def inputs(seed, shape, dtype, requires_grad):
    generator = np.random.default_rng(seed)
    arrays = [generator.normal(size=shape).astype(dtype) for _ in range(3)]
    if arrays[0].size > 4:
        arrays[0].flat[:4] = [np.nan, -0.0, np.inf, 0.0]
    out = [torch.tensor(a) for a in arrays]
    out[2] = out[2].t().contiguous().t() if len(shape) == 2 else out[2]
    return [t.requires_grad_(requires_grad) for t in out]


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (128,), (129,), (3, 50), (2, 3, 200)])
def test_elementwise_functions_give_numpys_bits(shape, dtype, monkeypatch):
    monkeypatch.setattr(flush, "host_only", True)
    made = itertools.count()
    function = elements._function

    def counted(*args):
        found = function(*args)
        if found is not None:
            next(made)
        return found

    for seed in range(12):
        results = []
        for native in (NATIVE, None):
            monkeypatch.setattr(elements, "NATIVE", native)
            monkeypatch.setattr(elements, "_function", counted)
            flush.flush()
            tensors = inputs(seed, shape, dtype, seed % 2 == 1)
            run = random_program(seed, dtype)
            found = run(tensors)
            if seed % 2:
                torch.autograd.backward(found, [torch.ones_like(t) for t in found])
                found += [t.grad for t in tensors if t.grad is not None]
            results.append([t.detach().numpy().copy() for t in found])
            # A plan is kept with the tree: the other way must make its own.
            for node in list(import_module("torchlike._src.engine.record").ROOT.children.values()):
                forget_plans(node)
        for a, b in zip(*results, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.tobytes() == b.tobytes() or np.isnan(a).any()
    assert next(made) > 0


def forget_plans(node):
    stack = [node]
    while stack:
        n = stack.pop()
        n.plan = None
        stack.extend(n.children.values())


@needs_extension
def test_elements_refuses_what_it_cannot_run():
    def make(code=(0, 1, 0, 0), **changed):
        given = {
            "code": np.array(code, np.uint16).tobytes(), "inputs": 1, "numbers": 0, "temps": 0, "places": (0,),
            "total": 1, "size": 3, "item": 4, "empty": np.empty, "shape": (3,), "block": (1, 3),
            "dtype": np.dtype(np.float32),
        }  # fmt: skip
        return NATIVE.Elements(**(given | changed))

    three = np.arange(3, dtype=np.float32)
    (out,) = make()(three)
    assert out.tolist() == [0, 2, 4]
    for wrong in ({"code": (99, 1, 0, 0)}, {"code": (0, 0, 0, 0)}, {"code": (0, 1, 5, 0)}, {"temps": 99}, {"item": 2},
                  {"places": (1,)}, {"places": ()}, {"size": 0}):  # fmt: skip
        with pytest.raises(ValueError):
            make(**wrong)
    for array in (np.arange(4, dtype=np.float32), np.arange(3, dtype=np.float64)):
        with pytest.raises(TypeError):
            make()(array)
    with pytest.raises(TypeError):
        make()(three, three)


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [((2, 2), (2, 2), (1, 1)), ((3, 2), (1, 3), (1, 2)), ((1, 4), (2, 1), (1, 1)), ((2, 3), (3, 2), (4, 1))],
)
def test_max_pool(kernel, stride, dilation, shifted, relu, dtype):
    generator = np.random.default_rng(0)
    wide = generator.normal(size=(3, 11, 15)).astype(dtype)
    wide[1, 4, 5], wide[2, 0, 0] = np.nan, -np.inf
    for image in (wide, wide[:, :, :12], wide[:, ::2, 1:], wide[1:, 1:, 2:]):
        shift = generator.normal(size=len(image)).astype(dtype) if shifted else None
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(image, spans, (1, 2))
        windows = windows[:, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
        expected = windows.max((3, 4))
        if shifted:
            expected = expected + shift[:, None, None]
        if relu:
            expected = np.maximum(expected, 0)
        out = np.empty(expected.shape, dtype)
        NATIVE.max_pool(image, out, shift, relu, kernel, stride, dilation)
        np.testing.assert_array_equal(out, expected)


@needs_extension
def test_max_pool_refuses_what_does_not_fit():
    image, settings = np.zeros((2, 4, 4), np.float32), ((2, 2), (2, 2), (1, 1))
    good = np.zeros((2, 2, 2), np.float32)
    NATIVE.max_pool(image, good, None, False, *settings)
    for a, out, shift in (
        (image, np.zeros((2, 3, 2), np.float32), None),
        (image, np.zeros((3, 2, 2), np.float32), None),
        (image, np.zeros((2, 2, 2), np.float64), None),
        (image, good, np.zeros(3, np.float32)),
        (image, good, np.zeros(2, np.float64)),
        (image[0], good, None),
        (image.transpose(0, 2, 1), good, None),
        (image.astype(np.int32), good, None),
    ):
        with pytest.raises(ValueError):
            NATIVE.max_pool(a, out, shift, False, *settings)


@needs_extension
def test_static_arguments():
    from torchlike._src.ops.declare import StaticFloat
    from torchlike._src.tensor.publish import _static_argument

    values = (None, True, 3, 2**70, "sum", torch.float32, (1, 2), (), (1, True), [1, 2.5], 0.5, -0.0, 0.0, np.int64(3),
              np.float32(0.5), torch.Size([2, 3]), float("inf"), ((1, 2), None))  # fmt: skip
    for value in values:
        mine, plain = NATIVE.static_argument(value), _static_argument(value)
        assert (type(mine), repr(mine)) == (type(plain), repr(plain)), value
    assert NATIVE.static_argument(0.5) is NATIVE.static_argument(0.5)
    assert type(NATIVE.static_argument(float("nan"))) is StaticFloat
