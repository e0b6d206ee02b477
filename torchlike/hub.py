"""torch.hub: models from folders with a hubconf.py. What is fetched from the network goes into the hub folder."""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import types
import urllib.parse
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError, URLError

import torchlike as torch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_CHOSEN: dict[str, str] = {}
_HASH = re.compile(r"-([a-f0-9]*)\.")
HASH_REGEX = _HASH  # other libraries take these from here
urlparse = urllib.parse.urlparse
HUBCONF = "hubconf.py"
TIMEOUT = 30
"""Seconds without any answer from the network after which it counts as missing."""
LEGACY_ZIP = (
    "Falling back to the old format < 1.6. This support will be deprecated in favor of default zipfile format "
    "introduced in 1.6. Please redo torch.save() to save it in the new zipfile format."
)
TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")


def get_dir() -> str:
    """The folder for what is downloaded: set_dir's, else $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
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
        spec = importlib.util.spec_from_file_location(HUBCONF, os.path.join(folder, HUBCONF))
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
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found  # type: ignore[no-any-return]


# -- GitHub ---------------------------------------------------------------------------------------------------


def _open(url: str | urllib.request.Request) -> Any:
    return urllib.request.urlopen(url, timeout=TIMEOUT)


def _parts(github: str) -> tuple[str, str, str]:
    """owner, name and ref of "owner/name[:ref]"; without a ref it is `main` if there is one, else `master`.

    RuntimeError: no ref, no network, and no copy of either."""
    repository, colon, ref = github.partition(":")
    owner, name = repository.split("/")
    if colon:
        return owner, name, ref
    try:
        with _open(f"https://github.com/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code != 404:
            raise
        return owner, name, "master"
    except URLError as error:
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return owner, name, ref
        raise RuntimeError(
            f"It looks like there is no internet connection and the repo could not be found in the cache ({get_dir()})"
        ) from error


def _check_trust(owner: str, name: str, label: str, trust: Any) -> None:
    """Ask the user about a repository that is not known; trust: True, False (ask in any case) or "check"."""
    path = os.path.join(get_dir(), "trusted_list")
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        listed = [line.strip() for line in file]
    key = f"{owner}_{name}"
    # What has been downloaded before was trusted then.
    trusted = key in listed or owner in TRUSTED_OWNERS or os.path.isdir(os.path.join(get_dir(), label))
    if trust is False or (trust == "check" and not trusted):
        answer = input(
            f"The repository {key} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("n", "no", ""):
            raise Exception("Untrusted repository.")
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
        if trusted:
            print("The repository is already trusted.")
    if not trusted:
        with open(path, "a", encoding="utf-8") as file:
            file.write(key + "\n")


def _check_not_forked(owner: str, name: str, ref: str) -> None:
    """ValueError if no branch, tag or commit of the repository itself is called `ref`: GitHub serves forks' too."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get("GITHUB_TOKEN")
    if token is not None:
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        page = 1
        while True:
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            try:
                with _open(urllib.request.Request(url, headers=headers)) as answer:
                    found = json.load(answer)
            except HTTPError:
                if headers.pop("Authorization", None) is None:
                    raise
                continue  # the token may not be allowed to see it
            if not found:
                break
            if any(entry["name"] == ref or entry["commit"]["sha"].startswith(ref) for entry in found):
                return
            page += 1
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked repo, please call "
        "hub.load() with forked repo directly."
    )


def _github_folder(
    github: str, force_reload: bool, trust_repo: Any, skip_validation: bool, verbose: bool = True
) -> str:
    """The folder of a repository, downloaded unless it is there."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parts(github)
    flat = ref.replace("/", "_")
    label = f"{owner}_{name}_{flat}"
    folder = os.path.join(get_dir(), label)
    _check_trust(owner, name, label, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_not_forked(owner, name, ref)
    archive = os.path.join(get_dir(), f"{flat}.zip")
    url = f"https://github.com/{owner}/{name}/zipball/"
    sys.stdout.write(f'Downloading: "{url}{ref}" to {archive}\n')
    try:
        download_url_to_file(url + ref, archive, progress=False)
    except HTTPError as error:
        if error.code != 300:
            raise
        warnings.warn(
            f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? Torchhub will now assume "
            "that it's a branch. You can disambiguate tags and branches by explicitly passing refs/heads/branch_name "
            "or refs/tags/tag_name as the ref. That might require using skip_validation=True.",
            stacklevel=2,
        )
        download_url_to_file(f"{url}refs/heads/{ref}", archive, progress=False)
    with zipfile.ZipFile(archive) as packed, tempfile.TemporaryDirectory(dir=get_dir()) as unpacked:
        top = packed.namelist()[0].split("/")[0]
        packed.extractall(unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(unpacked, top), folder)
    os.remove(archive)
    return folder


# -- public ---------------------------------------------------------------------------------------------------


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):
    """The names of the entry points of "owner/name[:ref]".

    trust_repo: True, False (the user is asked) or "check" (asked about repositories that are not known).
    skip_validation: do not ask GitHub whether ref is the repository's own. RuntimeError: no network, and no copy."""
    folder = _github_folder(github, force_reload, trust_repo, skip_validation, verbose)
    module = _hubconf(folder)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):
    """The docstring of an entry point."""
    return _entry(_hubconf(_github_folder(github, force_reload, trust_repo, skip_validation)), model).__doc__


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
        repo_or_dir = _github_folder(repo_or_dir, force_reload, trust_repo, skip_validation, verbose)
    folder = os.path.abspath(repo_or_dir)
    with _on_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Save a URL as the file dst. RuntimeError: its SHA256 does not begin with hash_prefix. URLError: no network.

    progress: show a bar (of the package tqdm, if installed) on the standard error output."""
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    part = f"{dst}.{os.getpid()}.partial"
    digest = hashlib.sha256()
    try:
        with _open(request) as source, open(part, "wb") as file, _bar(source, progress) as advance:
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
    size = source.headers.get("Content-Length")
    total = int(size) if size else None
    if not progress:
        yield lambda n: None
    elif importlib.util.find_spec("tqdm") is not None:
        tqdm = importlib.import_module("tqdm").tqdm
        with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield bar.update
    else:
        done = 0

        def advance(n: int) -> None:
            nonlocal done
            done += n
            sys.stderr.write(f"\r{100 * done / total:.1f}%" if total else f"\r{done:.1f} bytes")
            sys.stderr.flush()

        yield advance
        sys.stderr.write("\n")


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
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
            if len(members) == 1 and not members[0].is_dir():  # a zip file around a checkpoint
                warnings.warn(LEGACY_ZIP, FutureWarning, stacklevel=2)
                path = packed.extract(members[0], folder)
    return torch.load(path, map_location=map_location, weights_only=weights_only)  # type: ignore[no-any-return]


def _get_torch_home() -> str:
    """$TORCH_HOME, else ~/.cache/torch: where other libraries keep what they download."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
