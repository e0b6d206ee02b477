"""``torch.layout``, ``torch.memory_format`` and ``torch.qscheme``: named singletons."""

from __future__ import annotations

from typing import Any


class _Named:
    """A value with a name, made only in this file, pickled and copied as itself."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> _Named:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def __copy__(self) -> _Named:
        return self

    def __deepcopy__(self, memo: Any) -> _Named:
        return self


class layout(_Named):
    """How a tensor's elements are laid out: ``torch.strided`` or a sparse layout."""

    __slots__ = ()


class memory_format(_Named):
    """The order of a dense tensor's dimensions in memory: ``torch.contiguous_format`` and the like."""

    __slots__ = ()


class qscheme(_Named):
    """How a quantised tensor's values map to numbers. Names only."""

    __slots__ = ()


layout.__module__ = memory_format.__module__ = qscheme.__module__ = "torch"

_by_name: dict[str, _Named] = {}


def by_name(name: str) -> _Named:
    """The layout, memory format or qscheme called ``name``. Unpickling calls it."""
    return _by_name[name]


def _make(cls: type, name: str) -> Any:
    self: _Named = object.__new__(cls)
    self.name = name
    _by_name[name] = self
    return self


strided: layout = _make(layout, "strided")
sparse_coo: layout = _make(layout, "sparse_coo")
sparse_csr: layout = _make(layout, "sparse_csr")
sparse_csc: layout = _make(layout, "sparse_csc")
sparse_bsr: layout = _make(layout, "sparse_bsr")
sparse_bsc: layout = _make(layout, "sparse_bsc")
_mkldnn: layout = _make(layout, "_mkldnn")
jagged: layout = _make(layout, "jagged")

contiguous_format: memory_format = _make(memory_format, "contiguous_format")
channels_last: memory_format = _make(memory_format, "channels_last")
channels_last_3d: memory_format = _make(memory_format, "channels_last_3d")
preserve_format: memory_format = _make(memory_format, "preserve_format")
legacy_contiguous_format: memory_format = contiguous_format

per_tensor_affine: qscheme = _make(qscheme, "per_tensor_affine")
per_channel_affine: qscheme = _make(qscheme, "per_channel_affine")
per_tensor_symmetric: qscheme = _make(qscheme, "per_tensor_symmetric")
per_channel_symmetric: qscheme = _make(qscheme, "per_channel_symmetric")
per_channel_affine_float_qparams: qscheme = _make(qscheme, "per_channel_affine_float_qparams")
