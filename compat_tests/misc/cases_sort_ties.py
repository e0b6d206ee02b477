"""Equal elements of integers in host memory come in the order of PyTorch's unstable sort: packed batches, lengths."""

from compat_tests import case


@case
@case.params("n", [16, 17, 40, 200])
@case.params("descending", [False, True])
def case_ties(torch, n, descending):
    out = []
    for dtype in (torch.int64, torch.int32, torch.uint8):
        x = torch.tensor([k * k % 7 % 5 for k in range(n)], dtype=dtype)
        out += [*torch.sort(x, descending=descending), x.argsort(descending=descending)]
        out += [*torch.sort(x, stable=True, descending=descending), *x.sort(0, descending)]
    return out


@case
def case_many_distinct(torch):
    x = torch.tensor([k * k % 997 % 300 for k in range(1000)])
    return [x.sort()[1], x.sort(descending=True)[1]]


@case(rtol=1e-5, atol=1e-6)
def case_packed_dropout(torch):
    rnn = torch.nn.GRU(4, 6, num_layers=2, batch_first=True, bidirectional=True, dropout=0.4)
    lengths = torch.randint(3, 9, (32,))
    lengths[0] = 8
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.randn(32, 8, 4), lengths, batch_first=True, enforce_sorted=False
    )
    out, h = rnn(packed)
    padded, sizes = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    return [packed.sorted_indices, packed.unsorted_indices, padded.sum(-1), sizes, h.sum(-1)]
