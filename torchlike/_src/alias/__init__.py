"""The import hook behind `python -m torchlike` and `torchlike.install()`. Standard library only."""

from torchlike._src.alias.finder import install, installed, uninstall
from torchlike._src.alias.launcher import launching
from torchlike._src.alias.names import TORCH_VERSION

__all__ = ["TORCH_VERSION", "install", "installed", "launching", "uninstall"]
