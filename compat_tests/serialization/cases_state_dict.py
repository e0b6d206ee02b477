"""state_dict and load_state_dict of modules and optimizers: reports, hooks, exact messages, copies and pickles."""

import copy
import io
import pickle
from collections import OrderedDict
from typing import Any

from compat_tests import capture, case, raises, warns


def net(torch: Any) -> Any:
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))))


def keys(result: Any) -> Any:
    return [type(result).__name__, list(result.missing_keys), list(result.unexpected_keys), str(result), repr(result)]


@case(modes=("default",))
def case_reports(torch: Any) -> Any:
    state = net(torch).state_dict()
    less = OrderedDict((k, v) for k, v in state.items() if k not in ("a.bias", "b.0.running_var"))
    more = OrderedDict(state, extra=torch.ones(1), **{"b.0.more": torch.ones(1), "b.5.weight": torch.ones(1)})
    both = OrderedDict(less, extra=torch.ones(1))
    wrong = OrderedDict(state, **{"a.weight": torch.ones(3, 3), "a.bias": torch.ones(3, 1), "b.0.bias": torch.ones(())})
    types = OrderedDict(state, **{"a.weight": 3, "a.bias": [1.0, 2.0, 3.0], "b.0.bias": None})

    def load(x: Any, **settings: Any) -> Any:
        return keys(net(torch).load_state_dict(x, **settings))

    out = [load(state), load(dict(state)), load({}, strict=False), load(both, strict=False), load(more, strict=False)]
    out += [raises(torch, lambda x=x: load(x)) for x in ({}, less, more, both, wrong, types, {"a": 1}, [1], None, 3)]
    out += [raises(torch, lambda x=x: load(x, strict=False)) for x in (wrong, types)]
    out += [raises(torch, lambda x=x: load(x, assign=True)) for x in (less, wrong, types)]
    out += [load({"a.weight": torch.ones(3, 2)}, strict=False)]
    return out


@case(modes=("default",))
def case_metadata(torch: Any) -> Any:
    state = net(torch).state_dict()
    plain = torch.nn.BatchNorm1d(2)
    old = {k: v for k, v in plain.state_dict().items() if k != "num_batches_tracked"}
    versioned = OrderedDict(old)
    versioned._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    return {
        "metadata": [type(state).__name__, type(state._metadata).__name__, list(state._metadata.items())],
        "prefix": list(net(torch).state_dict(prefix="module.")),
        "prefix metadata": list(net(torch).state_dict(prefix="module.")._metadata),
        "destination": [type(d := net(torch).state_dict(destination={})).__name__, list(d)],
        "positional": warns(torch, lambda: list(torch.nn.Linear(1, 1).state_dict(None, "x."))),
        "old batchnorm": keys(plain.load_state_dict(versioned)),
        "batchnorm without": keys(plain.load_state_dict(old)),
        "kept": [type(v).__name__ for v in net(torch).state_dict(keep_vars=True).values()],
        "requires grad": [v.requires_grad for v in net(torch).state_dict(keep_vars=True).values()],
        "copied metadata": list(copy.deepcopy(state)._metadata),
        "after pickle": list(pickle.loads(pickle.dumps(state))._metadata),
    }


@case(modes=("default",))
def case_prefix_surgery(torch: Any) -> Any:
    wrapped = torch.nn.Module()
    wrapped.module = net(torch)
    state = wrapped.state_dict()
    stripped = OrderedDict((k.removeprefix("module."), v) for k, v in state.items())
    in_place = wrapped.state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(in_place, "module.")
    return [
        list(state),
        raises(torch, lambda: net(torch).load_state_dict(state)),
        keys(net(torch).load_state_dict(stripped)),
        list(in_place),
        list(in_place._metadata),
        keys(net(torch).load_state_dict(in_place)),
    ]


@case(modes=("default",))
def case_assign(torch: Any) -> Any:
    source = net(torch)
    state = source.state_dict()
    target = net(torch)
    target.a.bias.requires_grad_(False)
    before = target.a.weight
    target.load_state_dict(state, assign=True)
    out = [target.a.weight is before, target.a.weight is source.a.weight, type(target.a.weight).__name__]
    out += [target.a.weight.requires_grad, target.a.bias.requires_grad, target.b[0].running_mean.requires_grad]
    with torch.no_grad():
        source.a.weight.fill_(5.0)
    out += [target.a.weight.tolist(), target.a.weight.data_ptr() == source.a.weight.data_ptr()]
    halved = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
    target.load_state_dict(halved, assign=True)
    out += [{k: v.dtype for k, v in target.state_dict().items()}]
    other = net(torch)
    other.load_state_dict(halved)
    out += [{k: v.dtype for k, v in other.state_dict().items()}]
    with torch.device("meta"):
        empty = torch.nn.Linear(2, 2)
    full = torch.nn.Linear(2, 2).state_dict()
    out += [warns(torch, lambda: keys(empty.load_state_dict(full))), empty.weight.is_meta]
    out += [keys(empty.load_state_dict(full, assign=True)), empty.weight.is_meta]
    given = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)
    empty.load_state_dict({"weight": given, "bias": torch.zeros(2)}, assign=True)
    out += [empty.weight is given, given.requires_grad]
    out += [raises(torch, lambda: empty.load_state_dict({"weight": torch.ones(2, 2, dtype=torch.int64)}, False, True))]
    buffered = torch.nn.BatchNorm1d(2)
    buffered.load_state_dict({"running_mean": torch.nn.Parameter(torch.ones(2))}, strict=False, assign=True)
    return [*out, type(buffered.running_mean).__name__, list(dict(buffered.named_buffers())), len(buffered._parameters)]


@case(modes=("default",))
def case_dtypes(torch: Any) -> Any:
    """What load_state_dict and copy_ make of other dtypes."""
    values = torch.tensor([1.75, -2.5, 0.0, 100.25])
    out = {}
    for target in ("float16", "bfloat16", "float64", "int32", "uint8", "bool", "complex64"):
        for source in ("float32", "int64", "bool", "bfloat16"):
            x = values.abs().to(getattr(torch, source))
            module = torch.nn.Module()
            module.register_buffer("x", torch.zeros(4, dtype=getattr(torch, target)))
            out[f"{source} to {target}"] = warns(torch, lambda m=module, x=x: [m.load_state_dict({"x": x}), m.x][1:])
    return out


@case(modes=("default",))
def case_scalars(torch: Any) -> Any:
    """Old files hold scalars as vectors of one element."""
    module = torch.nn.Module()
    module.register_buffer("x", torch.tensor(1.0))
    module.w = torch.nn.Parameter(torch.ones(1))
    module.load_state_dict({"x": torch.tensor([4.0]), "w": torch.tensor([3.0])})
    return [
        module.state_dict(),
        raises(torch, lambda: module.load_state_dict({"x": torch.ones(2), "w": torch.ones(())})),
        raises(torch, lambda: module.load_state_dict({"x": torch.ones(1, 1), "w": torch.ones(1)})),
    ]


def extra(torch: Any) -> Any:
    class Extra(torch.nn.Module):
        def __init__(self, value: Any = None) -> None:
            super().__init__()
            self.register_buffer("kept", torch.ones(1))
            self.register_buffer("dropped", torch.ones(1), persistent=False)
            self.register_buffer("none", None)
            self.value = value

        def get_extra_state(self) -> Any:
            return self.value

        def set_extra_state(self, state: Any) -> None:
            self.value = state

    return Extra


@case(modes=("default",))
def case_extra_state(torch: Any) -> Any:
    kind = extra(torch)

    class Reads(torch.nn.Module):
        def set_extra_state(self, state: Any) -> None:
            raise ValueError("not this one")

    class Writes(torch.nn.Module):
        def get_extra_state(self) -> Any:
            return 1

    source = torch.nn.ModuleDict({"x": kind({"n": [1, 2]}), "y": torch.nn.Linear(1, 1)})
    target = torch.nn.ModuleDict({"x": kind(), "y": torch.nn.Linear(1, 1)})
    state = source.state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    out = [list(state), keys(target.load_state_dict(torch.load(file))), target["x"].value]
    out += [raises(torch, lambda: target.load_state_dict({k: v for k, v in state.items() if "extra" not in k}))]
    out += [
        raises(torch, lambda: torch.nn.Linear(1, 1).load_state_dict({**target["y"].state_dict(), "_extra_state": 1}))
    ]
    out += [raises(torch, lambda: Reads().load_state_dict({"_extra_state": 1}))]
    out += [raises(torch, lambda: Reads().load_state_dict({})), Writes().state_dict()]
    out += [raises(torch, lambda: Writes().load_state_dict({"_extra_state": 1}))]
    out += [
        raises(torch, torch.nn.Module().get_extra_state),
        raises(torch, lambda: torch.nn.Module().set_extra_state(1)),
    ]
    return [*out, list(kind().state_dict()), keys(kind().load_state_dict({"kept": torch.zeros(1)}, strict=False))]


@case(modes=("default",))
def case_hooks(torch: Any) -> Any:
    log: list = []
    module = net(torch)

    def pre(m: Any, prefix: str, keep_vars: bool) -> None:
        log.append(["pre", type(m).__name__, prefix, keep_vars])

    def post(m: Any, state: Any, prefix: str, metadata: Any) -> None:
        log.append(["post", type(m).__name__, prefix, list(state), metadata])
        state[prefix + "added"] = torch.ones(1)

    def load_pre(m: Any, state: Any, prefix: str, metadata: Any, strict: bool, *lists: list) -> None:
        log.append(["load pre", type(m).__name__, prefix, list(state), metadata, strict, [list(x) for x in lists]])
        state.pop(prefix + "added", None)

    def load_post(m: Any, incompatible: Any) -> None:
        log.append(["load post", type(m).__name__, keys(incompatible)])
        incompatible.missing_keys.clear()

    handles = [
        module.a.register_state_dict_pre_hook(pre),
        module.a.register_state_dict_post_hook(post),
        module.a.register_load_state_dict_pre_hook(load_pre),
        module.register_load_state_dict_post_hook(load_post),
        module.b.register_load_state_dict_post_hook(load_post),
    ]
    state = module.state_dict(keep_vars=True)
    out = [list(state), keys(module.load_state_dict(state))]
    del state["b.0.weight"]
    out += [keys(module.load_state_dict(state))]
    copied = copy.deepcopy(module)
    out += [list(copied.state_dict()), len(log)]
    for handle in handles:
        handle.remove()
    out += [list(module.state_dict()), len(log)]

    one = torch.nn.Linear(1, 1)
    one.register_state_dict_post_hook(lambda *a: {})
    out += [raises(torch, one.state_dict)]
    two = torch.nn.Linear(1, 1)
    two._register_state_dict_hook(lambda m, s, p, meta: {"replaced": 1})
    out += [two.state_dict()]
    three = torch.nn.Linear(1, 1)
    three.register_load_state_dict_post_hook(lambda m, k: 3)
    out += [raises(torch, lambda: three.load_state_dict(torch.nn.Linear(1, 1).state_dict()))]
    four = torch.nn.Linear(1, 1)
    four._register_load_state_dict_pre_hook(lambda s, p, m, st, mi, un, er: er.append("from a hook"))
    out += [raises(torch, lambda: four.load_state_dict(torch.nn.Linear(1, 1).state_dict()))]
    return [*out, log]


@case(modes=("default",))
def case_lazy(torch: Any) -> Any:
    lazy = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyBatchNorm1d())
    full = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    out = [[[k, type(v).__name__] for k, v in lazy.state_dict().items()]]
    out += [raises(torch, lambda: full.load_state_dict(lazy.state_dict()))]
    again = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyBatchNorm1d())
    out += [keys(again.load_state_dict(lazy.state_dict())), type(again[0].weight).__name__]
    for module in (lazy[0], copy.deepcopy(lazy[0]), pickle.loads(pickle.dumps(lazy[0]))):
        out += [type(module.weight).__name__, type(module.bias).__name__, type(module).__name__]
        out += [keys(module.load_state_dict(full[0].state_dict())), type(module.weight).__name__, module.weight.shape]
        out += [module(torch.ones(2, 2)).shape, type(module).__name__]
    return out


@case(modes=("default",))
def case_copies(torch: Any) -> Any:
    """deepcopy and pickle of modules, optimizers, schedules, loaders."""
    torch.manual_seed(0)
    shared = torch.nn.Linear(2, 2)
    module = torch.nn.ModuleList([shared, shared, torch.nn.Linear(2, 2, bias=False)])
    module[2].weight = shared.weight
    module.register_buffer("b", torch.ones(2))
    module.note = shared.weight.detach()[0]
    optimizer = torch.optim.Adam([{"params": [shared.weight]}, {"params": [shared.bias], "lr": 0.5}], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(parts: list) -> list:
        layers, stepper, rate = parts
        stepper.zero_grad()
        layers[0](layers[2](torch.ones(1, 2))).sum().backward()
        stepper.step()
        rate.step()
        return [layers[0].weight.tolist(), layers[0].bias.tolist(), rate.get_last_lr()]

    parts = [module, optimizer, schedule]
    step(parts)
    out: list = []
    for name, other in {"deepcopy": copy.deepcopy(parts), "pickle": pickle.loads(pickle.dumps(parts))}.items():
        layers, stepper, rate = other
        out += [name, layers[0] is layers[1], layers[2].weight is layers[0].weight, stepper is rate.optimizer]
        out += [stepper.param_groups[0]["params"][0] is layers[0].weight, len(stepper.state), layers[0].weight.grad]
        out += [sorted(stepper.state[layers[0].weight]), layers[0].weight is shared.weight, layers.note]
        out += [str(stepper), type(rate).__name__, rate.state_dict()]
    twice = copy.deepcopy(parts)
    out += [step(parts), step(twice), step(parts), step(twice)]
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.arange(6.0)), 2, shuffle=True, generator=torch.Generator().manual_seed(3)
    )
    out += [
        [b.tolist() for (b,) in copied]
        for copied in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader)), loader)
    ]
    generator = torch.Generator().manual_seed(4)
    torch.rand(3, generator=generator)
    return [*out, *(torch.rand(2, generator=g) for g in (copied_generator(torch, generator), generator))]


def copied_generator(torch: Any, generator: Any) -> Any:
    return pickle.loads(pickle.dumps(generator))


@case(modes=("default",))
def case_tensors_copied(torch: Any) -> Any:
    base = torch.arange(6.0)
    both = [base, base[2:4], base.view(2, 3).t()]
    out: list = []
    for copied in (copy.deepcopy(both), pickle.loads(pickle.dumps(both))):
        copied[0][2] = 99
        out += [copied[1].tolist(), copied[2].stride(), copied[1].storage_offset(), base.tolist()]
    leaf = torch.ones(2, requires_grad=True)
    leaf.note = "kept"
    (leaf * 2).sum().backward()
    for copied in (copy.deepcopy(leaf), copy.copy(leaf), pickle.loads(pickle.dumps(leaf))):
        out += [copied.requires_grad, copied.grad, getattr(copied, "note", None), copied.is_leaf]
    out += [raises(torch, lambda: copy.deepcopy(leaf * 2))]
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter._private = "kept"
    for copied in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        out += [type(copied).__name__, copied.requires_grad, getattr(copied, "_private", None)]
    return out


@case(modes=("default",))
def case_optimizer_states(torch: Any) -> Any:
    def made(kind: str = "Adam", groups: int = 1, **settings: Any) -> Any:
        params = [torch.nn.Parameter(torch.ones(2) * (k + 1)) for k in range(2)]
        given = params if groups == 1 else [{"params": [p]} for p in params]
        optimizer = getattr(torch.optim, kind)(given, lr=0.1, **settings)
        for p in params:
            p.grad = p.detach().clone()
        optimizer.step()
        return optimizer

    adam, sgd, split = made(), made("SGD", momentum=0.9), made(groups=2)
    state = adam.state_dict()
    half = torch.optim.Adam([torch.nn.Parameter(torch.ones(2, dtype=torch.float16)) for _ in range(2)], lr=0.3)
    half.load_state_dict(state)
    fewer = {"state": {0: state["state"][0]}, "param_groups": state["param_groups"]}
    some = made()
    some.load_state_dict(fewer)
    other = made(amsgrad=True)
    other.load_state_dict(state)
    shares = made()
    shares.load_state_dict(state)
    moved = shares.state_dict()["state"][0]["exp_avg"].data_ptr() == state["state"][0]["exp_avg"].data_ptr()
    return {
        "state": state,
        "groups": [list(g) for g in split.state_dict()["param_groups"]],
        "half": half.state_dict(),
        "fewer": sorted(some.state_dict()["state"]),
        "other options": other.param_groups[0]["amsgrad"],
        "shares": moved,
        "from sgd": raises(torch, lambda: adam.load_state_dict(sgd.state_dict())),
        "number": raises(torch, lambda: adam.load_state_dict(split.state_dict())),
        "size": raises(torch, lambda: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]).load_state_dict(state)),
        "empty": raises(torch, lambda: adam.load_state_dict({})),
        "none": raises(torch, lambda: adam.load_state_dict(None)),
        "printed": capture(lambda: print(half)),
    }
