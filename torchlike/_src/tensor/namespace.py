"""The public namespaces while they are put together: `torch.add` here is the function that users get."""

from typing import Any


class Namespace:
    """A dict of public names with attribute access; filled when `tensor.assemble` runs."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name
        self.__dict__["_names"] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_names"][name]
        except KeyError:
            raise AttributeError(f"module '{self._name}' has no attribute '{name}'") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._names[name] = value


torch = Namespace("torch")
F = Namespace("torch.nn.functional")
special = Namespace("torch.special")
linalg = Namespace("torch.linalg")
fft = Namespace("torch.fft")

SPACES = {"torch": torch, "torch.nn.functional": F, "torch.special": special, "torch.linalg": linalg, "torch.fft": fft}


def names(space: str) -> dict[str, Any]:
    """The names of one namespace."""
    if space not in SPACES:
        SPACES[space] = Namespace(space)
    return SPACES[space]._names
