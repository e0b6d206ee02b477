"""torch.torch_version: a version that compares as one."""

import re
from typing import Any

from torchlike._src.alias import TORCH_VERSION as internal_version

__all__ = ["TorchVersion"]


def _parts(version: Any) -> tuple:
    """(release numbers, final or not) of "2.13.0a1+cpu", of a tuple of numbers, or of what packaging parsed."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    text = str(version).partition("+")[0]
    found = re.match(r"\d+(\.\d+)*", text)
    if found is None:
        raise ValueError(f"Invalid version: {version!r}")
    numbers = [int(n) for n in found.group().split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    rest = text[found.end() :]
    return numbers, not re.match(r"\.?(a|b|rc|dev|alpha|beta|pre)", rest), rest


class TorchVersion(str):
    """A str; compared with a version (text, tuple or packaging's Version) it compares as a version."""

    def _compared(self, other: Any, method: str) -> bool:
        try:
            return getattr(_parts(str(self)), method)(_parts(other))
        except ValueError:
            return getattr(super(), method)(other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, "__gt__")

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "__lt__")

    def __eq__(self, other: Any) -> bool:
        return self._compared(other, "__eq__")

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, "__ge__")

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "__le__")

    def __ne__(self, other: Any) -> bool:
        return not self._compared(other, "__eq__")

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
