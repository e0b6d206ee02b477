"""Calls that return several views: one node of the graph for all of them, whose gradient takes what there is."""

from compat_tests import case

CUTS = {
    "split": lambda x: x.split(2, 1),
    "split, rest": lambda x: x.split(4, -1),
    "split sizes": lambda x: x.split([1, 0, 5], 1),
    "chunk": lambda x: x[:, 1:].chunk(3, 1),
    "unbind": lambda x: x.unbind(0),
    "unbind last": lambda x: x.view(2, 2, 6).unbind(-1),
    "iteration": lambda x: tuple(x.t()),
    "tensor_split": lambda x: x.tensor_split([1, 3], 1),
    "hsplit": lambda x: x.hsplit(2),
}


@case
@case.params("name", list(CUTS))
def case_several_views(torch, name):
    leaf = torch.arange(24.0).reshape(4, 6).requires_grad_()
    x = leaf * 2
    parts = CUTS[name](x)
    used = [p for k, p in enumerate(parts) if k != 1]  # the second gets no gradient
    total = sum((k + 1) * (p**3).sum() for k, p in enumerate(used))
    (first,) = torch.autograd.grad(total, leaf, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), leaf)
    return {
        "first": first,
        "second": second,
        "numbers": [p.output_nr for p in parts],
        "names": [p.grad_fn.name() for p in parts],
        "one node": parts[0].grad_fn is parts[-1].grad_fn,
        "base": all(p._base is x for p in parts if p._base is not None),
    }
