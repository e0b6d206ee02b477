"""What programs written for more than one step find: compile, jit, distributed, futures, library, overrides."""

import os
import typing

from compat_tests.harness import case, raises


@case
def case_compile_module(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    c = torch.compile(m, backend="eager")
    c.eval()
    c.mark = 3
    return {
        "keys": list(c.state_dict()),
        "repr": repr(c),
        "inner": c._orig_mod is m,
        "training": m.training,
        "mark": m.mark,
        "names": [n for n, _ in c.named_modules()],
        "length": len(c),
    }


@case
def case_compile_errors(torch):
    m = torch.nn.Linear(2, 2)
    return [
        raises(torch, lambda: torch.compile(m, mode="fast")),
        raises(torch, lambda: torch.compile(m, mode="default", options={"debug": True})),
        raises(torch, lambda: torch.compile(m, backend="fast"))[1],
        raises(torch, lambda: torch.compile(m, dynamic=3)),
        raises(torch, lambda: torch.compile(3)),
        torch.compiler.is_compiling(),
        raises(torch, lambda: torch._dynamo.config.no_such_setting),
    ]


@case
def case_jit(torch):
    m = torch.nn.Linear(2, 2)
    return [
        torch.jit.isinstance([1, 2], typing.List[int]),  # noqa: UP006
        torch.jit.isinstance([1, "a"], typing.List[int]),  # noqa: UP006
        torch.jit.isinstance({"a": 1}, typing.Dict[str, int]),  # noqa: UP006
        torch.jit.annotate(int, 3),
        torch.jit.wait(torch.jit.fork(lambda a: a + 1, 2)),
        isinstance(m, torch.jit.ScriptModule),
        raises(torch, lambda: torch.jit.trace_module(m, 3)),
        torch.jit.script(m)(torch.ones(1, 2)).shape,
        torch.jit.is_scripting(),
    ]


@case
def case_futures(torch):
    first = torch.futures.Future()
    second = first.then(lambda f: f.wait() + 1)
    failing = first.then(lambda f: 1 / 0)
    before = first.done()
    first.set_result(1)
    return [
        before,
        torch.futures.wait_all([first, second]),
        raises(torch, lambda: first.set_result(2)),
        raises(torch, lambda: first.set_exception(2)),
        raises(torch, failing.wait)[0].split("(")[0][-5:],
    ]


@case
def case_custom_op(torch):
    name = f"compat{torch.__name__}::double"
    op = torch.library.custom_op(name, double(torch), mutates_args=())
    x = torch.linspace(0, 1, 4, requires_grad=True)
    out = op(x, 3.0)
    text = raises(torch, lambda: out.sum().backward())[1].replace(f"compat{torch.__name__}", "")

    def backward(ctx, g):
        return g * ctx.k, None

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    op.register_autograd(backward, setup_context=setup_context)
    op(x, k=3.0).sum().backward()
    return out.detach(), out.requires_grad, text, x.grad


def double(torch):
    def double(x, k=2.0):
        return x * k

    double.__annotations__ = {"x": torch.Tensor, "k": float, "return": torch.Tensor}
    return double


@case
def case_overrides(torch):
    class Wrapped:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [t.__name__ for t in types]

    def api(x):
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(api, (x,), x)
        return x

    return api(Wrapped()), api(3), torch.overrides.is_tensor_like(Wrapped()), torch.overrides.resolve_name(torch.add)


@case
def case_devices_that_are_not_there(torch):
    return [
        torch.mps.is_available(),
        torch.xpu.is_available(),
        torch.mtia.is_available(),
        torch.xpu.device_count(),
        raises(torch, torch.mps.empty_cache),
        raises(torch, lambda: torch.xpu.set_device(0)),
    ]


@case
def case_version(torch):
    v = torch.__version__
    return v >= (1, 8), v < "2.2", v > "2.12.9", str(v).startswith("2.13"), v >= "2.13.0a0"


def _group(torch):
    dist = torch.distributed
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    return dist


@case
def case_distributed_without_group(torch):
    dist = torch.distributed
    hidden = {k: os.environ.pop(k) for k in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if k in os.environ}
    try:
        return [
            dist.is_available(),
            dist.is_initialized(),
            raises(torch, dist.get_rank),
            raises(torch, lambda: dist.all_reduce(torch.ones(2))),
            raises(torch, lambda: dist.init_process_group("gloo")),
            raises(torch, dist.destroy_process_group),
            raises(torch, lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))),
        ]
    finally:
        os.environ.update(hidden)


@case
def case_distributed_single(torch):
    dist = _group(torch)
    try:
        x = torch.arange(3.0)
        gathered, objects = [torch.zeros(3)], [None]
        dist.all_gather(gathered, x)
        dist.all_gather_object(objects, {"a": 1})
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        dist.scatter(x, [x + 1], 0)
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        return {
            "rank": (dist.get_rank(), dist.get_world_size(), str(dist.get_backend())),
            "x": x,
            "gathered": gathered,
            "objects": objects,
            "errors": [
                raises(torch, lambda: dist.broadcast(x, 1)),
                raises(torch, lambda: dist.all_reduce(3)),
                raises(torch, lambda: dist.all_gather([torch.zeros(3)] * 2, x)),
                raises(torch, lambda: dist.all_gather([torch.zeros(2)], x)),
                raises(torch, lambda: dist.send(x, 0)),
                raises(torch, lambda: dist.new_group([0, 1])),
                raises(torch, lambda: _group(torch)),
            ],
        }
    finally:
        dist.destroy_process_group()


@case
def case_distributed_data_parallel(torch):
    dist = _group(torch)
    try:
        d = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        with d.no_sync():
            d(torch.ones(3, 2)).sum().backward()
        d(torch.ones(3, 2)).sum().backward()
        return list(d.state_dict()), repr(d), d.module.weight.grad
    finally:
        dist.destroy_process_group()
