"""torch.hub: models from folders with a hubconf.py. What is fetched from the network goes into the hub folder."""

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import types
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torchlike as torch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_CHOSEN: dict[str, str] = {}
_HASH = re.compile(r"-([a-f0-9]*)\.")
HUBCONF = "hubconf.py"
_list = list


def get_dir() -> str:
    """The folder for what is downloaded: set_dir's, else $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    if "dir" in _CHOSEN:
        return _CHOSEN["dir"]
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose the folder for what is downloaded."""
    _CHOSEN["dir"] = os.path.expanduser(d)


# -- hubconf.py -----------------------------------------------------------------------------------------------


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder: str) -> types.ModuleType:
    """The module hubconf.py of a folder, which may import from its own folder."""
    with _on_path(folder):
        spec = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, HUBCONF))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def _check_dependencies(module: types.ModuleType) -> None:
    wanted = getattr(module, "dependencies", None) or []
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _entry(module: types.ModuleType, name: Any) -> Callable:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(module)
    found = getattr(module, name, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found  # type: ignore[no-any-return]


# -- GitHub ---------------------------------------------------------------------------------------------------


def _parts(github: str) -> tuple[str, str, str]:
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    return owner, name, ref or "main"


def _check_trust(owner: str, name: str, trust: Any) -> None:
    folder = get_dir()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "trusted_list")
    known = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []
    key = f"{owner}_{name}"
    if key in known or owner in ("facebookresearch", "facebookincubator", "pytorch", "fairinternal"):
        return
    if trust not in (True, "check"):
        raise ValueError(f"Untrusted repository {owner}/{name}: pass trust_repo=True to run its code.")
    if trust == "check":
        answer = input(
            f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if answer.lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    with open(path, "a", encoding="utf-8") as file:
        file.write(key + "\n")


def _github_folder(github: str, force_reload: bool, trust_repo: Any, verbose: bool = True) -> str:
    """The folder of a repository, downloaded unless it is there."""
    owner, name, ref = _parts(github)
    label = f"{owner}_{name}_{ref}".replace("/", "_")
    folder = os.path.join(get_dir(), label)
    _check_trust(owner, name, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    os.makedirs(get_dir(), exist_ok=True)
    archive = os.path.join(get_dir(), label + ".zip")
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    sys.stderr.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    with zipfile.ZipFile(archive) as packed, tempfile.TemporaryDirectory(dir=get_dir()) as unpacked:
        top = packed.namelist()[0].split("/")[0]
        packed.extractall(unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(unpacked, top), folder)
    os.remove(archive)
    return folder


# -- public ---------------------------------------------------------------------------------------------------


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):
    """The names of the entry points of "owner/name[:ref]"."""
    folder = _github_folder(github, force_reload, trust_repo, verbose)
    module = _hubconf(folder)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):
    """The docstring of an entry point."""
    return _entry(_hubconf(_github_folder(github, force_reload, trust_repo)), model).__doc__


def load(
    repo_or_dir, model, *args, source="github", trust_repo="check", force_reload=False, verbose=True,
    skip_validation=False, **kwargs,
):  # fmt: skip
    """Call the entry point `model` of a folder (source="local") or of "owner/name[:ref]".

    ValueError for another source, RuntimeError for an unknown entry point or missing dependencies."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _github_folder(repo_or_dir, force_reload, trust_repo, verbose)
    folder = os.path.abspath(repo_or_dir)
    with _on_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Save a URL as the file dst. RuntimeError if its SHA256 does not begin with hash_prefix.

    progress shows a bar where the package tqdm is installed."""
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    part = f"{dst}.{os.getpid()}.partial"
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(request) as source, open(part, "wb") as file, _bar(source, progress) as advance:
            while chunk := source.read(1 << 17):
                file.write(chunk)
                digest.update(chunk)
                advance(len(chunk))
        found = digest.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        shutil.move(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


@contextmanager
def _bar(source: Any, progress: bool) -> Iterator[Callable[[int], Any]]:
    if progress and importlib.util.find_spec("tqdm") is not None:
        size = source.headers.get("Content-Length")
        tqdm = importlib.import_module("tqdm").tqdm
        with tqdm(total=int(size) if size else None, unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield bar.update
    else:
        yield lambda n: None


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """torch.load of a URL, kept in model_dir (the hub folder's `checkpoints`). Without a network: URLError, unless the
    file is there already. check_hash: the name ends in -<first digits of the SHA256>."""
    if os.getenv("TORCH_MODEL_ZOO"):
        import warnings

        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if zipfile.is_zipfile(path) and _is_legacy_zip(path):
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
            if len(members) != 1:
                raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
            packed.extractall(folder)
            path = os.path.join(folder, members[0].filename)
    return torch.load(path, map_location=map_location, weights_only=weights_only)  # type: ignore[no-any-return]


def _is_legacy_zip(path: str) -> bool:
    """A zip file around a checkpoint, not the zip format that torch.save writes."""
    with zipfile.ZipFile(path) as packed:
        return not any(name.endswith("/data.pkl") for name in packed.namelist())
