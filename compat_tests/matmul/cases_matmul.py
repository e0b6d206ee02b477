"""Matrix products: values, gradients, names of graph nodes, dtypes and errors."""

from compat_tests import case, grads, raises, tensor

SHAPES = {
    "mm": "3,4 4,5", "vec_vec": "3 3", "vec_mat": "4 4,5", "mat_vec": "3,4 4", "fold": "2,3,4 4,5", "bmv": "2,3,4 4",
    "bmm": "2,3,4 2,4,5", "deep": "7,2,3,4 7,2,4,5", "mat_bmm": "3,4 7,4,5", "vec_bmm": "4 7,4,5",
    "broadcast": "2,1,3,4 7,4,5", "empty": "2,3,0 0,4",
}  # fmt: skip


def operands(torch, text, dtype="float32", need=True):
    shapes = [tuple(int(n) for n in part.split(",")) for part in text.split()]
    need = need and dtype not in ("int64", "bool")
    return [tensor(torch, s, dtype, seed, requires_grad=need) for seed, s in enumerate(shapes)]


def with_node(torch, function, *inputs):
    out = function(*inputs)
    return {"node": None if out.grad_fn is None else out.grad_fn.name(), **grads(torch, function, *inputs)}


@case()
@case.params("name", list(SHAPES))
@case.params("dtype", ["float32", "float64", "complex64"])
def case_matmul(torch, name, dtype):
    return with_node(torch, torch.matmul, *operands(torch, SHAPES[name], dtype))


@case()
@case.params("dtype", ["int64", "bfloat16", "float16"])
def case_matmul_other_dtypes(torch, dtype):
    a, b = operands(torch, "3,4 4,5", dtype, False)
    return [torch.mm(a, b), a @ b, torch.dot(a[0], a[1])]


@case()
@case.params("shapes", ["3,4 5,4 5", "2,3,4 5,4 5", "4 5,4 5", "3,4 5,4", "2,3,4 5,4", "4 5,4", "3,4 4", "3,4 5,4 3,5"])
def case_linear(torch, shapes):
    return with_node(torch, torch.nn.functional.linear, *operands(torch, shapes))


@case()
@case.params(
    "name,shapes",
    [
        ("addmm", "5 3,4 4,5"),
        ("addmv", "3 3,4 4"),
        ("addbmm", "5 2,3,4 2,4,5"),
        ("baddbmm", "5 2,3,4 2,4,5"),
        ("addr", "4 3 4"),
    ],  # fmt: skip
)
def case_add_products(torch, name, shapes):
    function = getattr(torch, name)
    return with_node(torch, lambda *a: function(*a, beta=0.5, alpha=2), *operands(torch, shapes))


@case()
@case.params(
    "name,shapes",
    [
        ("outer", "3 4"),
        ("inner", "2,3,4 5,4"),
        ("kron", "2,3 3,2"),
        ("bilinear", "3,4 3,5 6,4,5 6"),
        ("vdot", "4 4"),
        ("mv", "3,4 4"),
        ("bmm", "2,3,4 2,4,5"),
    ],  # fmt: skip
)
def case_products(torch, name, shapes):
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return with_node(torch, function, *operands(torch, shapes))


@case()
@case.params("dims", [1, 0, ([1], [0]), ([0, 1], [1, 0])])
def case_tensordot(torch, dims):
    shapes = "3,4 4,3"
    return grads(torch, lambda a, b: torch.tensordot(a, b, dims), *operands(torch, shapes))


@case()
@case.params(
    "equation,shapes",
    [
        ("ij,jk->ik", "3,4 4,5"),
        ("bhqd,bhkd->bhqk", "2,2,3,4 2,2,5,4"),
        ("...ij,...jk->...ik", "2,3,4 4,5"),
        ("ii->i", "3,3"),
        ("ii", "3,3"),
        ("i,j->ij", "3 4"),
        (" i j , j k -> i k ", "3,4 4,5"),
        ("ba,b", "3,4 3"),
        ("ij,jk,kl->il", "2,3 3,4 4,5"),
        ("b...d,b...d->b...", "2,3,4 2,3,4"),
        ("Ab,bC->CA", "3,4 4,2"),
        ("ij,ij->ij", "3,4 1,4"),
    ],  # fmt: skip
)
def case_einsum(torch, equation, shapes):
    return grads(torch, lambda *a: torch.einsum(equation, *a), *operands(torch, shapes))


@case()
def case_chains(torch):
    a, b, c = operands(torch, "3,4 4,5 5,6", need=False)
    return [torch.linalg.multi_dot([a, b, c]), torch.chain_matmul(a, b, c), torch.linalg.multi_dot([a[0], b, c[:, 0]])]


@case()
def case_addmm_in_place(torch):
    a, b, c = operands(torch, "3,5 3,4 4,5", need=False)
    return [a.clone().addmm_(b, c), a.clone().addmm_(b, c, beta=0), torch.mm(b, c, out=torch.empty(3, 5))]


ERRORS = [
    ("matmul", "4,10 20,5", None), ("matmul", "10 20,5", None), ("matmul", "4,10 5", None), ("matmul", "4 5", None),
    ("matmul", "2,3,4 3,5", None), ("matmul", "2,3,4 2,3,5", None), ("matmul", "2,3,4 3,4,5", None),
    ("matmul", "3,4 4,5", 1), ("matmul", "4 4", 1), ("matmul", "3,4 4", 1), ("matmul", "2,3,4 2,4,5", 1),
    ("mm", "4,10 20,5", None), ("mm", "4 20,5", None), ("mm", "4,5 5", None), ("mm", "4,5 5,2", 1),
    ("bmm", "2,3,4 2,5,5", None), ("bmm", "2,4 3,4,5", None), ("bmm", "2,4,4 4,5", None), ("mv", "3,4 5", None),
    ("mv", "3,4 4,1", None), ("dot", "3 4", None), ("dot", "3 3,1", None), ("addmm", "4 3,4 4,5", None),
    ("addmm", "5 3,4 3,5", None), ("addmm", "5 3,4 4,5", 0), ("addmv", "5 3,4 4", None), ("addr", "3 3 4", None),
    ("baddbmm", "4 2,3,4 2,4,5", None), ("baddbmm", "5 2,3,4 2,4,5", 2), ("outer", "3,1 4", None),
    ("inner", "3,4 5,3", None), ("linear", "3,4 5,3 5", None), ("linear", "3,4 5,3", None), ("linear", "4 5,3", None),
    ("linear", "2,3,4 5,3 5", None), ("linear", "3,4 5,4 4", None), ("linear", "3,4 5,4 5", 0),
    ("linear", "3,4 5,4", 0),
    ("linear", "3,4 5,4 5", 2), ("bilinear", "3,4 2,5 6,4,5", None), ("bilinear", "3,4 3,5 6,3,5", None),
    ("tensordot", "3,4 4,5", None),
]  # fmt: skip


@case()
def case_errors(torch):
    found = []
    for name, shapes, double in ERRORS:
        tensors = operands(torch, shapes, need=False)
        if double is not None:
            tensors[double] = tensors[double].double()
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        error = raises(torch, lambda f=function, a=tensors: f(*a))
        found.append([name, shapes, error[0], error[1].split("\n")[0]])
    return found


@case()
@case.params("equation", ["ij,jk->iz", "ij", "ijkl", "i1,jk", "ij,jk->ikk", "ij,jk,kl"])
def case_einsum_errors(torch, equation):
    a, b = operands(torch, "3,4 4,5", need=False)
    return raises(torch, lambda: torch.einsum(equation, a, b))
