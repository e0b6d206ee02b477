"""torch.utils.data.sampler: the indices, the draws they cost, and the checks."""

from compat_tests.harness import case, raises


def follow(torch):
    """Shows where the default generator stands."""
    return torch.rand(3)


@case
@case.params("n", [1, 2, 5, 40])
@case.params("own", [False, True])
def case_random_sampler(torch, n, own):
    g = torch.Generator().manual_seed(3) if own else None
    sampler = torch.utils.data.RandomSampler(range(n), generator=g)
    return [list(sampler), list(sampler), len(sampler), follow(torch), torch.rand(2, generator=g)]


@case
@case.params("replacement", [False, True])
@case.params("count", [1, 7, 32, 70])
@case.params("own", [False, True])
def case_random_sampler_count(torch, replacement, count, own):
    g = torch.Generator().manual_seed(3) if own else None
    sampler = torch.utils.data.RandomSampler(range(10), replacement, count, g)
    return [list(sampler), len(sampler), list(sampler), follow(torch), torch.rand(2, generator=g)]


@case
def case_random_sampler_lazy(torch):
    a = iter(torch.utils.data.RandomSampler(range(5)))
    before = torch.rand(1)
    first = next(a)
    return before, first, torch.rand(1)


@case
def case_sampler_checks(torch):
    d = torch.utils.data
    return {
        "replacement": raises(torch, lambda: d.RandomSampler(range(3), replacement=1)),
        "num_samples": raises(torch, lambda: d.RandomSampler(range(3), num_samples=0)),
        "empty": raises(torch, lambda: d.RandomSampler([])),
        "float": raises(torch, lambda: d.RandomSampler(range(3), num_samples=2.0)),
        "weighted count": raises(torch, lambda: d.WeightedRandomSampler([1.0], True)),
        "weighted count 0": raises(torch, lambda: d.WeightedRandomSampler([1.0], 0)),
        "weighted replacement": raises(torch, lambda: d.WeightedRandomSampler([1.0], 1, 1)),
        "weights": raises(torch, lambda: d.WeightedRandomSampler([[1.0, 2.0]], 1)),
        "batch size": raises(torch, lambda: d.BatchSampler(range(3), 0, False)),
        "batch size bool": raises(torch, lambda: d.BatchSampler(range(3), True, False)),
        "batch size float": raises(torch, lambda: d.BatchSampler(range(3), 2.5, False)),
        "drop_last": raises(torch, lambda: d.BatchSampler(range(3), 2, 1)),
        "base": raises(torch, lambda: iter(d.Sampler())),
        "no len": raises(torch, lambda: len(d.BatchSampler(iter([1]), 2, False)))[0],
    }


@case
def case_sequential_sampler(torch):
    sampler = torch.utils.data.SequentialSampler([5, 6, 7])
    return list(sampler), len(sampler), list(sampler)


@case
@case.params("own", [False, True])
def case_subset_random_sampler(torch, own):
    g = torch.Generator().manual_seed(3) if own else None
    sampler = torch.utils.data.SubsetRandomSampler([10, 20, 30, 40, 50], g)
    return list(sampler), list(sampler), len(sampler), follow(torch)


@case
@case.params("replacement", [False, True])
def case_weighted_random_sampler(torch, replacement):
    sampler = torch.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 5, replacement)
    own = torch.utils.data.WeightedRandomSampler(
        [0.1, 0.9, 0.4], 3, replacement, generator=torch.Generator().manual_seed(1)
    )
    return list(sampler), list(sampler), len(sampler), sampler.weights, list(own), follow(torch)


@case
@case.params("drop_last", [False, True])
@case.params("n", [0, 1, 6, 7])
def case_batch_sampler(torch, drop_last, n):
    sampler = torch.utils.data.BatchSampler(range(n), 3, drop_last)
    return list(sampler), len(sampler), list(torch.utils.data.BatchSampler(iter("abcd"), 3, drop_last))


@case
@case.params("n,replicas", [(10, 2), (10, 3), (2, 5), (1, 4)])
@case.params("drop_last", [False, True])
@case.params("shuffle", [False, True])
def case_distributed_sampler(torch, n, replicas, drop_last, shuffle):
    out = []
    for rank in range(replicas):
        sampler = torch.utils.data.distributed.DistributedSampler(
            range(n), replicas, rank, shuffle=shuffle, seed=4, drop_last=drop_last
        )
        first = list(sampler)
        sampler.set_epoch(2)
        out.append([first, list(sampler), len(sampler), sampler.total_size])
    return out, follow(torch)


@case
def case_distributed_sampler_checks(torch):
    Sampler = torch.utils.data.DistributedSampler
    return raises(torch, lambda: Sampler(range(3), 2, 2)), raises(torch, lambda: Sampler(range(3), 2, -1))
