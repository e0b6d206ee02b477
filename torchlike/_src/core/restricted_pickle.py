"""An unpickler that executes nothing: of the pickle language it knows only what data needs, and of names only a list.

A pickle is a program for a small machine. This one can build containers, numbers and strings, and call the few
functions and classes that `Allowed` holds; every other instruction, name, call or state is an error. Its instructions
and messages are those of PyTorch's `weights_only` unpickler. Beyond that one it bounds what a program can cost: keys
are checked before they are hashed, and functions that make much of little check their arguments."""

import pickle
import struct
import warnings
from _codecs import encode
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

BLOCKED = ("sys", "os", "posix", "nt")
MISSING = {
    name: message
    for message, names in {
        "``torch.nested`` and ``torch._dynamo`` must be imported to load nested jagged tensors (NJTs)": (
            "torch.nested._internal.nested_tensor.NestedTensor",
            "torch.nested._internal.nested_tensor._rebuild_njt",
            "torch._dynamo.decorators._DimRange",
        ),
        "``torch.distributed.tensor`` must be imported to load DTensors": (
            "torch.distributed.device_mesh.DeviceMesh",
            "torch.distributed.tensor._dtensor_spec.DTensorSpec",
            "torch.distributed.tensor._dtensor_spec.TensorMeta",
            "torch.distributed.tensor.DTensor",
            "torch.distributed.tensor.placement_types.Partial",
            "torch.distributed.tensor.placement_types.Replicate",
            "torch.distributed.tensor.placement_types.Shard",
        ),
    }.items()
    for name in names
}
PIECE = 1 << 20
KEY_PARTS = 1_000
"""How many values a tuple that is a key may consist of: one that holds another twice, and so on, is exponential."""


class Damaged(pickle.UnpicklingError):
    """A pickle that makes no sense: no checkpoint, or one that is not whole."""


class Allowed:
    """What a pickle may name, call and fill.

    names: full name -> what it stands for. calls: id of that -> what runs when the pickle calls it. user: what the user
    declared safe, by full name: it may be named, called and filled. set_state: (object, state), for the objects that it
    knows; False if it does not know this one."""

    def __init__(
        self,
        names: dict[str, Any],
        calls: dict[int, Callable[..., Any]],
        user: dict[str, Any],
        set_state: Callable[..., bool],
    ) -> None:
        self.names = {**DATA_NAMES, **names}
        self.calls = {**DATA_CALLS, **calls}
        self.user = user
        self.set_state = set_state

    def is_user(self, obj: Any) -> bool:
        """Whether the user declared this object safe."""
        return any(obj is known for known in self.user.values())


class RestrictedUnpickler:
    """Reads one pickle from `file` (read and readline) and no byte beyond it.

    encoding: of strings from Python 2. Set `persistent_load`, which gets a tuple or an int."""

    persistent_load: Callable[[Any], Any]

    def __init__(self, file: Any, allowed: Allowed, *, encoding: str = "bytes") -> None:
        self._file = file
        self._readline = file.readline
        self._encoding = encoding
        self._allowed = allowed
        self._calling = False

    def load(self) -> Any:
        """The object. UnpicklingError for anything that is not data, EOFError for a pickle that is cut short."""
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        read, dispatch = self._file.read, _DISPATCH
        try:
            while True:
                code = read(1)
                if not code:
                    raise EOFError("Ran out of input: the pickle is cut short")
                if code == b".":
                    return self.stack.pop()
                operation = dispatch.get(code[0])
                if operation is None:
                    raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")
                operation(self)
        except (IndexError, KeyError, struct.error, UnicodeError) as e:
            if self._calling:
                raise
            why = f"memo value {e} is not there" if isinstance(e, KeyError) else str(e)
            raise Damaged(f"not a checkpoint, or a damaged one: its pickle makes no sense ({why})") from e

    def _read(self, count: int) -> bytes:
        content: bytes = self._file.read(min(count, PIECE))
        while PIECE <= len(content) < count:  # a length is not believed: no memory for what is not there
            more = self._file.read(min(count - len(content), len(content)))
            if not more:
                break
            content += more
        if len(content) < count:
            raise EOFError("Ran out of input: the pickle is cut short")
        return content

    def _pop_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # -- names and calls ----------------------------------------------------------------------------------------------

    def _global(self) -> None:
        module, name = read_global(self._readline)
        full = f"{module}.{name}"
        if module in BLOCKED:
            raise pickle.UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        allowed = self._allowed
        if full in allowed.names:
            self.stack.append(allowed.names[full])
        elif full in allowed.user:
            self.stack.append(allowed.user[full])
        elif full in MISSING:
            raise pickle.UnpicklingError(MISSING[full])
        else:
            if full.startswith("builtins."):
                full = full.removeprefix("builtins.")
            raise pickle.UnpicklingError(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Please use `torch.serialization.add_safe_globals([{full}])` or the "
                f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this global "
                "if you trust this class/function."
            )

    def _run(self, function: Callable[..., Any], arguments: Any) -> Any:
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError(f"the arguments of a call must be a tuple, not {type(arguments).__name__}")
        self._calling = True
        result = function(*arguments)
        self._calling = False
        return result

    def _reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        call = self._allowed.calls.get(id(function))
        if call is None:
            if not self._allowed.is_user(function):
                message = f"Trying to call reduce for unrecognized function {shown(function)}"
                if hasattr(function, "__self__"):
                    message += f" which belongs to {shown(function.__self__)}"
                raise pickle.UnpicklingError(message)
            call = function
        self.stack[-1] = self._run(call, arguments)

    def _new(self) -> None:
        arguments = self.stack.pop()
        cls = self.stack.pop()
        call = self._allowed.calls.get(id(cls)) if isinstance(cls, type) else None
        if call is not None:
            self.stack.append(self._run(call, arguments))
        elif self._allowed.is_user(cls):
            self.stack.append(self._run(cls.__new__, (cls, *arguments)))
        else:
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted "
                f"via `add_safe_globals` but got {shown(cls)}"
            )

    def _build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        kind = type(target)
        self._calling = True
        if kind is OrderedDict or kind is Counter:
            target.__dict__.update(state)
        elif self._allowed.is_user(kind):
            _fill(target, state)
        elif not self._allowed.set_state(target, state):
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted "
                f"via `add_safe_globals`, but got {kind}"
            )
        self._calling = False

    def _persistent(self) -> None:
        pid = self.stack.pop()
        if type(pid) is not tuple and type(pid) is not int:
            raise pickle.UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and pid[0] not in ("storage", b"storage"):
            raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self.stack.append(self._run(self.persistent_load, (pid,)))

    # -- containers ---------------------------------------------------------------------------------------------------

    def _append(self) -> None:
        item = self.stack.pop()
        target = self.stack[-1]
        if type(target) is not list:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.append(item)

    def _appends(self) -> None:
        items = self._pop_mark()
        target = self.stack[-1]
        if type(target) is not list:
            raise pickle.UnpicklingError(f"Can only extend lists, but got {type(target)}")
        target.extend(items)

    def _dict(self, code: str) -> Any:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise pickle.UnpicklingError(
                f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        return target

    def _set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._dict("SETITEM")[checked_key(key)] = value

    def _set_items(self) -> None:
        items = self._pop_mark()
        target = self._dict("SETITEMS")
        for k in range(0, len(items), 2):
            target[checked_key(items[k])] = items[k + 1]

    def _mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def _tuple(self) -> None:
        items = self._pop_mark()
        self.stack.append(tuple(items))

    def _tuple1(self) -> None:
        self.stack[-1] = (self.stack[-1],)

    def _tuple2(self) -> None:
        self.stack[-2:] = [(self.stack[-2], self.stack[-1])]

    def _tuple3(self) -> None:
        self.stack[-3:] = [(self.stack[-3], self.stack[-2], self.stack[-1])]

    # -- numbers and strings ------------------------------------------------------------------------------------------

    def _bin_int(self) -> None:
        self.stack.append(int.from_bytes(self._read(4), "little", signed=True))

    def _bin_int1(self) -> None:
        self.stack.append(self._read(1)[0])

    def _bin_int2(self) -> None:
        self.stack.append(int.from_bytes(self._read(2), "little"))

    def _long1(self) -> None:
        self.stack.append(int.from_bytes(self._read(self._read(1)[0]), "little", signed=True))

    def _bin_float(self) -> None:
        self.stack.append(struct.unpack(">d", self._read(8))[0])

    def _bin_unicode(self) -> None:
        count = int.from_bytes(self._read(4), "little")
        self.stack.append(str(self._read(count), "utf-8", "surrogatepass"))

    def _short_string(self) -> None:
        content: Any = self._read(self._read(1)[0])
        if self._encoding != "bytes":
            content = content.decode(self._encoding, "strict")
        self.stack.append(content)

    def _get(self) -> None:
        self.stack.append(self.memo[self._read(1)[0]])

    def _long_get(self) -> None:
        self.stack.append(self.memo[int.from_bytes(self._read(4), "little")])

    def _put(self) -> None:
        self.memo[self._read(1)[0]] = self.stack[-1]

    def _long_put(self) -> None:
        self.memo[int.from_bytes(self._read(4), "little")] = self.stack[-1]

    def _protocol(self) -> None:
        protocol = self._read(1)[0]
        if protocol != 2:
            warnings.warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was "
                "not the default pickle protocol used by `torch.load` (2). The weights_only "
                "Unpickler might not support all instructions implemented by this protocol, "
                "please file an issue for adding support if you encounter this.",
                stacklevel=2,
            )


RestrictedUnpickler.__init__.__qualname__ = "Unpickler.__init__"  # as PyTorch's TypeError names it


def _constant(make: Callable[[], Any]) -> Callable[[RestrictedUnpickler], None]:
    return lambda self: self.stack.append(make())


_U = RestrictedUnpickler
_DISPATCH: dict[int, Callable[[RestrictedUnpickler], None]] = {
    getattr(pickle, name)[0]: function
    for name, function in {
        "GLOBAL": _U._global, "REDUCE": _U._reduce, "NEWOBJ": _U._new, "BUILD": _U._build, "BINPERSID": _U._persistent,
        "APPEND": _U._append, "APPENDS": _U._appends, "SETITEM": _U._set_item, "SETITEMS": _U._set_items,
        "MARK": _U._mark, "TUPLE": _U._tuple, "TUPLE1": _U._tuple1, "TUPLE2": _U._tuple2, "TUPLE3": _U._tuple3,
        "NONE": _constant(lambda: None), "NEWTRUE": _constant(lambda: True), "NEWFALSE": _constant(lambda: False),
        "EMPTY_TUPLE": _constant(tuple), "EMPTY_LIST": _constant(list), "EMPTY_DICT": _constant(dict),
        "EMPTY_SET": _constant(set), "BININT": _U._bin_int, "BININT1": _U._bin_int1, "BININT2": _U._bin_int2,
        "LONG1": _U._long1, "BINFLOAT": _U._bin_float, "BINUNICODE": _U._bin_unicode,
        "SHORT_BINSTRING": _U._short_string, "BINGET": _U._get, "LONG_BINGET": _U._long_get, "BINPUT": _U._put,
        "LONG_BINPUT": _U._long_put, "PROTO": _U._protocol,
    }.items()
}  # fmt: skip


def read_global(readline: Callable[[], bytes]) -> tuple[str, str]:
    """The module and name that follow a GLOBAL instruction, under their names in Python 3."""
    lines = readline(), readline()
    if not all(line.endswith(b"\n") for line in lines):
        raise EOFError("Ran out of input: the pickle is cut short")
    module, name = (line[:-1].decode("utf-8") for line in lines)
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


_WIDTHS = {
    getattr(pickle, name)[0]: width
    for name, width in {"BININT": 4, "BININT1": 1, "BININT2": 2, "BINFLOAT": 8, "BINGET": 1, "LONG_BINGET": 4,
                        "BINPUT": 1, "LONG_BINPUT": 4, "PROTO": 1}.items()
}  # fmt: skip


def globals_of(file: Any) -> set[str]:
    """The full names in one pickle, which is read without building anything."""
    found: set[str] = set()
    while True:
        code = file.read(1)
        if not code:
            raise EOFError("Ran out of input: the pickle is cut short")
        if code == pickle.STOP:
            return found
        if code == pickle.GLOBAL:
            found.add(".".join(read_global(file.readline)))
        elif code == pickle.BINUNICODE:
            file.read(int.from_bytes(file.read(4), "little"))
        elif code in (pickle.SHORT_BINSTRING, pickle.LONG1):
            file.read(int.from_bytes(file.read(1), "little"))
        elif code[0] in _DISPATCH:
            file.read(_WIDTHS.get(code[0], 0))
        else:
            raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")


# -- what data may cost ------------------------------------------------------------------------------------------------


def checked_key(key: Any) -> Any:
    """The key, if hashing it is cheap. UnpicklingError otherwise."""
    if type(key) is tuple:
        pending, count = [key], 0
        while pending:
            part = pending.pop()
            count += len(part)
            if count > KEY_PARTS:
                raise pickle.UnpicklingError(f"a key of a dictionary has more than {KEY_PARTS} parts")
            pending += [p for p in part if isinstance(p, tuple)]
    return key


def shown(obj: Any) -> str:
    """str(obj) where that is short; containers can hold themselves many times over."""
    return str(obj) if isinstance(obj, (str, int, float, bytes, type(None))) or callable(obj) else str(type(obj))


def _fill(target: Any, state: Any) -> None:
    """What pickle's BUILD does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _bytes(text: Any, encoding: Any = None) -> bytes:
    """Bytes as protocol 2 spells them; no other codec, because some are not harmless."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("only latin1 text can become bytes")
    return text.encode("latin1")


def _bytearray(*arguments: Any) -> bytearray:
    """From bytes or latin1 text, not from a length."""
    if len(arguments) == 2:
        return bytearray(_bytes(*arguments))
    if arguments and (len(arguments) > 2 or not isinstance(arguments[0], (bytes, bytearray, list))):
        raise pickle.UnpicklingError("a bytearray is made of bytes")
    return bytearray(*arguments)


def _complex(*arguments: Any) -> complex:
    if len(arguments) > 2 or not all(isinstance(a, (int, float, complex)) for a in arguments):
        raise pickle.UnpicklingError("a complex number is made of numbers")
    return complex(*arguments)


def _collection(kind: type, pairs: bool) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        if len(arguments) > 1 or (arguments and not isinstance(arguments[0], (list, tuple, dict, set))):
            raise pickle.UnpicklingError(f"a {kind.__name__} is made of one collection")
        for item in arguments[0] if arguments else ():
            checked_key(item)
            if pairs and isinstance(item, (list, tuple)) and item:
                checked_key(item[0])
        return kind(*arguments)

    return make


DATA_NAMES: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": encode,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.complex": complex,
}
DATA_CALLS: dict[int, Callable[..., Any]] = {
    id(OrderedDict): _collection(OrderedDict, True),
    id(Counter): _collection(Counter, False),
    id(encode): _bytes,
    id(bytearray): _bytearray,
    id(set): _collection(set, False),
    id(complex): _complex,
}
