"""torch.fft: public signatures over the transforms, with PyTorch's handling of sizes, dims and norms."""

import operator
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.core.errors import canonical_dim
from torchlike._src.tensor.call import cast_to, write_out
from torchlike._src.tensor.composite import internal, names, public
from torchlike._src.tensor.creation import check_layout, from_array
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import tensor_argument
from torchlike._src.tensor.tensor import Tensor

FFT = "torch.fft"
NORMS = (None, "forward", "backward", "ortho")


def _operand(name: str, input: Any) -> Tensor:
    return tensor_argument(input, f"fft_{name}", "self", 1)


def _promoted(input: Tensor, complex: bool) -> Tensor:
    """The input in a floating or complex dtype that has transforms."""
    d = input._aval.dtype
    if not (d.is_floating_point or d.is_complex):
        d = default_dtype()
    if d not in (dt.float32, dt.float64, dt.complex64, dt.complex128):
        raise RuntimeError(f"Unsupported dtype {d.scalar_name}")
    return cast_to(input, d.to_complex() if complex else d)


def _check_norm(norm: Any) -> Any:
    if norm not in NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm


def _count(n: Any) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _dim(input: Tensor, dim: int) -> int:
    if not input._aval.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return canonical_dim(dim, input._aval.ndim)


def _ints(value: Any) -> tuple[int, ...]:
    return tuple(operator.index(v) for v in value) if isinstance(value, (tuple, list)) else (operator.index(value),)


def _dims(input: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int | None]]:
    """(dims, sizes or None) as PyTorch reads the arguments `s` and `dim` of the transforms over several dims."""
    a = input._aval
    if dim is not None:
        dims = tuple(canonical_dim(d, a.ndim) for d in _ints(dim))
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is None:
        found = dims if dim is not None else tuple(range(a.ndim))
        return found, [None] * len(found)
    wanted = _ints(s)
    if dim is None:
        if len(wanted) > a.ndim:
            raise RuntimeError(f"Got shape with {len(wanted)} values but input tensor only has {a.ndim} dimensions.")
        dims = tuple(range(a.ndim - len(wanted), a.ndim))
    elif len(dims) != len(wanted):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return dims, [None if n == -1 else n for n in wanted]


def _full(input: Tensor, dims: tuple[int, ...], wanted: list) -> tuple[int, ...]:
    return tuple(_count(input._aval.shape[d] if n is None else n) for d, n in zip(dims, wanted, strict=True))


def _half(input: Tensor, dims: tuple[int, ...], wanted: list) -> tuple[int, ...]:
    """Sizes of a real result: without one given, the last dim holds n // 2 + 1 of n."""
    last = 2 * (input._aval.shape[dims[-1]] - 1) if wanted[-1] is None else wanted[-1]
    return _full(input, dims, [*wanted[:-1], last])


def _real(name: str, input: Tensor, text: str) -> Tensor:
    if input._aval.dtype.is_complex:
        raise RuntimeError(text.format(name=name, dtype=input._aval.dtype.scalar_name))
    return _promoted(input, False)


def _some(name: str, dims: tuple) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _c2c(name: str, input: Any, n: Any, dim: int, norm: Any, forward: bool) -> Tensor:
    x = _promoted(_operand(name, input), False)
    dims = (_dim(x, dim),)
    sizes = _full(x, dims, [n])
    if x._aval.dtype.is_complex:
        return internal.fft_c2c(x, dims, sizes, _check_norm(norm), forward)
    return internal.fft_r2c(x, dims, sizes, _check_norm(norm), forward, False)


def _c2cn(name: str, input: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    x = _promoted(_operand(name, input), True)
    dims, wanted = _dims(x, s, dim)
    return internal.fft_c2c(x, dims, _full(x, dims, wanted), _check_norm(norm), forward)


def _finish(name: str, result: Tensor, out: Any, input: Any) -> Tensor:
    return result if out is None else write_out(out, result, f"fft_{name}", (input,))


# -- one dim -----------------------------------------------------------------------------------------------------------


@public(FFT)
def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The discrete Fourier transform along `dim`, of n points (cut, or filled with zeros). Real or complex ->
    complex."""
    return _finish("fft", _c2c("fft", input, n, dim, norm, True), out, input)


@public(FFT)
def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of fft."""
    return _finish("ifft", _c2c("ifft", input, n, dim, norm, False), out, input)


def _r2c(name: str, input: Any, n: Any, dim: int, norm: Any, forward: bool) -> Tensor:
    x = _real(name, _operand(name, input), "{name} expects a real input tensor, but got {dtype}")
    dims = (_dim(x, dim),)
    return internal.fft_r2c(x, dims, _full(x, dims, [n]), _check_norm(norm), forward, True)


@public(FFT)
def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The first n // 2 + 1 values of fft of a real input: the others are their conjugates."""
    return _finish("rfft", _r2c("rfft", input, n, dim, norm, True), out, input)


@public(FFT)
def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of hfft: real -> the first n // 2 + 1 values."""
    return _finish("ihfft", _r2c("ihfft", input, n, dim, norm, False), out, input)


def _c2r(name: str, input: Any, n: Any, dim: int, norm: Any, forward: bool) -> Tensor:
    x = _promoted(_operand(name, input), True)
    dims = (_dim(x, dim),)
    return internal.fft_c2r(x, dims, _half(x, dims, [n]), _check_norm(norm), forward)


@public(FFT)
def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of rfft: the first half of a Hermitian signal -> n real values, n = 2 * (size - 1) if not given."""
    return _finish("irfft", _c2r("irfft", input, n, dim, norm, False), out, input)


@public(FFT)
def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """fft of a Hermitian signal of which the input is the first half: n real values."""
    return _finish("hfft", _c2r("hfft", input, n, dim, norm, True), out, input)


# -- several dims ------------------------------------------------------------------------------------------------------


@public(FFT)
def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """fft over several dims (all by default), resized to `s`."""
    return _finish("fftn", _c2cn("fftn", input, s, dim, norm, True), out, input)


@public(FFT)
def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of fftn."""
    return _finish("ifftn", _c2cn("ifftn", input, s, dim, norm, False), out, input)


@public(FFT)
def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """fftn of a real input, the last of `dim` by half."""
    x = _real("rfftn", _operand("rfftn", input), "{name} expects a real-valued input tensor, but got {dtype}")
    dims, wanted = _dims(x, s, dim)
    _some("rfftn", dims)
    result = internal.fft_r2c(x, dims, _full(x, dims, wanted), _check_norm(norm), True, True)
    return _finish("rfftn", result, out, input)


@public(FFT)
def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of rfftn: real."""
    x = _promoted(_operand("irfftn", input), True)
    dims, wanted = _dims(x, s, dim)
    _some("irfftn", dims)
    return _finish("irfftn", internal.fft_c2r(x, dims, _half(x, dims, wanted), _check_norm(norm), False), out, input)


@public(FFT)
def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """fftn of a signal that is Hermitian along the last of `dim`, given by half: real."""
    x = _promoted(_operand("hfftn", input), True)
    dims, wanted = _dims(x, s, dim)
    _some("hfftn", dims)
    sizes = _half(x, dims, wanted)
    if len(dims) > 1:
        x = internal.fft_c2c(x, dims[:-1], sizes[:-1], _check_norm(norm), True)
    return _finish("hfftn", internal.fft_c2r(x, dims[-1:], sizes[-1:], _check_norm(norm), True), out, input)


@public(FFT)
def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of hfftn."""
    x = _operand("ihfftn", input)
    x = _real("ihfftn", x, "Only supports floating-point dtypes, but found: {dtype}")
    dims, wanted = _dims(x, s, dim)
    _some("ihfftn", dims)
    sizes = _full(x, dims, wanted)
    x = internal.fft_r2c(x, dims[-1:], sizes[-1:], _check_norm(norm), False, True)
    if len(dims) > 1:
        x = internal.fft_c2c(x, dims[:-1], sizes[:-1], norm, False)
    return _finish("ihfftn", x, out, input)


def _two(name: str) -> None:
    over = names(FFT)[name + "n"]

    def function(input, s=None, dim=(-2, -1), norm=None, *, out=None):
        return over(input, s, dim, norm, out=out)

    function.__name__ = function.__qualname__ = name + "2"
    function.__doc__ = f"{name}n over two dims, the last two by default."
    public(FFT)(function)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _two(_name)


# -- frequencies -------------------------------------------------------------------------------------------------------


def _frequencies(
    name: str, array: Any, n: int, d: float, out: Any, dtype: Any, layout: Any, device: Any, grad: bool
) -> Tensor:
    check_layout(layout)
    dtype = dtype or (default_dtype() if out is None else out._aval.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = require_numpy(dtype)
    # The scale 1 / (n * d) is applied in the result's own precision.
    result = from_array(
        (array.astype(kind) * kind.type(1.0 / (n * d))).astype(kind) if n else np.zeros(0, kind), dtype, device, grad
    )
    return result if out is None else write_out(out, result, name, ())


@public(FFT)
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of fft's n values at a sample spacing d."""
    k = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]) if n > 0 else np.zeros(0)
    return _frequencies("fftfreq", k, n, d, out, dtype, layout, device, requires_grad)


@public(FFT)
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of rfft's n // 2 + 1 values at a sample spacing d."""
    if n == 0:
        raise RuntimeError("ZeroDivisionError")
    k = np.arange(n // 2 + 1) if n > 0 else np.zeros(0)
    return _frequencies("rfftfreq", k, n, d, out, dtype, layout, device, requires_grad)


def _shifted(name: str, input: Any, dim: Any, sign: int) -> Tensor:
    x = _operand(name, input)
    dims = tuple(range(x._aval.ndim)) if dim is None else tuple(canonical_dim(d, x._aval.ndim) for d in _ints(dim))
    sizes = [x._aval.shape[d] for d in dims]
    return torch.roll(x, [n // 2 if sign > 0 else (n + 1) // 2 for n in sizes], dims)


@public(FFT)
def fftshift(input, dim=None):
    """The zero frequency moved to the middle."""
    return _shifted("fftshift", input, dim, 1)


@public(FFT)
def ifftshift(input, dim=None):
    """The inverse of fftshift."""
    return _shifted("ifftshift", input, dim, -1)


names(FFT)["Tensor"] = Tensor


# -- short-time transforms ---------------------------------------------------------------------------------------------


def _window_of(name: str, window: Any, win_length: int, n_fft: int) -> Any:
    """The window, filled with zeros on both sides to n_fft; None for a rectangle of n_fft."""
    if window is None:
        if win_length == n_fft:
            return None
        window = torch.ones(win_length)
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        window = names("torch.nn.functional")["pad"](window, (left, n_fft - win_length - left))
    return window


def _warn_window(text: str) -> None:
    import warnings

    warnings.warn(text, stacklevel=4)


@public("torch")
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
    onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    """The short-time Fourier transform: (..., time) -> (..., frequency, frame), of windows of n_fft, hop_length
    apart."""
    tensor_argument(input, "stft", "input", 1)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        _warn_window(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
            "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
            "leakage.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
            "device=<device>)`."
        )
    x = input
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        extra = [1] * (3 - x._aval.ndim)
        shape = x._aval.shape
        padded = names("torch.nn.functional")["pad"](x.view([*extra, *shape]), [n_fft // 2, n_fft // 2], pad_mode)
        x = padded.view(padded._aval.shape[len(extra) :])
    a = x._aval

    def fail(text: str) -> RuntimeError:
        kind = "None" if window is None else f"{window._aval.dtype.type_name}{{{list(window._aval.shape)}}}"
        return RuntimeError(
            f"stft({a.dtype.type_name}{list(a.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={length}, window="
            f"{kind}, normalized={int(normalized)}, onesided={onesided if onesided is None else int(onesided)}, "
            f"return_complex={return_complex if return_complex is None else int(return_complex)}, align_to_window="
            f"{align_to_window if align_to_window is None else int(align_to_window)}) : {text}"
        )

    complex_in = a.dtype.is_complex or (window is not None and window._aval.dtype.is_complex)
    if return_complex is None:
        if not complex_in:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        raise fail("expected a tensor of floating point or complex values")
    if a.ndim not in (1, 2):
        raise fail("expected a 1D or 2D tensor")
    batched = x if a.ndim == 2 else x.unsqueeze(0)
    total = batched._aval.shape[1]
    if not 0 < n_fft <= total:
        raise fail(f"expected 0 < n_fft < {total}, but got n_fft={length}")
    if hop <= 0:
        raise fail(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise fail(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._aval.shape != (length,):
        raise fail(
            f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._aval.shape)}"
        )
    if onesided is None:
        onesided = not complex_in
    if align_to_window:
        side = (n_fft - length) // 2
        batched = names("torch.nn.functional")["pad"](batched, (side, side))
    frames = batched.unfold(1, n_fft, hop)
    shape = _window_of("stft", window, length, n_fft)
    if shape is not None:
        frames = frames * shape
    norm = "ortho" if normalized else None
    if complex_in:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        out = fft(frames, dim=2, norm=norm)
    else:
        out = rfft(frames, dim=2, norm=norm) if onesided else fft(frames, dim=2, norm=norm)
    out = out.transpose(1, 2)
    if a.ndim == 1:
        out = out.squeeze(0)
    return out if return_complex else torch.view_as_real(out)


@public("torch")
def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
    length=None, return_complex=False,
):  # fmt: skip
    """The inverse of stft by overlapping and adding: (..., frequency, frame) -> (..., time)."""
    tensor_argument(input, "istft", "input", 1)
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    a = input._aval
    asked = onesided

    def fail(text: str) -> RuntimeError:
        shown = "None" if window is None else f"{window._aval.dtype.type_name}{{{list(window._aval.shape)}}}"
        return RuntimeError(
            f"istft(CPU{a.dtype.scalar_name}Type{list(a.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={size}, "
            f"window={shown}, center={int(center)}, normalized={int(normalized)}, "
            f"onesided={asked if asked is None else int(asked)}, length={length}, "
            f"return_complex={int(return_complex)}) {text}"
        )

    if window is None:
        _warn_window(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    if not a.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if a.ndim < 2:
        canonical_dim(-3, a.ndim)  # PyTorch's error: it asks for the size of a dim that is not there
    if a.ndim not in (2, 3):
        raise fail(f": expected a tensor with 2 or 3 dimensions, but got {a.ndim}")
    if not a.numel:
        raise fail(": input tensor cannot be empty.")
    bins, count = a.shape[-2:]
    if onesided is None:
        onesided = bins != n_fft
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if bins != wanted:
        raise fail(
            ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
            f"onesided=True, but got {bins}"
            if onesided
            else "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when "
            f"onesided=False, but got {bins}"
        )
    if not 0 < hop <= size:
        raise fail(": expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise fail(": expected 0 < win_length <= n_fft")
    if window is not None and window._aval.shape != (size,):
        raise fail(
            ": Invalid window shape. window has to be 1D and length of `win_length`. Got window of shape "
            f"{list(window._aval.shape)}"
        )
    shape = _window_of("istft", window, size, n_fft)
    if shape is None:
        shape = torch.ones(n_fft, dtype=a.dtype.to_real())
    x = input if a.ndim == 3 else input.unsqueeze(0)
    x = x.transpose(1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        frames = ifft(x, dim=2, norm=norm)
    else:
        if window is not None and window._aval.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        frames = irfft(x if onesided else x.narrow(2, 0, n_fft // 2 + 1), n_fft, dim=2, norm=norm)
    frames = frames * shape
    total = n_fft + hop * (count - 1)
    where = from_array((np.arange(count)[:, None] * hop + np.arange(n_fft)).reshape(-1).astype(np.int64))
    batch = frames._aval.shape[0]
    flat = torch.zeros((batch, total), dtype=frames.dtype).index_add(1, where, frames.reshape(batch, -1))
    square = (shape * shape).expand(count, n_fft).reshape(-1)
    envelope = torch.zeros((total,), dtype=square.dtype).index_add(0, where, square)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else (total - n_fft // 2 if center else total)
    stop = end if end < total else total
    flat, envelope = flat[:, start:stop], envelope[start:stop]
    if envelope._aval.device.type != "meta" and envelope._aval.numel and bool(envelope.detach().abs().min() <= 1e-11):
        raise fail("window overlap add min: 1\n[ CPUBoolType{} ]")
    out = flat / envelope
    if end > total:
        _warn_window(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        out = names("torch.nn.functional")["pad"](out, (0, end - total))
    return out if a.ndim == 3 else out.squeeze(0)


Tensor.stft = stft
Tensor.istft = istft
