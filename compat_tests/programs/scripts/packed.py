# variable-length classification: LSTM/GRU on packed sequences, and causal convolutions
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence, pack_sequence
from torch.nn.utils import weight_norm
from torch.utils.data import Dataset, DataLoader, WeightedRandomSampler
import random

torch.manual_seed(0)
random.seed(0)


class Seqs(Dataset):
    def __init__(self, n):
        self.x, self.y = [], []
        for _ in range(n):
            l = random.randint(3, 12)
            s = torch.randint(1, 12, (l,))
            self.x.append(s)
            self.y.append(int((s > 6).sum() * 2 > l))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def collate(batch):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    xs, ys = zip(*batch)
    lengths = torch.tensor([len(x) for x in xs])
    return pad_sequence(xs, batch_first=True), lengths, torch.tensor(ys)


class Net(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.emb = nn.Embedding(12, 16, padding_idx=0)
        self.rnn = getattr(nn, cell)(16, 16, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.fc = nn.Linear(32, 2)

    def forward(self, x, lengths):
        p = pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(p)
        if isinstance(h, tuple):
            h = h[0]
        out, l = pad_packed_sequence(out, batch_first=True)
        mask = torch.arange(out.size(1))[None, :] < l[:, None]
        pooled = (out * mask.unsqueeze(-1)).sum(1) / l.unsqueeze(1).to(out.dtype)
        return self.fc(pooled + torch.cat((h[-2], h[-1]), 1))


ds = Seqs(34)
counts = torch.bincount(torch.tensor(ds.y))
w = 1.0 / counts[torch.tensor(ds.y)].float()
print(counts, w[:4])
loader = DataLoader(ds, batch_size=34, sampler=WeightedRandomSampler(w, len(w), replacement=True), collate_fn=collate)
for cell in ("GRU",):
    torch.manual_seed(1)
    net = Net(cell)
    print(net)
    opt = torch.optim.Adam(net.parameters(), 0.01)
    for epoch in range(2):
        tot = cor = n = 0
        for x, l, y in loader:
            opt.zero_grad()
            out = net(x, l)
            loss = F.cross_entropy(out, y)
            loss.backward()
            opt.step()
            tot += loss.item() * len(y)
            cor += (out.argmax(1) == y).sum().item()
            n += len(y)
        if epoch % 2:
            print(f"{epoch} loss {tot / n:.4f} acc {cor / n:.3f}")
    print(net.emb.weight[0])
p = pack_sequence([torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5])])
print(p, p.batch_sizes)


class Chomp1d(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s

    def forward(self, x):
        return x[:, :, : -self.s].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, i, o, k, dilation, dropout=0.2):
        super().__init__()
        pad = (k - 1) * dilation
        self.conv1 = weight_norm(nn.Conv1d(i, o, k, padding=pad, dilation=dilation))
        self.net = nn.Sequential(self.conv1, Chomp1d(pad), nn.ReLU(), nn.Dropout(dropout))
        self.downsample = nn.Conv1d(i, o, 1) if i != o else None
        self.conv1.weight.data.normal_(0, 0.01)

    def forward(self, x):
        res = x if self.downsample is None else self.downsample(x)
        return F.relu(self.net(x) + res)


tcn = nn.Sequential(*[TemporalBlock(1 if i == 0 else 8, 8, 3, 2**i) for i in range(3)], nn.Conv1d(8, 1, 1))
print(tcn)
opt = torch.optim.Adam(tcn.parameters(), 0.01)
for i in range(2):
    x = torch.randn(8, 1, 24)
    y = torch.cumsum(x, -1) / 5
    loss = F.mse_loss(tcn(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if True:
        print(i, "%.4f" % loss)
x = torch.randn(1, 1, 10)
tcn.eval()
a = tcn(x)
x[..., 6] += 1
b = tcn(x)
print((a == b).squeeze())
print([n for n, _ in tcn[0].named_parameters()])
