"""The harness itself: what it compares, and that cases leave no global state behind."""

import collections
import json
import math
import random
import warnings

import numpy as np
import pytest

from compat_tests import capture, data, encoding, harness, raises, record, references, state, tensor, warns


@pytest.fixture
def module(request):
    """torchlike, and PyTorch with --oracle."""
    if request.param == "oracle":
        return request.getfixturevalue("oracle")
    import torchlike

    return torchlike


def pytest_generate_tests(metafunc):
    """Without --oracle there is no test on PyTorch, rather than a skipped one."""
    if "module" in metafunc.fixturenames:
        names = ["torchlike", "oracle"] if metafunc.config.getoption("--oracle") else ["torchlike"]
        metafunc.parametrize("module", names, indirect=True)


def differences(torch, expected, actual, rtol=None, atol=None):
    sides = [json.loads(json.dumps(encoding.encode(v, torch), allow_nan=False)) for v in (expected, actual)]
    return encoding.differences(*sides, rtol, atol)


def leak(torch):
    """Change every global setting there is."""
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.autograd.set_detect_anomaly(True)
    torch.set_printoptions(precision=2, sci_mode=True, threshold=3)
    torch.set_float32_matmul_precision("medium")
    torch.set_warn_always(True)
    torch.set_deterministic_debug_mode("warn")
    torch.set_default_device("meta")
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    warnings.simplefilter("ignore", ResourceWarning)


def test_cases_leave_nothing_behind(module):
    made = harness.Case(leak, area=None, rtol=None, atol=None, modes=("default",), xfail=None)
    sample = module.tensor([0.123456, 1e-7])
    before, filters, printed = state.snapshot(module), list(warnings.filters), repr(sample)
    assert len(before) >= 10, "the module lacks settings that this test is about"
    harness.run_case(made, module)
    after = state.snapshot(module)
    assert {name for name in before if not state.equal(before[name], after[name])} == set()
    assert warnings.filters == filters
    assert repr(sample) == printed and module.ones(1).dtype == module.float32 and str(module.ones(1).device) == "cpu"


def test_a_case_that_raises_leaves_nothing_behind(module):
    def leak_and_raise(torch):
        torch.set_default_dtype(torch.float64)
        raise KeyError("x")

    made = harness.Case(leak_and_raise, area=None, rtol=None, atol=None, modes=("default",), xfail=None)
    with pytest.raises(KeyError):
        harness.run_case(made, module)
    assert module.get_default_dtype() == module.float32


def test_equal_results(module):
    torch = module
    point = collections.namedtuple("point", "x y")
    for value in [
        None,
        True,
        3,
        2.5,
        math.nan,
        -math.inf,
        1 + 2j,
        "text\n",
        b"\x00\xff",
        [1, (2, 3)],
        {"a": 1, 2: [3]},
        collections.OrderedDict(b=1),
        {3, 1},
        point(1, 2),
        slice(1, None),
        np.arange(3),
        np.float32(0.1),
        torch.Size([2, 3]),
        torch.float32,
        torch.device("cpu"),
        torch.tensor([1.0, math.nan, math.inf, -0.0]),
        torch.zeros(0, 3),
        torch.tensor(data((7, 11))),
        torch.tensor([True]),
        tensor(torch, (3,), "bfloat16"),
        tensor(torch, (3,), "complex64"),
        tensor(torch, (60,), "complex64"),
        tensor(torch, (60,), "bfloat16"),
    ]:
        assert differences(torch, value, value) == [], value


def test_different_results(module):
    torch = module
    one = torch.tensor([1.0, 2.0])
    for expected, actual in [
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        ((2,), torch.Size([2])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, collections.OrderedDict(a=1)),
        ("1", 1),
        (1.0, 1.001),
        (math.nan, 1.0),
        (one, [1.0, 2.0]),
        (one, one.numpy()),
        (one, one.double()),
        (one, one[None]),
        (one, one.clone().requires_grad_()),
        (one, torch.tensor([1.0, 2.0001])),
        (one, torch.tensor([1.0, math.nan])),
        (one, torch.tensor([1.0, math.inf])),
        (torch.tensor([math.inf]), torch.tensor([-math.inf])),
        (torch.tensor(data((7, 11), seed=0)), torch.tensor(data((7, 11), seed=1))),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.float32, torch.float64),
    ]:
        assert differences(torch, expected, actual), (expected, actual)
    assert differences(torch, one, torch.tensor([1.0, 2.01]), rtol=0.1) == []
    found = differences(torch, {"x": [one]}, {"x": [torch.tensor([1.0, 3.0])]})
    assert found[0].startswith("result['x'][0]: 1 of 2 elements differ; flat element 1: expected")


def test_incomparable_results(module):
    for value in (object(), lambda: 0, np.array([object()])):
        with pytest.raises(TypeError, match="cannot be compared"):
            encoding.encode(value, module)
    with pytest.raises(TypeError, match="too large"):
        encoding.encode(np.zeros(10**6), module)


def test_helpers(module):
    assert raises(module, lambda: [][1]) == ["IndexError", "list index out of range"]
    with pytest.raises(AssertionError, match="nothing was raised"):
        raises(module, lambda: None)
    assert warns(module, lambda: warnings.warn("w") or 5) == [5, [["UserWarning", "w"]]]
    assert capture(lambda: print("a", 1)) == "a 1\n"


def test_data_is_frozen():
    assert data(3, seed=1).tolist() == [1.6243454217910767, -0.6117563843727112, -0.5281717777252197]
    assert data((2, 2), "int64", 1).tolist() == [[-5, 1], [2, -2]]
    assert data(4, "bool", 1).tolist() == [True, False, True, True]
    assert data(2, "complex64").dtype == np.complex64 and data(2, "bfloat16").dtype == np.float32


def test_parameters():
    @harness.case.params("b", [1, 2])
    @harness.case(rtol=1e-3)
    @harness.case.params("a, c", [("x", 0), ("y", 1)])
    def case_sample(torch, a, b, c):
        return [a, b, c]

    names = {one.name: one(None) for one in case_sample.expand()}
    assert names["case_sample[x-0-2]"] == ["x", 2, 0] and len(names) == 4
    with pytest.raises(ValueError, match="no such modes"):
        harness.case(modes=("eager",))(lambda torch: None)


def test_references_are_complete_and_of_one_release():
    for file in references.FOLDER.rglob("*.json"):
        content = json.loads(file.read_text())
        cases = harness.ROOT / file.relative_to(references.FOLDER).with_suffix(".py")
        assert content["torch"] == references.VERSION and cases.exists(), file
        assert file.stat().st_size < 2_000_000, f"{file} is too large to live in the repository"


def test_recording(tmp_path, monkeypatch, oracle, capsys):
    folder = tmp_path / "compat_tests"
    (folder / "area").mkdir(parents=True)
    cases = folder / "area" / "cases_sample.py"
    for module in (harness, record, references):
        monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(references, "FOLDER", folder / "reference")
    source = "from compat_tests import case\n@case\ndef case_a(torch): return {}\n@case\ndef case_b(torch): return {}\n"
    cases.write_text(source.format(1, 2))
    assert record.main([]) == 0 and references.load(cases) == {"case_a": 1, "case_b": 2}
    cases.write_text(source.format(10, 20))
    assert record.main(["--only", "case_b"]) == 0 and references.load(cases) == {"case_a": 1, "case_b": 20}
    cases.write_text(source.format("1 / 0", 3))
    assert record.main([]) == 1 and references.load(cases) == {"case_a": 1, "case_b": 3}
    cases.write_text(source.split("@case\ndef case_b")[0].format(4))
    assert record.main([str(cases)]) == 0 and references.load(cases) == {"case_a": 4}
    capsys.readouterr()
