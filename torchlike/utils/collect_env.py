"""torch.utils.collect_env: what to tell in a bug report. `python -m torchlike -m torch.utils.collect_env`."""

import importlib.metadata
import platform
import sys
from typing import NamedTuple

import torchlike as torch
from torchlike._src.engine import backend

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

_PACKAGES = ("torchlike", "jax", "jaxlib", "numpy", "ml_dtypes", "optax", "flax")


class SystemEnv(NamedTuple):
    """The machine and the versions."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str
    jax_platform: str
    pip_packages: str


def _version(package: str) -> str | None:
    try:
        return f"{package}=={importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """The machine and the versions."""
    cuda = torch.cuda.is_available()
    models = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []
    return SystemEnv(
        torch_version=f"{torch.__version__} (torchlike)",
        is_debug_build="False",
        cuda_compiled_version="N/A",
        os=platform.platform(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(cuda),
        nvidia_gpu_models="\n".join(models) or "N/A",
        jax_platform=backend.platform(),
        pip_packages="\n".join(f"[pip3] {found}" for found in map(_version, _PACKAGES) if found),
    )


def get_pretty_env_info() -> str:
    """The same as text."""
    env = get_env_info()
    return "\n".join((
        f"PyTorch version: {env.torch_version}",
        f"Is debug build: {env.is_debug_build}",
        f"CUDA used to build PyTorch: {env.cuda_compiled_version}",
        "",
        f"OS: {env.os}",
        "",
        f"Python version: {env.python_version}",
        f"Python platform: {env.python_platform}",
        f"Is CUDA available: {env.is_cuda_available}",
        f"GPU models and configuration: {env.nvidia_gpu_models}",
        f"JAX platform: {env.jax_platform}",
        "",
        "Versions of relevant libraries:",
        env.pip_packages,
    ))  # fmt: skip


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
