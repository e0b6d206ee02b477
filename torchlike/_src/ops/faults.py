"""What PyTorch finds wrong with operands' values while an operation runs: indices, classes, divisors, matrices.

The values are pending when the operation is recorded, so the program that computes them looks, and the engine raises
when its results are read (engine/checks.py). Each operator's `faults` say what a program computes for that: per
condition FINE or a code, from which the error is made. Where the values are known already, the public functions raise
at once."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import CPU, Aval, aval
from torchlike._src.core.dtype import by_name
from torchlike._src.core.errors import LinAlgError
from torchlike._src.ops import (  # noqa: F401 - declares the operators named here
    adaptive_pooling,
    arithmetic,
    calculus,
    gather_scatter,
    linalg,
    loss,
    matrix_functions,
    sorting,
)
from torchlike._src.ops.declare import FINE, OPS, Faults, Kernel, T, first_bad, op
from torchlike._src.ops.indexing import INDEX_CHECKS

INT64 = by_name("int64")


def _any(bad: Any) -> Any:
    """The code 0 if anything is wrong."""
    return jnp.where(bad.any(), 0, FINE)


# -- indices ---------------------------------------------------------------------------------------------------


def inside(i: np.ndarray, low: int, high: int) -> bool:
    """Whether all of `i` are in low ... high - 1."""
    if not low and i.dtype == np.int64:  # negative numbers are large ones then
        return not i.size or bool(np.maximum.reduce(i.view(np.uint64), None) < high)
    return not i.size or bool(np.minimum.reduce(i, None) >= low and np.maximum.reduce(i, None) < high)


def bad_codes(
    arrays: Sequence[np.ndarray], bounds: Sequence[tuple[int, int]], ignored: int | None = None
) -> np.ndarray:
    """For each array FINE, or the first number that is neither within its bounds nor `ignored`; on the host tier."""
    codes = np.full(len(bounds), FINE)
    for k, (i, (low, high)) in enumerate(zip(arrays, bounds, strict=True)):
        if not inside(i, low, high):
            bad = (i < low) | (i >= high)
            found = i[bad if ignored is None else bad & (i != ignored)]
            if found.size:
                codes[k] = max(int(found[0]), FINE + 1)
    return codes


class IndexFaults(Faults):
    """Index operands in range, by INDEX_CHECKS: one condition for each index tensor, whose code is the index."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda: None, lambda: None)
        self.check = INDEX_CHECKS[name]
        self.name = "faults of " + name

    def _bounds(self, forward: Kernel) -> list[tuple[int, int]]:
        return self.check.bounds(**forward.op._checked_arguments(forward.static, forward.specs))

    def of(self, forward: Kernel) -> tuple[Kernel, tuple[int, ...]] | None:
        names = forward.op.names(forward.static, len(forward.specs))
        positions = tuple(k for k, n in enumerate(names) if n == self.check.operand)
        specs = tuple(forward.specs[k] for k in positions)
        if any(s.dtype.np.kind not in "iu" for s in specs) or not sum(s.numel for s in specs):
            return None
        if forward.op.name in ("_index", "_index_put") and not forward.specs[0].numel:
            return None  # nothing is read or written; an index into an empty dim has been refused
        return self.make_kernel((forward, positions), specs), positions

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return (aval((len(specs),), INT64, CPU),)

    def host_function(self, kernel: Kernel) -> Callable:
        sizes = [(-size if self.check.wraps else 0, size) for size, _ in self._bounds(kernel.static[0])]
        return lambda *arrays: (bad_codes(arrays, sizes),)

    def execute(self, static: tuple, specs: tuple, arrays: Any) -> tuple:
        codes = []
        for (size, _), i in zip(self._bounds(static[0]), arrays, strict=True):
            i = i.astype(jnp.int64)
            codes.append(first_bad((i < (-size if self.check.wraps else 0)) | (i >= size), i))
        return (jnp.stack(codes),)

    def error_of(self, forward: Kernel, number: int, code: int) -> Exception:
        size, dim = self._bounds(forward)[number]
        return self.check.error(self.check.text.format(index=code, dim=dim, size=size))


for _name in INDEX_CHECKS:
    OPS[_name].faults = IndexFaults(_name)


def _bag_codes(weight_aval: Aval, indices: Any, offsets: Any, mode: int) -> Any:
    size, count = weight_aval.shape[0], indices.shape[0]
    offsets = offsets.astype(jnp.int64)
    steps = offsets[1:] < offsets[:-1]
    # The place and the number in one code: the place in the upper half.
    at = jnp.arange(count, dtype=jnp.int64) << 32
    shown = at | (indices.astype(jnp.int64) & 0xFFFFFFFF)
    return jnp.stack(
        [
            first_bad(offsets[:1] != 0, offsets[:1]),
            first_bad(offsets[-1:] > count, offsets[-1:]),
            _any(steps) if mode != 2 else jnp.full((), FINE, jnp.int64),
            first_bad((indices < 0) | (indices >= size), shown),
        ]
    )


def _bag_error(
    weight_aval: Aval, indices_aval: Aval, offsets_aval: Aval, mode: int, code: int, number: int
) -> Exception:
    if number == 0:
        return RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {code}\n[ {offsets_aval.dtype.type_name}{{}} ]"
        )
    if number == 1:
        return RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices_aval.numel} but got offsets[-1] of {code}"
        )
    if number == 2:
        return RuntimeError(
            "Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)"
        )
    place, index = code >> 32, struct.unpack("i", struct.pack("I", code & 0xFFFFFFFF))[0]
    if mode == 2 or weight_aval.dtype.np.itemsize == 8:
        return RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {index}")
    return RuntimeError(
        f"Index {place} of input takes value {index} which is not in the valid range [0, {weight_aval.shape[0]})"
    )


OPS["_embedding_bag"].faults = Faults(
    _bag_codes, _bag_error, lambda indices_aval, offsets_aval: indices_aval.numel and offsets_aval.numel
)


# -- classes ---------------------------------------------------------------------------------------------------


def _class_count(input: Aval) -> int:
    return input.shape[0 if input.ndim == 1 else 1] if input.ndim else 1


def _class_codes(input_aval: Aval, target: Any, ignore_index: int) -> Any:
    outside = (target < 0) | (target >= _class_count(input_aval))
    return first_bad(outside & (target != jnp.asarray(ignore_index, target.dtype)), target)[None]


class ClassFaults(Faults):
    """Class numbers in range."""

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return (aval((1,), INT64, CPU),)

    def host_function(self, kernel: Kernel) -> Callable | None:
        forward = kernel.static[0]
        if kernel.specs[0].dtype is not INT64:
            return None
        ignored = forward.op._checked_arguments(forward.static, forward.specs)["ignore_index"]
        bounds = [(0, _class_count(forward.specs[0]))]
        return lambda target: (bad_codes((target,), bounds, ignored),)


OPS["_nll_loss"].faults = ClassFaults(
    _class_codes,
    lambda code: IndexError(f"Target {code} is out of bounds."),
    lambda target_aval: target_aval.dtype.np.kind in "iu",
)
OPS["_multi_margin_loss"].faults = Faults(
    lambda input_aval, target: _any((target < 0) | (target >= (input_aval.shape or (1,))[-1]))[None],
    lambda: RuntimeError("target out of range"),
)
OPS["_multilabel_margin_loss"].faults = Faults(
    lambda input_aval, target: _any((target < -1) | (target >= (input_aval.shape or (1,))[-1]))[None],
    lambda: RuntimeError("argument #2 'target' is out of range"),
)
OPS["_one_hot"].faults = Faults(
    lambda tensor, num_classes: jnp.stack([_any(tensor < 0), _any(tensor >= num_classes)]),
    lambda number: RuntimeError(
        ("Class values must be non-negative.", "Class values must be smaller than num_classes.")[number]
    ),
    lambda tensor_aval: tensor_aval.numel > 0,
)
OPS["_binary_cross_entropy"].faults = Faults(
    lambda input, target: jnp.stack([_any(~((x >= 0) & (x <= 1))) for x in (input, target)]),
    lambda number: RuntimeError(f"all elements of {('input', 'target')[number]} should be between 0 and 1"),
    lambda input_aval: input_aval.numel > 0,
)


# -- divisors, weights, ranges -----------------------------------------------------------------------------------


def _integers(input_aval: Any, other_aval: Any) -> bool:
    """Whether this divides integers by a tensor on the CPU (other devices give some number for a division by zero)."""
    if not isinstance(other_aval, Aval) or other_aval.dtype.np.kind not in "iu" or other_aval.device.type != "cpu":
        return False
    if isinstance(input_aval, Aval):
        return input_aval.dtype.np.kind in "biu" and input_aval.numel > 0
    return input_aval in (int, bool)


for _name in ("_div_trunc", "_div_floor", "floor_divide", "remainder", "fmod"):
    OPS[_name].faults = Faults(
        lambda other: _any(other == 0)[None], lambda: RuntimeError("ZeroDivisionError"), _integers
    )

for _name in ("quantile", "nanquantile"):
    OPS[_name].faults = Faults(
        lambda q: _any(~((q >= 0) & (q <= 1)))[None],
        lambda: RuntimeError("quantile() q values must be in the range [0, 1]"),
        lambda q_aval: isinstance(q_aval, Aval),
    )


def _cov_codes(fweights: Any, aweights: Any) -> Any:
    bad = [jnp.zeros((), bool) if w is None else ~(w >= 0).all() for w in (fweights, aweights)]
    given = [w for w in (fweights, aweights) if w is not None]
    total = given[0] if len(given) == 1 else given[0] * given[1]
    return jnp.stack([_any(b) for b in (*bad, total.sum() == 0)])


OPS["cov"].faults = Faults(
    _cov_codes,
    lambda number: RuntimeError(
        "cov(): "
        + ("fweights cannot be negative", "aweights cannot be negative", "weights sum to zero, can't be normalized")[
            number
        ]
    ),
    lambda fweights_aval, aweights_aval: any(w is not None and w.numel for w in (fweights_aval, aweights_aval)),
)


def _histc_codes(input: Any) -> Any:
    x = input.astype(jnp.float32)
    bits = [lax.bitcast_convert_type(v, jnp.uint32).astype(jnp.int64) for v in (x.min(), x.max())]
    return jnp.where(jnp.isfinite(x).all(), FINE, (bits[0] << 32) | bits[1])[None]


def _histc_error(code: int) -> Exception:
    low, high = np.array([code >> 32 & 0xFFFFFFFF, code & 0xFFFFFFFF], np.uint32).view(np.float32)
    return RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite".replace("nan", "-nan"))


OPS["histc"].faults = Faults(
    _histc_codes, _histc_error, lambda input_aval, min, max: min == max and input_aval.numel > 0
)


def _unpool_codes(indices: Any, output_size: tuple) -> Any:
    return first_bad((indices < 0) | (indices >= np.prod(output_size)), indices)[None]


def _unpool_error(output_size: tuple, code: int) -> Exception:
    shape = "x".join(map(str, output_size)) + ("x1" if len(output_size) == 1 else "")
    return RuntimeError(f"Found an invalid max index: {code} (output volumes are of size {shape})")


OPS["_max_unpool"].faults = Faults(_unpool_codes, _unpool_error, lambda indices_aval: indices_aval.numel > 0)


# -- matrices --------------------------------------------------------------------------------------------------


def _batch(code: int, ndim: int) -> str:
    """PyTorch's mention of the matrix of a batch; the code's upper half numbers it."""
    return f"(Batch element {code >> 32}): " if ndim else ""


def _first_info(info: Any) -> Any:
    """The first nonzero info, below the number of its matrix in the batch."""
    info = info.reshape(-1).astype(jnp.int64)
    return first_bad(info != 0, (jnp.arange(info.shape[0], dtype=jnp.int64) << 32) | (info & 0xFFFFFFFF))[None]


SVD_FAILED = "The algorithm failed to converge because the input matrix contained non-finite values."
SVD = Faults(
    lambda A: _first_info(jnp.isnan(A).any((-2, -1))),
    lambda A_aval, code: LinAlgError(f"linalg.svd: {_batch(code, A_aval.ndim - 2)}{SVD_FAILED}"),
    lambda A_aval: A_aval.numel > 0,
)
SVD_UNLESS_HERMITIAN = Faults(
    SVD.fn, SVD.error, lambda A_aval, hermitian: A_aval.numel > 0 and A_aval.dtype.np.kind in "fc" and not hermitian
)
OPS["_linalg_svd"].faults = SVD
OPS["_linalg_pinv"].faults = SVD_UNLESS_HERMITIAN
OPS["_matrix_rank"].faults = SVD_UNLESS_HERMITIAN
OPS["_linalg_eig"].faults = Faults(
    lambda A: _any(~jnp.isfinite(A))[None],
    lambda: RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs."),
    lambda A_aval: A_aval.numel > 0,
)

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{k} is not positive-definite)."
)
SINGULAR = (
    "The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."
)
UNSOLVABLE = "The solver failed because the input matrix is singular."
ZERO_PIVOT = (
    "U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)
PIVOTS = " Did you properly pass the result of lu_factor?"
INFO: dict[str, tuple[type[Exception], str]] = {
    "cholesky": (LinAlgError, NOT_POSITIVE),
    "linalg.cholesky": (LinAlgError, NOT_POSITIVE),
    "linalg.cholesky_ex": (LinAlgError, NOT_POSITIVE),
    "cholesky_inverse": (LinAlgError, SINGULAR),
    "inv": (LinAlgError, SINGULAR),
    "linalg.inv": (LinAlgError, SINGULAR),
    "linalg.inv_ex": (LinAlgError, SINGULAR),
    "torch.linalg.solve": (LinAlgError, UNSOLVABLE),
    "torch.linalg.solve_ex": (LinAlgError, UNSOLVABLE),
    "torch.linalg.lu_factor": (RuntimeError, ZERO_PIVOT),
    "torch.linalg.lu_factor_ex": (RuntimeError, ZERO_PIVOT),
}
"""What a function says of a matrix whose info is k."""
PIVOT_ERRORS = {
    "lu_unpack": {
        1: "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
        "lu_factor?"
    },
    "lu_solve": {
        1: "Pivots given to lu_solve must all be greater or equal to 1." + PIVOTS,
        2: "Pivots given to lu_solve must all be smaller or equal to LU.size(-2)." + PIVOTS,
    },
}
PIVOT_ERRORS["lu_unpack"][2] = PIVOT_ERRORS["lu_unpack"][1]


@op(
    namespaces=(),
    method=False,
    out=False,
    vjp={"input": lambda g: g},  # in forward mode, tangents pass
    shape=lambda input, info, name: input,
)
def _expect(input: T, info: T, name: str):
    """`input`, which there should not be where `info` is not 0; `name` says whose info it is."""
    return input


def _expect_error(name: str, info_aval: Aval, code: int) -> Exception:
    k = code & 0xFFFFFFFF
    if name in PIVOT_ERRORS:
        return RuntimeError(PIVOT_ERRORS[name][k])
    kind, text = INFO[name]
    return kind(f"{name}: {_batch(code, info_aval.ndim)}{text.format(k=k)}")


OPS["_expect"].faults = Faults(lambda info: _first_info(info), _expect_error, lambda info_aval: info_aval.numel > 0)
OPS["_cholesky_inverse"].faults = Faults(
    lambda A: _first_info(linalg.zero_diagonal(A)),
    lambda A_aval, code: LinAlgError(
        f"cholesky_inverse: {_batch(code, A_aval.ndim - 2)}{SINGULAR.format(k=code & 0xFFFFFFFF)}"
    ),
    lambda A_aval: A_aval.numel > 0,
)
