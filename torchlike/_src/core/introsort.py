"""The order in which PyTorch's default sort leaves equal elements.

PyTorch's CPU kernel calls the C++ library's std::sort, which is not stable: introsort (Musser, 1997) as libstdc++ has
it, quicksort with the median of three down to pieces of 16 elements, then one insertion sort."""

from collections.abc import Sequence

PIECE = 16


def order(values: Sequence[int], descending: bool = False) -> list[int]:
    """The indices that sort `values` (numbers, no NaN), equal elements in std::sort's order. Some 0.5 us an element
    and doubling of their number."""
    keys = [-v for v in values] if descending else list(values)
    where = list(range(len(keys)))
    _split(keys, where, 0, len(keys), 2 * (len(keys).bit_length() - 1))
    for last in range(1, len(keys)):
        key, index = keys[last], where[last]
        if last < PIECE and key < keys[0]:
            at = 0
        else:
            at = last
            while at and key < keys[at - 1]:
                at -= 1
        keys[at + 1 : last + 1], where[at + 1 : last + 1] = keys[at:last], where[at:last]
        keys[at], where[at] = key, index
    return where


def _split(keys: list[int], where: list[int], first: int, last: int, depth: int) -> None:
    while last - first > PIECE:
        if depth == 0:  # heapsort there; three medians in a row that bad do not come up in practice
            found = sorted(range(first, last), key=keys.__getitem__)
            keys[first:last], where[first:last] = [keys[k] for k in found], [where[k] for k in found]
            return
        depth -= 1
        cut = _partition(keys, where, first, last)
        _split(keys, where, cut, last, depth)
        last = cut


def _partition(keys: list[int], where: list[int], first: int, last: int) -> int:
    """Move a median of three to the front and divide the rest by it; returns where the upper part begins."""
    middle = first + (last - first) // 2
    a, b, c = keys[first + 1], keys[middle], keys[last - 1]
    if a < b:
        pivot = middle if b < c else last - 1 if a < c else first + 1
    else:
        pivot = first + 1 if a < c else last - 1 if b < c else middle
    _swap(keys, where, first, pivot)
    key = keys[first]
    left, right = first + 1, last
    while True:
        while keys[left] < key:
            left += 1
        right -= 1
        while key < keys[right]:
            right -= 1
        if left >= right:
            return left
        _swap(keys, where, left, right)
        left += 1


def _swap(keys: list[int], where: list[int], i: int, j: int) -> None:
    keys[i], keys[j] = keys[j], keys[i]
    where[i], where[j] = where[j], where[i]
