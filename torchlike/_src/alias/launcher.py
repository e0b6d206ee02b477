"""`python -m torchlike`: run a program exactly as `python` would, with the alias installed.

The program must not notice: `sys.argv`, `sys.path[0]`, `__main__`, exit codes, tracebacks and the messages
about a program that cannot be found are CPython's.
"""

import os
import pkgutil
import sys
import types
from collections.abc import Callable
from typing import Any

from torchlike._src.alias.finder import install
from torchlike._src.alias.names import REAL, TORCH_VERSION, is_alias, to_real

_USAGE = f"""\
usage: python -m torchlike SCRIPT [ARGS]      run a script, a directory or a zip file
       python -m torchlike -m MODULE [ARGS]   run a module
       python -m torchlike -c CODE [ARGS]     run a string
       python -m torchlike - [ARGS]           run standard input
       python -m torchlike --version | --help

Runs the program as python would, but `import torch` means torchlike: the API of PyTorch {TORCH_VERSION},
executed by JAX. Options of python itself come before -m: python -X dev -m torchlike SCRIPT.
"""

# The package was left empty by `launching()`, and the next import of it is to load it.
_postponed = False


def launching() -> bool:
    """Whether `python -m torchlike` is importing the package merely to find its `__main__`.

    The package then loads nothing, so that JAX is not imported before (or unless) the program asks for torch.
    """
    global _postponed
    # "-m" stands in sys.argv[0] only while the interpreter looks for the module to run.
    if sys.argv[:1] != ["-m"]:
        return False
    arguments = sys.orig_argv[1:]
    named = [following for option, following in zip(arguments, arguments[1:]) if option == "-m"][:1]
    named += [argument[2:] for argument in arguments if argument.startswith("-m") and argument != "-m"][:1]
    _postponed = bool(named) and named[0] in (REAL, f"{REAL}.__main__")
    return _postponed


def main() -> None:
    """Run the program that the command line names. Returns when the program ends normally."""
    global _postponed
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    if arguments[0] in ("-V", "--version"):
        print(_version())
        sys.exit(0)

    if _postponed:
        _postponed = False
        sys.modules.pop(REAL, None)
    install()
    # A new module, because this one's names are not the program's.
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={}, __spec__=None)
    sys.modules["__main__"] = module

    first = arguments[0]
    if first.startswith("-m"):
        _run_module(arguments)
    elif first.startswith("-c"):
        _run_string(arguments, module)
    elif first == "-":
        _run_stdin(arguments, module)
    elif first.startswith("-"):
        print(f"unknown option {first}\n{_USAGE}", end="", file=sys.stderr)
        sys.exit(2)
    else:
        _run_path(arguments, module)


def _version() -> str:
    import importlib.metadata

    versions = {}
    for name in (REAL, "jax"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "(not installed)"
    python = ".".join(map(str, sys.version_info[:3]))
    return f"torchlike {versions[REAL]} (PyTorch API {TORCH_VERSION}, jax {versions['jax']}, Python {python})"


def _run_module(arguments: list[str]) -> None:
    name, rest = _option_value(arguments, "-m")
    sys.argv = ["-m", *rest]
    import runpy

    # The function that CPython's own -m calls; run_module() would put `__main__` back when the program ends,
    # before atexit handlers and finalizers have run.
    # By its own name, which is the one that the module's loader answers to.
    _call(runpy._run_module_as_main, to_real(name) if is_alias(name) else name)  # type: ignore[attr-defined]


def _run_string(arguments: list[str], module: types.ModuleType) -> None:
    source, rest = _option_value(arguments, "-c")
    sys.argv = ["-c", *rest]
    _set_path0("")
    _set_builtin_loader(module)
    if sys.version_info >= (3, 14):
        import textwrap

        source = textwrap.dedent(source)
    if sys.version_info >= (3, 13):
        # From here on CPython shows the lines of a string in tracebacks.
        import linecache

        linecache.cache["<string>"] = (len(source), None, source.splitlines(keepends=True), "<string>")
    _call(_execute, source + "\n", "<string>", module)


def _run_stdin(arguments: list[str], module: types.ModuleType) -> None:
    sys.argv = arguments
    _set_path0("")
    _set_builtin_loader(module)
    if sys.stdin is not None and sys.stdin.isatty():
        import code

        code.interact(local=module.__dict__, banner=f"{_version()}\n`import torch` means torchlike here.", exitmsg="")
        return
    module.__dict__.update(__file__="<stdin>", __cached__=None)
    _call(_execute, sys.stdin.buffer.read(), "<stdin>", module)


def _run_path(arguments: list[str], module: types.ModuleType) -> None:
    sys.argv = arguments
    script = arguments[0]
    if pkgutil.get_importer(script) is not None:  # a directory or a zip file: run the `__main__` in it
        import runpy

        _set_path0(os.path.abspath(script), force=True)
        _call(runpy._run_module_as_main, "__main__", False)  # type: ignore[attr-defined]
        return
    path = os.path.abspath(script)
    try:
        with open(path, "rb") as file:
            code = pkgutil.read_code(file)  # None unless it is a .pyc
        source = b"" if code is not None else _read(path)
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    _set_path0(os.path.dirname(os.path.realpath(path)))
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    loader = SourceFileLoader if code is None else SourcelessFileLoader
    module.__dict__.update(__file__=path, __cached__=None, __loader__=loader("__main__", path))
    _call(_execute, source if code is None else code, path, module)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _option_value(arguments: list[str], option: str) -> tuple[str, list[str]]:
    """The value of `-mVALUE` or `-m VALUE`, and the program's arguments."""
    if len(arguments[0]) > 2:
        return arguments[0][2:], arguments[1:]
    if len(arguments) < 2:
        print(f"Argument expected for the {option} option\n{_USAGE}", end="", file=sys.stderr)
        sys.exit(2)
    return arguments[1], arguments[2:]


def _set_path0(folder: str, force: bool = False) -> None:
    # `python -m torchlike` has put the working folder there; with -P or -I nobody puts anything, except the
    # folder or zip file that is itself the program.
    if not sys.flags.safe_path:
        sys.path[0] = folder
    elif force:
        sys.path.insert(0, folder)


def _set_builtin_loader(module: types.ModuleType) -> None:
    from importlib.machinery import BuiltinImporter

    module.__loader__ = BuiltinImporter


def _execute(source: Any, filename: str, module: types.ModuleType) -> None:
    code = source if isinstance(source, types.CodeType) else compile(source, filename, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _call(function: Callable[..., None], *args: Any) -> None:
    """Call `function`; if it raises, have the interpreter report it without the launcher's frames.

    The exception propagates as ever, so that the interpreter itself decides on the exit status (a number, 1,
    or death by SIGINT) and on what follows; only the traceback that the excepthook gets is shortened.
    """
    try:
        function(*args)
    except SystemExit:
        raise
    except BaseException as error:
        _shorten_report(error)
        raise


def _shorten_report(error: BaseException) -> None:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, _: types.TracebackType | None) -> None:
        sys.excepthook = hook
        sys.last_traceback = traceback
        hook(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = excepthook
