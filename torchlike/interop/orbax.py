"""State dicts as Orbax checkpoints, which JAX programs read and write.

save_orbax("run/step_100", {"net": net.state_dict(), "optimizer": optimizer.state_dict()})
state = load_orbax("run/step_100")
"""

import base64
import os
from collections import Counter, OrderedDict
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.metadata.value import ArrayMetadata, ScalarMetadata

from torchlike._src.core import dtype as dt
from torchlike._src.core.size import Size
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.nn.parameter import Parameter, is_lazy

__all__ = ["load_orbax", "save_orbax"]

KEY = "torchlike"
"""Where the checkpoint's own metadata holds what is no array: containers, their keys, numbers and texts."""
_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "Size": Size}
_MAPPINGS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}


def save_orbax(path: str | os.PathLike, state: Any, *, overwrite: bool = False) -> None:
    """Write tensors in dicts, lists and tuples, with numbers and texts among them, as an Orbax checkpoint.

    path: the checkpoint's folder. It appears only when it is complete. overwrite: whether it may replace another.
    state: such as `module.state_dict()`, or a dict of several state dicts.

    Orbax, and so any JAX program, sees a flat dict of arrays, named by their keys with dots in between: "net.0.weight".
    The contents are copied before anything is written, and all is written when this returns. A tensor that occurs more
    than once, also as `detach()` of it, is written once; other views are written as tensors of their own.

    TypeError: something else among the leaves, or a tensor without data. ValueError: the path exists."""
    writer = _Writer()
    structure = writer.encode(state, "")
    where = os.path.abspath(os.fspath(path))
    if os.path.exists(where) and not overwrite:
        raise ValueError(f"save_orbax(): {where} exists; pass overwrite=True to replace it")
    arrays = writer.arrays or {KEY: np.zeros(1, np.uint8)}  # Orbax refuses checkpoints of nothing
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(where, arrays, force=overwrite, custom_metadata={KEY: structure})


def load_orbax(path: str | os.PathLike, *, device: Any = None) -> Any:
    """Read what `save_orbax` wrote: the same containers, keys, numbers and dtypes, in new tensors on `device`.

    A checkpoint of another program (of Flax parameters, say) gives its own tree, of dicts and lists, with a tensor for
    each array; an array that lies on several devices is put together, and PRNG keys are their bits. The tensors' memory
    is their own: no JAX array of the program shares it.

    FileNotFoundError: there is no checkpoint."""
    where = os.path.abspath(os.fspath(path))
    if not os.path.isdir(where):
        raise FileNotFoundError(f"load_orbax(): there is no checkpoint at {where}")
    with ocp.PyTreeCheckpointer() as checkpointer:
        metadata = checkpointer.metadata(where)
        tree = metadata.item_metadata.tree
        as_numpy = jax.tree.map(lambda x: ocp.RestoreArgs(restore_type=np.ndarray if _is_array(x) else None), tree)
        arrays = checkpointer.restore(where, args=ocp.args.PyTreeRestore(restore_args=as_numpy)) if tree else {}
    structure = (metadata.custom_metadata or {}).get(KEY)
    if structure is None:
        return jax.tree.map(lambda x: _tensor(x, device), arrays)
    return _Reader(arrays, device).decode(structure)


def _is_array(metadata: Any) -> bool:
    return isinstance(metadata, ArrayMetadata) and not isinstance(metadata, ScalarMetadata)


def _tensor(array: Any, device: Any) -> Any:
    """An array as a tensor; numbers and texts stay what they are."""
    if not isinstance(array, (np.ndarray, np.generic)):
        if isinstance(array, (bool, int, float, str)) or array is None:
            return array
        raise TypeError(f"load_orbax(): no tensor can hold a {type(array).__name__}")
    array = np.asarray(array)
    return from_array(array, None, device)


class _Writer:
    """Takes a state apart: into arrays by name, and what JSON can hold."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.names: dict[tuple, str] = {}
        self.objects: dict[int, int] = {}
        self.kept: list[Any] = []

    def encode(self, x: Any, path: str) -> Any:
        kind = type(x)
        if x is None or kind in (bool, str):
            return x
        if kind is int:
            return {"int": str(x)}  # of any size
        if kind is float:
            return {"float": x.hex()}
        if kind is complex:
            return {"complex": [x.real.hex(), x.imag.hex()]}
        if kind in (bytes, bytearray):
            return {kind.__name__: base64.b64encode(x).decode()}
        if isinstance(x, TensorBase):
            return self._tensor(x, path)
        if isinstance(x, dt.dtype):
            return {"dtype": x.name}
        if kind.__name__ in _SEQUENCES and kind is _SEQUENCES[kind.__name__]:
            return {kind.__name__: [self.encode(v, _joined(path, k)) for k, v in enumerate(x)]}
        if kind.__name__ in _MAPPINGS and kind is _MAPPINGS[kind.__name__]:
            entries = [[self.encode(k, path), self.encode(v, _joined(path, k))] for k, v in x.items()]
            metadata = getattr(x, "_metadata", None)  # of state dicts
            return {kind.__name__: entries} | ({} if metadata is None else {"_metadata": self.encode(metadata, path)})
        raise TypeError(
            f"save_orbax(): {path or 'the state'} is a {kind.__name__}; only tensors, numbers, texts and None, in "
            "dicts, lists and tuples, can be saved"
        )

    def _tensor(self, t: Any, path: str) -> dict:
        if is_lazy(t) or t._aval.device.type == "meta":
            raise TypeError(f"save_orbax(): {path or 'the state'} is a tensor without data")
        number = self.objects.setdefault(id(t), len(self.objects))
        self.kept.append(t)
        out = {"tensor": None, "object": number, "parameter": isinstance(t, Parameter), "requires_grad": t._rg}
        if not t._aval.numel:  # Orbax has no empty arrays
            return out | {"empty": [list(t._aval.shape), t._aval.dtype.name]}
        seen = (id(t._s), t.storage_offset(), tuple(t._aval.shape), tuple(t.stride()), t._aval.dtype)
        name = self.names.get(seen)
        if name is None:
            name = self.names[seen] = self._unused(path or "value")
            self.arrays[name] = np.array(t._host(), copy=True, order="C")
        return out | {"tensor": name}

    def _unused(self, path: str) -> str:
        name, count = path, 1
        while name in self.arrays:
            count += 1
            name = f"{path}~{count}"
        return name


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


class _Reader:
    """Puts a state together again."""

    def __init__(self, arrays: dict, device: Any) -> None:
        self.arrays = arrays
        self.device = device
        self.memory: dict[str, Tensor] = {}
        self.objects: dict[int, Tensor] = {}

    def decode(self, x: Any) -> Any:
        if not isinstance(x, dict):
            return x
        kind, value = next(iter(x.items()))
        if kind == "int":
            return int(value)
        if kind == "float":
            return float.fromhex(value)
        if kind == "complex":
            return complex(*map(float.fromhex, value))
        if kind in ("bytes", "bytearray"):
            content = base64.b64decode(value)
            return content if kind == "bytes" else bytearray(content)
        if kind == "dtype":
            return dt.by_name(value)
        if kind == "tensor":
            return self._tensor(x)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind]([self.decode(v) for v in value])
        made = _MAPPINGS[kind]()
        for k, v in value:
            made[self.decode(k)] = self.decode(v)
        if "_metadata" in x:
            made._metadata = self.decode(x["_metadata"])
        return made

    def _tensor(self, x: dict) -> Tensor:
        found = self.objects.get(x["object"])
        if found is None:
            if x["tensor"] is None:
                shape, dtype = x["empty"]
                t = torch.empty(shape, dtype=dt.by_name(dtype), device=self.device)
            elif x["tensor"] in self.memory:
                t = self.memory[x["tensor"]].detach()
            else:
                t = self.memory[x["tensor"]] = _tensor(self.arrays[x["tensor"]], self.device)
            if x["parameter"]:
                found = Parameter(t, requires_grad=x["requires_grad"])
            else:
                found = t.detach().requires_grad_(x["requires_grad"])
            self.objects[x["object"]] = found
        return found
