"""Settings of torch.save and torch.load: attributes of `load` and `save`, for the whole process."""

import contextlib
import mmap as _mmap
from typing import Any


class load:
    """mmap: map files unless told otherwise. endianness: of files that do not say (None: little). mmap_flags:
    MAP_PRIVATE or MAP_SHARED. calculate_storage_offsets: accepted; here the directory is always read."""

    mmap: bool = False
    endianness: Any = None
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    calculate_storage_offsets: bool = False


class save:
    """compute_crc32: whether records get a CRC-32. use_pinned_memory_for_d2h: accepted, without effect.
    storage_alignment: in bytes."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64


class patch(contextlib.ContextDecorator):
    """Other settings for a while: `patch("save.compute_crc32", False)`, `patch({"load.mmap": True})`."""

    def __init__(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> None:
        if isinstance(arg1, str):
            kwargs = {arg1: arg2}
        elif arg1 is not None:
            kwargs = dict(arg1)
        self.changes: dict[str, Any] = kwargs
        self.before: list[dict[str, Any]] = []

    @staticmethod
    def _find(name: str) -> tuple[type, str]:
        group, _, field = name.partition(".")
        cls = {"load": load, "save": save}.get(group)
        if cls is None or not hasattr(cls, field):
            raise AttributeError(f"{__name__}.{name} does not exist")
        return cls, field

    def __enter__(self) -> None:
        before = {name: getattr(*self._find(name)) for name in self.changes}
        for name, value in self.changes.items():
            setattr(*self._find(name), value)
        self.before.append(before)

    def __exit__(self, *unused: object) -> None:
        for name, value in self.before.pop().items():
            setattr(*self._find(name), value)
