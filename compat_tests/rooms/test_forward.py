"""Forward mode: what it costs when it is not used, compiled steps, and the names of programs on disk."""

import torchlike as torch
from torchlike._src.engine import program, stats
from torchlike._src.engine.record import SLOW
from torchlike.autograd import forward_ad
from torchlike.func import _levels, vmap


def test_no_level_no_cost():
    x = torch.ones(2)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, x)
        assert "forward" in SLOW
    assert "forward" not in SLOW
    out = d * 2  # a tangent that no longer counts is dropped
    assert type(out._s.value.array) is not type(d._s.value.array)


def test_steady_state():
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    compiles = []
    for _ in range(8):
        x, v = torch.randn(16, 2), torch.randn(16, 2)
        with forward_ad.dual_level():
            u, t = forward_ad.unpack_dual(net(forward_ad.make_dual(x, v)))
            loss = u.pow(2).mean() + t.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        compiles.append((stats.COUNTS["compiles"], stats.COUNTS["nodes"]))
    assert compiles[-1] == compiles[-3]


def test_programs_of_vmap_have_names_of_their_own():
    """Names on disk say which operation is mapped, with its arguments: `sum(0)` once ran the program of `sum(1)`."""
    seen = []
    plain = _levels.VMAP.make_kernel

    def noted(static, specs):
        kernel = plain(static, specs)
        seen.append(program.describe(kernel))
        return kernel

    _levels.VMAP.make_kernel = noted
    try:
        for dim in (0, 1):
            vmap(lambda a, dim=dim: a.sum(dim))(torch.ones(3, 5, 5))
            torch.func.jvp(vmap(lambda a, dim=dim: a.cumsum(dim).exp()), (torch.ones(3, 6, 6),), (torch.ones(3, 6, 6),))
    finally:
        del _levels.VMAP.make_kernel
    assert None not in seen
    assert len(set(seen)) == len(seen) >= 6
