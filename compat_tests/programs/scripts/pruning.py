import torch
from torch import nn
import torch.nn.utils.prune as prune
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize

torch.manual_seed(0)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(16 * 1 * 1, 30)
        self.fc2 = nn.Linear(30, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        return self.fc2(F.relu(self.fc1(x)))


model = LeNet()
module = model.conv1
print([n for n, _ in module.named_parameters()], list(module.named_buffers()))
prune.random_unstructured(module, name="weight", amount=0.3)
print([n for n, _ in module.named_parameters()], [n for n, _ in module.named_buffers()])
print(module.weight[0, 0])
print(dict(module._forward_pre_hooks))
prune.l1_unstructured(module, name="bias", amount=3)
print(list(module.named_buffers())[1], module.bias)
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        break
print(list(hook))
print(model.state_dict().keys())
opt = torch.optim.SGD(model.parameters(), 0.05)
x, y = torch.randn(32, 1, 14, 14), torch.randint(0, 10, (32,))
for i in range(2):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    if i % 1 == 0:
        print(i, f"{loss.item():.5f}")
prune.remove(module, "weight")
print(list(module.named_parameters())[0][0], (module.weight == 0).sum())
new = LeNet()
for name, m in new.named_modules():
    if isinstance(m, nn.Conv2d):
        prune.l1_unstructured(m, name="weight", amount=0.2)
    elif isinstance(m, nn.Linear):
        prune.l1_unstructured(m, name="weight", amount=0.4)
print(dict(new.named_buffers()).keys())
m2 = LeNet()
to_prune = ((m2.conv1, "weight"), (m2.conv2, "weight"), (m2.fc1, "weight"))
prune.global_unstructured(to_prune, pruning_method=prune.L1Unstructured, amount=0.2)
for n, mod in (("conv1", m2.conv1), ("conv2", m2.conv2), ("fc1", m2.fc1)):
    print(
        "Sparsity in {}.weight: {:.2f}%".format(
            n, 100.0 * float(torch.sum(mod.weight == 0)) / float(mod.weight.nelement())
        )
    )


class FooBarPruningMethod(prune.BasePruningMethod):
    """Prune every other entry in a tensor"""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def foobar_unstructured(module, name):
    FooBarPruningMethod.apply(module, name)
    return module


mm = LeNet()
foobar_unstructured(mm.fc2, name="bias")
print(mm.fc2.bias_mask, prune.is_pruned(mm))


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
A = layer.weight
print(torch.allclose(A, A.T), A)
print(layer)


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class CayleyMap(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("Id", torch.eye(n))

    def forward(self, X):
        return torch.linalg.solve(self.Id - X, self.Id + X)


lo = nn.Linear(4, 4)
parametrize.register_parametrization(lo, "weight", Skew())
parametrize.register_parametrization(lo, "weight", CayleyMap(4))
X = lo.weight
print(torch.dist(X.T @ X, torch.eye(4)) < 1e-5)
print(lo.parametrizations.weight[0], lo.parametrizations.weight)
o = torch.optim.SGD(lo.parameters(), 0.1)
target = torch.randn(4, 4)
for i in range(2):
    l = (lo.weight - target).pow(2).sum()
    o.zero_grad()
    l.backward()
    o.step()
print(l.item(), torch.dist(lo.weight.T @ lo.weight, torch.eye(4)) < 1e-4)
with parametrize.cached():
    print(lo(torch.randn(2, 4)).shape)
parametrize.remove_parametrizations(lo, "weight")
print(lo, parametrize.is_parametrized(lo))
