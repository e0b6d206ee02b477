"""DataLoader with worker processes: order, seeds, and what happens when something goes wrong."""

import os
import random
import signal
import time
import warnings

import numpy as np

from compat_tests.harness import case, raises
from compat_tests.loading.cases_datasets import pair, squares, stream


class Picky(Exception):
    """Cannot be made from a message alone."""

    def __init__(self, a, b):
        super().__init__(a, b)


def loader(torch, dataset, *args, **kwargs):
    kwargs.setdefault("num_workers", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer processors than workers
        return torch.utils.data.DataLoader(dataset, *args, **kwargs)


def head_and_tail(error):
    """An error from a worker without its traceback, which names files."""
    kind, text = error
    lines = text.strip().splitlines()
    return [kind, lines[0], lines[1], lines[-1]]


@case(modes=("default",))
@case.params("shuffle", [False, True])
@case.params("persistent", [False, True])
@case.params("own", [False, True])
def case_worker_epochs(torch, shuffle, persistent, own):
    g = torch.Generator().manual_seed(9) if own else None
    batches = loader(torch, pair(torch), 3, shuffle=shuffle, persistent_workers=persistent, generator=g)
    out = []
    for _ in range(2):
        out += [list(batches), torch.rand(1)]
    return out, len(batches), torch.rand(2, generator=g)


@case(modes=("default",))
@case.params("persistent", [False, True])
def case_worker_seeds(torch, persistent):
    class Random(torch.utils.data.Dataset):
        def __getitem__(self, i):
            info = torch.utils.data.get_worker_info()
            same = torch.initial_seed() == info.seed and info.dataset is self
            return i, info.id, info.num_workers, same, info.seed, random.random(), np.random.rand(2), torch.rand(2)

        def __len__(self):
            return 6

    batches = loader(torch, Random(), 2, persistent_workers=persistent)
    return list(batches), list(batches), torch.utils.data.get_worker_info()


@case(modes=("default",))
def case_worker_computes(torch):
    class Computed(torch.utils.data.Dataset):
        def __init__(self):
            self.x = (torch.arange(60.0).reshape(12, 5) - 3) / 2

        def __getitem__(self, i):
            row = self.x[i]
            return {"sum": row.sum(), "row": torch.cat([row, row * 2]).clamp(min=1), "max": int(row.argmax())}

        def __len__(self):
            return len(self.x)

    return list(loader(torch, Computed(), 4))


@case(modes=("default",))
def case_worker_init(torch):
    class Marked(torch.utils.data.Dataset):
        mark = 0

        def __getitem__(self, i):
            return i, self.mark

        def __len__(self):
            return 4

    def mark(worker_id):
        torch.utils.data.get_worker_info().dataset.mark = 10 + worker_id

    def fail(worker_id):
        raise ValueError(f"no {worker_id}")

    failing = loader(torch, Marked(), 2, num_workers=1, worker_init_fn=fail)
    return list(loader(torch, Marked(), 1, worker_init_fn=mark)), head_and_tail(raises(torch, lambda: list(failing)))


@case(modes=("default",))
@case.params("persistent", [False, True])
def case_worker_iterable(torch, persistent):
    class Sharded(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            return iter(range(info.id, 11, info.num_workers))

    whole = loader(torch, stream(torch, [1, 2, 3]), 2, persistent_workers=persistent)
    parts = loader(torch, Sharded(), 2, persistent_workers=persistent)
    singles = loader(torch, Sharded(), None, drop_last=False)
    return list(whole), list(whole), list(parts), list(parts), list(singles)


@case(modes=("default",))
def case_worker_errors(torch):
    class Bad(torch.utils.data.Dataset):
        def __init__(self, error):
            self.error = error

        def __getitem__(self, i):
            raise self.error

        def __len__(self):
            return 4

    out = [
        head_and_tail(raises(torch, lambda error=error: list(loader(torch, Bad(error), num_workers=1))))
        for error in (ValueError("bad"), KeyError("key"), Picky(1, 2), RuntimeError("a\nb"))
    ]

    def collate(batch):
        raise TypeError("cannot collate")

    out.append(head_and_tail(raises(torch, lambda: list(loader(torch, squares(torch, 4), 2, collate_fn=collate)))))
    sizes = [torch.zeros(2), torch.zeros(3)]
    out.append(head_and_tail(raises(torch, lambda: list(loader(torch, sizes, 2, num_workers=1)))))
    return out


@case(modes=("default",))
def case_worker_continues_after_error(torch):
    class Third(torch.utils.data.Dataset):
        def __getitem__(self, i):
            if i == 2:
                raise ValueError(i)
            return i

        def __len__(self):
            return 5

    it = iter(loader(torch, Third(), 1))
    out = [next(it), next(it)]
    error = head_and_tail(raises(torch, lambda: next(it)))
    return out, error, next(it), next(it), raises(torch, lambda: next(it))[0]


@case(modes=("default",))
def case_worker_timeout(torch):
    class Slow(torch.utils.data.Dataset):
        def __getitem__(self, i):
            time.sleep(30)

        def __len__(self):
            return 2

    return raises(torch, lambda: list(loader(torch, Slow(), num_workers=1, timeout=1)))


@case(modes=("default",))
@case.params("how", ["kill", "exit"])
def case_worker_dies(torch, how):
    class Deadly(torch.utils.data.Dataset):
        def __getitem__(self, i):
            os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else os._exit(3)

        def __len__(self):
            return 4

    kind, text = raises(torch, lambda: list(loader(torch, Deadly())))
    return kind, "".join(c for c in text if not c.isdigit()).replace(", ", "")


@case(modes=("default",))
@case.params("persistent", [False, True])
def case_worker_break(torch, persistent):
    batches = loader(torch, pair(torch), 2, shuffle=True, persistent_workers=persistent, prefetch_factor=3)
    first = next(iter(batches))
    again = list(batches)
    return first, again, torch.rand(1)


@case(modes=("default",))
def case_worker_eager_sampler(torch):
    """A sampler that draws as soon as it is asked for an iterator."""

    class Eager(torch.utils.data.Sampler):
        def __iter__(self):
            return iter(torch.randperm(6).tolist())

        def __len__(self):
            return 6

    return list(loader(torch, pair(torch), 2, sampler=Eager())), torch.rand(1)


@case(modes=("default",))
def case_worker_out_of_order(torch):
    batches = loader(torch, squares(torch, 9), 2, in_order=False)
    return sorted(b.tolist() for b in batches), sorted(b.tolist() for b in batches)


@case(modes=("default",))
def case_worker_large(torch):
    """Batches and lists of indices larger than a pipe holds."""
    x = torch.arange(200_000).reshape(100_000, 2)
    batches = loader(torch, torch.utils.data.TensorDataset(x), 30_000, prefetch_factor=2)
    return [b[0].sum() for b in batches]


@case(modes=("default",))
def case_worker_count_warning(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.utils.data.DataLoader(squares(torch, 4), num_workers=10_000)
    (message,) = [str(w.message) for w in caught]
    start, rest = message.split(" current system is ")
    return start, rest[rest.index(",") :]
