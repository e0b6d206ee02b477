"""torch.utils.data.dataset: every kind of dataset, and random_split."""

from typing import Any

from compat_tests.harness import case, data, raises, tensor, warns


def pair(torch: Any, n: int = 10) -> Any:
    return torch.utils.data.TensorDataset(torch.tensor(data((n, 3))), torch.arange(n))


def squares(torch: Any, n: int) -> Any:
    class Squares(torch.utils.data.Dataset):
        def __getitem__(self, i: int) -> int:
            if not 0 <= i < n:
                raise IndexError(i)
            return i * i

        def __len__(self) -> int:
            return n

    return Squares()


def stream(torch: Any, values: Any) -> Any:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(values)

        def __len__(self) -> int:
            return len(values)

    return Stream()


@case
def case_dataset_base(torch):
    ds = torch.utils.data.Dataset()
    return {
        "item": raises(torch, lambda: ds[0]),
        "len": raises(torch, lambda: len(ds))[0],
        "generic": torch.utils.data.Dataset[int].__origin__ is torch.utils.data.Dataset,
    }


@case
def case_tensor_dataset(torch):
    ds = pair(torch)
    return {
        "len": len(ds),
        "items": [ds[0], ds[-1], ds[2:4], ds[torch.tensor([1, 1])]],
        "tensors": ds.tensors,
        "out of range": raises(torch, lambda: ds[10]),
        "sizes": raises(torch, lambda: torch.utils.data.TensorDataset(torch.zeros(3), torch.zeros(4))),
        "list": len(list(torch.utils.data.TensorDataset(torch.zeros(3)))),
    }


@case
def case_stack_dataset(torch):
    Stack = torch.utils.data.StackDataset
    a, b = squares(torch, 4), pair(torch, 4)
    by_position, by_name = Stack(a, b), Stack(x=a, y=b)
    sub = torch.utils.data.Subset(a, [3, 2, 1, 0])
    wrong = squares(torch, 4)
    type(wrong).__getitems__ = lambda self, indices: [0]
    return {
        "len": len(by_position),
        "item": by_position[2],
        "named": by_name[2],
        "items": by_position.__getitems__([0, 3]),
        "named items": by_name.__getitems__([0, 3]),
        "nested": Stack(sub, a).__getitems__([0, 1]),
        "wrong": raises(torch, lambda: Stack(wrong, a).__getitems__([0, 1])),
        "both": raises(torch, lambda: Stack(a, b=b)),
        "none": raises(torch, lambda: Stack()),
        "sizes": raises(torch, lambda: Stack(a, squares(torch, 5))),
        "named sizes": raises(torch, lambda: Stack(a=a, b=squares(torch, 5))),
    }


@case
def case_concat_dataset(torch):
    Concat = torch.utils.data.ConcatDataset
    ds = squares(torch, 3) + squares(torch, 4) + squares(torch, 2)
    return {
        "len": len(ds),
        "items": [ds[i] for i in range(9)],
        "negative": [ds[-1], ds[-9]],
        "below": raises(torch, lambda: ds[-10]),
        "above": raises(torch, lambda: ds[9])[0],
        "sizes": Concat([squares(torch, 3), squares(torch, 4)]).cumulative_sizes,
        "old name": warns(torch, lambda: Concat([squares(torch, 3)]).cummulative_sizes),
        "empty": raises(torch, lambda: Concat([])),
        "iterable": raises(torch, lambda: Concat([stream(torch, [1])])),
    }


@case
def case_chain_dataset(torch):
    ds = stream(torch, [1, 2]) + stream(torch, [3])
    bad = torch.utils.data.ChainDataset([stream(torch, [1]), squares(torch, 2)])
    return {
        "type": type(ds).__name__,
        "items": list(ds),
        "len": len(ds),
        "bad": raises(torch, lambda: list(bad)),
        "bad len": raises(torch, lambda: len(bad)),
    }


@case
def case_subset(torch):
    Subset = torch.utils.data.Subset
    ds = Subset(squares(torch, 10), [7, 3, 5])

    class Half(Subset):
        def __getitem__(self, idx):
            return super().__getitem__(idx)

    class Whole(Half):
        def __getitems__(self, indices):
            return [self[i] for i in indices]

    return {
        "len": len(ds),
        "items": [ds[0], ds[-1]],
        "batch": ds.__getitems__([2, 0]),
        "nested": Subset(ds, [2, 1]).__getitems__([0, 1]),
        "list": Subset(pair(torch), [4, 5, 6])[[0, 2]],
        "half": raises(torch, lambda: Half(ds, [0])),
        "whole": Whole(ds, [1])[0],
    }


@case
@case.params("lengths", [(3, 7), (0.3, 0.7), (0.33, 0.33, 0.34), (0.5, 0.5), (1.0,), (10,), (4, 6, 0)])
def case_random_split(torch, lengths):
    split = torch.utils.data.random_split
    ds = squares(torch, 10)
    default = [list(part.indices) for part in split(ds, lengths)]
    given = [list(part.indices) for part in split(ds, lengths, generator=torch.Generator().manual_seed(5))]
    return default, given, torch.rand(2)


@case
def case_random_split_errors(torch):
    split = torch.utils.data.random_split
    ds = squares(torch, 10)
    return {
        "sum": raises(torch, lambda: split(ds, [3, 4])),
        "fraction": raises(torch, lambda: split(ds, [-0.5, 1.5])),
        "fractions": raises(torch, lambda: split(ds, [0.5, 0.4])),
        "empty": warns(torch, lambda: [list(p.indices) for p in split(squares(torch, 2), [0.5, 0.3, 0.2])]),
    }


@case
def case_requires_grad(torch):
    x = tensor(torch, (6, 2), requires_grad=True)
    ds = torch.utils.data.TensorDataset(x)
    (batch,) = next(iter(torch.utils.data.DataLoader(ds, 3)))
    batch.square().sum().backward()
    return batch, x.grad
