"""The host generator against PyTorch: values and the complete generator state after every call.

With the ``oracle`` fixture (real PyTorch) each case is compared live over several seeds; without it, digests
recorded from PyTorch 2.13 are compared. ``python -m compat_tests.rooms.test_rng`` prints the digests anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from torchlike._src.random import discrete, fills, rejection, sampler_seeds
from torchlike._src.random.generator import HostGenerator

Array = np.ndarray
f32, f64, f16, bf16 = (np.dtype(d) for d in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
i64 = np.dtype(np.int64)
SIZES = (1, 7, 16, 17, 100, 12345)


def torch_dtype(torch: Any, dtype: np.dtype) -> Any:
    return getattr(torch, dtype.name)


def as_bytes(value: Any) -> bytes:
    """The raw bytes of an array or of a PyTorch tensor."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).tobytes()
    if str(value.dtype) == "torch.bfloat16":
        value = value.view(dtype=value.new_empty(0).short().dtype)
    return value.contiguous().numpy().tobytes()


def as_torch(torch: Any, x: Array) -> Any:
    if x.dtype == bf16:
        return torch.from_numpy(x.astype(np.float32)).bfloat16()
    return torch.from_numpy(x.copy())


def spread(n: int, low: float, high: float, dtype: np.dtype) -> Array:
    return (low + (high - low) * (np.arange(1, n + 1) * 0.6180339887498949 % 1.0)).astype(dtype)


# name -> (ours(gen, n), theirs(torch, generator, n)); names carry the dtype
Case = tuple[Callable[[HostGenerator, int], Array], Callable[[Any, Any, int], Any]]
CASES: dict[str, Case] = {}


def _inplace(name: str, dtype: np.dtype, ours: Callable, method: str, *args: Any) -> None:
    def theirs(torch: Any, g: Any, n: int) -> Any:
        return getattr(torch.empty(n, dtype=torch_dtype(torch, dtype)), method)(*args, generator=g)

    CASES[f"{name} {dtype.name} {args}"] = (lambda gen, n: ours(gen, (n,), dtype, *args), theirs)


for _d in (f32, f64, f16, bf16):
    for _args in ((0.0, 1.0), (-0.123, 0.777), (-1 / 28, 1 / 28), (1000.0, 1001.0)):
        _inplace("uniform", _d, fills.uniform, "uniform_", *_args)
    for _args in ((0.0, 1.0), (0.0, 0.02), (0.37, 1.618)):
        _inplace("normal", _d, fills.normal, "normal_", *_args)
    _inplace("exponential", _d, fills.exponential, "exponential_", 2.5)
    _inplace("cauchy", _d, fills.cauchy, "cauchy_", 1.5, 0.3)
    _inplace("log_normal", _d, fills.log_normal, "log_normal_", 0.3, 0.25)
    _inplace("geometric", _d, fills.geometric, "geometric_", 0.3)
    _inplace("bernoulli", _d, discrete.bernoulli_p, "bernoulli_", 0.3)
    _inplace("random_", _d, discrete.random_, "random_")
    CASES[f"strided normal {_d.name}"] = (
        lambda gen, n, d=_d: fills.normal(gen, (n,), d, 0.1, 2.0, scalar_path=True),
        lambda torch, g, n, d=_d: torch.empty(2 * n, dtype=torch_dtype(torch, d))[::2].normal_(0.1, 2.0, generator=g),
    )
    CASES[f"normal of tensors {_d.name}"] = (
        lambda gen, n, d=_d: fills.normal_tensors(gen, spread(n, -1, 3, d), spread(n, 0.1, 2, d)),
        lambda torch, g, n, d=_d: torch.normal(
            as_torch(torch, spread(n, -1, 3, d)), as_torch(torch, spread(n, 0.1, 2, d)), generator=g
        ),
    )
    CASES[f"bernoulli of tensor {_d.name}"] = (
        lambda gen, n, d=_d: discrete.bernoulli_tensor(gen, spread(n, 0, 1, d)),
        lambda torch, g, n, d=_d: torch.bernoulli(as_torch(torch, spread(n, 0, 1, d)), generator=g),
    )
    CASES[f"multinomial replacement {_d.name}"] = (
        lambda gen, n, d=_d: discrete.multinomial(gen, spread(min(n, 300), 0.1, 1, d), 9, True),
        lambda torch, g, n, d=_d: torch.multinomial(
            as_torch(torch, spread(min(n, 300), 0.1, 1, d)), 9, True, generator=g
        ),
    )
for _d in (f32, f64):
    CASES[f"multinomial {_d.name}"] = (
        lambda gen, n, d=_d: discrete.multinomial(gen, spread(n, 0.1, 1, d), min(n, 5)),
        lambda torch, g, n, d=_d: torch.multinomial(as_torch(torch, spread(n, 0.1, 1, d)), min(n, 5), generator=g),
    )
    CASES[f"poisson {_d.name}"] = (
        lambda gen, n, d=_d: rejection.poisson(gen, spread(min(n, 300), 0, 30, d)),
        lambda torch, g, n, d=_d: torch.poisson(as_torch(torch, spread(min(n, 300), 0, 30, d)), generator=g),
    )
    CASES[f"gamma {_d.name}"] = (
        lambda gen, n, d=_d: rejection.standard_gamma(gen, spread(min(n, 300), 0.01, 3, d)),
        lambda torch, g, n, d=_d: torch._standard_gamma(as_torch(torch, spread(min(n, 300), 0.01, 3, d)), generator=g),
    )
    CASES[f"binomial {_d.name}"] = (
        lambda gen, n, d=_d: rejection.binomial(
            gen, np.floor(spread(min(n, 300), 0, 200, d)), spread(min(n, 300), 0, 1, d)
        ),
        lambda torch, g, n, d=_d: torch.binomial(
            as_torch(torch, np.floor(spread(min(n, 300), 0, 200, d))),
            as_torch(torch, spread(min(n, 300), 0, 1, d)),
            generator=g,
        ),
    )
    for _args in ((0.0, 0.02, -2.0, 2.0), (1.0, 2.0, 0.0, 3.0), (0.0, 1.0, 1.0, 2.0)):
        CASES[f"trunc_normal {_d.name} {_args}"] = (
            lambda gen, n, d=_d, a=_args: rejection.trunc_normal(gen, (n,), d, *a),
            lambda torch, g, n, d=_d, a=_args: torch.nn.init.trunc_normal_(
                torch.empty(n, dtype=torch_dtype(torch, d)), *a, generator=g
            ),
        )
for _value in (0.5, 4.0, 30.0):  # alike parameters are drawn by whole arrays
    CASES[f"poisson of {_value}"] = (
        lambda gen, n, v=_value: rejection.poisson(gen, np.full(n, v, f32)),
        lambda torch, g, n, v=_value: torch.poisson(torch.full((n,), v), generator=g),
    )
for _value in (0.5, 1.0, 3.0):
    CASES[f"gamma of {_value}"] = (
        lambda gen, n, v=_value: rejection.standard_gamma(gen, np.full(n, v, f32)),
        lambda torch, g, n, v=_value: torch._standard_gamma(torch.full((n,), v), generator=g),
    )
for _count, _p in ((10, 0.3), (100, 0.5), (100, 0.8), (40, 0.95)):
    CASES[f"binomial of {_count, _p}"] = (
        lambda gen, n, c=_count, p=_p: rejection.binomial(gen, np.full(n, c, f64), np.full(n, p)),
        lambda torch, g, n, c=_count, p=_p: torch.binomial(
            torch.full((n,), c, dtype=torch.float64), torch.full((n,), p, dtype=torch.float64), generator=g
        ),
    )
CASES["dirichlet float32"] = (
    lambda gen, n: rejection.dirichlet(gen, spread(min(n, 12), 0.2, 3, f32)),
    lambda torch, g, n: torch._sample_dirichlet(as_torch(torch, spread(min(n, 12), 0.2, 3, f32)), generator=g),
)
CASES["rrelu float32"] = (
    lambda gen, n: fills.rrelu_noise(gen, spread(n, -1, 1, f32), 0.125, 0.333),
    lambda torch, g, n: _torch_rrelu(torch, g, n),
)
for _d in (np.dtype(np.complex64), np.dtype(np.complex128)):
    _inplace("normal", _d, fills.normal, "normal_", 0.37, 1.618)
for _name in ("int64", "int32", "int16", "int8", "uint8", "bool"):
    _inplace("random_", np.dtype(_name), discrete.random_, "random_")
for _lo, _hi in ((0, 10), (-5, 5), (0, 2**28 - 1), (0, 2**28), (-(2**63), 2**63 - 1)):
    CASES[f"randint {_lo, _hi}"] = (
        lambda gen, n, lo=_lo, hi=_hi: discrete.randint(gen, lo, hi, (n,)),
        lambda torch, g, n, lo=_lo, hi=_hi: torch.randint(lo, hi, (n,), generator=g),
    )
CASES["randperm"] = (discrete.randperm, lambda torch, g, n: torch.randperm(n, generator=g))
CASES["dropout noise"] = (
    lambda gen, n: discrete.dropout_noise(gen, (n,), 0.1),
    lambda torch, g, n: torch.empty(n, dtype=torch.bool).bernoulli_(1 - 0.1, generator=g),
)
CASES["base seed"] = (
    lambda gen, n: np.array(sampler_seeds.base_seed(gen)),
    lambda torch, g, n: torch.empty((), dtype=torch.int64).random_(generator=g),
)


def _torch_rrelu(torch: Any, g: Any, n: int) -> Any:
    x = as_torch(torch, spread(n, -1, 1, f32))
    noise = torch.empty_like(x)
    torch.ops.aten.rrelu_with_noise(x, noise, 0.125, 0.333, True, g)
    return noise


def digest_of(draw: Callable[[int], Any], state: Callable[[], Any]) -> str:
    """A digest of the values and the state after each of two calls per size, on one continued stream."""
    digest = hashlib.sha1()
    for n in SIZES:
        for _ in range(2):
            digest.update(as_bytes(draw(n)))
            digest.update(as_bytes(state()))
    return digest.hexdigest()[:10]


def our_digest(case: Case, seed: int) -> str:
    gen = HostGenerator(seed)
    return digest_of(lambda n: case[0](gen, n), gen.get_state)


def torch_digest(torch: Any, case: Case, seed: int) -> str:
    g = torch.Generator().manual_seed(seed)
    return digest_of(lambda n: case[1](torch, g, n), g.get_state)


# PyTorch 2.13, seed 42
RECORDED = {
    "uniform float32 (0.0, 1.0)": "c188f8f915",
    "uniform float32 (-0.123, 0.777)": "a76f561042",
    "uniform float32 (-0.03571428571428571, 0.03571428571428571)": "ad4ae96a72",
    "uniform float32 (1000.0, 1001.0)": "83501b3282",
    "normal float32 (0.0, 1.0)": "0d37406a66",
    "normal float32 (0.0, 0.02)": "37f361c51a",
    "normal float32 (0.37, 1.618)": "372385d524",
    "exponential float32 (2.5,)": "2e0c68b15f",
    "cauchy float32 (1.5, 0.3)": "455cf6a820",
    "log_normal float32 (0.3, 0.25)": "4a961c9ce8",
    "geometric float32 (0.3,)": "c137182128",
    "bernoulli float32 (0.3,)": "703ed5cd02",
    "random_ float32 ()": "7d3ed1943f",
    "strided normal float32": "652b6d505f",
    "normal of tensors float32": "272ab709a1",
    "bernoulli of tensor float32": "07ebac477d",
    "multinomial replacement float32": "018954f3cd",
    "uniform float64 (0.0, 1.0)": "aecb16869b",
    "uniform float64 (-0.123, 0.777)": "047c418c13",
    "uniform float64 (-0.03571428571428571, 0.03571428571428571)": "25e9f46219",
    "uniform float64 (1000.0, 1001.0)": "dea4bb96f5",
    "normal float64 (0.0, 1.0)": "499c5ff60c",
    "normal float64 (0.0, 0.02)": "15ce85a3c7",
    "normal float64 (0.37, 1.618)": "773ee182e6",
    "exponential float64 (2.5,)": "99b512309a",
    "cauchy float64 (1.5, 0.3)": "08aae5f53e",
    "log_normal float64 (0.3, 0.25)": "c5d5e2b8fb",
    "geometric float64 (0.3,)": "73c8c2fe81",
    "bernoulli float64 (0.3,)": "e7c99779d8",
    "random_ float64 ()": "27fb7eba37",
    "strided normal float64": "2bfe929e0d",
    "normal of tensors float64": "9e0eed6604",
    "bernoulli of tensor float64": "19ec96f762",
    "multinomial replacement float64": "018954f3cd",
    "uniform float16 (0.0, 1.0)": "3f461a2337",
    "uniform float16 (-0.123, 0.777)": "2de11f2729",
    "uniform float16 (-0.03571428571428571, 0.03571428571428571)": "3a0bd9c1e7",
    "uniform float16 (1000.0, 1001.0)": "ac4d2568f2",
    "normal float16 (0.0, 1.0)": "68c1cedfc6",
    "normal float16 (0.0, 0.02)": "1dbe2c5644",
    "normal float16 (0.37, 1.618)": "e3133d365d",
    "exponential float16 (2.5,)": "9f8fd720c4",
    "cauchy float16 (1.5, 0.3)": "9b3baa0948",
    "log_normal float16 (0.3, 0.25)": "0114103921",
    "geometric float16 (0.3,)": "4a1848112c",
    "bernoulli float16 (0.3,)": "8aa4bdde5d",
    "random_ float16 ()": "b3ac93f07b",
    "strided normal float16": "a09c4675ca",
    "normal of tensors float16": "33289c59a8",
    "bernoulli of tensor float16": "688cf2f345",
    "multinomial replacement float16": "018954f3cd",
    "uniform bfloat16 (0.0, 1.0)": "165adf17bf",
    "uniform bfloat16 (-0.123, 0.777)": "ec4cd7c26d",
    "uniform bfloat16 (-0.03571428571428571, 0.03571428571428571)": "421a5fe99b",
    "uniform bfloat16 (1000.0, 1001.0)": "f7a21be054",
    "normal bfloat16 (0.0, 1.0)": "a73cb1af45",
    "normal bfloat16 (0.0, 0.02)": "a670aaf846",
    "normal bfloat16 (0.37, 1.618)": "0e608523f5",
    "exponential bfloat16 (2.5,)": "ff84e28d76",
    "cauchy bfloat16 (1.5, 0.3)": "9b7751f0a8",
    "log_normal bfloat16 (0.3, 0.25)": "6241314a0d",
    "geometric bfloat16 (0.3,)": "08bd32ea14",
    "bernoulli bfloat16 (0.3,)": "fb738d608d",
    "random_ bfloat16 ()": "fd6c1328b6",
    "strided normal bfloat16": "31c8d14229",
    "normal of tensors bfloat16": "0705c46b05",
    "bernoulli of tensor bfloat16": "15af63c0c0",
    "multinomial replacement bfloat16": "018954f3cd",
    "multinomial float32": "c956d7857f",
    "poisson float32": "c10c7a17fa",
    "gamma float32": "ed163acd66",
    "binomial float32": "99218fc808",
    "trunc_normal float32 (0.0, 0.02, -2.0, 2.0)": "37f361c51a",
    "trunc_normal float32 (1.0, 2.0, 0.0, 3.0)": "a696391355",
    "trunc_normal float32 (0.0, 1.0, 1.0, 2.0)": "1a9de1c2f9",
    "multinomial float64": "c956d7857f",
    "poisson float64": "7cfd84bd66",
    "gamma float64": "dd23f1494e",
    "binomial float64": "e10e7bc9c9",
    "trunc_normal float64 (0.0, 0.02, -2.0, 2.0)": "15ce85a3c7",
    "trunc_normal float64 (1.0, 2.0, 0.0, 3.0)": "bf2948546f",
    "trunc_normal float64 (0.0, 1.0, 1.0, 2.0)": "3b2d9f7b1e",
    "poisson of 0.5": "a69ee6b82b",
    "poisson of 4.0": "1066483514",
    "poisson of 30.0": "589a73744d",
    "gamma of 0.5": "9213e01a92",
    "gamma of 1.0": "0a9c9b3de7",
    "gamma of 3.0": "823fa61d89",
    "binomial of (10, 0.3)": "547da8b403",
    "binomial of (100, 0.5)": "14ad6e236f",
    "binomial of (100, 0.8)": "86239be5ae",
    "binomial of (40, 0.95)": "87870e7916",
    "dirichlet float32": "68dc8f0415",
    "rrelu float32": "1a25fbcfc2",
    "normal complex64 (0.37, 1.618)": "ebcef0d4be",
    "normal complex128 (0.37, 1.618)": "625f00f55f",
    "random_ int64 ()": "40411ff479",
    "random_ int32 ()": "6537d78dd5",
    "random_ int16 ()": "05451eb109",
    "random_ int8 ()": "01724cef09",
    "random_ uint8 ()": "fe4f3f23c1",
    "random_ bool ()": "1961fcddd4",
    "randint (0, 10)": "7ce3504282",
    "randint (-5, 5)": "1f97c50f4e",
    "randint (0, 268435455)": "95f38ed5dd",
    "randint (0, 268435456)": "2aabdda87a",
    "randint (-9223372036854775808, 9223372036854775807)": "4360d1bf55",
    "randperm": "9bf85c5061",
    "dropout noise": "119a6fc228",
    "base seed": "1153971773",
}


@pytest.mark.parametrize("name", CASES)
def test_recorded(name: str) -> None:
    assert our_digest(CASES[name], 42) == RECORDED[name]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name: str, oracle: Any) -> None:
    for seed in (0, 2**31, 2**32 + 5, -1):
        assert our_digest(CASES[name], seed) == torch_digest(oracle, CASES[name], seed), (name, seed)


def test_mixture_agrees_with_pytorch(oracle: Any) -> None:
    """Random sequences of operations on one generator, so that the cached normal meets everything else."""
    choice = np.random.default_rng(5)
    names = list(CASES)
    for seed in range(3):
        gen, g = HostGenerator(seed), oracle.Generator().manual_seed(seed)
        for _ in range(120):
            name, n = names[choice.integers(len(names))], int(choice.integers(1, 400))
            assert as_bytes(CASES[name][0](gen, n)) == as_bytes(CASES[name][1](oracle, g, n)), (name, n)
            assert as_bytes(gen.get_state()) == as_bytes(g.get_state()), (name, n)


def test_state_round_trip(oracle: Any) -> None:
    for words in (0, 1, 5, 623, 624, 625, 2000):
        g = oracle.Generator().manual_seed(7)
        oracle.empty(words, dtype=oracle.uint8).random_(generator=g)
        gen = HostGenerator(7)
        gen.words32(words)
        assert as_bytes(gen.get_state()) == as_bytes(g.get_state())
        oracle.empty(1).normal_(generator=g)  # leaves a cached normal behind
        other = HostGenerator()
        other.set_state(g.get_state().numpy())
        assert as_bytes(other.get_state()) == as_bytes(g.get_state())
        assert other.initial_seed() == 7
        twin = other.clone_state()
        assert as_bytes(fills.normal(twin, (5,), f32)) == as_bytes(oracle.empty(5).normal_(generator=g))


def test_seeds() -> None:
    gen = HostGenerator()
    assert gen.initial_seed() == 67280421310721
    assert gen.manual_seed(-1) is gen
    assert gen.initial_seed() == 2**64 - 1
    assert gen.seed() == gen.initial_seed()
    for wrong in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            gen.manual_seed(wrong)


def test_worker_seeds() -> None:
    seeds = sampler_seeds.worker_numpy_seed(0x123456789ABCDEF, 3)
    assert seeds == np.random.SeedSequence([3, 0x89ABCDEF, 0x1234567, 0]).generate_state(4).tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.set_state([1]), TypeError, "expected a torch.ByteTensor, but got list"),
        (lambda g: g.set_state(np.zeros(3)), TypeError, "RNG state must be a torch.ByteTensor"),
        (
            lambda g: g.set_state(np.zeros(3, np.uint8)),
            RuntimeError,
            "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 3",
        ),
        (lambda g: g.set_state(np.zeros(5056, np.uint8)), RuntimeError, "Invalid mt19937 state"),
        (
            lambda g: fills.uniform(g, (4,), f32, 2, 1),
            RuntimeError,
            "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
        ),
        (lambda g: fills.uniform(g, (4,), f16, 0, 70000), RuntimeError, "to is out of bounds for c10::Half"),
        (
            lambda g: fills.uniform(g, (4,), i64),
            NotImplementedError,
            "\"check_uniform_bounds\" not implemented for 'Long'",
        ),
        (lambda g: fills.normal(g, (4,), f32, 0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
        (
            lambda g: fills.normal_tensors(g, np.zeros(2, f32), np.array([-1, 1], f32)),
            RuntimeError,
            "normal expects all elements of std >= 0.0",
        ),
        (
            lambda g: discrete.randint(g, 5, 2, (2,)),
            RuntimeError,
            "random_ expects 'from' to be less than 'to', but got from=5 >= to=2",
        ),
        (
            lambda g: discrete.randint(g, 0, 300, (2,), np.uint8),
            RuntimeError,
            "to - 1 is out of bounds for unsigned char",
        ),
        (
            lambda g: discrete.bernoulli_p(g, (2,), f32, 1.5),
            RuntimeError,
            "bernoulli_ expects p to be in [0, 1], but got p=1.5",
        ),
        (
            lambda g: fills.exponential(g, (2,), f32, 0),
            RuntimeError,
            "exponential_ expects lambda > 0.0, but found lambda=0",
        ),
        (
            lambda g: discrete.multinomial(g, np.array([1, 2], f32), 3),
            RuntimeError,
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        ),
        (
            lambda g: discrete.multinomial(g, np.array([1, -2, 3], f32), 2, True),
            RuntimeError,
            "invalid multinomial distribution (encountering probability entry < 0)",
        ),
        (
            lambda g: rejection.poisson(g, np.array([-1], f32)),
            RuntimeError,
            "invalid Poisson rate, expected rate to be non-negative",
        ),
        (lambda g: discrete.randperm(g, 3000, f16), RuntimeError, "n cannot be greater than 2049 for Half type."),
    ],
)
def test_errors(call: Callable[[HostGenerator], Any], error: type[Exception], message: str) -> None:
    gen = HostGenerator(1)
    before = gen.get_state()
    with pytest.raises(error) as raised:
        call(gen)
    assert str(raised.value) == message
    assert np.array_equal(gen.get_state(), before)


if __name__ == "__main__":
    import torch

    for _name, _case in CASES.items():
        print(f"    {_name!r}: {torch_digest(torch, _case, 42)!r},")
