"""The distribution "torch" that `importlib.metadata` finds while the alias is installed.

Imported on the first question about distributions only: `importlib.metadata` takes long to import.
"""

import importlib.metadata
import pathlib
from collections.abc import Iterator
from typing import Any

from torchlike._src.alias.names import ALIAS, ROOT, TORCH_VERSION


class TorchDistribution(importlib.metadata.Distribution):
    """The installed distribution that PyTorch would be; it owns no file."""

    _TEXTS = {
        "METADATA": (
            "Metadata-Version: 2.1\n"
            f"Name: {ALIAS}\n"
            f"Version: {TORCH_VERSION}\n"
            "Summary: stands for PyTorch in this process; provided by torchlike\n"
        ),
        "top_level.txt": f"{ALIAS}\n",
        "INSTALLER": "torchlike\n",
    }

    def read_text(self, filename: Any) -> str | None:
        return self._TEXTS.get(str(filename))

    def locate_file(self, path: Any) -> pathlib.Path:
        return pathlib.Path(ROOT).parent / str(path)


def find_distributions(context: Any) -> Iterator[importlib.metadata.Distribution]:
    """The distribution "torch" if `context` asks for it, or for all."""
    name = getattr(context, "name", None)
    if name is None or name.lower().replace("_", "-") == ALIAS:
        yield TorchDistribution()
