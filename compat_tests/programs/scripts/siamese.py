import torch, torch.nn as nn, torch.nn.functional as F, copy

torch.manual_seed(3)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 16))
ema = copy.deepcopy(net)
for p in ema.parameters():
    p.requires_grad_(False)
crit = nn.TripletMarginLoss(1.0)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
hist = []
for i in range(40):
    a = torch.randn(16, 1, 8, 8)
    p = a + 0.1 * torch.randn_like(a)
    n = torch.randn(16, 1, 8, 8)
    l = crit(net(a), net(p), net(n))
    opt.zero_grad(set_to_none=True)
    l.backward()
    opt.step()
    hist.append(l.detach())
    with torch.no_grad():
        for pe, pn in zip(ema.parameters(), net.parameters()):
            pe.mul_(0.9).add_(pn, alpha=0.1)
print(torch.stack(hist)[::8])
print(F.cosine_similarity(net(a), ema(a)).mean())
best = {k: v.clone() for k, v in net.state_dict().items()}
print({k: tuple(v.shape) for k, v in best.items()})
accum = 0
for i in range(4):
    (crit(net(a), net(p), net(n)) / 4).backward()
print(sum((p.grad**2).sum() for p in net.parameters()) ** 0.5)
for name, p in net.named_parameters():
    print(name, p.grad.abs().mean().item().__format__(".5f"))
