"""Resampling and grid sampling: the functions that read modes, sizes and scale factors."""

import math
import warnings
from typing import Any

from torchlike._src.tensor.composite import NN, internal, public
from torchlike._src.tensor.namespace import F, torch

_ALIGN = "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
_NEED = {"linear": 3, "bilinear": 4, "trilinear": 5, "bicubic": 4, "lanczos": 4}
_FORMAT = "Please provide input tensor in (N, C, d1, d2, ...,dK) format and {} format."


def _spatial_list(value: Any, n: int, input: Any, name: str) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        what, form = (
            ("output size of", "output size in (o1, o2, ...,oK)")
            if name == "size"
            else ("scale_factor of shape", "scale_factor in (s1, s2, ...,sK)")
        )
        raise ValueError(
            f"Input and {'output' if name == 'size' else 'scale_factor'} must have the same number of spatial "
            "dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and {what} {value}. " + _FORMAT.format(form)
        )
    return list(value)


@public(NN)
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resamples (N, C, *spatial) to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, area; linear (3-d), bilinear and bicubic (4-d, also with antialias), trilinear (5-d),
    lanczos (4-d with antialias). Raises ValueError for settings that do not go together, NotImplementedError for a mode
    that the input's dims do not allow."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(_ALIGN)
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    sizes = factors = None
    if size is not None:
        sizes = _spatial_list(size, n, input, "size")
        for x in sizes:
            if not _is_integer(x):
                raise TypeError(
                    "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but "
                    f"got size with types {[type(x) for x in sizes]}"
                )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    else:
        factors = [float(f) for f in _spatial_list(scale_factor, n, input, "scale_factor")]
    if factors is not None:
        sizes = [math.floor(s * f) for s, f in zip(input.shape[2:], factors, strict=True)]
        if recompute_scale_factor or mode == "area":
            factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    return _resize(input, tuple(int(s) for s in sizes), factors, mode, bool(align_corners), antialias)


def _is_integer(x: Any) -> bool:
    return hasattr(x, "__index__") or (hasattr(x, "dim") and not x.dtype.is_floating_point)


def _resize(input: Any, sizes: tuple, factors: Any, mode: str, align: bool, antialias: bool) -> Any:
    dims = input.dim()
    if dims in (3, 4, 5):
        if mode == "area":
            return getattr(F, f"adaptive_avg_pool{dims - 2}d")(input, sizes)
        if mode in ("nearest", "nearest-exact"):
            return internal.upsample(input, mode, sizes, False, None if factors is None else tuple(factors))
        if mode in _NEED and not (mode == "lanczos" and not antialias):
            if _NEED[mode] == dims:
                name = mode + "-aa" if antialias else mode
                return internal.upsample(input, name, sizes, align, None if factors is None else tuple(factors))
            if mode in ("linear", "bilinear", "trilinear"):
                raise NotImplementedError(f"Got {dims}D input, but {mode} mode needs {_NEED[mode]}D input")
    if mode == "lanczos" and dims == 4:
        raise ValueError("Lanczos mode requires antialias=True")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


@public(NN)
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated: interpolate."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


@public(NN)
def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated: interpolate with mode="nearest"."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


@public(NN)
def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated: interpolate with mode="bilinear", align_corners=True."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@public(NN)
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """(N, C, H, W), (N, Ho, Wo, 2) -> (N, C, Ho, Wo): the input at positions (x, y) in [-1, 1]; 5-d alike."""
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
        align_corners = False
    return internal.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def _grid_sampler(name: str) -> None:
    def function(input, grid, interpolation_mode, padding_mode, align_corners):
        return internal.grid_sample(
            input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners)
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "grid_sample with its modes as numbers."
    public("torch")(function)


for _name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
    _grid_sampler(_name)


@public(NN)
def affine_grid(theta, size, align_corners=None):
    """(N, 2, 3) or (N, 3, 4) affine maps -> the grid that grid_sample takes, for an output of `size`."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n in (2, 3):
        if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
            raise ValueError(
                f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
            )
    else:
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return torch.affine_grid_generator(theta, tuple(int(s) for s in size), bool(align_corners))
