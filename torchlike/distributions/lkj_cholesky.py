"""The LKJ distribution of correlation matrices (Lewandowski, Kurowicka and Joe, 2009), by their Cholesky factors."""

import math
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.beta import Beta
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors (dim, dim) of correlation matrices M, of density proportional to det(M)^(concentration - 1).
    Sampled by the onion method."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (self.dim - 2)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = torch.tensor([0, *range(self.dim - 1)], **like)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), torch.Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "LKJCholesky":
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = torch.Size(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        return self._finish(new, batch_shape, self.event_shape)

    def sample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :] = 0.0  # the first row has no direction
        w = torch.sqrt(y) * direction
        tiny = torch.finfo(w.dtype).tiny
        diagonal = torch.clamp(1 - torch.sum(w**2, dim=-1), min=tiny).sqrt()
        return self._drawn(w + torch.diag_embed(diagonal))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = torch.sum(order * diagonal.log(), dim=-1)
        # the normaliser, page 1999 of the article
        rest = self.dim - 1
        alpha = self.concentration + 0.5 * rest
        normalizer = 0.5 * rest * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, rest) - torch.lgamma(alpha) * rest
        return unnormalized - normalizer
