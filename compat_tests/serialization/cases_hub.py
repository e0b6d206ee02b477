"""torch.hub without a network: local folders, repositories and files that are there already, file:// URLs, refusals."""

import contextlib
import hashlib
import io
import os
import pathlib
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from typing import Any

from compat_tests import case, raises, warns

HUBCONF = '''
dependencies = ["json", "math"]
import math
import torch
from helper_of_the_hub import WIDTH


def tiny(width=WIDTH, bias=True):
    """A small model.

    width: outputs."""
    return torch.nn.Linear(2, width, bias=bias)


def _hidden():
    return None


class Model(torch.nn.Module):
    pass


number = 3
'''


@contextlib.contextmanager
def hub(torch: Any, *repositories: str, answer: str | None = None) -> Iterator[pathlib.Path]:
    """A hub folder in which some repositories lie, no network, and a user who gives one answer."""
    before = torch.hub.get_dir()
    names = ("http_proxy", "https_proxy", "no_proxy", "TORCH_HOME", "XDG_CACHE_HOME")
    kept = {name: os.environ.pop(name, None) for name in names}
    alias = sys.modules.get("torch")
    sys.modules["torch"] = torch  # hubconf.py imports it
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        torch.hub.set_dir(os.path.join(folder, "hub"))
        for name in repositories:
            place = pathlib.Path(folder, name)
            place.mkdir(parents=True)
            (place / "hubconf.py").write_text(HUBCONF)
            (place / "helper_of_the_hub.py").write_text("WIDTH = 3\n")
        stdin = sys.stdin
        sys.stdin = io.StringIO("" if answer is None else answer + "\n")
        try:
            yield pathlib.Path(folder)
        finally:
            sys.stdin = stdin
            sys.modules.pop("helper_of_the_hub", None)
            torch.hub.set_dir(before)
            for name in names:
                os.environ.pop(name, None)
                if kept[name] is not None:
                    os.environ[name] = kept[name]  # type: ignore[assignment]
            if alias is None:
                del sys.modules["torch"]
            else:
                sys.modules["torch"] = alias


def run(folder: pathlib.Path, torch: Any, function: Any) -> Any:
    """What a function returns or raises, and prints, without the folder's own name."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = function()
        except Exception as e:
            result = [type(e).__name__, str(e)]
    texts = [out.getvalue(), err.getvalue()]
    if isinstance(result, list):
        result = [x.replace(str(folder), "<folder>") if isinstance(x, str) else x for x in result]
    return [result, *(text.replace(str(folder), "<folder>") for text in texts)]


@case(modes=("default",))
def case_local(torch: Any) -> Any:
    with hub(torch, "mine") as folder:
        load = torch.hub.load
        path = folder / "mine"
        before = list(sys.path)
        out = [
            run(folder, torch, lambda: repr(load(str(path), "tiny", source="local"))),
            run(folder, torch, lambda: repr(load(path, "tiny", 5, bias=False, source="LOCAL", verbose=False))),
            run(folder, torch, lambda: load(path, "Model", source="local", trust_repo=False).__class__.__module__),
            *(
                run(folder, torch, lambda name=name: load(path, name, source="local"))
                for name in ("missing", "number", "_hidden", 3, None, "dependencies")
            ),
            run(folder, torch, lambda: load(path, "tiny", source="elsewhere")),
            run(folder, torch, lambda: load(folder / "nowhere", "tiny", source="local")),
            run(folder, torch, lambda: load(path, "tiny", other=1, source="local")),
        ]
        (path / "hubconf.py").write_text('dependencies = ["json", "no_such_one", "nor_this"]\ndef f(): pass\n')
        out.append(run(folder, torch, lambda: load(path, "f", source="local")))
        (path / "hubconf.py").write_text("import no_such_one\n")
        out.append(run(folder, torch, lambda: load(path, "f", source="local")))
        (path / "hubconf.py").write_text("1/0\n")
        out.append(run(folder, torch, lambda: load(path, "f", source="local")))
        return [*out, sys.path == before, "hubconf" in sys.modules, "hubconf.py" in sys.modules]


@case(modes=("default",))
def case_cached(torch: Any) -> Any:
    """Repositories that were downloaded before."""
    with hub(torch, "hub/me_it_v1", "hub/me_it_main", "hub/me_old_master", "hub/me_it_a_b") as folder:
        h = torch.hub
        return [
            run(folder, torch, lambda: h.list("me/it:v1")),
            run(folder, torch, lambda: h.list("me/it:a/b", verbose=False)),
            run(folder, torch, lambda: h.help("me/it:v1", "tiny")),
            run(folder, torch, lambda: h.help("me/it:v1", "missing")),
            run(folder, torch, lambda: repr(h.load("me/it:v1", "tiny", 4))),
            run(folder, torch, lambda: repr(h.load("me/it", "tiny", verbose=False))),
            run(folder, torch, lambda: repr(h.load("me/old", "tiny", trust_repo=True))),
            run(folder, torch, lambda: h.load("me/none", "tiny")),
            run(folder, torch, lambda: h.load("nothing", "tiny")),
            (folder / "hub" / "trusted_list").read_text(),
        ]


@case(modes=("default",))
@case.params("answer", ["y", "n", "", "perhaps"])
def case_trust(torch: Any, answer: str) -> Any:
    out = []
    for trust in ("check", False, True):
        for name in ("me/it:v1", "you/it:v1", "pytorch/it:v1"):
            with hub(torch, "hub/me_it_v1", answer=answer) as folder:
                (folder / "hub" / "trusted_list").write_text("you_other\n")
                seen = run(folder, torch, lambda n=name, t=trust: repr(torch.hub.load(n, "tiny", trust_repo=t)))
                out += [trust, name, seen, (folder / "hub" / "trusted_list").read_text()]
    return out


@case(modes=("default",))
def case_offline(torch: Any) -> Any:
    """An attempt to download fails at once, and leaves nothing behind."""
    with hub(torch) as folder:
        h = torch.hub
        url = "https://example.org/tiny.pt"
        out = [
            run(folder, torch, lambda: h.load("me/it", "tiny", trust_repo=True)),
            run(folder, torch, lambda: h.list("pytorch/it:v1")),
            run(folder, torch, lambda: h.list("pytorch/it:v1", skip_validation=True)),
            run(folder, torch, lambda: h.list("pytorch/it:v1", force_reload=True, skip_validation=True)),
            run(folder, torch, lambda: h.load_state_dict_from_url(url)),
            run(folder, torch, lambda: h.load_state_dict_from_url(url, str(folder / "else"), file_name="a.pt")),
            run(folder, torch, lambda: h.download_url_to_file(url, str(folder / "file.pt"))),
        ]
        return [*out, sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))]


@case(modes=("default",))
def case_files(torch: Any) -> Any:
    """file:// URLs, files that are there already, and hashes."""
    with hub(torch) as folder:
        h = torch.hub
        source = folder / "net.pt"
        torch.save({"w": torch.arange(3.0)}, source)
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        good, bad = folder / f"net-{digest[:8]}.pt", folder / "net-0123abcd.pt"
        good.write_bytes(source.read_bytes())
        bad.write_bytes(source.read_bytes())
        get = h.load_state_dict_from_url

        def seen(function: Any) -> Any:
            out = run(folder, torch, function)
            return [str(x).replace(digest, "<digest>").replace(digest[:8], "<start>") for x in out]

        out = [
            seen(lambda: get(source.as_uri())),
            seen(lambda: get(source.as_uri(), progress=False)),
            seen(lambda: get(good.as_uri(), check_hash=True, progress=False)),
            seen(lambda: get(bad.as_uri(), check_hash=True, progress=False)),
            seen(lambda: get(bad.as_uri(), progress=False)),
            seen(lambda: get(source.as_uri(), str(folder / "own"), "cpu", False, True, "other.pt", True)),
            seen(lambda: get("https://example.org/a/net.pt?x=1")),
            seen(lambda: get((folder / "missing.pt").as_uri())),
            seen(lambda: h.download_url_to_file(source.as_uri(), str(folder / "b.pt"), digest[:10], False)),
            seen(lambda: h.download_url_to_file(source.as_uri(), str(folder / "c.pt"), "ff", False)),
        ]
        with zipfile.ZipFile(folder / "packed.zip", "w") as packed:
            packed.write(source, "inside.pt")
        out += [str(warns(torch, lambda: str(get((folder / "packed.zip").as_uri(), progress=False))))]
        names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
        return [*out, [name.replace(digest[:8], "<start>") for name in names]]


@case(modes=("default",))
def case_folders(torch: Any) -> Any:
    h = torch.hub
    with hub(torch) as folder:
        os.environ["XDG_CACHE_HOME"] = "~/here"
        h._hub_dir = None
        getattr(h, "_CHOSEN", {}).clear()
        out = [h.get_dir().replace(os.path.expanduser("~"), "~")]
        os.environ["TORCH_HOME"] = str(folder)
        out += [h.get_dir().replace(str(folder), "<folder>")]
        h.set_dir("~/there")
        out += [h.get_dir().replace(os.path.expanduser("~"), "~")]
        h.set_dir(pathlib.Path("/a/b"))
        out += [h.get_dir(), type(h.get_dir()).__name__, h.set_dir("/c")]
        os.environ["TORCH_HUB"] = "x"
        out += [warns(torch, h.get_dir)]
        del os.environ["TORCH_HUB"]
        return [*out, raises(torch, lambda: h.set_dir(3)), sorted(h.__all__)]
