"""Storages and view chains: mutable tensors over immutable values."""

from torchlike._src.storage.storage import Storage, View, read_view, write_view

__all__ = ["Storage", "View", "read_view", "write_view"]
