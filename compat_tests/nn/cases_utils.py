"""nn.utils: clipping, vectors, fusion, normalizations, parametrizations, pruning, functional_call."""

import copy
import importlib
from typing import Any

from compat_tests import case, data, tensor, warns
from compat_tests.nn.running import attempt


def with_grads(torch: Any, *grads: Any) -> list:
    """Parameters with these gradients."""
    params = []
    for g in grads:
        p = torch.nn.Parameter(torch.zeros(()))
        if g is not None:
            p = torch.nn.Parameter(torch.zeros_like(g))
            p.grad = g
        params.append(p)
    return params


@case(rtol=1e-5, atol=1e-6)
@case.params("norm_type", [2.0, 1, float("inf"), float("-inf"), 0, 3, 0.5])
@case.params("max_norm", [0.5, 100.0, 0.0])
def case_clip_grad_norm(torch: Any, norm_type: float, max_norm: float) -> Any:
    grads = [tensor(torch, (3, 4), seed=1), tensor(torch, (5,), seed=2), tensor(torch, (), seed=3)]
    kept = grads[0]
    params = with_grads(torch, *grads, None)
    total = torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type)
    return [total, [p.grad for p in params], params[0].grad is kept, total.requires_grad]


@case(rtol=2e-2, atol=1e-3)
def case_clip_mixed_dtypes(torch: Any) -> Any:
    dtypes = ("float32", "float64", "float16", "bfloat16")
    params = with_grads(torch, *[tensor(torch, (4,), d, seed=k) for k, d in enumerate(dtypes)])
    total = torch.nn.utils.clip_grad_norm_(params, 1.0)
    return [total, [p.grad for p in params]]


@case
def case_clip_cases(torch: Any) -> Any:
    u = torch.nn.utils
    bad = with_grads(torch, torch.tensor([1.0, float("nan")]))
    one = with_grads(torch, torch.tensor([3.0, -4.0]))[0]
    shared = torch.tensor([3.0, 4.0])
    twice = with_grads(torch, shared, shared)
    value = with_grads(torch, torch.tensor([3.0, -4.0, 0.5]), None)
    u.clip_grad_value_(value, 1)
    single = with_grads(torch, torch.tensor([3.0, -4.0, 0.5]))[0]
    u.clip_grad_value_(single, 0.25)
    return [
        attempt(lambda: u.clip_grad_norm_(bad, 1.0, error_if_nonfinite=True)),
        u.clip_grad_norm_(bad, 1.0),
        bad[0].grad,
        u.clip_grad_norm_(one, 1.0),
        one.grad,
        u.clip_grad_norm_(twice, 1.0),
        shared,
        u.clip_grad_norm_([], 1.0),
        warns(torch, lambda: u.clip_grad_norm_((p for p in []), 1.0)),
        warns(torch, lambda: u.clip_grad_norm(one, 1.0)),
        [p.grad for p in value],
        single.grad,
        u.get_total_norm([torch.tensor([3.0, 4.0])]),
        u.clip_grads_with_norm_([one], 0.1, torch.tensor(2.0)),
        one.grad,
    ]


@case
def case_vectors(torch: Any) -> Any:
    u = torch.nn.utils
    m = torch.nn.Linear(2, 3)
    vector = u.parameters_to_vector(m.parameters())
    weight = m.weight
    u.vector_to_parameters(torch.arange(9.0), m.parameters())
    return [
        vector.shape,
        vector.requires_grad,
        m.weight,
        m.bias,
        m.weight is weight,
        attempt(lambda: u.vector_to_parameters([1], m.parameters())),
    ]


@case(rtol=1e-4, atol=1e-5)
def case_fusion(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    conv, norm = nn.Conv2d(2, 3, 2).eval(), nn.BatchNorm2d(3).eval()
    norm.running_mean.copy_(torch.tensor([0.1, 0.2, 0.3]))
    norm.running_var.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x = tensor(torch, (1, 2, 3, 3))
    fused = u.fuse_conv_bn_eval(conv, norm)
    linear, norm1 = nn.Linear(2, 3, bias=False).eval(), nn.BatchNorm1d(3).eval()
    fused_linear = u.fuse_linear_bn_eval(linear, norm1)
    y = tensor(torch, (4, 2))
    return [
        fused(x) - norm(conv(x)),
        repr(fused),
        fused.weight,
        fused_linear(y) - norm1(linear(y)),
        fused_linear.bias,
        attempt(lambda: u.fuse_conv_bn_eval(conv.train(), norm)),
        attempt(lambda: u.fuse_linear_bn_eval(nn.Linear(2, 2).eval(), norm1)),
    ]


@case
def case_skip_init(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    m = u.skip_init(nn.Linear, 2, 3, dtype=torch.float64)
    return [
        repr(m),
        m.weight.dtype,
        torch.rand(1),
        attempt(lambda: u.skip_init(int)),
        attempt(lambda: u.skip_init(nn.ReLU)),
    ]


def stepped(torch: Any, m: Any, x: Any, steps: int = 2) -> list:
    """Outputs and gradients of a few training steps."""
    out = []
    for _ in range(steps):
        m.zero_grad()
        y = m(x)
        (y * torch.linspace(0, 1, y.numel()).reshape(y.shape)).sum().backward()
        with torch.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
        out.append([y, [[k, p.grad] for k, p in m.named_parameters()]])
    return out


@case(rtol=1e-4, atol=1e-5)
@case.params("dim", [0, 1, None])
def case_weight_norm(torch: Any, dim: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    x = tensor(torch, (4, 2))
    old = warns(torch, lambda: u.weight_norm(nn.Linear(2, 3), dim=dim))
    m = old[0]
    new = u.parametrizations.weight_norm(nn.Linear(2, 3), dim=dim)
    out = [old[1], repr(m), list(m.state_dict()), stepped(torch, m, x)]
    out += [repr(new), list(new.state_dict()), stepped(torch, new, x)]
    new.load_state_dict(m.state_dict())
    out.append(new(x) - m(x))
    u.remove_weight_norm(m)
    u.parametrize.remove_parametrizations(new, "weight")
    out += [repr(m), list(m.state_dict()), repr(new), list(new.state_dict()), new(x) - m(x)]
    out.append(attempt(lambda: u.remove_weight_norm(m)))
    return out


@case(rtol=1e-3, atol=1e-4)
def case_spectral_norm(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    x = tensor(torch, (4, 3))
    old, new = u.spectral_norm(nn.Linear(3, 2)), u.parametrizations.spectral_norm(nn.Linear(3, 2))
    out = [repr(old), list(old.state_dict()), dict(old.state_dict()._metadata[""]), stepped(torch, old, x)]
    out += [repr(new), list(new.state_dict()), stepped(torch, new, x), old.eval()(x), new.eval()(x)]
    twin = u.spectral_norm(nn.Linear(3, 2)).eval()
    out.append([repr(twin.load_state_dict(old.state_dict())), twin(x) - old(x)])
    out.append(attempt(lambda: twin.load_state_dict({})))
    out.append(attempt(lambda: u.spectral_norm(twin)))
    u.remove_spectral_norm(old)
    out += [
        repr(old),
        list(old.state_dict()),
        list(old._state_dict_hooks),
        attempt(lambda: u.remove_spectral_norm(old)),
    ]
    conv = u.spectral_norm(nn.ConvTranspose1d(2, 3, 2), n_power_iterations=3)
    out.append([conv.weight_u.shape, conv.weight_v.shape])
    out.append(attempt(lambda: u.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)))
    out.append(attempt(lambda: u.parametrizations.spectral_norm(nn.ReLU())))
    out.append(attempt(lambda: u.parametrizations.spectral_norm(nn.Linear(2, 2), dim=3)))
    return out


@case(rtol=1e-3, atol=1e-4)
@case.params("kind", ["matrix_exp", "cayley", "householder"])
@case.params("shape", [(3, 3), (2, 4), (4, 2)])
def case_orthogonal(torch: Any, kind: str, shape: tuple) -> Any:
    nn, u = torch.nn, torch.nn.utils
    m = u.parametrizations.orthogonal(nn.Linear(*shape, bias=False), orthogonal_map=kind)
    w = m.weight
    small = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    return [repr(m), list(m.state_dict()), small, w.requires_grad]


@case
def case_orthogonal_errors(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    return [
        attempt(lambda: u.parametrizations.orthogonal(nn.ReLU())),
        attempt(lambda: u.parametrizations.orthogonal(nn.Linear(2, 2), "bias")),
        attempt(lambda: u.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")),
    ]


@case
def case_parametrize(torch: Any) -> Any:
    nn, P = torch.nn, torch.nn.utils.parametrize

    class Double(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

        def right_inverse(self, y: Any) -> Any:
            return y / 2

    class Half(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / 2

    class Two(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a + b

        def right_inverse(self, x: Any) -> Any:
            return x / 2, x / 2

    class Wrong(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.reshape(-1)

    class Number(nn.Module):
        def forward(self, x: Any) -> Any:
            return 3

    m = nn.Linear(2, 2)
    with torch.no_grad():
        m.weight.copy_(torch.arange(4.0).reshape(2, 2))
        m.bias.zero_()
    start = m.weight
    P.register_parametrization(m, "weight", Double())
    out = [
        repr(m),
        type(m).__name__,
        list(m.state_dict()),
        m.weight,
        m.parametrizations.weight.original is start,
        m.parametrizations.weight.original,
        P.is_parametrized(m),
        P.is_parametrized(m, "bias"),
        P.type_before_parametrizations(m).__name__,
    ]
    m.weight = torch.ones(2, 2)
    out.append([m.weight, m.parametrizations.weight.original])
    P.register_parametrization(m, "weight", Half())
    out += [m.weight, attempt(lambda: setattr(m, "weight", torch.ones(2, 2)))]
    P.register_parametrization(m, "bias", Two())
    out += [list(m.state_dict()), m.bias, attempt(lambda: copy.copy(m))[:1], repr(copy.deepcopy(m))]
    with P.cached():
        out.append(m.weight is m.weight)
    out.append(m.weight is m.weight)
    out += [
        attempt(lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Wrong())),
        attempt(lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Number())),
        attempt(lambda: P.register_parametrization(nn.Linear(2, 2), "nothing", Double())),
        attempt(lambda: P.register_parametrization(m, "weight", Wrong())),
        attempt(lambda: P.remove_parametrizations(nn.Linear(2, 2), "weight")),
        attempt(lambda: P.remove_parametrizations(m, "bias", leave_parametrized=False)),
    ]
    x = torch.ones(1, 2)
    m(x).sum().backward()
    out.append([[k, p.grad] for k, p in m.named_parameters()])
    before = m(x)
    P.remove_parametrizations(m, "weight")
    P.remove_parametrizations(m, "bias")
    return [*out, m(x) - before, type(m).__name__, [k for k, _ in m.named_parameters()], repr(m)]


@case
def case_pruning(torch: Any) -> Any:
    nn, prune = torch.nn, importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    m = nn.Linear(3, 2)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]]))
    prune.l1_unstructured(m, "weight", 2)
    out = [
        m.weight,
        list(m.state_dict()),
        prune.is_pruned(m),
        [type(h).__name__ for h in m._forward_pre_hooks.values()],
    ]
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    out += [m.weight, [type(h).__name__ for h in m._forward_pre_hooks.values()]]
    m(torch.ones(1, 3)).sum().backward()
    out.append(m.weight_orig.grad)
    prune.remove(m, "weight")
    out += [
        m.weight,
        [k for k, _ in m.named_parameters()],
        prune.is_pruned(m),
        attempt(lambda: prune.remove(m, "weight")),
    ]
    a, b = nn.Linear(3, 2), nn.Linear(2, 2)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=0.5)
    out += [a.weight_mask, b.weight_mask]
    c = nn.Linear(3, 4)
    prune.random_unstructured(c, "weight", 0.5)
    prune.random_structured(c, "weight", 1, dim=0)
    prune.custom_from_mask(c, "bias", torch.tensor([1, 0, 1, 0]))
    prune.identity(b, "bias")
    out += [c.weight_mask, c.bias, b.bias_mask]
    return [
        *out,
        attempt(lambda: prune.l1_unstructured(c, "bias", 1.5)),
        attempt(lambda: prune.l1_unstructured(nn.Linear(1, 1), "weight", 3)),
        attempt(lambda: prune.l1_unstructured(c, "bias", "x")),
        attempt(lambda: prune.ln_structured(nn.Linear(1, 1), "bias", 1, 2, 0)),
        attempt(lambda: prune.global_unstructured(3, prune.L1Unstructured)),
    ]


@case
def case_functional_call(torch: Any) -> Any:
    nn, s = torch.nn, torch.nn.utils.stateless
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    tied = nn.Module()
    tied.a = nn.Linear(1, 1)
    tied.b = tied.a
    tied.forward = lambda x: tied.b(tied.a(x))
    weight = m[0].weight
    given = {"0.weight": torch.ones(2, 2), "1.running_mean": torch.zeros(2)}
    x = torch.tensor(data((3, 2)))
    y = s._functional_call(m, given, (x,))
    return [
        y,
        m[0].weight is weight,
        given["1.running_mean"],
        m[1].running_mean,
        warns(torch, lambda: s.functional_call(m.eval(), {}, x).shape)[1],
        attempt(lambda: s._functional_call(m, {"zz": torch.ones(1)}, x, strict=True)),
        attempt(lambda: s._functional_call(m, {"q.zz": torch.ones(1)}, x))[0],
        s._functional_call(tied, {"a.weight": torch.ones(1, 1) * 2, "a.bias": torch.zeros(1)}, torch.ones(1, 1)),
        attempt(
            lambda: s._functional_call(
                tied, {"a.weight": torch.ones(1, 1), "b.weight": torch.zeros(1, 1)}, torch.ones(1, 1)
            )
        ),
    ]


@case
def case_memory_format_and_prefix(torch: Any) -> Any:
    nn = torch.nn
    conv = nn.Conv2d(2, 3, 2)
    before = conv.weight.detach().clone()
    nn.utils.convert_conv2d_weight_memory_format(conv, torch.channels_last)
    state = nn.Sequential(nn.Linear(1, 1)).state_dict(prefix="module.")
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return [(conv.weight == before).all(), list(state), list(state._metadata), nn.factory_kwargs({"dtype": torch.int8})]
