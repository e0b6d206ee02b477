import torch, math
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.optim.optimizer import Optimizer
from torch.optim.lr_scheduler import LambdaLR, CosineAnnealingLR, SequentialLR, LinearLR

torch.manual_seed(0)


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(
            self.input_features, self.output_features, self.bias is not None
        )


class STE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable()
        return torch.sign(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g.clamp(-1, 1)


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError("Invalid learning rate: {}".format(lr))
        defaults = dict(lr=lr, betas=betas, weight_decay=weight_decay)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                state["step"] += 1
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class MyAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad.data
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["m"], state["v"] = torch.zeros_like(p.data), torch.zeros_like(p.data)
                m, v = state["m"], state["v"]
                b1, b2 = group["betas"]
                state["step"] += 1
                m.mul_(b1).add_(grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
                denom = v.sqrt().add_(group["eps"])
                bc1, bc2 = 1 - b1 ** state["step"], 1 - b2 ** state["step"]
                p.data.addcdiv_(m, denom, value=-group["lr"] * math.sqrt(bc2) / bc1)


inp = (
    torch.randn(3, 4, dtype=torch.double, requires_grad=True),
    torch.randn(2, 4, dtype=torch.double, requires_grad=True),
    None,
)
print(torch.autograd.gradcheck(LinearFunction.apply, inp, eps=1e-6, atol=1e-4))
x = torch.randn(128, 10)
y = (x[:, :3].sum(1, keepdim=True) > 0).float()
for Opt, kw in ((Lion, dict(lr=1e-3, weight_decay=0.01)), (MyAdam, dict(lr=1e-2))):
    torch.manual_seed(1)
    net = nn.Sequential(Linear(10, 16), nn.Tanh(), Linear(16, 1))
    print(net)
    opt = Opt(net.parameters(), **kw)
    print(opt)
    sched = LambdaLR(opt, lr_lambda=lambda e: min(1.0, (e + 1) / 10) * 0.5 * (1 + math.cos(math.pi * e / 120)))
    for i in range(2):
        opt.zero_grad()
        out = net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(out, y)
        loss.backward()
        opt.step()
        sched.step()
        if i % 1 == 0:
            print(i, f"{loss.item():.5f}", sched.get_last_lr())
    sd = opt.state_dict()
    print(
        sd["param_groups"],
        {
            k: {kk: (vv if isinstance(vv, int) else tuple(vv.shape)) for kk, vv in v.items()}
            for k, v in sd["state"].items()
        },
    )
a = torch.randn(4, requires_grad=True)
b = STE.apply(a * 2)
print(b, b.grad_fn)
b.sum().backward()
print(a.grad)
z = GradReverse.apply(a, 0.5)
print(torch.autograd.grad((z * torch.arange(4.0)).sum(), a), type(z.grad_fn).__name__)
try:
    STE.apply(a).sum().backward()
    g = torch.autograd.grad(STE.apply(a**2).sum(), a, create_graph=True)[0]
    g.sum().backward()
except RuntimeError as e:
    print("RuntimeError:", e)
try:
    Lion(net.parameters(), lr=-1)
except ValueError as e:
    print(e)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
s = SequentialLR(opt, [LinearLR(opt, 0.1, total_iters=4), CosineAnnealingLR(opt, T_max=10)], milestones=[4])
lrs = []
for _ in range(10):
    lrs.append(round(opt.param_groups[0]["lr"], 5))
    opt.step()
    s.step()
print(lrs)
