"""Anomaly mode: which operation is named, and how."""

import warnings

from compat_tests import case


def watch(torch, function):
    """[error, warnings] of a function, file names and lines taken out of forward tracebacks."""
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function()
        except Exception as raised:
            error = [type(raised).__name__, str(raised)]
    texts = []
    for w in caught:
        text = str(w.message).split(" (Triggered")[0]
        head, *rest = text.split("\n  File ")
        mine = [
            r.split("\n", 1)[1].strip() for r in rest if "cases_anomaly" in r and "\n" in r and "in function" not in r
        ]
        texts.append([w.category.__name__, head, [m for m in mine if "function()" not in m and "watch(" not in m]])
    return error, texts


@case
def case_nan(torch):
    def run():
        with torch.autograd.detect_anomaly():
            x = torch.tensor([1.0, 0.0], requires_grad=True)
            y = torch.sqrt(x) * 0
            y.sum().backward()

    return watch(torch, run)


@case
def case_nan_unchecked(torch):
    def run():
        with torch.autograd.detect_anomaly(check_nan=False):
            x = torch.tensor([1.0, 0.0], requires_grad=True)
            (torch.sqrt(x) * 0).sum().backward()

    return watch(torch, run)


@case
def case_forward_outside(torch):
    def run():
        x = torch.tensor([1.0, 0.0], requires_grad=True)
        y = torch.sqrt(x) * 0
        with torch.autograd.set_detect_anomaly(True):
            y.sum().backward()

    return watch(torch, run)


@case
def case_raising_function(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("some error in backward")

    def run():
        with torch.autograd.detect_anomaly():
            x = torch.ones(2, requires_grad=True)
            y = Bad.apply(x)
            y.sum().backward()

    return watch(torch, run)


@case
def case_in_place_damage(torch):
    def run():
        with torch.autograd.detect_anomaly():
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            y.add_(1)
            y.sum().backward()

    return watch(torch, run)


@case
def case_double_backward(torch):
    def run():
        with torch.autograd.detect_anomaly():
            x = torch.tensor([0.0], requires_grad=True)
            y = x**1.5
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            g.backward()

    return watch(torch, run)[0]


@case
def case_switches(torch):
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
        with torch.autograd.detect_anomaly(check_nan=False):
            out.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
            with torch.autograd.set_detect_anomaly(False):
                out.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
            out.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
        out.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
        torch.autograd.set_detect_anomaly(True)
        out.append(torch.is_anomaly_enabled())
        torch.autograd.set_detect_anomaly(False)
        out.append(torch.is_anomaly_enabled())
    return out


@case
def case_without_anomaly_mode(torch):
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    (torch.sqrt(x) * 0).sum().backward()
    return x.grad
