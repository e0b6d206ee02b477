"""Data pipes: torch.utils.data.datapipes."""

import importlib
import warnings

from compat_tests.harness import case, raises


def _iter(torch, n=6):
    pipes = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter")
    return pipes.IterableWrapper(list(range(n)))


def _map(torch, n=4):
    pipes = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.map")
    return pipes.SequenceWrapper(list(range(n)))


def _wrap(torch, items):
    return importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter").IterableWrapper(items)


def _plain(x):
    """Chunks as lists."""
    return [_plain(item) for item in x] if isinstance(x, list) else x


def _even(x):
    return x % 2


@case
def case_pipes_single(torch):
    r = lambda n=6: _iter(torch, n)  # noqa: E731
    pairs = lambda: _wrap(torch, [(1, 2), (3, 4)])  # noqa: E731
    return _plain([
        list(r().map(lambda x: x + 1)),
        list(pairs().map(lambda x: x * 10, input_col=1)),
        list(pairs().map(lambda x: x * 10, input_col=1, output_col=-1)),
        list(_wrap(torch, [{"a": 1}]).map(lambda x: x * 10, input_col="a", output_col="b")),
        list(pairs().map(lambda x, y: x + y, input_col=[0, 1], output_col=0)),
        list(r().filter(lambda x: x > 2)),
        list(r().batch(4)),
        list(r().batch(4, drop_last=True)),
        list(r(8).batch(2).batch(2).unbatch(unbatch_level=-1)),
        list(r(8).batch(2).batch(2).unbatch(unbatch_level=1)),
        list(r().batch(2).collate()),
        list(r().groupby(_even)),
        list(r().groupby(_even, group_size=2)),
        [len(r().batch(4)), len(r().map(str)), repr(r().batch(2))],
    ])  # fmt: skip


@case
def case_pipes_several(torch):
    r = lambda n=6: _iter(torch, n)  # noqa: E731
    a, b = r(3).fork(2)
    forked = list(a), list(b), list(a)
    c, d = r(6).demux(2, _even)
    split = list(c), list(d)
    e, f = r(6).demux(2, lambda x: None if x == 3 else x % 2, drop_none=True)
    shard = r(7).sharding_filter()
    shard.apply_sharding(3, 1)
    return [
        forked, split, list(e), list(f), list(shard), len(shard), list(r().zip(r(3))), list(r(2).concat(r(3))),
        list(r(2).mux(r(4))), len(r(2).mux(r(4))),
    ]  # fmt: skip


@case
def case_pipes_shuffle(torch):
    out = [list(_iter(torch, 10).shuffle()), list(_iter(torch, 10).shuffle(buffer_size=3)), torch.rand(1)]
    out += [list(_iter(torch, 10).shuffle().set_shuffle(False)), list(_iter(torch, 10).shuffle().set_seed(3))]
    return [*out, list(_map(torch, 8).shuffle()), list(_map(torch, 8).shuffle().set_seed(3))]


@case
def case_pipes_map(torch):
    s = lambda n=4: _map(torch, n)  # noqa: E731
    return _plain([
        list(s().map(lambda x: x + 1)), s().batch(3)[1], list(s(2).concat(s(3))), list(s(2).zip(s(3))),
        len(s().batch(3)),
        raises(torch, lambda: s(2).concat(s(3))[9]), raises(torch, lambda: s().zip(3)),
        raises(torch, lambda: s(8).batch(2, drop_last=True)[7]),
    ])  # fmt: skip


@case
def case_pipes_errors(torch):
    r = lambda n=6: _iter(torch, n)  # noqa: E731

    def twice():
        pipe = r().map(str)
        first = iter(pipe)
        next(first)
        next(iter(pipe))
        next(first)

    def overflow():
        child = r().fork(2, buffer_size=2)[0]
        list(child)

    return [
        raises(torch, lambda: list(r().filter(lambda x: x))),
        raises(torch, lambda: list(r().map(len, input_col=0))),
        raises(torch, lambda: r().no_such_function),
        raises(torch, lambda: r().batch(0)),
        raises(torch, lambda: r().fork(0)),
        raises(torch, lambda: r().zip(3)),
        raises(torch, lambda: list(r().unbatch())),
        raises(torch, lambda: r().shuffle(buffer_size=0)),
        raises(torch, twice),
        raises(torch, overflow),
    ]


@case(modes=("default",))
def case_pipes_loader(torch):
    pipe = _iter(torch, 10).shuffle().map(lambda x: x * 2).sharding_filter().batch(2)
    load = lambda **kw: [list(b) for b in torch.utils.data.DataLoader(pipe, batch_size=None, **kw)]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [load(), load(shuffle=True), load(shuffle=False), load(num_workers=2), torch.rand(1)]
