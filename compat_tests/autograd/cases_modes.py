"""no_grad, enable_grad, set_grad_enabled and inference_mode in all their forms."""

# ruff: noqa: E501 - tables of one line functions

from compat_tests import case, raises, warns


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def state(torch):
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled())


@case
def case_context_managers(torch):
    out = [state(torch)]
    with torch.no_grad():
        out.append(state(torch))
        with torch.enable_grad():
            out.append(state(torch))
            with torch.no_grad():
                out.append(state(torch))
            out.append(state(torch))
        out.append(state(torch))
        with torch.set_grad_enabled(True):
            out.append(state(torch))
        out.append(state(torch))
    out.append(state(torch))
    with torch.inference_mode():
        out.append(state(torch))
        with torch.enable_grad():
            out.append(state(torch))
        with torch.inference_mode(False):
            out.append(state(torch))
            with torch.no_grad():
                out.append(state(torch))
        with torch.inference_mode(mode=True):
            out.append(state(torch))
    out.append(state(torch))
    with torch.no_grad(), torch.inference_mode(False):
        out.append(state(torch))
    with torch.no_grad() as value:
        out.append(value)
    with torch.set_grad_enabled(False) as value:
        out.append(value)
    with torch.autograd.no_grad(), torch.autograd.grad_mode.enable_grad():
        out.append(state(torch))
    return out


@case
def case_set_grad_enabled_as_a_function(torch):
    out = []
    torch.set_grad_enabled(False)
    out.append(state(torch))
    torch.set_grad_enabled(True)
    out.append(state(torch))
    torch.set_grad_enabled(mode=False)
    out.append(state(torch))
    torch.set_grad_enabled(True)
    out.append(state(torch))
    return out


@case
def case_exceptions_restore(torch):
    out = []
    for manager in (torch.no_grad(), torch.enable_grad(), torch.inference_mode(), torch.set_grad_enabled(False)):
        try:
            with manager:
                raise KeyError(1)
        except KeyError:
            out.append(state(torch))
    return out


@case
def case_decorators(torch):
    @torch.no_grad()
    def a():
        return state(torch)

    @torch.no_grad
    def b(x, *, y=1):
        """Text."""
        return state(torch), x, y

    @torch.inference_mode()
    def c():
        return state(torch)

    @torch.inference_mode
    def d():
        return state(torch)

    @torch.enable_grad()
    def e():
        return state(torch)

    @torch.set_grad_enabled(False)
    def f():
        return state(torch)

    @torch.inference_mode(False)
    def g():
        return state(torch)

    class M:
        @torch.no_grad()
        def method(self):
            return state(torch)

        @classmethod
        @torch.no_grad()
        def cls(cls):
            return state(torch)

        @staticmethod
        @torch.no_grad()
        def static():
            return state(torch)

    with torch.no_grad():
        inside = e()
    out = [a(), b(1, y=2), b.__name__, b.__doc__, c(), d(), e(), inside, f(), g(), M().method(), M.cls(), M.static()]
    with torch.inference_mode():
        out += [g(), a()]
    return [*out, state(torch)]


@case
def case_recursion(torch):
    @torch.no_grad()
    def count(n):
        return [] if n == 0 else [torch.is_grad_enabled(), *count(n - 1)]

    manager = torch.no_grad()
    with manager:
        inner = torch.is_grad_enabled()
    return count(3), inner, torch.is_grad_enabled()


@case
def case_generators(torch):
    @torch.no_grad()
    def numbers():
        got = yield torch.is_grad_enabled()
        try:
            yield torch.is_grad_enabled(), got
        except ValueError as error:
            yield str(error), torch.is_grad_enabled()
        return "end"

    out = []
    g = numbers()
    out.append(next(g))
    out.append(torch.is_grad_enabled())
    out.append(g.send("sent"))
    out.append(g.throw(ValueError("thrown")))
    try:
        next(g)
    except StopIteration as end:
        out.append(end.value)
    out.append(torch.is_grad_enabled())
    out.append(list(numbers()))
    h = numbers()
    next(h)
    h.close()

    def plain():
        with torch.no_grad():
            yield torch.is_grad_enabled()

    k = plain()
    out.append(next(k))
    out.append(torch.is_grad_enabled())
    k.close()
    out.append(torch.is_grad_enabled())
    return out


@case
def case_coroutines(torch):
    import asyncio

    @torch.no_grad()
    async def work():
        return torch.is_grad_enabled()

    return attempt(torch, lambda: asyncio.run(work()))


@case
def case_decorated_class(torch):
    def make():
        @torch.no_grad()
        class A:
            def __init__(self):
                self.state = torch.is_grad_enabled()

        return A().state

    return attempt(torch, lambda: warns(torch, make))


@case
def case_threads_have_their_own(torch):
    import threading

    out = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: out.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
        out.append(torch.is_grad_enabled())
    return out


@case
def case_what_is_recorded(torch):
    w = torch.ones(2, requires_grad=True)
    out = []
    with torch.no_grad():
        out.append((w * 2).requires_grad)
        out.append(torch.ones(1, requires_grad=True).requires_grad)
        out.append(w.view(2).requires_grad)
        out.append(w.detach().requires_grad_().requires_grad)
        out.append(torch.nn.Parameter(torch.ones(1)).requires_grad)
        with torch.enable_grad():
            y = w * 2
    out.append(y.requires_grad)
    with torch.no_grad():
        z = y * 2
        s = y.sum()
    y.sum().backward()
    out += [z.requires_grad, s.requires_grad, w.grad]
    with torch.inference_mode():
        p = torch.nn.Parameter(torch.ones(1))
        out.append(p.requires_grad)
        x = torch.ones(2)
        out.append(x.requires_grad)
    out.append(raises(torch, lambda: (w * 2).backward()))
    return out


@case
def case_repr(torch):
    return [type(m).__name__ for m in (torch.no_grad(), torch.enable_grad(), torch.inference_mode())] + [
        torch.no_grad.__module__, torch.inference_mode.__module__]  # fmt: skip


@case
def case_misuse(torch):
    out = [attempt(torch, lambda: torch.set_grad_enabled())[0]]
    out.append(attempt(torch, lambda: type(torch.set_grad_enabled("x")).__name__))
    torch.set_grad_enabled(True)
    return out


@case
def case_set_multithreading_enabled(torch):
    with torch.autograd.set_multithreading_enabled(False):
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
    return w.grad


@case
def case_torch_autograd_names(torch):
    names = ["backward", "grad", "Function", "Variable", "NestedIOFunction", "gradcheck", "gradgradcheck", "detect_anomaly",
             "set_detect_anomaly", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "graph", "functional", "forward_ad",
             "profiler", "anomaly_mode", "function", "grad_mode", "set_multithreading_enabled", "is_multithreading_enabled"]  # fmt: skip
    return [n for n in names if not hasattr(torch.autograd, n)]
