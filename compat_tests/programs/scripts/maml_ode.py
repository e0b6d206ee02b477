import torch, math
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, vmap, grad

torch.manual_seed(0)
# MAML on sinusoids, by hand and with functional_call
net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2)


def task():
    A, ph = torch.rand(1) * 4.9 + 0.1, torch.rand(1) * math.pi
    return lambda n: (lambda x: (x, A * torch.sin(x + ph)))(torch.rand(n, 1) * 10 - 5)


for it in range(2):
    opt.zero_grad()
    meta = 0.0
    for _ in range(4):
        sample = task()
        params = dict(net.named_parameters())
        for _ in range(2):
            x, y = sample(10)
            l = F.mse_loss(functional_call(net, params, (x,)), y)
            gs = torch.autograd.grad(l, params.values(), create_graph=True)
            params = {k: p - 0.01 * g for (k, p), g in zip(params.items(), gs)}
        x, y = sample(10)
        meta = meta + F.mse_loss(functional_call(net, params, (x,)), y)
    (meta / 4).backward()
    opt.step()
    if it % 1 == 0:
        print("maml", it, "%.4f" % (meta / 4).item())
# per-sample gradients
ps = {k: v.detach() for k, v in net.named_parameters()}


def one(p, x, y):
    return F.mse_loss(functional_call(net, p, (x.unsqueeze(0),)).squeeze(0), y)


g = vmap(grad(one), in_dims=(None, 0, 0))(ps, x, y)
print({k: tuple(v.shape) for k, v in g.items()}, g["4.bias"].mean())


# neural ODE: RK4 and adjoint-free, then Euler with while loop on a tensor condition
class Func(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(f, y, t):
    out = [y]
    for t0, t1 in zip(t[:-1], t[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h * k1 / 2)
        k3 = f(t0 + h / 2, y + h * k2 / 2)
        k4 = f(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return torch.stack(out)


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0.0, 1.0, 20)
with torch.no_grad():
    true = rk4(lambda t, y: torch.mm(y**3, A), torch.tensor([[2.0, 0.0]]), t)
print(true.shape, true[-1])
f = Func()
opt = torch.optim.RMSprop(f.parameters(), lr=1e-3)
for i in range(2):
    s = torch.from_numpy(__import__("numpy").random.RandomState(i).choice(12, 8, replace=False))
    y0 = true[s]
    target = torch.stack([true[s + j] for j in range(6)], dim=0)
    opt.zero_grad()
    pred = rk4(f, y0, t[:6])
    loss = torch.mean(torch.abs(pred - target))
    loss.backward()
    opt.step()
    if i % 1 == 0:
        print("ode", i, "%.6f" % loss.item())
y = torch.tensor([[2.0, 0.0]])
n = 0
while y.norm() > 1.5:
    y = y + 0.01 * torch.mm(y**3, A)
    n += 1
    if n >= 10:
        break
print(n, y)
x = torch.tensor(10.0, requires_grad=True)
z = x
while z > 1:
    z = z / 3
z.backward()
print(z, x.grad)
