"""`import torch` means torchlike: the import hook, its metadata, and the children of a process that has it."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(code, cwd, aliased=True, file=False, fails=False):
    """Run `code` in a process, under the launcher if `aliased`; return what it printed, as lines."""
    code = textwrap.dedent(code)
    if file:
        (cwd / "program.py").write_text(code)
    command = [sys.executable, *(["-m", "torchlike"] if aliased else []), *(["program.py"] if file else ["-c", code])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert bool(done.returncode) == fails, done.stderr
    return (done.stderr if fails else done.stdout).splitlines()


def test_one_module_under_two_names(tmp_path):
    out = run(
        """
        import sys
        import torch
        import torch.nn.functional as F
        from torch.utils.data import DataLoader
        from torch import nn, optim
        import importlib, importlib.util, pkgutil
        import torchlike, torchlike.nn.functional, torchlike.utils.data

        for name in list(sys.modules):
            if name == "torch" or name.startswith("torch."):
                assert sys.modules[name] is sys.modules["torchlike" + name[5:]], name
        assert torch is torchlike and nn is torchlike.nn and F is torchlike.nn.functional
        assert DataLoader is torchlike.utils.data.DataLoader
        assert importlib.import_module("torch.optim") is optim is sys.modules["torchlike.optim"]
        assert sys.modules["torch.nn"] is sys.modules["torchlike.nn"]
        assert torchlike.__spec__.name == "torchlike" and nn.__spec__.name == "torchlike.nn"
        assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.nn.functional")
        assert importlib.util.find_spec("torch.there_is_no_such_part") is None
        assert pkgutil.resolve_name("torch.nn:Linear") is nn.Linear
        assert "torch.nn" in {m.name for m in pkgutil.iter_modules(torch.__path__, "torch.")}
        assert importlib.reload(F) is F and sys.modules["torch.nn.functional"] is F
        assert torchlike._src is sys.modules["torchlike._src"]
        print("done")
        """,
        tmp_path,
    )
    assert out == ["done"]


def test_find_spec_imports_nothing(tmp_path):
    code = "import importlib.util, sys; print(importlib.util.find_spec('torch').name, 'torchlike' in sys.modules)"
    assert run(code, tmp_path) == ["torch False"]


def test_jax_is_imported_when_torch_is(tmp_path):
    code = "import sys; print('jax' in sys.modules); import torch; print('jax' in sys.modules)"
    assert run(code, tmp_path) == ["False", "True"]


def test_missing_and_private_submodules(tmp_path):
    out = run(
        """
        import torch
        for name in ("torch.there_is_no_such_part", "torch._src", "torch._src.alias"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name, "|", error)
        """,
        tmp_path,
    )
    missing = "torch.there_is_no_such_part"
    assert out == [
        f"{missing} | No module named '{missing}' (torchlike does not have this part of PyTorch yet)",
        "torch._src | No module named 'torch._src'",
        "torch._src | No module named 'torch._src'",
    ]


def test_distribution(tmp_path):
    out = run(
        """
        import importlib.metadata as m, torch
        print(m.version("torch"), m.version("Torch"), m.distribution("torch").metadata["Name"], torch.__version__)
        print(set(m.packages_distributions()["torch"]), m.files("torch"), m.requires("torch"))
        print([d.version for d in m.distributions() if d.metadata["Name"] == "torch"][0], len(m.entry_points()) > 0)
        print(m.version("pytest") != "2.13.0")
        """,
        tmp_path,
    )
    assert out == ["2.13.0 2.13.0 torch 2.13.0", "{'torch'} None None", "2.13.0 True", "True"]


def test_classes_introduce_themselves_as_pytorchs(tmp_path):
    code = """
        import pickle, {0} as torch
        from {0} import nn
        print(nn.Linear, torch.Tensor, nn.functional.relu.__module__)
        print(b"torch.nn.modules.linear" in pickle.dumps(nn.Linear), pickle.loads(pickle.dumps(nn.Linear)) is nn.Linear)
        """
    # What declarations publish (and Tensor) is PyTorch's by name always; classes of public modules say where they are.
    linear = "<class '{0}.nn.modules.linear.Linear'> <class 'torch.Tensor'> torch.nn.functional"
    assert run(code.format("torch"), tmp_path) == [linear.format("torch"), "True True"]
    assert run(code.format("torchlike"), tmp_path, aliased=False) == [linear.format("torchlike"), "False True"]


def test_install_and_uninstall(tmp_path):
    out = run(
        """
        import sys, types, importlib.util
        import torchlike
        plain = importlib.util.find_spec("torch") is None or "torchlike" not in importlib.util.find_spec("torch").origin
        torchlike.install()
        torchlike.install()
        before = len(sys.meta_path)
        import torch, multiprocessing.spawn, torch.utils.data
        assert torch is torchlike and torch.nn.Linear.__module__ == "torch.nn.modules.linear"
        assert "torchlike" in multiprocessing.spawn.get_preparation_data("x")
        torchlike.uninstall()
        torchlike.uninstall()
        assert len(sys.meta_path) == before - 1
        assert not [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
        assert torch.nn.Linear.__module__ == "torchlike.nn.modules.linear"
        assert "torchlike" not in multiprocessing.spawn.get_preparation_data("x")
        sys.modules["torch"] = types.ModuleType("torch")
        try:
            torchlike.install()
        except RuntimeError as error:
            print(error)
        print(plain)
        """,
        tmp_path,
        aliased=False,
    )
    assert out[0].startswith("torchlike.install() comes too late") and "python -m torchlike" in out[0]
    assert out[1] == "True"


def test_pytorch_is_not_imported(tmp_path):
    code = "import sys, torchlike, torchlike.nn; print([n for n in sys.modules if n.split('.')[0] == 'torch'])"
    assert run(code, tmp_path, aliased=False) == ["[]"]


def test_beside_pytorch(tmp_path, oracle):
    out = run(
        """
        import torch, torchlike
        print(torch is torchlike, torchlike.nn.Linear, torch.nn.Linear)
        """,
        tmp_path,
        aliased=False,
    )
    assert out == ["False <class 'torchlike.nn.modules.linear.Linear'> <class 'torch.nn.modules.linear.Linear'>"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("launcher", [True, False])
def test_children(tmp_path, method, launcher):
    out = run(
        f"""
        import multiprocessing, sys
        if not {launcher} and __name__ == "__main__":
            import torchlike
            torchlike.install()
        import torch

        def work(cls):
            return torch.__spec__.name, cls.__module__, cls is torch.nn.Linear, multiprocessing.get_start_method()

        if __name__ == "__main__":
            multiprocessing.set_start_method("{method}")
            with multiprocessing.Pool(1) as pool:
                print(*pool.map(work, [torch.nn.Linear]))
        """,
        tmp_path,
        aliased=launcher,
        file=True,
    )
    assert out == [f"('torchlike', 'torch.nn.modules.linear', True, '{method}')"]


def test_children_of_modules_and_grandchildren(tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import multiprocessing, sys
        context = multiprocessing.get_context("spawn")

        def inner(queue):
            import torch
            queue.put(torch.__version__)

        def outer(queue):
            assert "jax" not in sys.modules
            child = context.Process(target=inner, args=(queue,))
            child.start()
            child.join()

        if __name__ == "__main__":
            queue = context.Queue()
            child = context.Process(target=outer, args=(queue,))
            child.start()
            print(queue.get(timeout=100))
            child.join()
        """)
    )
    command = [sys.executable, "-m", "torchlike", "-m", "program"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "2.13.0\n"), done.stderr


def test_children_of_joblib(tmp_path):
    pytest.importorskip("joblib")
    out = run(
        """
        import joblib
        def f(x):
            import torch
            return torch.__version__
        if __name__ == "__main__":
            print(joblib.Parallel(n_jobs=2)(joblib.delayed(f)(i) for i in range(2)))
        """,
        tmp_path,
        file=True,
    )
    assert out == ["['2.13.0', '2.13.0']"]


def test_run_a_submodule_as_a_program(tmp_path):
    command = [sys.executable, "-m", "torchlike", "-m", "torch.nn.functional"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_found_only_through_the_folder_it_was_started_in(tmp_path):
    (tmp_path / "program.py").write_text("import torch; print(torch.__spec__.name)")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "torchlike", str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "torchlike\n"), done.stderr


def test_modules_bear_the_alias_as_name(tmp_path):
    out = run("import torch; print(torch.__name__, torch.nn.functional.__name__)", tmp_path, aliased=True)
    assert out == ["torch torch.nn.functional"]
