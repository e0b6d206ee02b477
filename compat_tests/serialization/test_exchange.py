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


def test_older_formats_are_named() -> None:
    with pytest.raises(NotImplementedError, match=r"before PyTorch 1\.6"):
        torchlike.load(io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C, 2)))
    with pytest.raises(NotImplementedError, match="byte order big"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as z:
            z.writestr("archive/data.pkl", b"\x80\x02N.")
            z.writestr("archive/byteorder", "big")
        torchlike.load(io.BytesIO(file.getvalue()))
