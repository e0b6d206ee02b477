"""Sequences of different lengths: padded, and packed so that no padding is computed.

Lengths are host data: how a batch is packed decides shapes."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from torchlike._src.core import introsort
from torchlike._src.engine import Value
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, wrap

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences packed step by step: all first elements, all second ones, …; made by pack_padded_sequence.

    data: the elements. batch_sizes: how many sequences are left at each step. sorted_indices, unsorted_indices: the
    permutation that sorted the batch by length, and its inverse; None if it was sorted."""

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> "PackedSequence":
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor, change: Any) -> "PackedSequence":
        indices = [None if t is None else change(t) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self) -> "PackedSequence":
        """The same in page-locked memory."""
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """`data` moved or cast, the permutations moved along; batch_sizes stays on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._with(data, lambda t: t.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The same on a GPU."""
        if args or kwargs.get("device") is not None:
            return self.to(*args, **kwargs)
        return self.to(**{**kwargs, "device": "cuda"})

    def cpu(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The same on the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def double(self) -> "PackedSequence":
        """data as float64"""
        return self.to(dtype=torch.float64)

    def float(self) -> "PackedSequence":
        """data as float32"""
        return self.to(dtype=torch.float32)

    def half(self) -> "PackedSequence":
        """data as float16"""
        return self.to(dtype=torch.float16)

    def long(self) -> "PackedSequence":
        """data as int64"""
        return self.to(dtype=torch.int64)

    def int(self) -> "PackedSequence":
        """data as int32"""
        return self.to(dtype=torch.int32)

    def short(self) -> "PackedSequence":
        """data as int16"""
        return self.to(dtype=torch.int16)

    def char(self) -> "PackedSequence":
        """data as int8"""
        return self.to(dtype=torch.int8)

    def byte(self) -> "PackedSequence":
        """data as uint8"""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    return torch.argsort(permutation)


def _host_lengths(lengths: Tensor) -> np.ndarray:
    return lengths.detach().cpu().numpy().astype(np.int64)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch (T, B, *), or (B, T, *) with batch_first.

    lengths: of each sequence, on the CPU. enforce_sorted: they must be decreasing; otherwise the batch is sorted first.

    RuntimeError: lengths that are not positive, not sorted, not 1-d, not on the CPU, or not one for each sequence."""
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=torch.int64)
    else:
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        if lengths.device.type == "cpu" and lengths.dim() == 1:
            sizes = _host_lengths(lengths)
            found = np.array(introsort.order(sizes.tolist(), descending=True), np.int64)
            lengths, sorted_indices = torch.as_tensor(sizes[found]), torch.as_tensor(found, device=input.device)
        else:
            lengths, sorted_indices = torch.sort(lengths, descending=True)
            sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} {lengths.dtype.scalar_name} tensor"
        )
    if lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} Long tensor"
        )
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    sizes = _host_lengths(lengths)
    batch = input.size(0 if batch_first else 1)
    if len(sizes) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={batch})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if "
            "you do not need ONNX exportability."
        )
    steps = np.arange(sizes[0])
    batch_sizes = (sizes[None, :] > steps[:, None]).sum(1)
    if batch_first:
        input = input.transpose(0, 1)
    if sizes[0] > input.size(0):
        raise RuntimeError(f"Expected sequence length to be at most {input.size(0)}, but got {sizes[0]}")
    flat = input.reshape(-1, *input.shape[2:])
    where = _positions(batch_sizes, batch)
    data = flat.index_select(0, torch.as_tensor(where, device=input.device))
    return PackedSequence(data, torch.as_tensor(batch_sizes), sorted_indices, None)


def _positions(batch_sizes: np.ndarray, batch: int) -> np.ndarray:
    """Where each packed element is in a flattened (T, B) batch."""
    return np.concatenate([step * batch + np.arange(n) for step, n in enumerate(batch_sizes)]).astype(np.int64)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch (T, B, *), or (B, T, *) with batch_first, in its original order, and the lengths.

    total_length: pad to this length. ValueError: some sequence is longer."""
    sizes = _host_lengths(sequence.batch_sizes)
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    batch = int(sizes[0])
    data = sequence.data
    # Each place of the padded batch takes its packed element, or the padding, which is put behind them all.
    where = np.full(length * batch, len(data), np.int64)
    where[_positions(sizes, batch)] = np.arange(len(data))
    padding = torch.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    rows = torch.cat([data, padding]).index_select(0, torch.as_tensor(where, device=data.device))
    padded = rows.reshape(length, batch, *data.shape[1:])
    lengths = torch.as_tensor((sizes[:, None] > np.arange(batch)[None, :]).sum(0))
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L, *) padded to the longest and stacked to (T, B, *), or (B, T, *) with batch_first.

    padding_side: "right" or "left". RuntimeError: not iterable, empty, or another side."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    longest = max(s.size(0) for s in sequences)
    known: list[Any] = [_known(s) for s in sequences]
    if all(array is not None and array.shape[1:] == known[0].shape[1:] for array in known):
        # Data preparation: done at once, so that it is no part of what follows.
        batch = np.full((len(known), longest, *first.shape[1:]), padding_value, first._aval.dtype.np)
        for row, array in zip(batch, known):
            start = 0 if padding_side == "right" else longest - len(array)
            row[start : start + len(array)] = array
        batch = batch if batch_first else np.ascontiguousarray(batch.swapaxes(0, 1))
        return wrap(Value(first._aval.with_shape(batch.shape), batch))
    rows = []
    for s in sequences:
        s = s.to(first.dtype)
        missing = longest - s.size(0)
        if missing:
            padding = torch.full((missing, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
            s = torch.cat([s, padding] if padding_side == "right" else [padding, s])
        rows.append(s)
    return torch.stack(rows, 0 if batch_first else 1)


def _known(t: Tensor) -> np.ndarray | None:
    """The data of a tensor that is in host memory already and needs no gradient; else None."""
    if t._view is not None or t._rg or t._aval.device.type != "cpu":
        return None
    array = t._s.value.array
    return array if type(array) is np.ndarray else None


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    sizes = _host_lengths(lengths)
    return [padded_sequences[k][: int(n)] for k, n in enumerate(sizes)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L, *)."""
    lengths = torch.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, in their original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
