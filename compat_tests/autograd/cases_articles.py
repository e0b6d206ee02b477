"""What tutorials show of graphs and gradients: their programs, and all the text that they print."""

import warnings

from compat_tests import capture, case, raises


@case
def case_first_graph(torch):
    a = torch.tensor([2.0], requires_grad=True)
    b = torch.tensor([3.0])
    c = a * b
    d = c + 1
    e = torch.sum(d)
    return capture(lambda: print(a, b, c, d, e, c.grad_fn is not None, b.requires_grad))


@case
def case_branches_in_forward(torch):
    F = torch.nn.functional
    torch.manual_seed(0)
    w1, w2, w3 = (torch.randn(4, 4, requires_grad=True) for _ in range(3))
    b1, b2, b3 = (torch.zeros(4, requires_grad=True) for _ in range(3))

    def dynamic_model(x, use_extra_layer):
        h = F.relu(x @ w1 + b1)
        if use_extra_layer:
            h = F.relu(h @ w2 + b2)
        return h @ w3 + b3

    x = torch.randn(2, 4)
    short, long = dynamic_model(x, False), dynamic_model(x, True)
    short.sum().backward()
    before = w2.grad
    long.sum().backward()
    return short, long, before, [p.grad for p in (w1, w2, w3, b1, b2, b3)]


@case
def case_gradients_of_a_product(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    z = x * y
    loss = z.sum()
    loss.backward()

    def show():
        print(x.grad)
        print(y.grad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(z.grad)

    return capture(show)


@case
def case_accumulation_in_a_loop(torch):
    a = torch.tensor(2.0, requires_grad=True)

    def loop():
        for step in range(3):
            loss = (a - 1) * (a + 1)
            loss.backward()
            print(f"step {step}: grad = {a.grad}")

    text = capture(loop)
    loss = (a + 1) * (a + 1)
    loss.backward()
    return text, raises(torch, loss.backward)


@case
def case_gradients_by_layer(torch):
    nn = torch.nn

    class SimpleNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer1 = nn.Linear(10, 20)
            self.layer2 = nn.Linear(20, 5)
            self.layer3 = nn.Linear(5, 1)
            self.unused = nn.Linear(2, 1)

        def forward(self, x):
            h1 = torch.relu(self.layer1(x))
            h2 = torch.relu(self.layer2(h1))
            return self.layer3(h2)

    torch.manual_seed(0)
    model = SimpleNet()
    model(torch.randn(4, 10)).sum().backward()

    def show():
        for name, param in model.named_parameters():
            if param.grad is None:
                print(f"{name}: gradient is None")
            else:
                print(f"{name}: grad shape {param.grad.shape}, grad mean {param.grad.mean().item():.4f}")
        total_norm = 0.0
        for p in model.parameters():
            if p.grad is not None:
                param_norm = p.grad.detach().data.norm(2)
                total_norm += param_norm.item() ** 2
        total_norm = total_norm**0.5
        print(f"Global gradient norm: {total_norm:.3f}")

    return capture(show)


@case(rtol=1e-5, atol=1e-6)
def case_custom_scale(torch):
    class CustomScale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.save_for_backward(x, alpha)
            return x * alpha

        @staticmethod
        def backward(ctx, grad_output):
            x, alpha = ctx.saved_tensors
            grad_x = grad_output * alpha
            grad_alpha = (grad_output * x).sum()
            return grad_x, grad_alpha

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    alpha = torch.tensor(0.5, requires_grad=True)
    CustomScale.apply(x, alpha).pow(2).sum().backward()
    double = [t.detach().double().requires_grad_() for t in (x, alpha)]
    return x.grad, alpha.grad, torch.autograd.gradcheck(CustomScale.apply, double)


@case(rtol=1e-5, atol=1e-6)
def case_stable_softmax(torch):
    class StableSoftmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            max_val = x.max(dim=-1, keepdim=True).values
            exp_x = torch.exp(x - max_val)
            out = exp_x / exp_x.sum(dim=-1, keepdim=True)
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad_output):
            (out,) = ctx.saved_tensors
            s = (grad_output * out).sum(dim=-1, keepdim=True)
            grad_input = out * (grad_output - s)
            return grad_input

    torch.manual_seed(1)
    x = torch.randn(3, 5, requires_grad=True)
    w = torch.randn(3, 5)
    y = StableSoftmax.apply(x)
    (y * w).sum().backward()
    (expected,) = torch.autograd.grad((torch.softmax(x, -1) * w).sum(), x)
    return y, x.grad, torch.allclose(x.grad, expected), y.grad_fn.name()


@case
def case_my_multiply(torch):
    class MyMultiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            grad_a = grad_output * b
            grad_b = grad_output * a
            return grad_a, grad_b

    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    z = MyMultiply.apply(x, y)
    z.backward()
    return capture(lambda: print(f"{z} {x.grad} {y.grad}"))


@case
def case_scalar_and_vector(torch):
    x = torch.tensor(7.0, requires_grad=True)
    f = (x**2) + 3
    f.backward()
    v = torch.tensor([2.0, 3.0], requires_grad=True)
    fx = v**2
    z = fx.sum()
    z.backward()

    def show():
        print(f"f at x=7: {x.grad}")
        print(f"input: {v}")
        print(f"gradient: {v.grad}")
        print(f, fx, z)

    return capture(show)


@case
def case_dynamic_function(torch):
    def dynamic_function(x):
        if x.sum() < 0:
            return 2 * x + torch.exp(x)
        return torch.sin(x) + x

    def show():
        x1 = torch.tensor([1.0], requires_grad=True)
        dynamic_function(x1).backward()
        print(f"Case 1 (x=1.0): {x1.grad.item():.4f}")
        x1.grad.zero_()
        x2 = torch.tensor([-1.0], requires_grad=True)
        dynamic_function(x2).backward()
        print(f"Case 2 (x=-1.0): {x2.grad.item():.4f}", x1.grad)

    return capture(show)


@case
def case_training_skeleton(torch):
    nn = torch.nn

    class SimpleMLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(20, 32)
            self.fc2 = nn.Linear(32, 8)
            self.fc3 = nn.Linear(8, 1)
            self.dropout = nn.Dropout(0.2)

        def forward(self, x):
            x = torch.relu(self.fc1(x))
            x = self.dropout(x)
            x = torch.relu(self.fc2(x))
            return self.fc3(x)

    def train():
        torch.manual_seed(0)
        model = SimpleMLP()
        X, y = torch.randn(128, 20), torch.randn(128, 1)
        data = torch.utils.data
        loader = data.DataLoader(data.TensorDataset(X, y), batch_size=16, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loss_fn = nn.MSELoss()
        for epoch in range(3):
            total_loss = 0.0
            for batch_x, batch_y in loader:
                optimizer.zero_grad()
                loss = loss_fn(model(batch_x), batch_y)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                optimizer.step()
                total_loss += loss.item()
            print(f"Epoch {epoch}: avg loss = {total_loss / len(loader):.4f}")
        print(model)
        out = model(torch.randn(2, 20))
        print(out.shape)
        batch_x, batch_y = next(iter(loader))
        with torch.no_grad():
            pred = model(batch_x)
        print(pred.shape, batch_y.shape, pred.requires_grad)

    return capture(train)


@case
def case_gradient_accumulation(torch):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    accum_steps = 4
    optimizer.zero_grad()
    for i in range(accum_steps):
        part = slice(2 * i, 2 * i + 2)
        loss = torch.nn.functional.mse_loss(model(x[part]), y[part]) / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            accumulated = [p.grad.clone() for p in model.parameters()]
            optimizer.step()
            optimizer.zero_grad()
    whole = torch.autograd.grad(torch.nn.functional.mse_loss(model(x), y), list(model.parameters()))
    return accumulated, whole, [p.grad for p in model.parameters()]


@case
def case_frozen_layers(torch):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    for name, param in model.named_parameters():
        if name.startswith("0."):
            param.requires_grad = False
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
    before = [p.clone() for p in model.parameters()]
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        predictions = model(torch.randn(2, 3))
    changed = [bool((a != b).any()) for a, b in zip(before, model.parameters(), strict=True)]
    return changed, [p.grad is None for p in model.parameters()], predictions.requires_grad


@case
def case_in_place_in_a_loop(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    a = x * 2
    b = a * y
    a += y
    return raises(torch, lambda: b.sum().backward()), raises(torch, lambda: x.__iadd__(y))


@case
def case_anomaly_names_the_operation(torch):
    def run():
        x = torch.tensor([0.0], requires_grad=True)
        with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
            warnings.simplefilter("ignore")
            (torch.log(x) * 0).sum().backward()

    return raises(torch, run)


@case
def case_clone_and_detach(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    c, d = x.clone(), x.detach()
    (c * 3 + d).sum().backward()
    kept = [(x * 2).detach().cpu().numpy()]
    return x.grad, c.grad_fn.name(), d.requires_grad, kept


@case
def case_eval_is_not_no_grad(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).eval()
    out = model(torch.ones(1, 2)).requires_grad
    with torch.inference_mode():
        return out, model(torch.ones(1, 2)).requires_grad
