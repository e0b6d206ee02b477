"""einsum, tensordot and chains of products: what reads an equation or chooses an order."""

from typing import Any

from torchlike._src.core.errors import shape_text
from torchlike._src.tensor.composite import internal, public
from torchlike._src.tensor.namespace import torch

# -- contractions ---------------------------------------------------------------------------------------------


def _int_list(value: Any) -> list[int]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]


@public("torch")
def tensordot(a, b, dims=2, out=None):
    """Sums of products over dims: an int (the last of a with the first of b), or a pair of lists."""
    if isinstance(dims, (tuple, list)) or (hasattr(dims, "dim") and dims.numel() > 1):
        dims_a, dims_b = dims
        dims_a, dims_b = _int_list(dims_a), _int_list(dims_b)
    else:
        count = int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        dims_a, dims_b = list(range(-count, 0)), list(range(count))
    found = internal.tensordot(a, b, tuple(dims_a), tuple(dims_b))
    return found if out is None else out.copy_(found)


def _letters(text: str, where: int = 0) -> list[str]:
    """Subscripts of one operand; "..." is one of them."""
    found: list[str] = []
    at = 0
    while at < len(text):
        c = text[at]
        if c == " ":
            at += 1
        elif c == ".":
            if text[at : at + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for operand {where} that is not part of any ellipsis")
            if "..." in found:
                raise RuntimeError(f"einsum(): found '.' for operand {where} for which an ellipsis was already found")
            found.append("...")
            at += 3
        elif c.isascii() and c.isalpha():
            found.append(c)
            at += 1
        else:
            raise _BadSubscript(at)
    return found


class _BadSubscript(Exception):
    pass


def _parse(equation: str) -> tuple[list[list[str]], list[str] | None]:
    left, arrow, right = equation.partition("->")
    operands: list[list[str]] = []
    start = 0
    for k, part in enumerate(left.split(",")):
        try:
            operands.append(_letters(part, k))
        except _BadSubscript as bad:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + bad.args[0]} in the equation string, "
                "subscripts must be in [a-zA-Z]"
            ) from None
        start += len(part) + 1
    if not arrow:
        return operands, None
    try:
        return operands, _letters(right)
    except _BadSubscript as bad:
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {len(left) + 2 + bad.args[0]} in the equation string, "
            "subscripts must be in [a-zA-Z]"
        ) from None


def _from_sublists(args: tuple) -> tuple[str, list]:
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as an equation."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def text(labels: Any) -> str:
        out = ""
        for label in labels:
            if label is ...:
                out += "..."
                continue
            if not 0 <= label < 52:
                raise ValueError("einsum(): expected subscripts to be within [0, 52)")
            out += letters[label]
        return out

    parts = [text(args[k]) for k in range(1, len(args), 2)]
    equation = ",".join(parts)
    operands = [args[k] for k in range(0, len(args) - 1, 2)]
    if len(args) % 2:
        equation += "->" + text(args[-1])
        operands = [args[k] for k in range(0, len(args) - 2, 2)]
    return equation, operands


@public("torch")
def einsum(*args):
    """einsum(equation, *operands): sums of products by Einstein's convention, "..." broadcast. The sublist form
    einsum(a, [0, 1], b, [1, 2], [0, 2]) works too."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand "
            "and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    else:
        equation, operands = _from_sublists(args)
    subscripts, output = _parse(equation)
    _check_counts(subscripts, operands)
    dots = max([t.dim() - (len(s) - 1) for s, t in zip(subscripts, operands, strict=True) if "..." in s], default=0)
    spare = iter([chr(c) for c in range(0xC0, 0xC0 + 200) if chr(c).isalpha()])
    dot_letters = [next(spare) for _ in range(max(dots, 0))]
    full = [_fill(s, t, k, dot_letters) for k, (s, t) in enumerate(zip(subscripts, operands, strict=True))]
    _check_sizes(full, operands)
    if output is None:
        counts: dict[str, int] = {}
        for s in subscripts:
            for letter in s:
                if letter != "...":
                    counts[letter] = counts.get(letter, 0) + 1
        result = dot_letters + sorted(c for c, n in counts.items() if n == 1)
    else:
        result = _output(output, full, dot_letters)
    return internal.einsum(_ascii(full, result), operands)


def _ascii(full: list[list[str]], result: list[str]) -> str:
    """The equation with every subscript an ASCII letter, renamed in order of appearance: equal contractions under
    other letters are one program."""
    names: dict[str, str] = {}
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for letters in full:
        for letter in letters:
            if letter not in names:
                names[letter] = alphabet[len(names)]
    return ",".join("".join(names[c] for c in s) for s in full) + "->" + "".join(names[c] for c in result)


def _check_counts(subscripts: list, operands: list) -> None:
    if len(subscripts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(subscripts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")


def _fill(letters: list[str], t: Any, k: int, dot_letters: list[str]) -> list[str]:
    if "..." not in letters:
        if len(letters) != t.dim():
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(letters)}) does not match the number of "
                f"dimensions ({t.dim()}) for operand {k} and no ellipsis was given"
            )
        return letters
    missing = t.dim() - (len(letters) - 1)
    if missing < 0:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(letters) - 1}) is more than the number of "
            f"dimensions ({t.dim()}) for operand {k}"
        )
    at = letters.index("...")
    return letters[:at] + dot_letters[len(dot_letters) - missing :] + letters[at + 1 :]


def _check_sizes(full: list[list[str]], operands: list) -> None:
    seen: dict[str, int] = {}
    for k, (letters, t) in enumerate(zip(full, operands, strict=True)):
        here: dict[str, int] = {}
        for letter, size in zip(letters, t.shape, strict=True):
            if letter in here and here[letter] != size:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand {k} but the sizes don't match, {size} != "
                    f"{here[letter]}"
                )
            here[letter] = size
        for letter, size in here.items():
            known = seen.get(letter, 1)
            if size != known and size != 1 and known != 1:
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {size} for operand {k} which does not broadcast with "
                    f"previously seen size {known}"
                )
            seen[letter] = max(size, known) if size and known else 0


def _output(output: list[str], full: list[list[str]], dot_letters: list[str]) -> list[str]:
    known = {letter for s in full for letter in s}
    result: list[str] = []
    for letter in output:
        if letter == "...":
            result += dot_letters
            continue
        if letter not in known:
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
        if letter in result:
            raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
        result.append(letter)
    return result


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """The classic dynamic programme: where to split a chain of matrix products, by multiplications."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            choices = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(choices)
    return split


def _product(matrices: list, split: list[list[int]], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = split[i][j]
    return torch.mm(_product(matrices, split, i, k), _product(matrices, split, k + 1, j))


@public("torch.linalg")
def multi_dot(tensors, *, out=None):
    """The product of two or more matrices in the cheapest order; the first and last may be vectors."""
    tensors = list(tensors)
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for k, t in enumerate(tensors):
        if 0 < k < n - 1 and t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {t.dim()}D")
    for k in (0, n - 1):
        if tensors[k].dim() not in (1, 2):
            which = "the first" if k == 0 else "the last"
            raise RuntimeError(f"multi_dot(): {which} tensor must be 1D or 2D but got {tensors[k].dim()}D")
    row, column = tensors[0].dim() == 1, tensors[-1].dim() == 1
    matrices = list(tensors)
    if row:
        matrices[0] = matrices[0].unsqueeze(0)
    if column:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    for k in range(n - 1):
        if matrices[k].shape[1] != matrices[k + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {k} and {k + 1} with shapes {shape_text(tensors[k].shape)} and "
                f"{shape_text(tensors[k + 1].shape)} cannot be multiplied"
            )
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    found = _product(matrices, _chain_order(sizes), 0, n - 1)
    if row:
        found = found.squeeze(0)
    if column:
        found = found.squeeze(-1)
    return found if out is None else out.copy_(found)


@public("torch")
def chain_matmul(*matrices, out=None):
    """The product of matrices in the cheapest order (deprecated: torch.linalg.multi_dot)."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    for m in matrices:
        if m.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {m.dim()}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0].clone()
    return multi_dot(matrices, out=out)
