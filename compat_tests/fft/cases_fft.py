"""torch.fft, stft and istft, torch.signal.windows: values, gradients, sizes, names of graph nodes and errors."""

from compat_tests import case, grads, raises, tensor

NORMS = [None, "ortho", "forward"]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@case(**CLOSE)
@case.params("norm", NORMS)
def case_one_dim(torch, norm):
    x = tensor(torch, (3, 6), "float32", 1, requires_grad=True)
    f = torch.fft
    out = []
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        function = getattr(f, name)
        out += [
            grads(torch, lambda x, function=function: abs_of(torch, function(x, norm=norm)), x),
            function(x, norm=norm).grad_fn.name(),
        ]
        out += [function(x.detach(), n, d, norm) for n, d in ((4, 0), (9, 1), (5, -1))]
    return out


def abs_of(torch, y):
    return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y


@case(**CLOSE)
@case.params("norm", NORMS)
def case_several_dims(torch, norm):
    x = tensor(torch, (2, 3, 4, 5), "float64", 2, requires_grad=True)
    f = torch.fft
    out = []
    for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"):
        function = getattr(f, name)
        out.append(grads(torch, lambda x, function=function: abs_of(torch, function(x, norm=norm)), x))
        out += [function(x.detach(), (3, 4), (0, 2), norm), function(x.detach(), s=(-1, 3), norm=norm)]
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"):
        out.append(getattr(f, name)(x.detach(), norm=norm))
    return out


@case(**CLOSE)
def case_dtypes_and_complex(torch):
    f = torch.fft
    z = tensor(torch, (3, 4), "complex64", 3, requires_grad=True)
    return [
        f.fft(torch.arange(5)), f.rfft(torch.tensor([True, False, True])), f.irfft(torch.arange(4)), f.fft(z),
        f.hfft(z), f.irfft(z), grads(torch, lambda z: torch.view_as_real(f.ifft(z)), z), f.fftfreq(7, 0.5),
        f.rfftfreq(8), f.fftfreq(0), f.fftshift(torch.arange(7)), f.ifftshift(torch.arange(12).view(3, 4)),
        f.fftshift(torch.arange(12).view(3, 4), 1), f.fftfreq(4, dtype=torch.float64),
    ]  # fmt: skip


@case()
def case_errors(torch):
    f = torch.fft
    x, z = torch.ones(3, 4), torch.ones(3, 4, dtype=torch.complex64)
    return [
        raises(torch, call) for call in (
            lambda: f.fft(x, 0), lambda: f.fft(x, dim=5), lambda: f.fft(x, norm="abc"),
            lambda: f.fft(torch.tensor(1.0)), lambda: f.fft(x.half()), lambda: f.rfft(z), lambda: f.ihfft(z),
            lambda: f.rfftn(z), lambda: f.fftn(x, s=(1, 2, 3)), lambda: f.fftn(x, s=(2,), dim=(0, 1)),
            lambda: f.fftn(x, dim=(0, 0)), lambda: f.irfftn(x, dim=()), lambda: f.fftn(x, s=(0, 2)),
            lambda: f.fftfreq(4, dtype=torch.int64), lambda: f.fftfreq(-1),
        )
    ]  # fmt: skip


@case(**CLOSE)
def case_short_time(torch):
    x = tensor(torch, (2, 32), "float32", 4, requires_grad=True)
    w = torch.hann_window(8)
    s = torch.stft(x, 8, window=w, return_complex=True)
    return [
        s, torch.stft(x, 8, 3, 6, torch.hann_window(6), normalized=True, return_complex=True),
        torch.stft(x[0], 8, 4, window=w, center=False, onesided=False, return_complex=True),
        grads(torch, lambda x: torch.view_as_real(torch.stft(x, 8, window=w, return_complex=True)), x),
        grads(torch, lambda x: torch.istft(torch.stft(x, 8, window=w, return_complex=True), 8, window=w, length=32), x),
        torch.istft(s.detach(), 8, window=w), torch.istft(s.detach()[0], 8, window=w, length=20),
        raises(torch, lambda: torch.stft(x, 8, window=w)),
        raises(torch, lambda: torch.stft(x, 8, 0, window=w, return_complex=True)),
        raises(torch, lambda: torch.stft(x, 80, window=torch.ones(80), center=False, return_complex=True)),
        raises(torch, lambda: torch.istft(s.real, 8, window=w)),
        raises(torch, lambda: torch.istft(s, 10, window=torch.ones(10))),
        raises(torch, lambda: torch.istft(s, 8, 9, window=w)),
    ]  # fmt: skip


@case(**CLOSE)
def case_signal_windows(torch):
    w = torch.signal.windows
    out = []
    for name in ("bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall"):
        out += [getattr(w, name)(n, sym=sym) for n in (0, 1, 6, 7) for sym in (True, False)]
    out += [
        w.general_cosine(5, a=[0.5, 0.3, 0.2]),
        w.general_hamming(5, alpha=0.3),
        w.exponential(5, center=1, sym=False),
    ]
    return out + [
        raises(torch, call) for call in (
            lambda: w.gaussian(5, std=-1), lambda: w.hann(-1), lambda: w.exponential(5, tau=-1),
            lambda: w.kaiser(5, beta=-1), lambda: w.general_cosine(5, a=[]), lambda: w.hann(5, dtype=torch.int32),
        )
    ]  # fmt: skip
