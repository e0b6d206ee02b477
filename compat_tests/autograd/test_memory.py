"""Graphs are freed by reference counting alone, however long they are; threads differentiate at the same time."""

import gc
import threading
import weakref

import pytest

import torchlike as torch


def step(net, optimizer, x, y):
    optimizer.zero_grad()
    hidden = net(x)
    hidden.retain_grad()
    hidden.register_hook(lambda g: g * 1)
    loss = ((hidden - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_training_makes_no_cycles(no_collector):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters())
    x, y = torch.randn(3, 4), torch.randn(3, 1)
    for _ in range(10):
        step(net, optimizer, x, y)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        step(net, optimizer, x, y)
    assert len(gc.get_objects()) - before < 20
    assert gc.collect() == 0


def test_graphs_die_with_their_last_tensor(no_collector):
    a = torch.ones(3, requires_grad=True)
    b = (a * 2).exp()
    view = b[0]
    (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
    references = [weakref.ref(o) for o in (b, view, g, b.grad_fn, g.grad_fn, b.grad_fn.next_functions[0][0])]
    del b, view, g
    assert [r() for r in references] == [None] * 6


def test_long_chains():
    a = torch.ones(2, requires_grad=True)
    y = a
    for _ in range(10_000):
        y = y + 1
    y.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    del y


def test_threads():
    weights = [torch.randn(4, 4, requires_grad=True) for _ in range(3)]
    failures = []

    def work(w):
        try:
            for _ in range(10):
                w.grad = None
                torch.tanh(torch.tanh(w @ w) @ w).sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(w,)) for w in weights]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    for w in weights:
        v = w.detach().clone().requires_grad_()
        torch.tanh(torch.tanh(v @ v) @ v).sum().backward()
        assert torch.allclose(v.grad, w.grad, atol=1e-5)
