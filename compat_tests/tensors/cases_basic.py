"""The first things anybody does with tensors; also a sample of how cases are written."""

from compat_tests import capture, case, data, grads, raises, tensor, warns


@case
def case_construct(torch):
    nested = torch.tensor([[1, 2], [3, 4]])
    return [nested, torch.tensor(1.5), torch.tensor([True, False]), torch.zeros(2, 3), torch.ones(2), nested.shape]


@case
@case.params("dtype", ["float32", "float64", "bfloat16", "int32", "complex64"])
def case_arithmetic(torch, dtype):
    a, b = tensor(torch, (3, 4), dtype, 1), tensor(torch, (4,), dtype, 2)
    return {"add": a + b, "subtract": a - b, "multiply": a * b, "scaled": 2 * a}


@case
@case.params("a, b", [("int32", "float32"), ("float16", "float64"), ("bool", "int64"), ("uint8", "int8")])
def case_promotion(torch, a, b):
    x, y = tensor(torch, (5,), a, 1), tensor(torch, (5,), b, 2)
    return (x + y).dtype, x + y, torch.result_type(x, y)


@case(rtol=1e-5, atol=1e-6)
def case_matmul_gradient(torch):
    a = tensor(torch, (3, 4), seed=1, requires_grad=True)
    b = tensor(torch, (4, 2), seed=2, requires_grad=True)
    return grads(torch, lambda a, b: (a @ b).tanh(), a, b)


@case
def case_reductions(torch):
    x = torch.tensor(data((4, 5), seed=3))
    return {
        "sum": x.sum(),
        "mean": x.mean(dim=1),
        "max": x.max(dim=0),
        "argmin": x.argmin(),
        "any": (x > 1).any(dim=1, keepdim=True),
        "item": x.sum().item(),
    }


@case
def case_in_place_through_a_view(torch):
    x = torch.zeros(3, 3)
    row = x[1]
    row.add_(1)
    x[:, 0] = 5
    return x, row, row.tolist()


@case
def case_backward_accumulates(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 2).sum().backward()
    return x.grad, x, x.is_leaf, (x * x).grad_fn.name()


@case
def case_printing(torch):
    return [
        capture(lambda: print(torch.tensor([1.0, 2.5]), torch.zeros(2, 2, dtype=torch.int64))),
        repr(torch.tensor([1.0], requires_grad=True)),
        str(torch.float32),
    ]


@case
def case_errors(torch):
    return [
        raises(torch, lambda: torch.zeros(2, 3) + torch.zeros(4)),
        raises(torch, lambda: torch.zeros(2, 3) @ torch.zeros(2, 3)),
        raises(torch, lambda: torch.zeros(2).backward()),
        raises(torch, lambda: torch.zeros(2).item()),
        raises(torch, lambda: bool(torch.zeros(2))),
    ]


@case
def case_warning_of_tensor_from_tensor(torch):
    return warns(torch, lambda: torch.tensor(torch.ones(2)))
