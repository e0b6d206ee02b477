import torch, math
from torch import nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(0)
# LBFGS with strong Wolfe on Rosenbrock and logistic regression
x = torch.tensor([-1.5, 2.0], dtype=torch.double, requires_grad=True)
opt = torch.optim.LBFGS([x], lr=1, max_iter=20, history_size=10, line_search_fn="strong_wolfe")


def rosen(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


for i in range(2):

    def closure():
        opt.zero_grad()
        l = rosen(x)
        l.backward()
        return l

    l = opt.step(closure)
    print(i, f"{l.item():.6f}", x)
# hvp, Hessian, power iteration, conjugate gradients for natural gradient (TRPO)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
X, Y = torch.randn(40, 3), torch.randint(0, 2, (40,))
params = list(net.parameters())


def loss_fn():
    return F.cross_entropy(net(X), Y)


def hvp(v):
    g = torch.autograd.grad(loss_fn(), params, create_graph=True)
    flat = torch.cat([t.reshape(-1) for t in g])
    hv = torch.autograd.grad(flat @ v, params)
    return torch.cat([t.reshape(-1) for t in hv])


v = torch.randn(sum(p.numel() for p in params))
v /= v.norm()
for i in range(2):
    hv = hvp(v)
    ev = v @ hv
    v = hv / (hv.norm() + 1e-12)
print("top eigenvalue", ev)


def cg(f, b, n=3, tol=1e-10):
    x = torch.zeros_like(b)
    r, p = b.clone(), b.clone()
    rs = r @ r
    for _ in range(n):
        Ap = f(p)
        a = rs / (p @ Ap)
        x += a * p
        r -= a * Ap
        new = r @ r
        if new < tol:
            break
        p = r + new / rs * p
        rs = new
    return x


g = torch.cat([t.reshape(-1) for t in torch.autograd.grad(loss_fn(), params)])
d = cg(lambda p: hvp(p) + 0.5 * p, g)
old = parameters_to_vector(params)
vector_to_parameters(old - d, params)
print("newton %.6f" % loss_fn().item(), old.shape, old.grad_fn)
H = torch.autograd.functional.hessian(lambda w: (w**4).sum() + w[0] * w[1], torch.tensor([1.0, 2.0, 3.0]))
J = torch.autograd.functional.jacobian(lambda w: torch.stack([w[0] * w[1], w.sum()]), torch.tensor([1.0, 2.0, 3.0]))
print(H, J)
print(torch.func.hessian(lambda w: w.prod())(torch.tensor([1.0, 2.0, 3.0])))
print(torch.func.jvp(lambda w: w.sin().sum(), (torch.ones(3),), (torch.arange(3.0),)))
