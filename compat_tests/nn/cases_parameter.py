"""Parameter, Buffer and their uninitialized forms; lazy modules."""

import copy
import pickle
from typing import Any

from compat_tests import case
from compat_tests.nn.running import attempt


@case
def case_parameter(torch: Any) -> Any:
    nn = torch.nn
    x = torch.arange(4.0)
    p = nn.Parameter(x)
    x.add_(1)
    q = nn.Parameter(p * 2, requires_grad=False)
    return [
        p,
        repr(p),
        p.is_leaf,
        p.requires_grad,
        repr(q),
        q.is_leaf,
        repr(nn.Parameter()),
        [isinstance(t, nn.Parameter) for t in (p, x, p.data, p.detach(), p + 1, p.clone())],
        type(p + 1).__name__,
        type(p.data).__name__,
        attempt(lambda: nn.Parameter([1, 2])),
        attempt(lambda: nn.Parameter(torch.ones(2, dtype=torch.int64))),
        nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False),
        nn.Parameter(x[1:3]),
        str(nn.Parameter(torch.tensor(2.0))),
    ]


@case
def case_parameter_copies(torch: Any) -> Any:
    nn = torch.nn
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    p.note = "kept"
    twin = copy.deepcopy(p)
    again = pickle.loads(pickle.dumps(p))
    return [
        twin,
        type(twin).__name__,
        twin.requires_grad,
        hasattr(twin, "note"),
        again,
        type(again).__name__,
        again.requires_grad,
        again.note,
        copy.deepcopy([p, p])[0] is not p,
    ]


@case
def case_parameter_subclasses(torch: Any) -> Any:
    nn = torch.nn

    class Own(nn.Parameter):
        pass

    class Kind(torch.Tensor):
        pass

    own = Own(torch.ones(2))
    kind = nn.Parameter(torch.ones(2).as_subclass(Kind))
    m = nn.Module()
    m.a, m.b = own, kind
    return [
        type(own).__name__,
        isinstance(own, nn.Parameter),
        type(kind).__name__,
        isinstance(kind, nn.Parameter),
        [k for k, _ in m.named_parameters()],
    ]


@case
def case_buffer(torch: Any) -> Any:
    nn = torch.nn
    b = nn.Buffer(torch.ones(2), persistent=False)
    return [
        b,
        type(b).__name__,
        isinstance(b, nn.Buffer),
        isinstance(torch.ones(1), nn.Buffer),
        b.persistent,
        repr(nn.Buffer()),
        b.requires_grad,
    ]


@case
def case_uninitialized(torch: Any) -> Any:
    nn = torch.nn
    u = nn.UninitializedParameter(dtype=torch.float64)
    out = [
        repr(u),
        attempt(lambda: u.shape),
        attempt(lambda: u + 1)[0],
        attempt(lambda: u.relu())[0],
        attempt(lambda: u.numel())[0],
        attempt(lambda: u.share_memory_()),
        u.dtype,
        u.device,
        u.requires_grad,
        u.grad,
        isinstance(u, nn.Parameter),
        torch.nn.parameter.is_lazy(u),
        repr(copy.deepcopy(u)),
        u.float().dtype,
    ]
    u.materialize((2, 3))
    return [*out, type(u).__name__, u.shape, u.dtype, torch.nn.parameter.is_lazy(u)]


@case
def case_lazy_modules(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        nn.LazyConv2d(3, 2), nn.LazyBatchNorm2d(track_running_stats=False), nn.Flatten(), nn.LazyLinear(2)
    )
    before = [repr(net), list(net.state_dict()), attempt(lambda: sum(p.numel() for p in net.parameters()))[0]]
    twin = copy.deepcopy(net)
    net.double()
    net(torch.ones(2, 1, 3, 3, dtype=torch.float64))
    twin.load_state_dict(net.state_dict())
    return [
        *before,
        repr(net),
        [p.dtype for p in net.parameters()],
        [tuple(p.shape) for p in twin.parameters()],
        repr(twin),
        attempt(lambda: nn.Linear(2, 2).load_state_dict(nn.LazyLinear(2).state_dict()))[0],
        attempt(lambda: nn.LazyLinear(3)(torch.ones(2, 4)).shape),
        attempt(lambda: nn.LazyConv1d(3, 2)(torch.ones(2))),
    ]
