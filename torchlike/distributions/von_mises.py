"""The von Mises distribution."""

import math
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Polynomial approximations of the modified Bessel functions I0 and I1 (Abramowitz and Stegun, 9.8.1 to 9.8.4):
# below 3.75 in (x / 3.75)², above, times sqrt(x) exp(-x), in 3.75 / x.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228,
        0.1328592e-1,
        0.225319e-2,
        -0.157565e-2,
        0.916281e-2,
        -0.2057706e-1,
        0.2635537e-1,
        -0.1647633e-1,
        0.392377e-2,
    ),
    (
        0.39894228,
        -0.3988024e-1,
        -0.362018e-2,
        0.163801e-2,
        -0.1031555e-1,
        0.2282967e-1,
        -0.2895312e-1,
        0.1787654e-1,
        -0.420059e-2,
    ),
)


def _polynomial(y: Any, coefficients: tuple) -> Any:
    result: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + y * result
    return result


def _log_bessel(x: Any, order: int = 0) -> Any:
    """log I_order(x) for x > 0 and order 0 or 1."""
    small = _polynomial((x / 3.75) ** 2, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return torch.where(x < 3.75, small.log(), large)


def _rejection_sample(loc: Any, concentration: Any, proposal_r: Any, x: Any) -> Any:
    """Best and Fisher's algorithm (1979): whole tensors of proposals until every element is accepted."""
    done = torch.zeros(x.shape, dtype=torch.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = torch.rand((3,) + x.shape, dtype=loc.dtype, device=loc.device).unbind()
        z = torch.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)  # a later acceptance replaces an earlier one
        done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around `loc` (modulo 2π), the closer the larger `concentration` is. Samples are drawn in float64."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * torch.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration, order=0)

    @lazy_property
    def _loc(self) -> torch.Tensor:
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self) -> torch.Tensor:
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self) -> torch.Tensor:
        """The parameter of the wrapped Cauchy proposals; its Taylor series for small concentrations."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            x = torch.zeros(shape, dtype=self._loc.dtype, device=self.loc.device)
            x = _rejection_sample(self._loc, self._concentration, self._proposal_r, x)
            return self._drawn(x.to(self.loc.dtype))

    def expand(self, batch_shape: Any, _instance: Any = None) -> "VonMises":
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=self.__dict__.get("_validate_args"))

    @property
    def mean(self) -> torch.Tensor:
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> torch.Tensor:  # type: ignore[override]
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, order=1) - _log_bessel(self.concentration, order=0)).exp()
