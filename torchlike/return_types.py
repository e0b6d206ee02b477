"""torch.return_types: the named tuples that functions with several results return."""

from typing import Any

from torchlike._src.tensor.publish import return_type

_FIELDS = {
    ("aminmax",): ("min", "max"),
    ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"): (
        "values",
        "indices",
    ),
    ("frexp",): ("mantissa", "exponent"),
    ("geqrf",): ("a", "tau"),
    ("histogram", "histogramdd"): ("hist", "bin_edges"),
    ("linalg_cholesky_ex",): ("L", "info"),
    ("linalg_eig", "linalg_eigh"): ("eigenvalues", "eigenvectors"),
    ("linalg_inv_ex",): ("inverse", "info"),
    ("linalg_ldl_factor",): ("LD", "pivots"),
    ("linalg_ldl_factor_ex",): ("LD", "pivots", "info"),
    ("linalg_lstsq",): ("solution", "residuals", "rank", "singular_values"),
    ("linalg_lu", "lu_unpack"): ("P", "L", "U"),
    ("linalg_lu_factor",): ("LU", "pivots"),
    ("linalg_lu_factor_ex",): ("LU", "pivots", "info"),
    ("linalg_qr", "qr"): ("Q", "R"),
    ("linalg_slogdet", "slogdet"): ("sign", "logabsdet"),
    ("linalg_solve_ex",): ("result", "info"),
    ("linalg_svd",): ("U", "S", "Vh"),
    ("svd",): ("U", "S", "V"),
    ("triangular_solve",): ("solution", "cloned_coefficient"),
}

all_return_types: list[Any] = []
for _names, _fields in _FIELDS.items():
    for _name in _names:
        # PyTorch has a second class for results that were given as out=; here it is the same.
        _type = globals()[_name] = globals()[_name + "_out"] = return_type(_name, _fields).type  # type: ignore[attr-defined]
        all_return_types.append(_type)

__all__ = ["all_return_types"]
