"""`python -m torchlike PROGRAM` against `python PROGRAM`: exit status, output and tracebacks are the same."""

import os
import pathlib
import py_compile
import re
import signal
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*args, cwd, stdin=None, launcher=True, python=(), env=None):
    command = [sys.executable, *python, *(["-m", "torchlike"] if launcher else []), *map(str, args)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        command, cwd=cwd, input=stdin, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    addresses = re.compile("0x[0-9a-f]{6,}")
    return done.returncode, addresses.sub("0x", done.stdout), addresses.sub("0x", done.stderr)


def assert_same(*args, cwd, **kwargs):
    """Run natively and under the launcher, demand the same, and return it."""
    native = run(*args, cwd=cwd, launcher=False, **kwargs)
    assert run(*args, cwd=cwd, **kwargs) == native
    return native


INSPECT = """\
import os, sys
print(sys.argv, sys.path[0])
print({name: value for name, value in sorted(globals().items()) if name not in ("__builtins__", "__loader__")})
print(__loader__ if isinstance(__loader__, type) else type(__loader__), type(__builtins__))
print(sys.modules["__main__"].__dict__ is globals(), "jax" in sys.modules)
"""

PROGRAMS = {
    "inspect": INSPECT,
    "docstring": '"""Words."""\nprint(__doc__, __name__ == "__main__")',
    "exit_int": "import sys; sys.exit(3)",
    "exit_text": "import sys; sys.exit('no luck')",
    "exit_none": "import sys; sys.exit(None)",
    "exit_object": "raise SystemExit([1, 2])",
    "exit_os": "import os; os._exit(7)",
    "error": "def f():\n    return 1 / 0\n\nf()",
    "error_chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
    "error_in_import": "import json\njson.loads('{')",
    "error_group": "raise ExceptionGroup('several', [ValueError(1), TypeError('x')])",
    "error_import": "import no_such_module_anywhere",
    "syntax_error": "x = 1\ny = = 2\n",
    "keyboard_interrupt": "raise KeyboardInterrupt",
    "sigint": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(20)",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print(a[0], a[1], a[2].tb_frame.f_code.co_name)\n1/0",
    "last": "import atexit, sys, traceback\n"
    "atexit.register(lambda: print(traceback.format_tb(sys.last_traceback)))\n1/0",
    "atexit": "import atexit, sys\natexit.register(lambda: print('bye', __name__))\nsys.exit(4)",
    "atexit_after_error": "import atexit\natexit.register(print, 'bye')\n1/0",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()\n1/0",
    "warning": "import warnings\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)",
    "pickle": "import pickle\nclass A:\n    def __eq__(self, o): return type(o) is A\n"
    "data = pickle.dumps(A())\nprint(data, pickle.loads(data) == A())",
    "dataclass": "from __future__ import annotations\nimport dataclasses, typing\n@dataclasses.dataclass\nclass A:\n"
    "    a: int = 1\nprint(A(), typing.get_type_hints(A))",
    "future": "def f(x: undefined): pass",
    "encoding": "# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))",
    "input": "print(input())",
    "source": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getfile(f))",
    "pool_fork": "import multiprocessing as m\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    print(m.get_context('fork').Pool(2).map(f, [1, 2]))",
    "pool_spawn": "import multiprocessing as m\nprint(__name__)\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_script(tmp_path, name):
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAMS[name], encoding="latin-1")
    assert_same("sub/program.py", "a", "-b", "--help", cwd=tmp_path, stdin="typed\n")


def test_signal_death(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAMS["keyboard_interrupt"])
    code, _, error = run("program.py", cwd=tmp_path)
    assert code == -signal.SIGINT
    assert error.startswith("Traceback (most recent call last):\n  File ")
    assert "torchlike" not in error.replace(str(tmp_path), "")


@pytest.mark.parametrize("name", ["inspect", "exit_int", "error", "syntax_error", "keyboard_interrupt", "pickle"])
@pytest.mark.parametrize("how", ["string", "attached", "stdin", "module"])
def test_other_ways(tmp_path, name, how):
    program = PROGRAMS[name]
    if how == "module":
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "__init__.py").write_text("")
        (tmp_path / "package" / "program.py").write_text(program)
        assert_same("-m", "package.program", "a", "-b", cwd=tmp_path)
    elif how == "stdin":
        assert_same("-", "a", "-b", cwd=tmp_path, stdin=program)
    elif how == "string":
        assert_same("-c", program, "a", "-b", cwd=tmp_path)
    else:
        assert_same("-c" + program, "a", cwd=tmp_path)


@pytest.mark.parametrize("name", ["inspect", "error", "exit_text"])
def test_folder_and_zip(tmp_path, name):
    program = PROGRAMS[name] + "\nimport beside"
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(program)
    (tmp_path / "app" / "beside.py").write_text("print('beside', __name__)")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for file in (tmp_path / "app").glob("*.py"):
            archive.write(file, file.name)
    assert_same("app", "x", cwd=tmp_path)
    assert_same("app.zip", "x", cwd=tmp_path)


def test_not_found(tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, error = assert_same("nosuch.py", cwd=tmp_path)
    assert code == 2 and "can't open file" in error
    assert assert_same("empty", cwd=tmp_path)[0] == 1
    assert assert_same("-m", "nosuch", cwd=tmp_path)[0] == 1
    assert assert_same("-m", "empty", cwd=tmp_path)[0] == 1


def test_symlink_pyc_and_safe_path(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "program.py").write_text(INSPECT)
    (tmp_path / "link.py").symlink_to("real/program.py")
    assert_same("link.py", cwd=tmp_path)
    compiled = py_compile.compile(str(tmp_path / "link.py"), cfile=str(tmp_path / "compiled.pyc"))
    assert_same(pathlib.Path(compiled).name, cwd=tmp_path)
    assert_same("link.py", cwd=tmp_path, python=["-P"])
    assert_same("-c", INSPECT, cwd=tmp_path, python=["-P"])


def test_sibling_modules_win_over_the_working_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "helper_module.py").write_text("raise AssertionError('the wrong one')")
    (tmp_path / "sub" / "helper_module.py").write_text("print('the right one')")
    (tmp_path / "sub" / "program.py").write_text("import helper_module")
    assert assert_same("sub/program.py", cwd=tmp_path)[:2] == (0, "the right one\n")


def test_usage_and_version(tmp_path):
    code, out, _ = run("--help", cwd=tmp_path)
    assert code == 0 and out.startswith("usage: python -m torchlike SCRIPT")
    code, out, error = run(cwd=tmp_path)
    assert (code, out) == (2, "") and error.startswith("usage:")
    code, out, _ = run("--version", cwd=tmp_path)
    assert code == 0 and "PyTorch API 2.13.0" in out
    for args in (["-x"], ["-c"], ["-m"]):
        code, out, error = run(*args, cwd=tmp_path)
        assert (code, out) == (2, "") and "usage:" in error
