"""torch.backends: switches that scripts set. Those without a meaning under XLA are accepted and documented so."""

import contextlib as _contextlib
import sys as _sys
import types as _types
from collections.abc import Iterator
from typing import Any

from torchlike._src.tensor.namespace import names as _names


class _Switches(_types.ModuleType):
    """A module of attributes; setting one that is not there is an error, as a misspelling would be."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not name.startswith("_") and self.__dict__.get("_done"):
            raise AttributeError(f"torchlike: {self.__name__} has no switch '{name}'")
        super().__setattr__(name, value)


def _module(name: str, doc: str, **values: Any) -> _types.ModuleType:
    module = _Switches(f"{__name__}.{name}", doc)
    for k, v in values.items():
        setattr(module, k, v)
    _sys.modules[module.__name__] = module
    return module


def _flags(module: _types.ModuleType, *switches: str) -> None:
    """`flags(...)`, a context in which switches have other values, and `set_flags(...)`, which returns the old ones."""

    def set_flags(*args: Any, **kwargs: Any) -> tuple:
        given = dict(zip((s.lstrip("_") for s in switches), args, strict=False)) | {
            k.lstrip("_"): v for k, v in kwargs.items()
        }
        if unknown := set(given) - set(switches):
            raise TypeError(f"set_flags() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        old = tuple(getattr(module, s) for s in switches)
        for k, v in given.items():
            if v is not None:
                setattr(module, k, v)
        return old

    @_contextlib.contextmanager
    def flags(*args: Any, **kwargs: Any) -> Iterator[None]:
        old = set_flags(*args, **kwargs)
        try:
            yield
        finally:
            for s, v in zip(switches, old, strict=True):
                setattr(module, s, v)

    module.flags, module.set_flags = flags, set_flags  # type: ignore[attr-defined]


def _precision(**more: Any) -> _types.SimpleNamespace:
    return _types.SimpleNamespace(fp32_precision="none", **more)


# XLA's algorithms are deterministic on the CPU and chosen when a program is compiled: deterministic and benchmark are
# accepted and change nothing. The same holds for the choice of kernels and libraries everywhere on this page.
fp32_precision = "none"
cudnn = _module(
    "cudnn", "cuDNN switches; no effect under XLA.", deterministic=False, benchmark=False, enabled=True,
    allow_tf32=True, benchmark_limit=None, fp32_precision="none", depthwise_kernel="auto", conv=_precision(),
    rnn=_precision(), is_available=lambda: False, version=lambda: None, is_acceptable=lambda tensor: False,
)  # fmt: skip
_flags(cudnn, "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")


class _Matmul:
    """torch.backends.cuda.matmul; allow_tf32 is torch.set_float32_matmul_precision by another name."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"

    @property
    def allow_tf32(self) -> bool:
        return _names("torch")["get_float32_matmul_precision"]() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _names("torch")["set_float32_matmul_precision"]("high" if value else "highest")


_kernels = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "fp16_bf16": False}


def _kernel(name: str) -> tuple[Any, Any]:
    def enable(enabled: bool) -> None:
        _kernels[name] = bool(enabled)

    enable.__doc__ = "Remembered; XLA compiles attention from one formula, whichever kernels are allowed."
    return enable, lambda: _kernels[name]


@_contextlib.contextmanager
def _sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """A context with other kernels of attention allowed; changes no numbers here."""
    import warnings

    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    old = dict(_kernels)
    _kernels.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _kernels.update(old)


def _preferred(name: str, current: str, known: tuple[str, ...]) -> Any:
    state = [current]

    def function(backend: Any = None) -> str:
        if backend is not None:
            if str(backend) not in known:
                raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
            state[0] = str(backend)
        return state[0]

    function.__name__ = name
    function.__doc__ = "Remembered; XLA chooses the library."
    return function


class _PlanCache:
    """The cache of transform plans: XLA has its own, of a size that cannot be set."""

    size, max_size = 0, 0

    def clear(self) -> None:
        """Nothing to do."""

    def __getitem__(self, device: Any) -> "_PlanCache":
        return self


cuda = _module(
    "cuda", "CUDA switches.", matmul=_Matmul(), is_built=lambda: False, cufft_plan_cache=_PlanCache(),
    sdp_kernel=_sdp_kernel,
    preferred_linalg_library=_preferred("preferred_linalg_library", "default", ("default", "cusolver", "magma")),
    preferred_blas_library=_preferred(
        "preferred_blas_library", "default", ("default", "cublas", "cublaslt", "hipblaslt", "ck")
    ),
    preferred_rocm_fa_library=_preferred("preferred_rocm_fa_library", "default", ("default", "aotriton", "ck")),
    is_flash_attention_available=lambda: False, is_ck_sdpa_available=lambda: False,
    can_use_flash_attention=lambda params, debug=False: False,
    can_use_efficient_attention=lambda params, debug=False: False,
    can_use_cudnn_attention=lambda params, debug=False: False,
)  # fmt: skip
for _key, _name in (
    ("flash", "flash_sdp"),
    ("mem_efficient", "mem_efficient_sdp"),
    ("math", "math_sdp"),
    ("cudnn", "cudnn_sdp"),
):
    _set, _get = _kernel(_key)
    setattr(cuda, "enable_" + _name, _set)
    setattr(cuda, _name + "_enabled", _get)
cuda.allow_fp16_bf16_reduction_math_sdp, cuda.fp16_bf16_reduction_math_sdp_allowed = _kernel("fp16_bf16")  # type: ignore[attr-defined]


def _no_mps(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"Cannot execute {name}() without MPS backend.")

    return function


mps = _module(
    "mps", "Apple GPUs: none.", is_available=lambda: False, is_built=lambda: False, get_name=_no_mps("get_name"),
    get_core_count=_no_mps("get_core_count"), is_macos13_or_newer=_no_mps("isOnMacOSorNewer"),
    is_macos_or_newer=_no_mps("isOnMacOSorNewer"),
)  # fmt: skip
mkl = _module("mkl", "MKL: none.", is_available=lambda: False, VERBOSE_OFF=0, VERBOSE_ON=1)
mkldnn = _module(
    "mkldnn", "oneDNN: none.", is_available=lambda: False, enabled=True, deterministic=False, allow_tf32=True,
    fp32_precision="none", conv=_precision(), matmul=_precision(), rnn=_precision(), is_acl_available=lambda: False,
    VERBOSE_OFF=0, VERBOSE_ON=1, VERBOSE_ON_CREATION=2,
)  # fmt: skip
_flags(mkldnn, "enabled", "deterministic", "allow_tf32", "fp32_precision")
openmp = _module("openmp", "OpenMP: none; XLA has its own threads.", is_available=lambda: False)
mha = _module("mha", "The fast path of multi-head attention: there is one path only; the switch is remembered.")
_fastpath = [True]
mha.get_fastpath_enabled = lambda: _fastpath[0]  # type: ignore[attr-defined]


def _set_fastpath(value: bool) -> None:
    _fastpath[0] = bool(value)


mha.set_fastpath_enabled = _set_fastpath  # type: ignore[attr-defined]
opt_einsum = _module(
    "opt_einsum", "The order of products in einsum: chosen by JAX, which uses opt_einsum.", enabled=True,
    strategy="auto", is_available=lambda: True,
)  # fmt: skip
_flags(opt_einsum, "enabled", "strategy")


def _opt_einsum_package() -> Any:
    import opt_einsum as package

    return package


opt_einsum.get_opt_einsum = _opt_einsum_package  # type: ignore[attr-defined]


def _capability() -> str:
    with _contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        text = file.read()
        return "AVX512" if "avx512f" in text else "AVX2" if "avx2" in text else "DEFAULT"
    return "DEFAULT"


cpu = _module("cpu", "What the CPU can do.", get_cpu_capability=_capability)
quantized = _module("quantized", "Quantised tensors: none.", engine="none", supported_engines=["none"])


class _Verbose:
    """`verbose(level)` of MKL or oneDNN, which are not here: a context that changes nothing."""

    def __init__(self, enable: int = 0, level: int = 0) -> None:
        self.level = level

    def __enter__(self) -> "_Verbose":
        return self

    def __exit__(self, *unused: object) -> None:
        return None


mkl.verbose = mkldnn.verbose = _Verbose  # type: ignore[attr-defined]
for _m in (cudnn, cuda, mps, mkl, mkldnn, openmp, mha, opt_einsum, cpu, quantized):
    _m._done = True  # type: ignore[attr-defined]


def disable_global_flags() -> None:
    """Nothing: switches may be set either way."""


def flags_frozen() -> bool:
    """False."""
    return False


__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]
