import copy, random, tempfile
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    get_worker_info,
    ConcatDataset,
    BatchSampler,
    SequentialSampler,
)

torch.manual_seed(0)
np.random.seed(0)
random.seed(0)


class MF(nn.Module):
    def __init__(self, nu, ni, k=8):
        super().__init__()
        self.u, self.i = nn.Embedding(nu, k, sparse=False), nn.Embedding(ni, k)
        self.ub, self.ib = nn.Embedding(nu, 1), nn.Embedding(ni, 1)
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.1)
        for e in (self.ub, self.ib):
            e.weight.data.fill_(0)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.ub(u).squeeze() + self.ib(i).squeeze()


class Ratings(Dataset):
    def __init__(self, n, seed):
        r = np.random.RandomState(seed)
        self.u, self.i = r.randint(0, 30, n), r.randint(0, 40, n)
        self.y = (np.sin(self.u) + np.cos(self.i)).astype(np.float32)

    def __len__(self):
        return len(self.u)

    def __getitem__(self, k):
        return {"user": self.u[k], "item": self.i[k], "rating": self.y[k], "name": f"u{self.u[k]}"}


tr, va = Ratings(64, 0), Ratings(32, 1)
loader = DataLoader(
    tr,
    batch_size=32,
    shuffle=True,
    drop_last=True,
    num_workers=2,
    persistent_workers=True,
    worker_init_fn=lambda w: np.random.seed(w),
)
b = next(iter(loader))
print({k: (v.dtype if isinstance(v, torch.Tensor) else v[:2]) for k, v in b.items()})
m = MF(30, 40)
opt = torch.optim.Adagrad(m.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "min", factor=0.5, patience=1)
best, best_state, patience = float("inf"), None, 0
for epoch in range(2):
    m.train()
    for batch in loader:
        loss = F.mse_loss(m(batch["user"], batch["item"]), batch["rating"])
        opt.zero_grad()
        loss.backward()
        opt.step()
    m.eval()
    with torch.no_grad():
        v = sum(
            F.mse_loss(m(b["user"], b["item"]), b["rating"], reduction="sum").item() for b in DataLoader(va, 64)
        ) / len(va)
    sched.step(v)
    if v < best - 1e-3:
        best, best_state, patience = v, copy.deepcopy(m.state_dict()), 0
    else:
        patience += 1
        if patience >= 3:
            print("early stop", epoch)
            break
    if epoch % 1 == 0:
        print(epoch, f"{loss.item():.4f} {v:.4f}", opt.param_groups[0]["lr"])
m.load_state_dict(best_state)
print("best %.4f" % best)


# checkpoint and resume: the same losses as without interruption
def make():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters(), 0.01, amsgrad=True)
    return net, opt, torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 5)


def steps(net, opt, sch, n):
    out = []
    for _ in range(n):
        loss = net(torch.randn(16, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step()
        out.append(round(loss.item(), 5))
    return out


a = make()
l1 = steps(*a, 2)
torch.save(
    {
        "net": a[0].state_dict(),
        "opt": a[1].state_dict(),
        "sch": a[2].state_dict(),
        "rng": torch.get_rng_state(),
        "l": l1,
    },
    f"{tempfile.gettempdir()}/torchlike_resume.pt",
)
l2 = steps(*a, 2)
bb = make()
ck = torch.load(f"{tempfile.gettempdir()}/torchlike_resume.pt", map_location="cpu", weights_only=False)
for o, k in zip(bb, ("net", "opt", "sch")):
    o.load_state_dict(ck[k])
torch.set_rng_state(ck["rng"])
print(ck["l"] == l1, steps(*bb, 2) == l2, l2)
# word2vec, skip-gram with negative sampling, and EmbeddingBag CBOW
corpus = ("the cat sat on the mat the dog sat on the log a cat and a dog " * 6).split()
vocab = sorted(set(corpus))
ix = {w: i for i, w in enumerate(vocab)}
pairs = [
    (ix[corpus[i]], ix[corpus[j]])
    for i in range(len(corpus))
    for j in range(max(0, i - 2), min(len(corpus), i + 3))
    if i != j
]
freq = torch.bincount(torch.tensor([ix[w] for w in corpus])).float() ** 0.75
cin, cout = nn.Embedding(len(vocab), 8), nn.Embedding(len(vocab), 8)
opt = torch.optim.SGD([{"params": cin.parameters()}, {"params": cout.parameters(), "lr": 0.2}], lr=0.5)
P = torch.tensor(pairs)
for i in range(2):
    bt = P[torch.randperm(len(P))[:64]]
    neg = torch.multinomial(freq, 64 * 4, replacement=True).view(64, 4)
    v, u, n = cin(bt[:, 0]), cout(bt[:, 1]), cout(neg)
    loss = -(F.logsigmoid((v * u).sum(1)) + F.logsigmoid(-torch.bmm(n, v.unsqueeze(2)).squeeze(2)).sum(1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 1 == 0:
        print("w2v", i, f"{loss.item():.4f}")
sim = F.cosine_similarity(cin.weight[ix["cat"]].unsqueeze(0), cin.weight)
print([vocab[i] for i in sim.topk(3).indices])
eb = nn.EmbeddingBag(len(vocab), 8, mode="mean")
print(eb(P[:, 0][:10], torch.tensor([0, 4, 7])).shape, eb)


class Stream(IterableDataset):
    def __iter__(self):
        w = get_worker_info()
        lo, hi = (0, 8) if w is None else (w.id * 4, w.id * 4 + 4)
        yield from (torch.tensor(float(i)) for i in range(lo, hi))


print(
    [x.tolist() for x in DataLoader(Stream(), 2, num_workers=2)],
    len(ConcatDataset([tr, va])),
    list(BatchSampler(SequentialSampler(range(5)), 2, False)),
)
# k-means
X = torch.cat([torch.randn(50, 2) + c for c in torch.tensor([[3.0, 0], [-3, 0], [0, 4]])])
C = X[torch.randperm(150)[:3]].clone()
it = 0
while True:
    d = torch.cdist(X, C)
    lab = d.argmin(1)
    new = torch.stack([X[lab == k].mean(0) if (lab == k).any() else C[k] for k in range(3)])
    it += 1
    if torch.allclose(new, C):
        break
    C = new
print(it, C[C[:, 0].argsort()], lab.bincount().sort().values)
