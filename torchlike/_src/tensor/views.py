"""View functions: shape and stride arithmetic now, data when it is read."""

import operator
from typing import Any

from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.autograd.tape import OpNode, _sequence, grad_plan, note_stack
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim, canonical_dims, infer_size
from torchlike._src.engine.record import NUMBERS, SLOW, kernel_of
from torchlike._src.ops import views as ops
from torchlike._src.storage.storage import INFERENCE, MULTI, NO_GRAD, View, contiguous_strides
from torchlike._src.tensor.arguments import CHECKS, are_plain, bind, whole_tuple
from torchlike._src.tensor.call import apply, overlaps, record_taped
from torchlike._src.tensor.rebase import single_view_node
from torchlike._src.tensor.tensor import NEW, Tensor, TensorBase, alias, is_row_major


def make_view(
    t: Tensor, op: Any, static: tuple, numbers: tuple, shape: tuple, strides: tuple, offset: int | None = None, *,
    label: str | None = None, dtype: Any = None, multi: bool = False,
) -> Tensor:  # fmt: skip
    """The view `op` of `t`, with PyTorch's geometry for the result; `splits.joined` puts it on the graph if it is
    one of several (`multi`). HOT."""
    source = t._aval
    known = GEOMETRIES.get((op, static, source, label))
    if known is None:
        known = remember(op, static, numbers, shape, source, label, dtype)
    a, plan = known
    old = t._view
    steps = ((op, static, numbers),) if old is None else (*old.steps, (op, static, numbers))
    if offset is None:
        offset = 0 if old is None else old.offset
    v = NEW(View)
    v.steps = steps
    v.aval = a
    v.strides = strides
    v.offset = offset
    enabled = MODE.enabled
    inference = bool(SLOW) and MODE.inference
    if enabled:
        v.made = MULTI if multi else (None if old is None else old.made)
    else:
        v.made = INFERENCE if inference else NO_GRAD
    out = NEW(Tensor)
    out._s = s = t._s
    out._view = v
    out._aval = a
    out._rg = False
    out._gf = None
    out._base_tensor = t if old is None or t._base_tensor is None else t._base_tensor
    out._vversion = s.version
    if t._silent:
        out._silent = t._silent
    if t._rg and plan is not None:
        out._rg = True  # also in no_grad: a view of what requires grad does
    if out._rg and enabled and not multi:
        out._gf = node = NEW(OpNode)
        gf = t._gf
        edge = t._edge() if old is not None else (t if gf is None else gf)
        node.edges = (edge, *[None] * len(numbers)) if numbers else (edge,)
        node.seq = _sequence()
        node.extra = None
        node.plan = plan
        node.saved = tuple([(n, None, 0) for n in numbers]) if numbers else ()
        if Anomaly.enabled:
            note_stack(node)
        record_taped()
    if inference or t._is_inference:
        out._is_inference = True
    return out


GEOMETRIES: dict = {}
MAX_GEOMETRIES = 20_000


def remember(
    op: Any, static: tuple, numbers: tuple, shape: tuple, source: Aval, label: str | None, dtype: Any
) -> tuple:
    """(the view's aval, the plan of its node or None) for a view step of a tensor like `source`."""
    a = aval(shape, source.dtype if dtype is None else dtype, source.device)
    kernel = kernel_of(op, static, (source, *[NUMBERS[type(n)] for n in numbers]))
    plan = None
    if op.differentiable and (a.dtype.is_floating_point or a.dtype.is_complex):
        plan = grad_plan(kernel, (True, *[False] * len(numbers)), label)
    if len(GEOMETRIES) > MAX_GEOMETRIES:
        GEOMETRIES.clear()
    GEOMETRIES[op, static, source, label] = known = (a, plan)
    return known


def geometry(t: Tensor) -> tuple[tuple, tuple, int]:
    """(shape, strides, offset)."""
    v = t._view
    if v is None:
        return t._aval.shape, contiguous_strides(t._aval.shape), 0
    return t._aval.shape, v.strides, v.offset


def sizes(args: Any) -> tuple[int, ...]:
    """The sizes given as f(2, 3), f((2, 3)) or f(torch.Size); `whole_tuple` has PyTorch's TypeErrors for others."""
    if len(args) == 1 and not isinstance(args[0], int):
        first = args[0]
        if isinstance(first, (tuple, list)):
            args = first
        elif not isinstance(first, TensorBase) and hasattr(first, "__iter__"):
            args = tuple(first)
    for n in args:
        if type(n) is not int:
            return tuple([_index(n) for n in args])
    return tuple(args)


def _index(n: Any) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"expected int for a size, but got {type(n).__name__}") from None


# -- view, reshape -----------------------------------------------------------------------------------------------------


def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same elements in another shape (one size may be -1), or the same bytes as another dtype; shares memory.

    RuntimeError if the strides do not allow it."""
    if size is not None:
        shape = (size,)
    if dtype is not None or (
        len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)) and CHECKS["torch.dtype"](shape[0])
    ):
        return view_dtype(self, dtype if dtype is not None else shape[0])
    if not shape:
        shape = whole_tuple("view", ())
    for n in shape:
        if n.__class__ is not int:
            shape = whole_tuple("view", shape)
            break
    if self._view is None:
        return _view_of_base(self, shape)
    new = infer_size(whole_tuple("view", shape), self._aval.numel)
    strides = view_strides(self, new)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return make_view(self, ops.RESHAPE, (("shape", new),), (), new, strides)


SHAPES: dict = {}


def _view_of_base(t: Tensor, shape: tuple) -> Tensor:
    """view and reshape of a row-major tensor, where only the first of its kind works anything out."""
    try:
        known = SHAPES.get((t._aval, shape))
    except TypeError:  # a list of sizes
        shape = sizes(shape)
        known = SHAPES.get((t._aval, shape))
    if known is None:
        new = infer_size(sizes(shape), t._aval.numel)
        if len(SHAPES) > MAX_GEOMETRIES:
            SHAPES.clear()
        known = ((("shape", new),), new, contiguous_strides(new))
        if all(type(n) is int for n in (shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)):
            SHAPES[t._aval, shape] = known
    static, new, strides = known
    return make_view(t, ops.RESHAPE, static, (), new, strides)


def view_strides(t: Tensor, new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides of `t` seen as shape `new`, or None if a copy is needed."""
    if t._view is None or is_row_major(t._aval.shape, t._view.strides):
        return contiguous_strides(new)
    old, strides = t._aval.shape, t._view.strides
    if t._aval.numel == 0:
        return strides if old == new else contiguous_strides(new)
    # Walk both shapes from the back, chunk by chunk of dimensions that lie contiguously in memory.
    out: list[int] = [0] * len(new)
    k = len(new) - 1
    chunk_base = strides[-1] if strides else 1
    total = seen = 1
    for d in range(len(old) - 1, -1, -1):
        total *= old[d]
        if d == 0 or (old[d - 1] != 1 and strides[d - 1] != total * chunk_base):
            while k >= 0 and (seen < total or new[k] == 1):
                out[k] = seen * chunk_base
                seen *= new[k]
                k -= 1
            if seen != total:
                return None
            if d > 0:
                chunk_base = strides[d - 1]
                total = seen = 1
    return tuple(out) if k == -1 else None


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """self.view(other.size())."""
    return view(self, other._aval.shape)


def reshape(input: Tensor, shape: Any) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy."""
    if not are_plain(shape):
        shape = bind("torch.reshape", (input, shape), {})["shape"]
    return _reshape(input, shape)


def _reshape(input: Tensor, shape: Any) -> Tensor:
    if input._view is None:
        return _view_of_base(input, (shape,))
    new = infer_size(sizes((shape,)), input._aval.numel)
    strides = view_strides(input, new)
    if strides is not None:
        label = None if is_row_major(input._aval.shape, input._view.strides) else "ReshapeAliasBackward0"
        return make_view(input, ops.RESHAPE, (("shape", new),), (), new, strides, label=label)
    return apply(COPY_RESHAPE, (("shape", new),), (input,))


def _copy_reshape(a: Any, shape: tuple) -> Any:
    return a.reshape(shape)


COPY_RESHAPE = ops.RawOp(_copy_reshape, "reshape", linear=True, grad_name="UnsafeViewBackward0")


def reshape_method(self: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy."""
    return _reshape(self, whole_tuple("reshape", shape, named))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """self.reshape(other.size())."""
    return reshape(self, other._aval.shape)


def view_dtype(t: Tensor, dtype: Any) -> Tensor:
    """The same bytes as another dtype. No gradient flows, and PyTorch does not count it among the views."""
    old = t._aval.dtype
    shape, strides, offset = geometry(t)
    a, b = old.itemsize, dtype.itemsize
    if old is dtype:
        out = make_view(t, ops.RESHAPE, (("shape", shape),), (), shape, strides, offset)
        out._rg, out._gf = False, None
    else:
        if a != b:
            shape, strides, offset = _resized(old, dtype, shape, strides, offset)
        out = make_view(t, ops.BITCAST, (("dtype", dtype),), (), shape, strides, offset, dtype=dtype)
    out._base_tensor = None
    return out


def _resized(old: Any, new: Any, shape: tuple, strides: tuple, offset: int) -> tuple[tuple, tuple, int]:
    """The geometry of a tensor seen as a dtype of another size; RuntimeError if it does not fit."""
    where = f"to view {old.scalar_name} as {new.scalar_name} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {where}")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {where}, but got {strides[-1]}")
    a, b = old.itemsize, new.itemsize
    if a > b:
        r = a // b
        return (*shape[:-1], shape[-1] * r), (*[s * r for s in strides[:-1]], 1), offset * r
    r = b // a
    if shape[-1] % r:
        raise RuntimeError(f"self.size(-1) must be divisible by {r} {where}, but got {shape[-1]}")
    if offset % r:
        raise RuntimeError(f"self.storage_offset() must be divisible by {r} {where}, but got {offset}")
    for k, s in enumerate(strides[:-1]):
        if s % r:
            raise RuntimeError(f"self.stride({k}) must be divisible by {r} {where}, but got {s}")
    return (*shape[:-1], shape[-1] // r), (*[s // r for s in strides[:-1]], 1), offset // r


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions start_dim to end_dim as one."""
    source = input._aval
    simple = input._view is None and start_dim.__class__ is int is end_dim.__class__
    if simple and (known := SHAPES.get((source, start_dim, end_dim))) is not None:
        static, new, strides = known
        return make_view(input, ops.RESHAPE, static, (), new, strides)
    shape = source.shape
    if not shape:
        canonical_dim(start_dim, 0), canonical_dim(end_dim, 0)
        return reshape(input, (1,))
    start, end = canonical_dim(start_dim, len(shape)), canonical_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return input
    n = 1
    for k in shape[start : end + 1]:
        n *= k
    new = (*shape[:start], n, *shape[end + 1 :])
    if not simple:
        return reshape(input, new)
    out = _view_of_base(input, (new,))
    SHAPES[source, start_dim, end_dim] = SHAPES[source, (new,)]
    return out


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several."""
    shape = input._aval.shape
    d = canonical_dim(dim, len(shape))
    sizes = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        new = infer_size(sizes, shape[d])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            "input tensor"
        ) from None
    return view(input, (*shape[:d], *new, *shape[d + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    return reshape(input, (-1,))


# -- permutations ------------------------------------------------------------------------------------------------------


def _permuted(t: Tensor, dims: tuple[int, ...], label: str) -> Tensor:
    shape, strides, _ = geometry(t)
    return make_view(
        t,
        ops.PERMUTE,
        (("dims", dims),),
        (),
        tuple([shape[d] for d in dims]),
        tuple([strides[d] for d in dims]),
        label=label,
    )


def permute(input: Tensor, dims: Any) -> Tensor:
    """Dimensions in another order."""
    if not are_plain(dims):
        dims = bind("torch.permute", (input, dims), {})["dims"]
    return _permute(input, dims)


def _permute(input: Tensor, dims: Any) -> Tensor:
    n = input._aval.ndim
    if len(dims) != n:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = tuple([canonical_dim(d, n) for d in dims])
    if len(set(wrapped)) != n:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permuted(input, wrapped, "PermuteBackward0")


def permute_method(self: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Dimensions in another order."""
    return _permute(self, whole_tuple("permute", dims, named))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped."""
    n = input._aval.ndim
    a, b = canonical_dim(dim0, n), canonical_dim(dim1, n)
    if n == 0:
        return make_view(input, ops.RESHAPE, (("shape", ()),), (), (), (), label="TransposeBackward0")
    dims = list(range(n))
    dims[a], dims[b] = b, a
    return _permuted(input, tuple(dims), "TransposeBackward0")


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; 0-d and 1-d tensors as they are."""
    n = input._aval.ndim
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    if n == 2:
        return _permuted(input, (1, 0), "TBackward0")
    return make_view(input, ops.RESHAPE, (("shape", input._aval.shape),), (), *geometry(input), label="TBackward0")


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`, the others in order."""
    n = input._aval.ndim
    if isinstance(source, int) is not isinstance(destination, int):
        raise TypeError(
            "movedim() received an invalid combination of arguments: source and destination must both be an int or "
            f"both be tuples of ints, got {type(source).__name__} and {type(destination).__name__}"
        )
    s = (source,) if isinstance(source, int) else tuple(source)
    d = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(s) != len(d):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(s)} dims) should contain the same number of dims as destination ({list(d)} dims)"
        )
    s, d = tuple(canonical_dim(k, n) for k in s), tuple(canonical_dim(k, n) for k in d)
    if len(set(s)) != len(s):
        raise RuntimeError(f"movedim: repeated dim in `source` ({list(s)})")
    if len(set(d)) != len(d):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({list(d)})")
    order: list[int] = [-1] * n
    for a, b in zip(s, d, strict=True):
        order[b] = a
    rest = iter(k for k in range(n) if k not in s)
    order = [next(rest) if k < 0 else k for k in order]
    return _permuted(input, tuple(order), "PermuteBackward0")


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    if not input._aval.ndim:
        return alias_view(input)
    if input._aval.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input._aval.ndim}-D tensor."
        )
    out = transpose(input, -2, -1)
    return out.conj() if out._aval.dtype.is_complex else out


def get_T(self: Tensor) -> Tensor:
    """Dimensions reversed."""
    n = self._aval.ndim
    return (
        _permuted(self, tuple(range(n - 1, -1, -1)), "PermuteBackward0")
        if n != 2
        else _permuted(self, (1, 0), "PermuteBackward0")
    )


def get_H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    n = self._aval.ndim
    if n not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if n > 2 else "")
        )
    return adjoint(self)


def alias_view(t: Tensor) -> Tensor:
    """A view of the whole tensor."""
    return make_view(t, ops.RESHAPE, (("shape", t._aval.shape),), (), *geometry(t), label="AliasBackward0")


def get_mT(self: Tensor) -> Tensor:
    """The last two dimensions swapped."""
    if not self._aval.ndim:
        return alias_view(self)
    if self._aval.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._aval.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


# -- sizes of one ------------------------------------------------------------------------------------------------------


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size one (or without those of `dim` that have size one)."""
    shape, strides, _ = geometry(input)
    if dim is None:
        drop = {k for k, n in enumerate(shape) if n == 1}
        label = "SqueezeBackward0"
    else:
        dims = canonical_dims(dim, len(shape)) if not isinstance(dim, int) else (canonical_dim(dim, len(shape)),)
        drop = {k for k in dims if k < len(shape) and shape[k] == 1}
        label = "SqueezeBackward1" if isinstance(dim, int) else "SqueezeBackward2"
    keep = [k for k in range(len(shape)) if k not in drop]
    new = tuple([shape[k] for k in keep])
    return make_view(input, ops.RESHAPE, (("shape", new),), (), new, tuple([strides[k] for k in keep]), label=label)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dimension of size one inserted at `dim`."""
    shape, strides, _ = geometry(input)
    d = canonical_dim(dim, len(shape) + 1)
    step = strides[d] * shape[d] if d < len(shape) else 1
    new = (*shape[:d], 1, *shape[d:])
    return make_view(
        input, ops.RESHAPE, (("shape", new),), (), new, (*strides[:d], step, *strides[d:]), label="UnsqueezeBackward0"
    )


def expand(self: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """Dimensions of size one repeated without copying; -1 keeps a size."""
    target = whole_tuple("expand", size)
    shape, strides, _ = geometry(self)
    if len(target) < len(shape):
        raise RuntimeError(
            f"expand({self._aval.dtype.type_name}{{{list(shape)}}}, size={list(target)}): the number of sizes provided "
            f"({len(target)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    lead = len(target) - len(shape)
    new, new_strides = [], []
    for k in range(len(target) - 1, -1, -1):
        n = target[k]
        if k < lead:
            if n < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {k}"
                )
            new.append(n)
            new_strides.append(0)
            continue
        have = shape[k - lead]
        if n == -1:
            n = have
        if have != n:
            if have != 1:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                    f"dimension {k}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
                )
            new_strides.append(0)
        else:
            new_strides.append(strides[k - lead])
        new.append(n)
    new_strides.reverse()
    final = tuple(new[::-1])
    if 0 not in new_strides or _count(final) == self._aval.numel:  # nothing is repeated
        return make_view(self, ops.RESHAPE, (("shape", final),), (), final, tuple(new_strides), label="ExpandBackward0")
    return make_view(self, ops.EXPAND, (("shape", final),), (), final, tuple(new_strides))


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """self.expand(other.size())."""
    return expand(self, other._aval.shape)


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """input.expand(size)."""
    if not are_plain(size):
        size = bind("torch.broadcast_to", (input, size), {})["size"]
    return expand(input, size)


# -- slices ------------------------------------------------------------------------------------------------------------


def slice_view(t: Tensor, dim: int, start: int, length: int, step: int, multi: bool = False) -> Tensor:
    """Elements start, start + step, … of one dimension; arguments already checked."""
    shape, strides, offset = geometry(t)
    new = (*shape[:dim], length, *shape[dim + 1 :])
    stride = strides[dim] * step
    return make_view(
        t, ops.SLICE, (("dim", dim), ("length", length), ("step", step)), (start if length else 0,), new,
        (*strides[:dim], stride, *strides[dim + 1 :]), offset + start * strides[dim], multi=multi,
    )  # fmt: skip


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at `index` of one dimension, which disappears."""
    shape, strides, offset = geometry(input)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = canonical_dim(dim, len(shape))
    k = operator.index(index)
    if not -shape[d] <= k < shape[d]:
        raise IndexError(f"select(): index {k} out of range for tensor of size {list(shape)} at dimension {d}")
    return select_view(input, d, k + shape[d] if k < 0 else k)


def select_view(t: Tensor, d: int, k: int, multi: bool = False) -> Tensor:
    """select with checked arguments."""
    shape, strides, offset = geometry(t)
    return make_view(
        t, ops.SELECT, (("dim", d),), (k,), shape[:d] + shape[d + 1 :], strides[:d] + strides[d + 1 :],
        offset + k * strides[d], multi=multi,
    )  # fmt: skip


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Elements start to start + length of one dimension."""
    shape = input._aval.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = canonical_dim(dim, len(shape))
    if isinstance(start, TensorBase) and (start._aval.ndim or start._aval.dtype.np.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -shape[d] <= first <= shape[d]:
        raise IndexError(f"start out of range (expected to be in range of [-{shape[d]}, {shape[d]}], but got {first})")
    if first < 0:
        first += shape[d]
    if first + length > shape[d]:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({shape[d]}).")
    return slice_view(input, d, first, length, 1)


# -- others ------------------------------------------------------------------------------------------------------------


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as the last one."""
    shape, strides, start = geometry(input)
    n = len(shape)
    a, b = canonical_dim(dim1, n), canonical_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = max(min(shape[a], shape[b] - offset) if offset >= 0 else min(shape[a] + offset, shape[b]), 0)
    if size:
        start += offset * strides[b] if offset >= 0 else -offset * strides[a]
    rest = [k for k in range(n) if k not in (a, b)]
    return make_view(
        input, ops.DIAGONAL, (("offset", offset), ("dim1", a), ("dim2", b)), (),
        (*[shape[k] for k in rest], size), (*[strides[k] for k in rest], strides[a] + strides[b]), start,
    )  # fmt: skip


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements every `step`, as an additional last dimension."""
    shape, strides, offset = geometry(self)
    d = canonical_dim(dimension, len(shape))
    extent = shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {extent} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return make_view(self, ops.RESHAPE, (("shape", (size,)),), (), (size,), (1,))
    count = (extent - size) // step + 1
    return make_view(
        self, ops.UNFOLD, (("dim", d), ("size", size), ("step", step)), (),
        (*shape[:d], count, *shape[d + 1 :], size), (*strides[:d], strides[d] * step, *strides[d + 1 :], strides[d]),
        offset,
    )  # fmt: skip


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage with any geometry."""
    if not are_plain(size) or not are_plain(stride):
        bound = bind("torch.as_strided", (input, size, stride), {})
        size, stride = bound["size"], bound["stride"]
    size, stride = tuple(size), tuple(stride)
    offset = input.storage_offset() if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    item = input._aval.dtype.itemsize
    whole = input._s.value.aval
    room = whole.numel * whole.dtype.itemsize // item
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    if last >= room and 0 not in size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {(last + 1) * item} are out of bounds for storage of size {room * item}"
        )
    base = _whole_storage(input)
    out = make_view(
        base, ops.AS_STRIDED, (("size", size), ("stride", stride), ("offset", offset)), (), size, stride, offset
    )
    if input._view is not None and out._view.made is None:
        out._view.made = input._view.made
    if input._view is not None and out._rg and out._gf is not None and not overlaps(input._aval.shape, input.stride()):
        # Its gradient goes to `input`, not to what that is a view of.
        own = (("seen", (tuple(input._aval.shape), input.stride(), input.storage_offset())),)
        static = (*own, ("size", size), ("stride", stride), ("offset", offset), ("room", room))
        out._gf = single_view_node(ops.AS_STRIDED_OF_VIEW, static, (), input._aval, input._edge(), "AsStridedBackward0")
    return out


def _whole_storage(t: Tensor) -> Tensor:
    """What t is a view of, in the storage's order and t's dtype."""
    if t._view is None:
        return t
    base = t._base_tensor
    if base is None or base._view is not None:
        if base is not None and base._rg:
            raise NotImplementedError(
                "torchlike: as_strided of a view of a detached view or of a transposed-in-place base"
            )
        base = alias_base(t)
    dtype = t._aval.dtype
    if base._aval.dtype is dtype:
        return base
    if base._aval.dtype.is_complex and base._aval.dtype.to_real() is dtype:
        return view_as_real(base)
    flat = reshape(base, (-1,))
    if dtype.is_complex and dtype.to_real() is base._aval.dtype:
        return view_as_complex(reshape(flat, (-1, 2)))
    return view_dtype(flat, dtype)


def alias_base(t: Tensor) -> Tensor:
    """The base of a view whose base tensor is not known (a detached view)."""
    out = alias(t)
    out._view = None
    out._aval = t._s.value.aval
    return out


def real(input: Tensor) -> Tensor:
    """The real part of a complex tensor (a view); a real tensor itself."""
    if not input._aval.dtype.is_complex:
        return input
    return select_view(view_as_real(input), input._aval.ndim, 0)


def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor (a view)."""
    if not input._aval.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select_view(view_as_real(input), input._aval.ndim, 1)


def view_as_real(input: Tensor) -> Tensor:
    """(…) complex -> (…, 2) real, a view."""
    if not input._aval.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    shape, strides, offset = geometry(input)
    return make_view(
        input, ops.VIEW_AS_REAL, (), (), (*shape, 2), (*[2 * s for s in strides], 1), 2 * offset,
        dtype=input._aval.dtype.to_real(),
    )  # fmt: skip


def view_as_complex(input: Tensor) -> Tensor:
    """(…, 2) real -> (…) complex, a view."""
    dtype = input._aval.dtype
    if not dtype.is_floating_point:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{dtype.scalar_name}"
        )
    shape, strides, offset = geometry(input)
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    return make_view(
        input,
        ops.VIEW_AS_COMPLEX,
        (),
        (),
        shape[:-1],
        tuple([s // 2 for s in strides[:-1]]),
        offset // 2,
        dtype=dtype.to_complex(),
    )


def is_channels_last(t: Tensor) -> bool:
    """Whether a 4-d or 5-d tensor lies in memory with channels innermost."""
    shape, strides, _ = geometry(t)
    n = len(shape)
    if n not in (4, 5):
        return False
    order = [0, *range(2, n), 1]
    return is_row_major(tuple(shape[k] for k in order), tuple(strides[k] for k in order))
