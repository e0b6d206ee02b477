"""Every formulation of a convolution on CPU against XLA's own convolution and its gradients."""

import jax
import numpy as np
import pytest

from torchlike._src.ops import convolution
from torchlike._src.ops.convolution import Config

# input, weight, stride, padding, dilation, groups
SHAPES = {
    "winograd": ((8, 128, 7, 6), (130, 128, 3, 3), 1, 1, 1, 1),
    "phases": ((4, 32, 33, 30), (40, 32, 3, 3), 2, 1, 1, 1),
    "tiles": ((2, 5, 9, 12), (6, 5, 4, 4), 4, 0, 1, 1),
    "one tile": ((5, 7, 4, 3), (6, 7, 4, 3), 1, 0, 1, 1),
    "planes": ((2, 6, 7, 8, 9), (5, 6, 3, 3, 3), 2, 1, 1, 1),
    "few channels": ((2, 3, 12, 11), (4, 3, 3, 3), 2, 1, 2, 1),
    "few groups": ((2, 6, 9, 9), (4, 3, 3, 3), 1, 1, 1, 2),
    "many groups": ((2, 16, 9, 9), (24, 2, 3, 3), 2, 1, 1, 8),
    "one point": ((2, 6, 9, 9), (4, 6, 1, 1), 2, 1, 1, 1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_maps(name: str) -> None:
    x_shape, w_shape, *numbers, groups = SHAPES[name]
    n = len(x_shape) - 2
    stride, padding, dilation = ((number,) * n for number in numbers)
    c = Config(stride, tuple((p, p) for p in padding), dilation, groups)
    generator = np.random.default_rng(0)
    x = generator.normal(size=x_shape).astype(np.float32)
    w = (generator.normal(size=w_shape) / np.prod(w_shape[1:]) ** 0.5).astype(np.float32)

    @jax.jit
    def both(x: jax.Array, w: jax.Array) -> tuple:
        y, pull = jax.vjp(lambda x, w: convolution.xla_conv(x, w, c), x, w)
        g = jax.numpy.sin(y)
        found = convolution.forward(x, w, c), convolution.input_gradient(g, w, x.shape, c)
        return (y, *pull(g)), (*found, convolution.weight_gradient(g, x, w.shape, c))

    for expected, found in zip(*both(x, w), strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=5e-6)
