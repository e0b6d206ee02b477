"""Views of a tensor without history, when a write gives it one: they have it from then on."""

from compat_tests import case, tensor

WRITES = {
    "add_": lambda out, x: out.add_(x),
    "copy_": lambda out, x: out.copy_(x),
    "iadd": lambda out, x: out.__iadd__(x),
    "row": lambda out, x: out.__setitem__(1, x[1]),
    "element": lambda out, x: out.__setitem__((0, 0), x[1, 0]),
    "part": lambda out, x: out.__setitem__((slice(None), slice(None, 2)), x[:, 1:]),
    "view_mul_": lambda out, x: out[0].mul_(x[0]),
    "index_add_": lambda out, x: out.index_add_(0, out.new_zeros(1).long(), x[:1]),
}


@case
@case.params("name", list(WRITES))
def case_write(torch, name):
    x = tensor(torch, (2, 3), "float32", seed=1, requires_grad=True)
    out = torch.full((2, 3), 2.0)
    row, flat, apart = out[0], out.view(-1), out.detach()[0]
    WRITES[name](out, x)
    result = [row, flat, apart, row.requires_grad, flat.requires_grad, apart.requires_grad, row.is_leaf]
    (row * flat[:3]).sum().backward()
    return [*result, x.grad]
