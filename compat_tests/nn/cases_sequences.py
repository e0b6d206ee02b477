"""nn.utils.rnn: padding and packing."""

from typing import Any

from compat_tests import case, tensor
from compat_tests.nn.running import attempt


@case
@case.params("batch_first", [False, True])
def case_pad_sequence(torch: Any, batch_first: bool) -> Any:
    R = torch.nn.utils.rnn
    parts = [tensor(torch, (n, 2), seed=n) for n in (2, 4, 1)]
    grad = [tensor(torch, (n,), seed=n, requires_grad=True) for n in (2, 3)]
    padded = R.pad_sequence(grad, batch_first, 7.0)
    padded.sum().backward()
    return [
        R.pad_sequence(parts, batch_first),
        R.pad_sequence(parts, batch_first, -1.0, "left"),
        R.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first),
        R.pad_sequence([torch.ones(2), torch.ones(3).double()], batch_first),
        R.pad_sequence([torch.ones(2).double(), torch.ones(3)], batch_first),
        padded,
        grad[0].grad,
        attempt(lambda: R.pad_sequence([])),
        attempt(lambda: R.pad_sequence(3)),
        attempt(lambda: R.pad_sequence(parts, padding_side="x")),
        [len(t) for t in R.unpad_sequence(R.pad_sequence(parts, True), torch.tensor([2, 4, 1]), True)],
    ]


@case
@case.params("batch_first", [False, True])
def case_packing(torch: Any, batch_first: bool) -> Any:
    R = torch.nn.utils.rnn
    x = tensor(torch, (3, 4, 2) if batch_first else (4, 3, 2), requires_grad=True)
    lengths = [2, 4, 1]
    packed = R.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    back = R.pad_packed_sequence(packed, batch_first, -5.0, 6)
    (back[0] * torch.arange(back[0].numel()).reshape(back[0].shape)).sum().backward()
    sorted_one = R.pack_padded_sequence(x.detach(), torch.tensor([4, 3, 3]), batch_first)
    return [
        packed,
        type(packed).__name__,
        back,
        x.grad,
        sorted_one.batch_sizes,
        sorted_one.sorted_indices,
        R.pad_packed_sequence(sorted_one, batch_first),
        packed.to(torch.float64).data.dtype,
        packed.double().batch_sizes,
        packed.to(torch.float32) is packed,
        packed.is_cuda,
        attempt(lambda: R.pad_packed_sequence(packed, total_length=2)),
        attempt(lambda: R.pack_padded_sequence(x, [4, 3], batch_first)),
        attempt(lambda: R.pack_padded_sequence(x, [4, 3, 0], batch_first)),
        attempt(lambda: R.pack_padded_sequence(x, [3, 4, 1], batch_first)),
        attempt(lambda: R.pack_padded_sequence(x, torch.ones(2, 2), batch_first)),
        attempt(lambda: R.pack_padded_sequence(x[:0], [4, 3, 1], batch_first)),
    ]


@case
def case_pack_sequence(torch: Any) -> Any:
    R = torch.nn.utils.rnn
    parts = [tensor(torch, (n, 2), seed=n) for n in (2, 4, 1)]
    packed = R.pack_sequence(parts, enforce_sorted=False)
    return [
        packed,
        R.unpack_sequence(packed),
        R.invert_permutation(torch.tensor([2, 0, 1])),
        attempt(lambda: R.pack_sequence(parts)),
        R.PackedSequence(torch.ones(3), torch.tensor([2, 1])),
    ]
