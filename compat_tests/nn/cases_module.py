"""nn.Module: registration, traversal, state, hooks, conversion."""

import copy
import pickle
from typing import Any

from compat_tests import case, warns
from compat_tests.nn.running import attempt


def make(torch: Any) -> tuple[type, type]:
    """A layer with everything a module can hold, and a network of them that shares one."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(o, i))
            self.register_parameter("bias", None)
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("scratch", torch.zeros(3), persistent=False)

        def forward(self, x: Any) -> Any:
            return x @ self.weight.t()

        def extra_repr(self) -> str:
            return "hi"

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = Layer(2, 3)
            self.b = Layer(3, 2)
            self.c = self.a

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    return Layer, Net


@case
def case_traversal(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    return {
        "repr": repr(n),
        "parameters": [k for k, _ in n.named_parameters()],
        "with duplicates": [k for k, _ in n.named_parameters(remove_duplicate=False)],
        "own": [k for k, _ in n.named_parameters(recurse=False)],
        "prefix": [k for k, _ in n.named_parameters(prefix="p")],
        "buffers": [k for k, _ in n.named_buffers(prefix="z")],
        "modules": [k for k, _ in n.named_modules()],
        "all modules": [k for k, _ in n.named_modules(remove_duplicate=False)],
        "children": [k for k, _ in n.named_children()],
        "counts": [len(list(n.parameters())), len(list(n.buffers())), len(list(n.modules())), len(list(n.children()))],
        "dir": [k for k in dir(n) if k not in dir(torch.nn.Module)],
        "applied": [type(m).__name__ for m in _applied(n)],
    }


def _applied(n: Any) -> list:
    seen: list = []
    n.apply(seen.append)
    return seen


@case
def case_get_and_set_by_name(torch: Any) -> Any:
    Layer, Net = make(torch)
    n = Net()
    return [
        attempt(lambda: n.get_submodule("") is n),
        attempt(lambda: repr(n.get_submodule("a"))),
        attempt(lambda: n.get_submodule("a.x")),
        attempt(lambda: n.get_submodule("a.weight")),
        attempt(lambda: n.get_parameter("a.weight")),
        attempt(lambda: n.get_parameter("a.mean")),
        attempt(lambda: n.get_parameter("nothing")),
        attempt(lambda: n.get_buffer("a.mean")),
        attempt(lambda: n.get_buffer("a.weight")),
        attempt(lambda: n.set_submodule("", n)),
        attempt(lambda: n.set_submodule("a.k", 3)),
        attempt(lambda: n.set_submodule("a.k", Layer(1, 1))),
        attempt(lambda: n.set_submodule("a.k2", Layer(1, 1), strict=True)),
        attempt(lambda: n.set_submodule("a.weight", Layer(1, 1))),
        repr(n),
    ]


@case
def case_registration_errors(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    nn = torch.nn
    out = []
    for name in ("", "a.b", 3, "forward", "a"):
        out += [
            attempt(lambda name=name: n.register_buffer(name, None)),
            attempt(lambda name=name: n.register_parameter(name, None)),
            attempt(lambda name=name: n.add_module(name, None)),
        ]
    out += [
        attempt(lambda: n.add_module("q", 3)),
        attempt(lambda: n.register_buffer("q", 3)),
        attempt(lambda: n.register_parameter("q", 3)),
        attempt(lambda: n.register_parameter("q", torch.ones(2))),
        attempt(lambda: n.a.weight.foo),
        attempt(lambda: n.foo),
        attempt(lambda: setattr(n, "a", 3)),
        attempt(lambda: n.b.__setattr__("weight", torch.ones(2))),
        attempt(lambda: n.b.__setattr__("mean", 3)),
        attempt(lambda: delattr(n, "nothing")),
        attempt(lambda: n.train(3)),
        attempt(lambda: nn.Module(3)),
        attempt(lambda: nn.Module(a=3)),
        attempt(lambda: nn.Module()(3)),
    ]
    return out


@case
def case_before_init(torch: Any) -> Any:
    nn = torch.nn
    Layer, _ = make(torch)

    class Bad(nn.Module):
        def __init__(self, step: Any) -> None:
            step(self)

    return [
        attempt(lambda: Bad(lambda m: setattr(m, "x", Layer(1, 1)))),
        attempt(lambda: Bad(lambda m: setattr(m, "x", nn.Parameter(torch.ones(1))))),
        attempt(lambda: Bad(lambda m: m.register_buffer("x", None))),
        attempt(lambda: Bad(lambda m: m.register_parameter("x", None))),
        attempt(lambda: Bad(lambda m: setattr(m, "x", 3)).__dict__),
        attempt(lambda: Bad(lambda m: m.x)),
    ]


@case
def case_attributes_change_kind(torch: Any) -> Any:
    nn = torch.nn
    m = nn.Linear(2, 2)
    log = []
    m.weight = None
    log.append([list(m._parameters), list(m.state_dict())])
    m.x = 3
    m.x = nn.Parameter(torch.zeros(1))
    log.append([list(m._parameters), "x" in m.__dict__])
    m.x = nn.Parameter(torch.ones(1))
    del m.x
    m.x = nn.Buffer(torch.ones(2), persistent=False)
    log.append([list(m._buffers), list(m.state_dict()), list(m._non_persistent_buffers_set)])
    m.x = torch.zeros(2)
    log.append([list(m._buffers), list(m._non_persistent_buffers_set)])
    m.x = None
    m.x = nn.ReLU()
    log.append([list(m._buffers), list(m._modules)])
    m.x = None
    log.append(repr(m))
    del m.x
    log.append(attempt(lambda: m.x))
    return log


@case
def case_attribute_lookup(torch: Any) -> Any:
    nn = torch.nn

    class Plain(nn.Linear):
        pass

    class Own(nn.Linear):
        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name == "other":
                    return "own"
                raise

    class Property(nn.Module):
        @property
        def value(self) -> Any:
            raise AttributeError("the property's")

        @property
        def weight(self) -> Any:
            return 3

    class Changing(nn.Module):
        pass

    class Every(nn.Module):
        def __getattribute__(self, name: str) -> Any:
            return "every" if name == "weight" else super().__getattribute__(name)

    plain, own, prop, changing = Plain(2, 1), Own(2, 1), Property(), Changing()
    found = [own.other, own.weight is own._parameters["weight"], prop.weight, attempt(lambda: prop.value)]
    found += [attempt(lambda: plain.other), attempt(lambda: nn.Module.__new__(Plain).weight), Every().weight]
    prop._parameters["weight"] = plain.weight
    found.append(prop.weight)
    plain.__dict__["weight"] = 5
    found.append(plain.weight)
    del plain.__dict__["weight"]
    plain._buffers["weight"] = 6
    found.append(plain.weight is plain._parameters["weight"])
    del plain._parameters["weight"]
    found.append(plain.weight)
    plain._modules["inner"] = own
    found.append(plain.inner is own)
    plain._parameters = {"bias": 7}
    found.append(plain.bias)
    changing.inner = own
    Changing.__getattr__ = lambda self, name: f"changed {name}"
    found.append(changing.inner)
    del Changing.__getattr__
    found.append(changing.inner is own)
    Changing.inner = 8
    found.append(changing.inner)
    return found


@case
def case_state_dict(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    state = n.state_dict()
    given: dict = {}
    return {
        "state": state,
        "metadata": dict(state._metadata),
        "class": type(state).__name__,
        "prefix": list(n.state_dict(prefix="p.")),
        "destination": n.state_dict(destination=given) is given,
        "kept": [type(v).__name__ for v in n.state_dict(keep_vars=True).values()],
        "shares": [v.data_ptr() == p.data_ptr() for v, p in [(state["a.weight"], n.a.weight)]],
        "positional": warns(torch, lambda: list(n.state_dict({}, "p.")))[0],
    }


@case
def case_load_state_dict(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    bad = n.state_dict()
    bad["a.weight"] = torch.ones(1)
    bad["x.y"] = torch.ones(1)
    bad["a.q"] = torch.zeros(1)
    bad["b.weight"] = 3
    other = {k: v + 1 for k, v in n.state_dict().items()}
    weight = n.a.weight
    out = [
        attempt(lambda: repr(n.load_state_dict(n.state_dict()))),
        attempt(lambda: n.load_state_dict({})),
        attempt(lambda: repr(n.load_state_dict({}, strict=False))),
        attempt(lambda: n.load_state_dict(bad)),
        attempt(lambda: n.load_state_dict(3)),
        attempt(lambda: repr(n.load_state_dict(other))),
        n.a.weight is weight,
        n.a.weight,
    ]
    scalar = torch.nn.Module()
    scalar.p = torch.nn.Parameter(torch.zeros(()))
    scalar.load_state_dict({"p": torch.ones(1)})
    fresh = Net()
    tensor = torch.full((3, 2), 5.0)
    fresh.load_state_dict({**other, "a.weight": tensor}, assign=True)
    return [
        *out,
        scalar.p,
        fresh.a.weight,
        fresh.a.weight.data_ptr() == tensor.data_ptr(),
        type(fresh.a.weight).__name__,
    ]


@case
def case_extra_state(torch: Any) -> Any:
    class Extra(torch.nn.Linear):
        count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    a, b = Extra(1, 1), Extra(1, 1)
    a.count = 7
    b.load_state_dict(a.state_dict())
    without = {k: v for k, v in a.state_dict().items() if "extra" not in k}
    return [
        list(a.state_dict()),
        b.count,
        attempt(lambda: b.load_state_dict(without)),
        attempt(lambda: torch.nn.Linear(1, 1).load_state_dict(a.state_dict())),
        attempt(lambda: torch.nn.Linear(1, 1).get_extra_state()),
    ]


@case
def case_state_dict_hooks(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    n = Net()
    n.register_state_dict_pre_hook(lambda m, prefix, keep: log.append([prefix, keep]))
    n.a.register_state_dict_pre_hook(lambda m, prefix, keep: log.append([prefix, keep]))
    n.register_state_dict_post_hook(lambda m, state, prefix, meta: log.append([list(state), prefix, dict(meta)]))
    n.state_dict()
    replaced = Net()
    replaced._register_state_dict_hook(lambda m, state, prefix, meta: {"x": 1})
    wrong = Net()
    wrong.register_state_dict_post_hook(lambda m, state, prefix, meta: {"x": 1})
    clearing = Net()
    clearing.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: state.clear())
    forgiving = Net()
    forgiving.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    returning = Net()
    returning.register_load_state_dict_post_hook(lambda m, keys: 1)
    plain = Net()
    plain._register_load_state_dict_pre_hook(lambda *args: log.append([args[1], len(args)]))
    plain.load_state_dict(Net().state_dict())
    return [
        log,
        replaced.state_dict(),
        attempt(lambda: wrong.state_dict()),
        attempt(lambda: clearing.load_state_dict(Net().state_dict())),
        attempt(lambda: repr(forgiving.load_state_dict({}))),
        attempt(lambda: returning.load_state_dict({}, strict=False)),
    ]


@case
def case_forward_hooks(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    n = Net()
    handle = n.a.register_forward_hook(lambda m, args, out: log.append(["second", tuple(out.shape)]))
    n.a.register_forward_hook(lambda m, args, kw, out: log.append(["first", kw]), with_kwargs=True, prepend=True)
    n.a.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    n.a.register_forward_pre_hook(lambda m, args: args[0] + 1)
    n.a.register_forward_pre_hook(lambda m, args, kw: (args, {}), with_kwargs=True, prepend=True)
    n.b.register_forward_hook(lambda m, args, out: out * 10)
    first = n(torch.ones(1, 2))
    handle.remove()
    handle.remove()
    second = n(torch.ones(1, 2))
    wrong = Net()
    wrong.register_forward_pre_hook(lambda m, args, kw: 3, with_kwargs=True)
    return [first, second, log, attempt(lambda: wrong(torch.ones(1, 2)))]


@case
def case_always_called_hooks(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    n = Net()

    def fail(*args: Any) -> None:
        raise ValueError("no")

    n.b.register_forward_pre_hook(fail)
    n.b.register_forward_hook(lambda m, args, out: log.append(["plain", out]))
    n.b.register_forward_hook(lambda m, args, out: log.append(["always", out]), always_call=True)
    n.b.register_forward_hook(lambda m, args, kw, out: log.append(["kw", kw, out]), always_call=True, with_kwargs=True)
    error = attempt(lambda: n(torch.ones(1, 2)))
    n.b.register_forward_hook(fail, always_call=True)
    return [error, warns(torch, lambda: attempt(lambda: n(torch.ones(1, 2)))), log]


@case
def case_backward_hooks(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    n = Net()
    n.a.register_full_backward_hook(lambda m, gi, go: log.append(["a", gi, go]))
    n.b.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    n.b.register_full_backward_pre_hook(lambda m, go: log.append(["first", go]), prepend=True)
    n.b.register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
    x = torch.ones(2, 2, requires_grad=True)
    y = n(x)
    log.append(y.grad_fn.name())
    y.sum().backward()
    log += [x.grad, n.a.weight.grad, n.b.weight.grad]
    log.append(warns(torch, lambda: n.a(torch.ones(1, 2)).sum().backward()))
    log.append(attempt(lambda: n.b.register_backward_hook(print)))
    return log


@case
def case_backward_hook_errors(torch: Any) -> Any:
    _, Net = make(torch)
    out = []
    for hook in (lambda m, gi, go: (gi[0], gi[0]), lambda m, gi, go: 3):
        n = Net()
        n.a.register_full_backward_hook(hook)
        out.append(attempt(lambda n=n: n(torch.ones(1, 2, requires_grad=True)).sum().backward())[0])
    n = Net()
    n.a.register_full_backward_hook(lambda m, gi, go: (torch.ones(1, 2),))
    out.append(warns(torch, lambda: attempt(lambda: n(torch.ones(1, 2)).sum().backward())))
    n = Net()
    n.a.register_backward_hook(lambda m, gi, go: None)
    out.append(attempt(lambda: n.a.register_full_backward_hook(print)))
    return out


@case
def case_hooks_with_several_tensors(torch: Any) -> Any:
    log: list = []

    class Two(torch.nn.Module):
        def forward(self, x: Any, number: int, y: Any) -> Any:
            return x * number + y, y * 2

    m = Two()
    m.register_full_backward_hook(lambda m, gi, go: log.append([gi, go]))
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a, b = m(x, 3, y)
    (a.sum() + b.sum()).backward()
    log += [x.grad, y.grad]
    return log


@case
def case_deprecated_backward_hook(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    n = Net()
    n.a.register_backward_hook(lambda m, gi, go: log.append([len(gi), go]))
    log.append(warns(torch, lambda: n(torch.ones(2, 2, requires_grad=True)).sum().backward()))
    return log


@case
def case_global_hooks(torch: Any) -> Any:
    _, Net = make(torch)
    log: list = []
    module = torch.nn.modules.module
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: log.append(["pre", type(m).__name__])),
        module.register_module_forward_hook(lambda m, args, out: log.append(["post", type(m).__name__])),
        module.register_module_full_backward_hook(lambda m, gi, go: log.append(["back", type(m).__name__])),
        module.register_module_full_backward_pre_hook(lambda m, go: log.append(["before", type(m).__name__])),
        module.register_module_parameter_registration_hook(lambda m, name, p: log.append(["parameter", name])),
        module.register_module_buffer_registration_hook(lambda m, name, b: log.append(["buffer", name])),
        module.register_module_module_registration_hook(lambda m, name, c: log.append(["module", name])),
    ]
    try:
        n = Net()
        n(torch.ones(1, 2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    Net()(torch.ones(1, 2))
    return log


@case
def case_conversion(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    n.register_buffer("count", torch.tensor(3))
    weight = n.a.weight
    weight.grad = torch.ones(3, 2)
    out = [[n.to(torch.float64) is n, weight, weight.grad, n.count.dtype, n.a.weight is weight]]
    for change in (
        lambda: n.half(),
        lambda: n.float(),
        lambda: n.double(),
        lambda: n.bfloat16(),
        lambda: n.to(torch.ones(1)),
        lambda: n.to("cpu", torch.float16),
        lambda: n.to(device="cpu", dtype=torch.float32, non_blocking=True),
        lambda: n.type(torch.float64),
        lambda: n.cpu(),
    ):
        out.append(attempt(change) is n)
        out.append([n.a.weight.dtype, n.a.mean.dtype, n.count.dtype, weight.grad.dtype])
    out += [attempt(lambda: n.to(torch.int64)), attempt(lambda: n.to("nowhere"))]
    out.append([warns(torch, lambda: n.to(torch.complex64))[1], n.a.weight])
    return out


@case
def case_meta(torch: Any) -> Any:
    m = torch.nn.Linear(2, 3, device="meta")
    other = torch.nn.Linear(2, 3)
    return [
        m.weight.device,
        attempt(lambda: m.to("cpu")),
        warns(torch, lambda: repr(m.load_state_dict(other.state_dict()))),
        attempt(lambda: m.load_state_dict(other.state_dict(), assign=True) and m.weight.device),
        torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.shape,
    ]


@case
def case_modes_and_gradients(torch: Any) -> Any:
    _, Net = make(torch)
    n = Net()
    out = [[m.training for m in n.eval().modules()], [m.training for m in n.train().modules()]]
    n(torch.ones(1, 2)).sum().backward()
    n.zero_grad(set_to_none=False)
    out.append([p.grad for p in n.parameters()])
    n.zero_grad()
    out.append([p.grad for p in n.parameters()])
    n.requires_grad_(False)
    out.append([p.requires_grad for p in n.parameters()])
    return out


@case
def case_copies(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.ReLU()))
    net.tied = net[0].weight
    twin = copy.deepcopy(net)
    again = pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 3))))
    shallow = copy.copy(net)
    return [
        twin[0].weight,
        twin[0].weight is not net[0].weight,
        twin.tied is twin[0].weight,
        repr(again),
        list(again.state_dict()),
        shallow[0] is net[0],
        repr(shallow),
    ]


@case
def case_compile(torch: Any) -> Any:
    m = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    before = m(x)
    m.compile(backend="eager")
    return [before, m(x)]


@case
def case_unusual_subclasses(torch: Any) -> Any:
    nn = torch.nn

    class Base:
        def __init__(self, extra: Any = None) -> None:
            self.extra = extra

    class Both(nn.Module, Base):
        call_super_init = True

        def __init__(self) -> None:
            super().__init__(extra=5)

    class Property(nn.Module):
        @property
        def value(self) -> Any:
            return self.missing

    class Old(nn.Module):
        def register_buffer(self, name: str, tensor: Any) -> None:
            super().register_buffer(name, tensor)

    old = Old()
    old.x = nn.Buffer(torch.ones(1))
    return [
        Both().extra,
        attempt(lambda: Property().value),
        list(old._buffers),
        attempt(lambda: setattr(old, "y", nn.Buffer(torch.ones(1), persistent=False))),
        repr(nn.Module()),
        repr(nn.Sequential()),
    ]
