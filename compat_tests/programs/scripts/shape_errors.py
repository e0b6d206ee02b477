import sys, traceback, warnings
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))
conv = nn.Conv2d(3, 8, 3)


def attempt(name, f):
    try:
        r = f()
        print(name, "->", r if not isinstance(r, torch.Tensor) else tuple(r.shape))
    except Exception as e:
        print(f"{name}: {type(e).__name__}: {e}")


attempt("linear ", lambda: model(torch.randn(4, 11)))
attempt("linear dtype", lambda: model(torch.randn(4, 10).double()))
attempt("linear int", lambda: model(torch.ones(4, 10, dtype=torch.long)))
attempt("conv ch", lambda: conv(torch.randn(2, 4, 8, 8)))
attempt("conv dim", lambda: conv(torch.randn(8, 8)))
attempt("conv small", lambda: conv(torch.randn(1, 3, 2, 2)))
attempt("ce", lambda: F.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2])))
attempt("ce range", lambda: F.cross_entropy(torch.randn(2, 3), torch.tensor([0, 5])))
attempt("ce float", lambda: F.cross_entropy(torch.randn(2, 3), torch.tensor([0.0, 1.0])))
attempt("bce", lambda: F.binary_cross_entropy(torch.rand(3), torch.rand(4)))
attempt("bce logits", lambda: nn.BCEWithLogitsLoss()(torch.rand(3, 1), torch.rand(3)))
attempt("view", lambda: torch.randn(4, 3).t().view(12))
attempt("view2", lambda: torch.randn(4, 3).view(5, -1))
attempt("cat", lambda: torch.cat([torch.randn(2, 3), torch.randn(2, 4)]))
attempt("stack", lambda: torch.stack([torch.randn(2), torch.randn(3)]))
attempt("mm", lambda: torch.randn(2, 3) @ torch.randn(2, 3))
attempt("bmm", lambda: torch.bmm(torch.randn(2, 3, 4), torch.randn(3, 4, 5)))
attempt("add", lambda: torch.randn(2, 3) + torch.randn(2, 4))
attempt("inplace leaf", lambda: model[0].weight.add_(1))
attempt("bool", lambda: bool(torch.randn(2)))
attempt("item", lambda: torch.randn(2).item())
attempt("numpy", lambda: model(torch.randn(1, 10)).numpy())
attempt("backward", lambda: model(torch.randn(2, 10)).backward())
attempt("embedding", lambda: nn.Embedding(4, 2)(torch.tensor([4])))
attempt("embedding f", lambda: nn.Embedding(4, 2)(torch.tensor([1.0])))
attempt("index", lambda: torch.arange(3)[5])
attempt("gather", lambda: torch.randn(2, 2).gather(1, torch.tensor([[0, 2], [1, 0]])))
attempt("state", lambda: nn.Linear(2, 2).load_state_dict({"weight": torch.zeros(3, 2), "extra": torch.zeros(1)}))
attempt("attr", lambda: model.foo)
attempt("tensor attr", lambda: torch.ones(1).foo)
attempt("bn", lambda: nn.BatchNorm1d(3)(torch.randn(1, 3)))
attempt("bn2", lambda: nn.BatchNorm2d(3)(torch.randn(2, 3)))
attempt("lstm", lambda: nn.LSTM(3, 4)(torch.randn(5, 2, 4)))
attempt("gru h", lambda: nn.GRU(3, 4)(torch.randn(5, 2, 3), torch.zeros(1, 3, 4)))
attempt("mha", lambda: nn.MultiheadAttention(6, 4))
attempt("ln", lambda: nn.LayerNorm(4)(torch.randn(2, 5)))
attempt("opt", lambda: torch.optim.SGD([], 0.1))
attempt("opt2", lambda: torch.optim.Adam([torch.ones(1)], lr=-1))
attempt("reshape", lambda: torch.arange(6).reshape(4, 2))
attempt("scatter", lambda: torch.zeros(2).scatter_(0, torch.tensor([3]), 1.0))
attempt("twice", lambda: (lambda l: (l.backward(), l.backward()))((torch.ones(2, requires_grad=True) ** 2).sum()))
attempt(
    "modified",
    lambda: (lambda w: (lambda e: (e.add_(1), e.sum().backward()))(w.exp()))(torch.ones(2, requires_grad=True)),
)
attempt("from_numpy", lambda: torch.from_numpy([1]))
attempt("randint", lambda: torch.randint(5, 2, (1,)))
attempt("multinomial", lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 1))
# attempt("categorical", lambda: torch.distributions.Categorical(probs=torch.tensor([-1.0, 2.0])))
attempt("normal", lambda: torch.distributions.Normal(0.0, -1.0))
attempt("dropout", lambda: nn.Dropout(1.5))
attempt("squeeze", lambda: torch.ones(2).unsqueeze(3))
attempt("transpose", lambda: torch.ones(2, 3).transpose(0, 2))
attempt("chunk", lambda: torch.ones(4).chunk(0))
attempt("split", lambda: torch.ones(4).split([1, 2]))
attempt("expand", lambda: torch.ones(2, 3).expand(2, 4))
attempt("pad", lambda: F.pad(torch.ones(2, 2), (3, 3), mode="reflect"))
attempt("interp", lambda: F.interpolate(torch.ones(1, 1, 4, 4)))
attempt("einsum", lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(4, 2)))
# attempt("solve", lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)))
attempt("device", lambda: torch.ones(1, device="foo"))
attempt("dtype", lambda: torch.ones(2).to("float31"))
attempt("hook", lambda: torch.ones(1).register_hook(lambda g: g))
attempt("requires", lambda: torch.ones(1, dtype=torch.long, requires_grad=True))
attempt("softmax", lambda: F.softmax(torch.ones(2, dtype=torch.long), 0))
attempt("mean", lambda: torch.arange(3).mean())
attempt("max", lambda: torch.tensor([]).max())
attempt("argmax", lambda: torch.tensor([]).argmax())
attempt("moduledict", lambda: nn.ModuleDict({"a": 1}))
attempt("seq", lambda: nn.Sequential(nn.Linear(1, 1), "x"))
attempt("param", lambda: setattr(model[0], "weight", torch.zeros(20, 10)))
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    F.mse_loss(torch.ones(3), torch.ones(3, 1))
    F.softmax(torch.ones(2, 2))
    nn.functional.tanh(torch.ones(1))
    torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), 0.1), 1).step()
    F.kl_div(torch.ones(2).log(), torch.ones(2))
    nn.LSTM(1, 1, dropout=0.5)
    torch.meshgrid(torch.arange(2), torch.arange(2))
    torch.tensor(torch.ones(1))
    model(torch.randn(2, 10)).grad
    torch.std(torch.ones(1))
    torch.norm(torch.ones(2))
for x in w:
    print(x.category.__name__, str(x.message).split("(Triggered")[0][:90].strip())
# the model still trains, with varying shapes and a skipped nan
opt = torch.optim.Adam(model.parameters(), 0.01)
for i in range(22):
    n = 5 + i % 7
    x = torch.randn(n, 10)
    if i == 20:
        x[0, 0] = float("nan")
    loss = F.cross_entropy(model(x), (x[:, 0] > 0).long())
    if loss.isnan():
        print("skip", i)
        continue
    if not torch.isfinite(loss) or loss > 10:
        raise SystemExit(1)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("%.4f" % loss.item())
