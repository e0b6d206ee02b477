"""DataLoader in one process: batches, draws, and the checks of its arguments."""

import numpy as np

from compat_tests.harness import case, data, raises, warns
from compat_tests.loading.cases_datasets import pair, squares, stream


@case
@case.params("n", [1, 7, 8])
@case.params("shuffle", [False, True])
@case.params("drop_last", [False, True])
@case.params("own", [False, True])
def case_epochs(torch, n, shuffle, drop_last, own):
    g = torch.Generator().manual_seed(9) if own else None
    out = []
    for dataset in (pair(torch, n), squares(torch, n)):
        loader = torch.utils.data.DataLoader(dataset, 4, shuffle=shuffle, drop_last=drop_last, generator=g)
        for _ in range(3):
            out += [list(loader), torch.rand(1)]
        out.append(len(loader))
    return out, torch.rand(2, generator=g)


@case
@case.params("split", [False, True])
def case_matches_slow_path(torch, split):
    """What a batch of a TensorDataset holds: several tensors, of several dtypes and layouts."""
    x = torch.tensor(data((40, 3, 2)))
    columns = [x, x.transpose(1, 2), x[:, 1], torch.arange(40).bool(), torch.arange(80)[::2], x.half(), x.bfloat16()]
    dataset = torch.utils.data.TensorDataset(*columns)
    if split:
        dataset = torch.utils.data.random_split(dataset, [25, 15])[0]
        dataset = torch.utils.data.Subset(dataset, torch.arange(0, 20))
    loader = torch.utils.data.DataLoader(dataset, 8, shuffle=True)
    out = list(loader)
    x[:] = 7.0
    return out, next(iter(loader)), [b.is_contiguous() for b in out[0]]


@case
def case_batches_are_copies(torch):
    x = torch.tensor(data((6, 2)))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), 3)
    for (batch,) in loader:
        batch.zero_()
    return x, next(iter(loader))


@case
def case_custom_sampler(torch):
    d = torch.utils.data
    ds = pair(torch)
    return [
        list(d.DataLoader(ds, 2, sampler=[3, 1, 2])),
        list(d.DataLoader(ds, 2, sampler=[-1, -2])),
        list(d.DataLoader(ds, 2, sampler=torch.tensor([3, 1, 2]))),
        list(d.DataLoader(ds, 2, sampler=np.array([3, 1, 2]))),
        list(d.DataLoader(ds, batch_sampler=[[0, 1], [2], (3, 4)])),
        raises(torch, lambda: list(d.DataLoader(ds, 2, sampler=[0, 10]))),
        raises(torch, lambda: list(d.DataLoader(ds, batch_sampler=[[]]))),
        list(d.DataLoader(ds, batch_sampler=d.BatchSampler(d.SequentialSampler(ds), 6, True))),
        list(d.DataLoader(squares(torch, 5), None)),
        list(d.DataLoader(pair(torch, 3), batch_size=None)),
        list(d.DataLoader(ds, None, sampler=d.BatchSampler(d.SequentialSampler(ds), 6, False))),
        list(d.DataLoader(ds, 4, sampler=d.WeightedRandomSampler(torch.ones(10), 6))),
        list(d.DataLoader(ds, 4, sampler=d.SubsetRandomSampler([1, 5, 7]))),
    ]


@case
def case_collate_fn(torch):
    loader = torch.utils.data.DataLoader(pair(torch), 3, collate_fn=lambda batch: [len(batch), batch[0]])
    return list(loader), list(torch.utils.data.DataLoader(squares(torch, 4), None, collate_fn=lambda s: -s))


@case
def case_getitems(torch):
    class Batched(torch.utils.data.Dataset):
        def __getitem__(self, i):
            raise AssertionError

        def __getitems__(self, indices):
            return [(i, float(i)) for i in indices]

        def __len__(self):
            return 5

    class Doubled(torch.utils.data.TensorDataset):
        def __getitem__(self, i):
            return [2 * t for t in super().__getitem__(i)]

    d = torch.utils.data
    return list(d.DataLoader(Batched(), 2)), list(d.DataLoader(Doubled(torch.arange(5)), 2))


@case
@case.params("batch_size", [None, 2, 3])
@case.params("drop_last", [False, True])
def case_iterable(torch, batch_size, drop_last):
    if batch_size is None and drop_last:
        return raises(torch, lambda: torch.utils.data.DataLoader(stream(torch, [1]), None, drop_last=True))
    loader = torch.utils.data.DataLoader(stream(torch, [1, 2, 3, 4, 5]), batch_size, drop_last=drop_last)
    return list(loader), len(loader), list(loader), torch.rand(1), repr(loader._dataset_kind)


@case
def case_iterable_length(torch):
    class Liar(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

        def __len__(self):
            return 2

        def __repr__(self):
            return "Liar"

    loader = torch.utils.data.DataLoader(Liar(), 1)
    silent = warns(torch, lambda: list(loader))
    length = len(loader)
    return silent, length, warns(torch, lambda: list(loader))


@case
def case_checks(torch):
    d = torch.utils.data
    ds, it = squares(torch, 5), stream(torch, [1, 2])

    def fails(*args, **kwargs):
        return raises(torch, lambda: d.DataLoader(*args, **kwargs))

    loader = d.DataLoader(ds, 2)
    return [
        fails(ds, num_workers=-1),
        fails(ds, timeout=-1),
        fails(ds, prefetch_factor=2),
        fails(ds, num_workers=1, prefetch_factor=-1),
        fails(ds, persistent_workers=True),
        fails(it, shuffle=True),
        fails(it, sampler=[1]),
        fails(it, batch_sampler=[[1]]),
        fails(ds, sampler=[1], shuffle=True),
        fails(ds, 2, batch_sampler=[[1]]),
        fails(ds, batch_sampler=[[1]], shuffle=True),
        fails(ds, batch_sampler=[[1]], drop_last=True),
        fails(ds, None, drop_last=True),
        fails(ds, 0),
        fails(ds, 2.5),
        fails(ds, drop_last=1),
        fails(squares(torch, 0), shuffle=True),
        fails(ds, multiprocessing_context="fork"),
        fails(ds, num_workers=1, multiprocessing_context="nonsense"),
        fails(ds, num_workers=1, multiprocessing_context=3),
        raises(torch, lambda: setattr(loader, "batch_size", 3)),
        raises(torch, lambda: setattr(loader, "dataset", ds)),
        raises(torch, lambda: setattr(loader, "sampler", [1])),
        raises(torch, lambda: list(d.DataLoader(ds, timeout=1))),
        raises(torch, lambda: iter(loader).__getstate__()),
        raises(torch, lambda: len(d.DataLoader(iter([1, 2]), sampler=iter([1])))),
        raises(torch, lambda: len(d.DataLoader(d.IterableDataset())))[0],
    ]


@case
def case_attributes(torch):
    loader = torch.utils.data.DataLoader(pair(torch), 3, shuffle=True)
    given = torch.utils.data.DataLoader(pair(torch), batch_sampler=[[1], [2]])
    loader.num_workers = 0
    it = iter(loader)
    return [
        loader.batch_size,
        loader.drop_last,
        type(loader.sampler).__name__,
        type(loader.batch_sampler).__name__,
        loader.num_workers,
        loader.prefetch_factor,
        loader.timeout,
        loader.pin_memory,
        loader.in_order,
        loader.persistent_workers,
        loader.multiprocessing_context,
        loader.collate_fn is torch.utils.data.default_collate,
        given.batch_size,
        given.drop_last,
        len(given),
        type(it).__name__,
        len(it),
        iter(it) is it,
        torch.utils.data.get_worker_info(),
    ]


@case
def case_pin_memory_without_accelerator(torch):
    loader = torch.utils.data.DataLoader(pair(torch, 4), 2, pin_memory=True)
    device = torch.utils.data.DataLoader(pair(torch, 4), 2, pin_memory=True, pin_memory_device="cuda")
    return warns(torch, lambda: list(loader)), warns(torch, lambda: next(iter(device)))


@case
def case_early_break(torch):
    loader = torch.utils.data.DataLoader(pair(torch), 2, shuffle=True)
    out = []
    for _ in range(2):
        for batch in loader:
            out.append(batch)
            break
    return out, torch.rand(2)


@case
def case_list_and_strings(torch):
    """Plain sequences are datasets too."""
    d = torch.utils.data
    return (
        list(d.DataLoader(["a", "b", "c"], 2)),
        list(d.DataLoader([(1, "x"), (2, "y")], 2)),
        list(d.DataLoader([1, 2, 3], 2)),
    )


@case
def case_exception_passes(torch):
    class Bad(torch.utils.data.Dataset):
        def __getitem__(self, i):
            raise KeyError("no such sample")

        def __len__(self):
            return 3

    return raises(torch, lambda: next(iter(torch.utils.data.DataLoader(Bad()))))
