"""Errors that depend on the data, caught where PyTorch raises them: around the call."""

from compat_tests.harness import case


def outcome(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error)
    return "no error"


@case
def case_jitter(torch):
    """The usual loop around a factorization that may fail."""
    a = torch.ones(3, 3) - 1e-3 * torch.eye(3)
    jitter = 0.0
    for k in range(8):
        try:
            factor = torch.linalg.cholesky(a + jitter * torch.eye(3))
        except torch.linalg.LinAlgError:
            jitter = 10.0 ** (k - 6)
        else:
            return k, factor
    return None


@case
def case_failures(torch):
    nan, zero = torch.full((2, 2), float("nan")) * 2, torch.zeros(2, 2) * 2
    return [
        outcome(lambda: torch.linalg.inv(zero)),
        outcome(lambda: torch.linalg.solve(zero, torch.ones(2))),
        outcome(lambda: torch.linalg.svd(nan)),
        outcome(lambda: torch.linalg.eig(nan)),
        outcome(lambda: torch.inverse(zero)),
        outcome(lambda: torch.linalg.pinv(nan)),
        outcome(lambda: torch.linalg.cholesky(-torch.eye(2).expand(3, 2, 2) * 2)),
        outcome(lambda: torch.linalg.lu_factor(zero)),
    ]
