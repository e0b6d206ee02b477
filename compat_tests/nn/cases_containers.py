"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict
from typing import Any

from compat_tests import case
from compat_tests.nn.running import attempt


@case
def case_sequential(torch: Any) -> Any:
    nn = torch.nn
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Tanh()
    s = nn.Sequential(a, b, c)
    named = nn.Sequential(OrderedDict([("x", a), ("y", b)]))
    out = [
        repr(s),
        repr(named),
        s[0] is a,
        s[-1] is c,
        repr(s[1:]),
        repr(named[:1]),
        len(s),
        [type(m).__name__ for m in s],
        repr(s + named),
        repr(s * 2),
        repr(2 * named),
        attempt(lambda: s[3]),
        attempt(lambda: s["x"]),
        attempt(lambda: s + [1]),
        attempt(lambda: s * 1.5)[0],
        attempt(lambda: s * 0)[0],
        attempt(lambda: s.insert(9, b)),
        attempt(lambda: s.insert(0, 3))[0],
        attempt(lambda: s.append(3)),
    ]
    s[1] = nn.Sigmoid()
    out.append(repr(s))
    del s[0]
    out.append(repr(s))
    s.insert(0, nn.GELU()).insert(-1, nn.ELU())
    s.extend([nn.ReLU6()]).append(nn.SELU())
    out.append(repr(s))
    out.append([repr(s.pop(0)), repr(s.pop(slice(0, 2))), repr(s)])
    s += nn.Sequential(nn.Tanh())
    s *= 2
    out.append(repr(s))
    named["y" and 1] = nn.Mish()
    del named[0:1]
    out.append([repr(named), list(nn.Sequential(a, b).state_dict()), [k for k in dir(s) if k.isdigit()]])
    return out


@case
def case_module_list(torch: Any) -> Any:
    nn = torch.nn
    m = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU(), nn.Linear(2, 2)])
    out = [
        repr(m),
        repr(m[1:3]),
        repr(m[-1]),
        len(m),
        repr(m + [nn.Tanh()]),
        attempt(lambda: m[5]),
        attempt(lambda: m.extend(3)),
        attempt(lambda: m.append(3)),
        attempt(lambda: m(3)),
        repr(nn.ModuleList()),
        repr(nn.ModuleList([nn.Sequential(nn.ReLU())] * 2)),
        list(m.state_dict()),
    ]
    m[0] = nn.Tanh()
    del m[1]
    del m[1:2]
    m.insert(0, nn.GELU())
    m += [nn.ReLU()]
    out += [repr(m), repr(m.pop(-1)), repr(m)]
    return out


@case
def case_module_dict(torch: Any) -> Any:
    nn = torch.nn
    m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(1, 1)})
    m["c"] = nn.Tanh()
    m.update([["d", nn.ELU()]])
    m.update(nn.ModuleDict({"e": nn.GELU()}))
    out = [
        repr(m),
        list(m.keys()),
        [k for k, _ in m.items()],
        [type(v).__name__ for v in m.values()],
        "a" in m,
        len(m),
        list(m),
        attempt(lambda: m["zz"]),
        attempt(lambda: m.update(3)),
        attempt(lambda: m.update([3])),
        attempt(lambda: m.update([["a"]])),
        attempt(lambda: m.__setitem__("keys", nn.ReLU())),
        attempt(lambda: m.__setitem__("q", 3)),
        repr(m.pop("a")),
    ]
    del m["b"]
    out.append(repr(m))
    m.clear()
    return [*out, repr(m)]


@case
def case_parameter_list(torch: Any) -> Any:
    nn = torch.nn
    m = nn.ParameterList([nn.Parameter(torch.ones(2, 3)), torch.zeros(2), "text", nn.Parameter(torch.ones(()))])
    out = [
        repr(m),
        [k for k, _ in m.named_parameters()],
        type(m[1]).__name__,
        m[2],
        len(m),
        repr(m[1:]),
        attempt(lambda: m[4]),
        attempt(lambda: m(3)),
        attempt(lambda: m.extend(torch.ones(2))),
        attempt(lambda: m.extend(3)),
    ]
    m[0] = torch.full((1,), 5.0)
    m.append(7).extend([torch.ones(1, dtype=torch.float64)])
    m += [None]
    return [*out, repr(m), list(m.state_dict()), [type(v).__name__ for v in m]]


@case
def case_parameter_dict(torch: Any) -> Any:
    nn = torch.nn
    m = nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.zeros(1, 2)), "c": "text"})
    other = nn.ParameterDict(OrderedDict([("z", torch.ones(1)), ("b", torch.zeros(3))]))
    out = [
        repr(m),
        list(m),
        list(reversed(m)),
        list(m.keys()),
        [k for k, _ in m.items()],
        [type(v).__name__ for v in m.values()],
        "a" in m,
        m.get("q", 3),
        m.get("c"),
        m.setdefault("d", torch.ones(1)),
        repr(m | other),
        repr(m.copy()),
        repr(m.fromkeys(["x", "y"], torch.ones(1))),
        attempt(lambda: m[3]),
        attempt(lambda: m["zz"]),
        attempt(lambda: m.__setitem__(3, torch.ones(1))),
        attempt(lambda: m.update(3)),
        attempt(lambda: m.update([3])),
        attempt(lambda: m.update([["a"]])),
        attempt(lambda: m(3)),
    ]
    m._keys.pop(3, None)
    m |= other
    out.append([m.popitem()[0], m.pop("b"), repr(m)])
    del m["a"]
    m.update([["k", torch.ones(1)]])
    out.append([repr(m), list(m.state_dict())])
    m.clear()
    return [*out, repr(m), len(m)]
