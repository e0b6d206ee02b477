"""``torch.device``: where a tensor is said to live, and the default for new tensors.

Devices are interned: equal devices are the same object, so comparing and hashing them costs nothing.
This file knows names only; which of them the machine has is for the caller to check.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, NoReturn

_TYPES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone"
).split()
_STRING = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")

_interned: dict[tuple[str, int | None], device] = {}


def _no_accelerator() -> str | None:
    return None


find_accelerator: Callable[[], str | None] = _no_accelerator
"""Names the type of the machine's accelerator (``'cuda'``), or None; only ``torch.device(0)`` asks."""


def set_accelerator_finder(find: Callable[[], str | None]) -> None:
    """Tell ``torch.device(index)`` how to learn which accelerator type a bare index means.

    Finding out is not this room's business: the engine knows.
    """
    global find_accelerator
    find_accelerator = find


class device:
    """A device: a type such as ``'cpu'`` or ``'cuda'`` and perhaps an index.

    ``device("cuda")``, ``device("cuda:1")``, ``device("cuda", 1)``, ``device(other)`` and ``device(1)`` (the
    machine's accelerator) all work. ``with device(...):`` makes it the default for new tensors.
    """

    __slots__ = ("_index", "_text", "_type")
    _index: int | None
    _text: str
    _type: str

    def __new__(cls, *args: Any, **kwargs: Any) -> device:
        if len(args) == 1 and not kwargs:
            first, index = args[0], None
        else:
            first, index = _bind(args, kwargs)
        if type(first) is device:
            return first
        if isinstance(first, str):
            return _parse(first) if index is None else _indexed(first, index)
        return _from_index(first)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise TypeError("type 'torch.device' is not an acceptable base type")

    @property
    def type(self) -> str:
        """``'cpu'``, ``'cuda'``, ``'meta'``, …"""
        return self._type

    @property
    def index(self) -> int | None:
        """Which of the devices of that type; None means the current one."""
        return self._index

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        index = "" if self._index is None else f", index={self._index}"
        return f"device(type='{self._type}'{index})"

    def __enter__(self) -> device:
        _stack().append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _stack().pop()

    def _no_order(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._type, self._index)

    def __copy__(self) -> device:
        return self

    def __deepcopy__(self, memo: Any) -> device:
        return self


device.__module__ = "torch"


def _restore(kind: str, index: int | None) -> device:
    return _intern(kind, index)


def _intern(kind: str, index: int | None) -> device:
    found = _interned.get((kind, index))
    if found is None:
        found = object.__new__(device)
        found._type = kind
        found._index = index
        found._text = kind if index is None else f"{kind}:{index}"
        # setdefault, so that two threads that miss together still end up with one object
        found = _interned.setdefault((kind, index), found)
    return found


def _parse(text: str) -> device:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, index = match.groups()
    if kind not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}")
    if index is not None and int(index) >= 2**31:
        raise RuntimeError(f"Could not parse device index '{index}' in device string '{text}'")
    return _intern(kind, None if index is None else int(index))


def _indexed(text: str, index: int) -> device:
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    parsed = _parse(text)
    if parsed.index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
    return _intern(parsed.type, index)


def _from_index(index: Any) -> device:
    if isinstance(index, (bytes, bytearray)):
        return _parse(bytes(index).decode())
    if isinstance(index, bool) or not isinstance(index, int):
        _reject((index,), {}, wrong=True)
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    kind = find_accelerator()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _intern(kind, index)


def _bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, int | None]:
    """The device (or type) and the index among a call's arguments."""
    if len(args) == 0 and set(kwargs) == {"device"}:
        return kwargs["device"], None
    names = ("type", "index")
    bound = dict(zip(names, args, strict=False))
    if len(args) > 2 or set(kwargs) - set(names) or set(kwargs) & set(bound) or "type" not in {**bound, **kwargs}:
        _reject(args, kwargs)
    bound.update(kwargs)
    kind, index = bound["type"], bound.get("index")
    if not isinstance(kind, str):
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_type_name(kind)}")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {_type_name(index)}")
    return kind, index


def _type_name(value: object) -> str:
    return "torch.device" if isinstance(value, device) else type(value).__name__


def _reject(args: tuple[Any, ...], kwargs: dict[str, Any], *, wrong: bool = False) -> NoReturn:
    given = [_type_name(value) for value in args] + [f"{k}={_type_name(v)}" for k, v in sorted(kwargs.items())]
    text = ", ".join(given)
    if kwargs and not args:
        text += ", "  # as PyTorch writes it
    why = ""
    if wrong:
        why = f"      didn't match because some of the arguments have invalid types: (!{text}!)\n"
    elif kwargs and not args:
        why = f"      didn't match because some of the keywords were incorrect: {', '.join(sorted(kwargs))}\n"
    raise TypeError(
        f"device() received an invalid combination of arguments - got ({text}), but expected one of:\n"
        f" * (torch.device device)\n{why} * (str type, int index = -1)\n"
    )


# --- the default device ---------------------------------------------------------------------------

CPU = _intern("cpu", None)
META = _intern("meta", None)


class _Defaults(threading.local):
    """What `with device(...)` and set_default_device set, both for this thread only, as in PyTorch."""

    def __init__(self) -> None:
        self.stack: list[device] = [CPU]


_defaults = _Defaults()


def _stack() -> list[device]:
    return _defaults.stack


def default_device() -> device:
    """The device of new tensors that name none: the innermost ``with device(...)``, or what was set, or the CPU."""
    return _defaults.stack[-1]


def set_default_device(d: device | str | int | None) -> None:
    """Set the device of new tensors outside any ``with device(...)``; None means the CPU again."""
    _defaults.stack[0] = CPU if d is None else device(d)


def get_default_device() -> device:
    """The device that new tensors are made on in this thread."""
    return default_device()
