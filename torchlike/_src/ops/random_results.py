"""Random numbers with the history that PyTorch gives them: a function of tensors whose gradient is zero.

The numbers are drawn elsewhere and come in as `drawn`. One operator for each name that a `grad_fn` can show."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchlike._src.ops.declare import T, op

GRAD_NAMES = {
    "bernoulli": "BernoulliBackward0",
    "bernoulli_tensor_": "BernoulliBackward1",
    "bernoulli_": "BernoulliBackward2",
    "poisson": "PoissonBackward0",
    "normal_": "NormalBackward0",
    "normal_mean": "NormalBackward1",
    "normal_std": "NormalBackward2",
    "normal_both": "NormalBackward3",
    "uniform_": "UniformBackward0",
    "random_from_": "RandomBackward0",
    "random_to_": "RandomBackward1",
    "random_": "RandomBackward2",
    "exponential_": "ExponentialBackward0",
    "cauchy_": "CauchyBackward0",
    "log_normal_": "LogNormalBackward0",
    "geometric_": "GeometricBackward0",
    "standard_gamma": "StandardGammaBackward0",
}


@jax.custom_vjp
def gamma_gradient(input: Any, drawn: Any) -> Any:
    """d drawn / d input for standard gamma numbers, elementwise (implicit differentiation)."""
    return lax.random_gamma_grad(input.astype("float64"), drawn.astype("float64")).astype(input.dtype)


def _no_second_gradient(*unused: Any) -> Any:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


gamma_gradient.defvjp(lambda input, drawn: (gamma_gradient(input, drawn), None), _no_second_gradient)
RULES: dict[str, Any] = {"standard_gamma": lambda g, input, drawn: g * gamma_gradient(input, drawn)}


def _declare(name: str, grad_name: str) -> None:
    def drawn_for(input: T, drawn: T):
        return drawn

    drawn_for.__name__ = f"_drawn_{name}"
    drawn_for.__doc__ = "`drawn`; the gradient of `input` is zero."
    op(
        namespaces=(),
        method=False,
        out=False,
        grad_name=grad_name,
        shape=lambda input, drawn: drawn,
        vjp={"input": RULES.get(name, lambda g: jnp.zeros_like(g))},
    )(drawn_for)


for _name, _grad_name in GRAD_NAMES.items():
    _declare(_name, _grad_name)
