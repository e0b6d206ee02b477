"""Functions of `torch` that belong to no family: conjugation, segments, histograms, fake quantisation, control flow."""

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import Anomaly, set_anomaly
from torchlike._src.core import dtype as dt
from torchlike._src.core.errors import canonical_dim
from torchlike._src.tensor.call import check_result, check_writable, reshape_storage, write, write_out
from torchlike._src.tensor.composite import NN, internal, names, public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.data_shapes import check_finite_range
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import PUBLIC, return_type, tensor_argument
from torchlike._src.tensor.tensor import Tensor, TensorBase

F = names(NN)


@public("torch")
def conj(input):
    """The complex conjugate. Computed, not a view: writing to it does not change `input`. Real tensors come back as
    they are."""
    return internal.conj(tensor_argument(input, "conj", "self", 1)) if input._aval.dtype.is_complex else input


Tensor.conj = conj


@public("torch")
def is_neg(input):
    """Whether the negative bit is set: never here, negation is computed."""
    return False


# -- segments ----------------------------------------------------------------------------------------------------------

SEGMENTS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}


@public("torch")
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Consecutive segments of `axis` reduced ("sum", "mean", "max", "min", "prod"). Reads `lengths` or `offsets`."""
    tensor_argument(data, "segment_reduce", "data", 1)
    if reduce not in SEGMENTS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = canonical_dim(axis, data._aval.ndim)
    shape = data._aval.shape
    if offsets is not None:
        ends = offsets._host()
        counts, starts = np.diff(ends, axis=-1), ends[..., :-1]
    else:
        counts = lengths._host()
        starts = np.cumsum(counts, axis=-1) - counts
    if counts.ndim - 1 != axis:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of lengths or offsets.")
    if not unsafe:
        if counts.size and counts.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if lengths is not None and (counts.sum(-1) != shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    n = counts.shape[-1]
    ids = np.full(shape[: axis + 1], n, np.int64)  # elements outside every segment go to one that is cut off
    for row in np.ndindex(*counts.shape[:-1]):
        for k in range(n):
            ids[row][starts[row][k] : starts[row][k] + counts[row][k]] = k
    kind, neutral = SEGMENTS[reduce]
    target = torch.full(
        (*shape[:axis], n + 1, *shape[axis + 1 :]), neutral if initial is None else float(initial), dtype=data.dtype
    )
    index = from_array(ids.reshape(*ids.shape, *[1] * (len(shape) - axis - 1))).expand(shape)
    out = target.scatter_reduce(axis, index, data, kind).narrow(axis, 0, n)
    if reduce == "mean":
        size = counts.reshape(*counts.shape, *[1] * (len(shape) - axis - 1))
        if initial is not None:  # an empty segment keeps the initial value
            size = np.maximum(size, 1)
        out = out / from_array(size.astype(data.dtype.np))
    return out


# -- histograms, hashes: these read their input ------------------------------------------------------------------------


@public("torch")
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """Counts of points (the last dim holds the coordinates) in boxes: (hist, bin_edges). Reads the data."""
    tensor_argument(input, "histogramdd", "self", 1)
    if input._aval.ndim < 2:
        raise RuntimeError(
            f"torch.histogramdd(): input tensor should have at least 2 dimensions, but got {input._aval.ndim}"
        )
    points = input.detach()._host()
    n, kind = points.shape[-1], points.dtype
    points = points.reshape(-1, n)
    if isinstance(bins, (int, np.integer)):
        bins = [int(bins)] * n
    if len(bins) != n:
        raise RuntimeError(
            "torch.histogramdd(): The size of bins must be equal to the innermost dimension of the input, but got "
            f"{len(bins)} and {n}"
        )
    edges = []
    for k, b in enumerate(bins):
        if isinstance(b, TensorBase):
            edges.append(b._host())
            continue
        if range is not None:
            low, high = range[2 * k], range[2 * k + 1]
        else:
            check_finite_range(points[:, k], k)
            low, high = (points[:, k].min(), points[:, k].max()) if len(points) else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(np.linspace(low, high, int(b) + 1, dtype=kind))
    weights = np.ones(len(points), kind) if weight is None else weight.detach()._host().reshape(-1)
    boxes = [_box(points[:, k], e) for k, e in enumerate(edges)]
    inside = np.all([b >= 0 for b in boxes], axis=0)
    counts = np.zeros([len(e) - 1 for e in edges], kind)
    np.add.at(counts, tuple(b[inside] for b in boxes), weights[inside])
    if density:
        counts = counts / counts.sum()
        for k, e in enumerate(edges):
            counts = counts / np.diff(e).reshape([-1 if j == k else 1 for j in builtins.range(n)])
    return return_type("histogramdd", ("hist", "bin_edges"))(
        [from_array(counts.astype(kind)), tuple(from_array(e) for e in edges)]
    )


def _box(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The box of each coordinate, -1 outside: by C++'s upper_bound, whose result for edges out of order PyTorch has."""
    first, length = np.zeros(len(x), np.int64), np.full(len(x), len(edges))
    while (length > 0).any():
        half = length >> 1
        right = (length > 0) & ~(x < edges[np.minimum(first + half, len(edges) - 1)])
        first = np.where(right, first + half + 1, first)
        length = np.where(right, length - half - 1, half)
    found = np.minimum(first - 1, len(edges) - 2)
    return np.where((x >= edges[0]) & (x <= edges[-1]), np.maximum(found, 0), -1)


@public("torch")
def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):
    """The exclusive or of the elements' bits along `dim` (all by default), as uint64; floats count as float64. Reads
    the data."""
    if mode != 0:
        raise RuntimeError("hash_tensor: mode must be 0 (XOR_SUM)")
    a = tensor_argument(input, "hash_tensor", "self", 1).detach()._host()
    a = a.astype(np.float64) if a.dtype.kind not in "biu" else a.astype(np.int64)
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(canonical_dim(d, a.ndim) for d in dims) if dims and a.ndim else None
    bits = np.ascontiguousarray(a).reshape(-1).view(np.uint64).reshape(a.shape)
    result = from_array(
        np.asarray(np.bitwise_xor.reduce(bits, axis=axes, keepdims=keepdim) if a.ndim else bits), dt.uint64
    )
    return result if out is None else write_out(out, result, "hash_tensor", (input,))


Tensor.hash_tensor = hash_tensor

# -- fake quantisation -------------------------------------------------------------------------------------------------


def _fake_quantize(input: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Tensor:
    if low > high:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    with torch.no_grad():
        x = input.detach()
        level = torch.round(x * (1.0 / scale)) + zero_point
        inside = (level >= low) & (level <= high)
        value = (level.clamp(low, high) - zero_point) * scale
    kept = torch.where(inside, input, torch.zeros((), dtype=input.dtype))
    return value.to(input.dtype) + (kept - kept.detach())  # the gradient passes where nothing was clamped


@public("torch")
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """`input` rounded to the levels of a quantised tensor, and back; the gradient passes inside the range."""
    return _fake_quantize(
        tensor_argument(input, "fake_quantize_per_tensor_affine", "self", 1), scale, zero_point, quant_min, quant_max
    )


@public("torch")
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """As fake_quantize_per_tensor_affine, with a scale and a zero point for each slice of `axis`."""
    tensor_argument(input, "fake_quantize_per_channel_affine", "self", 1)
    shape = [1] * input._aval.ndim
    shape[canonical_dim(axis, input._aval.ndim)] = -1
    return _fake_quantize(
        input, scale.detach().reshape(shape), zero_point.detach().reshape(shape), quant_min, quant_max
    )


def _addbmm_(self: Tensor, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place version of addbmm; a tensor of another shape takes the result's."""
    check_writable(self, False)
    new = torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    if new._aval.shape != self._aval.shape and not new._rg:
        reshape_storage(self, new._aval.shape)
    check_result(self, new)
    if new._rg and not self._rg:
        check_writable(self, True)
    return write(self, new)


Tensor.addbmm_ = _addbmm_

# -- in place, at torch level ------------------------------------------------------------------------------------------


def _in_place(name: str) -> None:
    def function(input, *args, **kwargs):
        return getattr(tensor_argument(input, name, "self", 1), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"See Tensor.{name}."
    names("torch").setdefault(name, function)


for _name in ("addmv_", "clamp_max_", "clamp_min_"):
    if hasattr(Tensor, _name):
        _in_place(_name)


@public(NN, "torch")
def threshold_(input, threshold, value):
    """Elements that are not above `threshold` become `value`, in place."""
    return F["threshold"](input, threshold, value, inplace=True)


@public(NN)
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """F.rrelu in place."""
    return F["rrelu"](input, lower, upper, training, inplace=True)


@public("torch", name="rrelu_")
def _torch_rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """F.rrelu in place."""
    if generator is not None:
        raise NotImplementedError("torchlike: torch.rrelu_ with a generator")
    return F["rrelu"](input, lower, upper, training, inplace=True)


@public("torch")
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Scale the rows of `input` that `indices` names to a norm of at most max_norm, in place."""
    from torchlike._src.tensor.composite_embedding import _renorm

    _renorm(input, indices, max_norm, norm_type)
    return input


@public(NN, "torch")
def pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dim; real for complex tensors too."""
    if x1._aval.dtype.is_complex or x2._aval.dtype.is_complex:
        return names("torch.linalg")["vector_norm"](x1 - x2 + eps, p, -1, keepdim)
    return PUBLIC["pairwise_distance"](x1, x2, p, eps, keepdim)


# -- creation ----------------------------------------------------------------------------------------------------------


@public("torch")
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):  # fmt: skip
    """A tensor whose dims lie in memory in the order `physical_layout` (outermost first); its elements are zero."""
    size, order = tuple(size), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index "
                f"{order.index(d)}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    base = torch.empty([size[d] for d in order], dtype=dtype, layout=layout, device=device)
    out = base.permute([order.index(k) for k in range(len(size))])
    return out.requires_grad_() if requires_grad else out


@public("torch")
def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):  # fmt: skip
    """The first `size` elements of a binary file, as a vector. Memory shared with the file is not supported."""
    if shared:
        raise NotImplementedError("torchlike: torch.from_file with shared=True (memory shared with a file)")
    dtype = dtype or dt.default_dtype()
    array = np.fromfile(filename, dt.require_numpy(dtype), size)
    if len(array) < size:
        raise RuntimeError(f"file {filename} has {array.nbytes} bytes, fewer than {size} elements of {dtype} need")
    return from_array(array, dtype, device, requires_grad)


@public("torch")
def to_dlpack(tensor):
    """A DLPack capsule of the tensor."""
    return tensor.__dlpack__()


# -- eigenpairs --------------------------------------------------------------------------------------------------------


@public("torch")
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The k largest (or smallest) eigenvalues and eigenvectors of a symmetric matrix, exactly: by a whole
    eigendecomposition, so that starting vectors, preconditioners, tolerances and iteration counts have nothing to
    change."""
    if tracker is not None:
        raise NotImplementedError("torchlike: torch.lobpcg with a tracker (nothing is iterated)")
    linalg = names("torch.linalg")
    count = k if k is not None else (X.shape[-1] if X is not None else 1)
    if A.shape[-1] < 3 * count:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than 3 x the "
            f"number of requested eigenpairs (={count})"
        )
    if B is not None:
        L = linalg["cholesky"](B)
        half = linalg["solve_triangular"](L, A, upper=False)
        A = linalg["solve_triangular"](L, half.mH, upper=False).mH
    values, vectors = linalg["eigh"](A)
    values, vectors = (values.flip(-1), vectors.flip(-1)) if largest in (None, True) else (values, vectors)
    values, vectors = values[..., :count], vectors[..., :count]
    if B is not None:
        vectors = linalg["solve_triangular"](L.mH, vectors, upper=True)
    return values, vectors


# -- control flow ------------------------------------------------------------------------------------------------------


@public("torch")
def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) if `pred` else false_fn(*operands). Reads `pred`."""
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


@public("torch")
def while_loop(cond_fn, body_fn, carried_inputs):
    """Call body_fn on its own results while cond_fn of them is true. Reads the condition each time."""
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        new = body_fn(*values)
        values = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    return values


# -- symbolic numbers: shapes are plain ints here ----------------------------------------------------------------------


def _symbolic(name: str) -> type:
    class Symbol:
        def __init__(self, *args: Any) -> None:
            raise NotImplementedError(f"torchlike has no symbolic shapes: torch.{name}")

    Symbol.__name__ = Symbol.__qualname__ = name
    Symbol.__module__ = "torch"
    Symbol.__doc__ = "A symbolic number: never made, shapes are known."
    public("torch")(Symbol)
    return Symbol


SymInt, SymFloat, SymBool = _symbolic("SymInt"), _symbolic("SymFloat"), _symbolic("SymBool")


@public("torch")
def sym_int(a):
    """int(a)."""
    return int(a)


@public("torch")
def sym_float(a):
    """float(a)."""
    return float(a)


@public("torch")
def sym_not(a):
    """not a."""
    return not a


@public("torch")
def sym_ite(b, t, f):
    """t if b else f."""
    return t if b else f


def _pick(function: Any, a: Any, b: Any) -> Any:
    found = function(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


@public("torch")
def sym_max(a, b):
    """max(a, b); a float if either is one."""
    return _pick(max, a, b)


@public("torch")
def sym_min(a, b):
    """min(a, b); a float if either is one."""
    return _pick(min, a, b)


@public("torch")
def sym_sum(args: Sequence):
    """sum(args)."""
    return sum(args)


@public("torch", name="sym_sqrt")
def _sym_sqrt(a):
    """The square root of a number."""
    return math.sqrt(a)


# -- anomaly detection -------------------------------------------------------------------------------------------------


@public("torch")
def is_anomaly_enabled():
    """Whether anomaly detection is on."""
    return Anomaly.enabled


@public("torch")
def is_anomaly_check_nan_enabled():
    """Whether anomaly detection looks for NaN."""
    return Anomaly.check_nan


@public("torch")
def set_anomaly_enabled(enabled, check_nan=True):
    """Switch anomaly detection."""
    set_anomaly(bool(enabled), bool(check_nan))
