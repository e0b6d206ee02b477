"""A tour of automatic differentiation: what PyTorch's autograd promises, shown one promise at a time.

python autograd_tour.py                 # under PyTorch
python -m torchlike autograd_tour.py    # the same file; it prints the same text
"""

import warnings

import torch


def section(title):
    print(f"\n== {title} ==")


def graph():
    section("the graph")
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = torch.tensor([4.0, 5.0, 6.0])
    y = (w * x).sum()
    print("y =", y)
    print("w is a leaf:", w.is_leaf, " y is a leaf:", y.is_leaf)
    print("x has a grad_fn:", x.grad_fn is not None)

    def walk(node, depth=0):
        if node is not None:
            print("  " * depth + node.name())
            for child, _ in node.next_functions:
                walk(child, depth + 1)

    walk(y.grad_fn)
    y.backward()
    print("dy/dw =", w.grad)
    print("dy/dx =", x.grad)


def accumulation():
    section("gradients accumulate until they are cleared")
    w = torch.ones(2, requires_grad=True)
    for _ in range(3):
        (w * torch.tensor([1.0, 10.0])).sum().backward()
        print(w.grad)
    w.grad = None
    (w**3).sum().backward()
    print("after clearing:", w.grad)
    (first,) = torch.autograd.grad((w**2).sum(), w)
    print("torch.autograd.grad leaves .grad alone:", first, w.grad)


def retained_graph():
    section("a graph is used once unless it is retained")
    w = torch.tensor(2.0, requires_grad=True)
    y = (w * w) * 3
    y.backward(retain_graph=True)
    y.backward()
    print("two backward passes:", w.grad)
    try:
        y.backward()
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(".")[0])
    (first,) = torch.autograd.grad(w**3, w, create_graph=True)
    (second,) = torch.autograd.grad(first, w)
    print("first and second derivative of w**3 at 2:", first.item(), second.item())


def hooks():
    section("hooks and intermediate gradients")
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda grad: print("gradient arriving at y:", grad))
    handle = x.register_hook(lambda grad: grad * 100)
    (y**2).sum().backward()
    print("y.grad =", y.grad)
    print("x.grad (changed by the hook) =", x.grad)
    handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    print("x.grad (hook removed) =", x.grad)

    layer = torch.nn.Linear(2, 1)
    layer.register_forward_hook(lambda module, inputs, output: print("forward hook:", tuple(output.shape)))
    layer(torch.ones(5, 2))


class ClippedExp(torch.autograd.Function):
    """exp whose gradient never exceeds a limit."""

    @staticmethod
    def forward(ctx, x, limit):
        result = x.exp()
        ctx.save_for_backward(result)
        ctx.limit = limit
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result.clamp(max=ctx.limit), None


def custom_function():
    section("custom functions")
    x = torch.tensor([0.0, 1.0, 5.0], requires_grad=True)
    y = ClippedExp.apply(x, 10.0)
    print(y)
    y.sum().backward()
    print("clipped gradient:", x.grad)

    inputs = torch.randn(4, dtype=torch.float64, requires_grad=True)
    print("gradcheck:", torch.autograd.gradcheck(lambda v: ClippedExp.apply(v, 1e9), (inputs,)))


def in_place_rules():
    section("in-place operations")
    w = torch.ones(3, requires_grad=True)
    try:
        w.add_(1)
    except RuntimeError as error:
        print("RuntimeError:", error)
    with torch.no_grad():
        w.add_(1)
    print("inside no_grad it is allowed:", w)

    y = w * 2
    y.mul_(5)
    y[0] = 0
    y.sum().backward()
    print("gradient through mul_ and an assignment:", w.grad)

    z = w.exp()
    z.add_(1)  # exp's gradient needs exp's result, which is gone now
    try:
        z.sum().backward()
    except RuntimeError as error:
        print("RuntimeError:", str(error).split(":")[0])

    base = torch.zeros(2, 3)
    row = base[1]
    before = base._version
    row += 7
    print("writing through a view:", base.tolist(), "version", before, "->", base._version)


def grad_modes():
    section("switching gradients off")
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        print("no_grad:", (w * 2).requires_grad, torch.is_grad_enabled())
    print("outside:", (w * 2).requires_grad, torch.is_grad_enabled())
    shared = w.detach()
    print("detach:", shared.requires_grad, "same memory:", shared.data_ptr() == w.data_ptr())
    with torch.inference_mode():
        print("inference_mode:", (w * 2).is_inference())

    @torch.no_grad()
    def update(parameter):
        parameter -= 0.5 * torch.ones_like(parameter)

    update(w)
    print("updated by hand:", w)


def anomaly_mode():
    section("anomaly mode")
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly():
                root = torch.sqrt(x) * 0  # the square root has no finite slope at 0
                root.sum().backward()
        except RuntimeError as error:
            print("RuntimeError:", error)
    text = "\n".join(str(warning.message) for warning in caught)
    print("the forward call is named:", "torch.sqrt(x) * 0" in text)


def main():
    torch.manual_seed(0)
    graph()
    accumulation()
    retained_graph()
    hooks()
    custom_function()
    in_place_rules()
    grad_modes()
    anomaly_mode()


if __name__ == "__main__":
    main()
