"""Files go both ways between PyTorch and torchlike (with --oracle), and untrusted pickles execute nothing."""

import io
import pickle
import zipfile
from typing import Any

import pytest

import torchlike
from compat_tests.serialization.cases_files import described, example


@pytest.mark.parametrize("settings", [{}, {"weights_only": False}, {"mmap": True}])
@pytest.mark.parametrize("to_pytorch", [True, False])
def test_exchange(oracle: Any, tmp_path: Any, to_pytorch: bool, settings: dict) -> None:
    source, target = (torchlike, oracle) if to_pytorch else (oracle, torchlike)
    source.save(example(source), tmp_path / "file.pt")
    loaded = target.load(tmp_path / "file.pt", **settings)
    assert str(described(loaded)) == str(described(example(target)))
    loaded["a"][2] = 99
    assert loaded["view"][0, 0].item() == 99
    assert loaded["parameter"] is loaded["again"]


def archive(program: bytes) -> io.BytesIO:
    """A file whose pickle is the given program."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("archive/data.pkl", program)
        z.writestr("archive/version", "3\n")
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",  # an import and a call
        b"\x80\x02(X\x04\x00\x00\x00truecos\nsystem\no.",  # OBJ
        b"\x80\x02(X\x04\x00\x00\x00trueios\nsystem\n.",  # INST
        b"\x80\x02cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"\x80\x02ctorch\nTensor\nN}X\x04\x00\x00\x00evilK\x01s\x86b.",  # state set on a class
        b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81.",
        b"\x80\x02ccollections\nOrderedDict\n)R(K\x01K\x02e.",  # APPENDS to what is no list
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02X\x01\x00\x00\x00a(tR.",  # a call of a string
        b"\x80\x02X\x01\x00\x00\x00aQ.",  # an unknown persistent id
        b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
    ],
)
def test_nothing_is_executed(program: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torchlike.load(archive(program))


@pytest.mark.parametrize("to_pytorch", [True, False])
def test_exchange_older_format(oracle: Any, tmp_path: Any, to_pytorch: bool) -> None:
    source, target = (torchlike, oracle) if to_pytorch else (oracle, torchlike)
    saved, expected = example(source), example(target)
    del saved["types"][4], expected["types"][4]  # PyTorch does not read uint16 back from this format
    source.save(saved, tmp_path / "file.pt", _use_new_zipfile_serialization=False)
    for only in (True, False):
        loaded = target.load(tmp_path / "file.pt", weights_only=only)
        assert str(described(loaded)) == str(described(expected))
        loaded["a"][2] = 99
        assert loaded["view"][0, 0].item() == 99
        assert loaded["parameter"] is loaded["again"]


def test_bytes_are_pytorchs(oracle: Any) -> None:
    """The same pickle, and the same zip apart from the number that names the file's contents."""
    files = []
    for torch in (torchlike, oracle):
        x = torch.arange(6.0)
        file = io.BytesIO()
        torch.save({"x": x, "y": [x[2:], torch.zeros(0), torch.nn.Parameter(torch.ones(2, 2))], "n": 1}, file)
        files.append(file.getvalue())
    ids = [file[file.index(b"serialization_idFB") :][:150] for file in files]
    assert len(files[0]) == len(files[1]) and len(ids[0]) == len(ids[1])
    assert files[0][: files[0].index(b"serialization_idFB")] == files[1][: files[1].index(b"serialization_idFB")]


def test_generator_exchange(oracle: Any, tmp_path: Any) -> None:
    for source, target in ((torchlike, oracle), (oracle, torchlike)):
        g = source.Generator().manual_seed(7)
        source.rand(3, generator=g)
        source.save(g, tmp_path / "g.pt")
        back = target.load(tmp_path / "g.pt", weights_only=False)
        assert target.rand(4, generator=back).tolist() == source.rand(4, generator=g).tolist()
        assert back.initial_seed() == 7


def test_other_pickle_modules(tmp_path: Any) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    x = torchlike.arange(4.0)
    for older in (False, True):
        path = tmp_path / "file.pt"
        torchlike.save(
            {"x": x, "v": x[1:], "f": lambda n: n + 1, "p": torchlike.nn.Parameter(x)}, path, cloudpickle,
            _use_new_zipfile_serialization=not older,
        )  # fmt: skip
        back = torchlike.load(path, pickle_module=Module, weights_only=False)
        back["x"][1] = 9
        assert back["v"].tolist() == [9, 2, 3] and back["f"](1) == 2 and back["p"].requires_grad


class Module:
    """A pickle module as users write them."""

    Unpickler = pickle.Unpickler
    load = staticmethod(pickle.load)


def test_safetensors_need_the_alias(tmp_path: Any) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(NotImplementedError, match="without the alias"):
        torchlike.load(tmp_path / "x.safetensors")
    with pytest.raises(RuntimeError, match="dict map_location is not supported"):
        torchlike.load(tmp_path / "x.safetensors", map_location={})
