"""torch.utils.benchmark and torch.utils.flop_counter."""

from compat_tests.harness import case, raises


def _measurement(torch, times, **spec):
    b = torch.utils.benchmark
    spec = {"stmt": "x + 1", "setup": "x = 1", **spec}
    return b.Measurement(100, times, b.TaskSpec(**spec))


def _text(m):
    return repr(m).split("\n", 1)[1]


def _load(torch):
    import importlib

    for name in ("benchmark", "flop_counter"):
        importlib.import_module(f"{torch.__name__}.utils.{name}")


@case
def case_measurement(torch):
    _load(torch)
    some = _measurement(torch, [1e-4, 1.1e-4, 1.2e-4, 5e-4], label="L", sub_label="S", description="D", num_threads=4)
    few = _measurement(torch, [1e-4, 1.1e-4, 1.2e-4])
    return {
        "texts": [_text(m) for m in (some, few, _measurement(torch, [3.0]), _measurement(torch, [1e-4], setup=""))],
        "lines": _text(_measurement(torch, [1e-4, 1.1e-4], stmt="a = 1\nb = 2\n", setup="c = 3\nd = 4")),
        "numbers": [few.mean, few.median, few.iqr, few.significant_figures, few.has_warnings, few.title],
        "merged": [_text(m) for m in torch.utils.benchmark.Measurement.merge([few, _measurement(torch, [2e-4])])],
    }


@case
def case_compare(torch):
    _load(torch)
    rows = [
        _measurement(torch, [1e-4, 1.1e-4], label="L", sub_label="s1", description="d1", env="e1"),
        _measurement(torch, [3e-4, 3.1e-4], label="L", sub_label="s1", description="d2", env="e1"),
        _measurement(torch, [5e-4, 5.1e-3], label="L", sub_label="s2", description="d1", env="e1", num_threads=2),
        _measurement(torch, [5e-5, 5.1e-5], label="L", sub_label="s2", description="d2", env="e2"),
        _measurement(torch, [5e-5, 5.1e-5], label="L2", sub_label="s2", description="d2", env="e1"),
    ]
    compare = torch.utils.benchmark.Compare(rows)
    out = [str(compare)]
    for step in (compare.trim_significant_figures, compare.colorize, lambda: compare.colorize(rowwise=True)):
        step()
        out.append(str(compare))
    compare.highlight_warnings()
    return [*out, str(compare)]


@case
def case_timer(torch):
    _load(torch)
    timer = torch.utils.benchmark.Timer("x + 1", "x = 2", label="L")
    m = timer.timeit(5)
    return (
        m.number_per_run, len(m.raw_times), m.task_spec.label,
        timer.blocked_autorange(min_run_time=0.01).median > 0,
        raises(torch, lambda: torch.utils.benchmark.Timer("1", language="foo")),
        raises(torch, timer.autorange),
    )  # fmt: skip


@case
def case_flop_counter(torch):
    _load(torch)
    f = torch.nn.functional
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(512, 10))
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        net(torch.ones(2, 3, 8, 8)).sum().backward()
    forward = torch.utils.flop_counter.FlopCounterMode(display=False)
    with forward:
        torch.baddbmm(torch.ones(2, 3, 3), torch.ones(2, 3, 4), torch.ones(2, 4, 3))
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 3))
        torch.addmm(torch.ones(2), torch.ones(3, 4), torch.ones(4, 2))
        f.conv_transpose2d(torch.ones(1, 3, 4, 4), torch.ones(3, 5, 2, 2))
        f.conv1d(torch.ones(1, 4, 9), torch.ones(4, 2, 3), groups=2)
        f.linear(torch.ones(2, 3, 4), torch.ones(5, 4))
        torch.ones(3, 4) @ torch.ones(4)
    counts = forward.get_flop_counts()["Global"]
    return [
        counter.get_total_flops(),
        sorted((str(k), v) for k, v in counter.get_flop_counts()["Global"].items()),
        forward.get_total_flops(),
        sorted((str(k), v) for k, v in counts.items()),
    ]
