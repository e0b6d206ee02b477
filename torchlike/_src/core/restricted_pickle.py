"""An unpickler that executes nothing: of the pickle language it knows only what data needs, and of names only a list.

A pickle is a program for a small machine. This one can build containers, numbers and strings, and call the few
functions and classes that `names` holds; every other instruction, name, call or state is an error."""

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

UNSUPPORTED_GLOBAL = (
    "Unsupported global: GLOBAL {0} was not an allowed global by default. Please use "
    "`torch.serialization.add_safe_globals([{0}])` or the `torch.serialization.safe_globals([{0}])` context manager to "
    "allowlist this global if you trust this class/function."
)
BLOCKED = ("sys", "os", "posix", "nt", "subprocess", "builtins.eval", "builtins.exec")

_NAMES = (
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 "
    "TUPLE3 EMPTY_LIST EMPTY_DICT EMPTY_SET FROZENSET BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE BINPERSID GLOBAL "
    "STACK_GLOBAL"
)
_PLAIN = [getattr(pickle, name)[0] for name in _NAMES.split()]


class RestrictedUnpickler(pickle._Unpickler):  # the one written in Python
    """names: full name -> what it stands for; state: (object, state) sets what BUILD may, or raises UnpicklingError."""

    if TYPE_CHECKING:  # what the stubs leave out
        stack: list[Any]

        def pop_mark(self) -> list[Any]: ...

    dispatch = {code: pickle._Unpickler.dispatch[code] for code in _PLAIN}

    def __init__(
        self,
        file: Any,
        names: dict[str, Any],
        load_persistent: Callable[[Any], Any],
        set_state: Callable[[Any, Any], None],
        **kwargs: Any,
    ) -> None:
        super().__init__(file, **kwargs)
        self._names = names
        self._callables = {id(v) for v in names.values() if callable(v)}
        self._set_state = set_state
        self._load_persistent = load_persistent

    def persistent_load(self, pid: Any) -> Any:
        """What a persistent id stands for."""
        return self._load_persistent(pid)

    def load(self) -> Any:
        """The object; UnpicklingError for anything that is not data."""
        try:
            return super().load()
        except KeyError as e:
            key = e.args[0] if e.args else None
            if isinstance(key, int) and key not in self.dispatch:
                raise pickle.UnpicklingError(f"Unsupported operand {key}") from None
            raise

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
        if module in ("__builtin__", "builtins"):
            module = "builtins"
        full = f"{module}.{name}"
        if module.split(".")[0] in BLOCKED or full in BLOCKED:
            raise pickle.UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        if full not in self._names:
            raise pickle.UnpicklingError(UNSUPPORTED_GLOBAL.format(full))
        return self._names[full]

    def _call(self) -> None:
        stack = self.stack
        arguments = stack.pop()
        function = stack[-1]
        if id(function) not in self._callables:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {function}")
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("the arguments of a call must be a tuple")
        stack[-1] = function(*arguments)

    def _new(self) -> None:
        stack = self.stack
        arguments = stack.pop()
        cls = stack.pop()
        if id(cls) not in self._callables or not isinstance(cls, type):
            raise pickle.UnpicklingError(f"Trying to create new object for unrecognized class {cls}")
        stack.append(cls.__new__(cls, *arguments))

    def _build(self) -> None:
        state = self.stack.pop()
        self._set_state(self.stack[-1], state)

    def _target(self, *kinds: type) -> Any:
        target = self.stack[-1]
        if type(target) not in kinds:
            raise pickle.UnpicklingError(
                f"Can only fill {' or '.join(k.__name__ for k in kinds)}, but got {type(target)}"
            )
        return target

    def _append(self) -> None:
        item = self.stack.pop()
        self._target(list).append(item)

    def _appends(self) -> None:
        items = self.pop_mark()
        self._target(list).extend(items)

    def _set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._target(dict, OrderedDict, Counter)[key] = value

    def _set_items(self) -> None:
        items = self.pop_mark()
        target = self._target(dict, OrderedDict, Counter)
        for k in range(0, len(items), 2):
            target[items[k]] = items[k + 1]

    def _add_items(self) -> None:
        items = self.pop_mark()
        self._target(set).update(items)

    _own: dict[int, Any] = {
        pickle.REDUCE[0]: _call,
        pickle.NEWOBJ[0]: _new,
        pickle.BUILD[0]: _build,
        pickle.APPEND[0]: _append,
        pickle.APPENDS[0]: _appends,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
        pickle.ADDITEMS[0]: _add_items,
    }
    dispatch.update(_own)
