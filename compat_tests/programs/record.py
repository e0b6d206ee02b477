"""Record again what the programs print: `python -m compat_tests.programs.record`, with PyTorch installed."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
OUTPUT = HERE.parent / "reference" / "programs"
EXAMPLES = ("digits_mlp", "digits_cnn", "autograd_tour")


def programs() -> dict[str, pathlib.Path]:
    """Name -> script: those of this folder, and the examples that run in seconds."""
    found = {path.stem: path for path in sorted((HERE / "scripts").glob("*.py"))}
    return found | {name: ROOT / "examples" / f"{name}.py" for name in EXAMPLES}


def printed(path: pathlib.Path, *prefix: str) -> str:
    """What a script prints, with PyTorch or (prefix "-m", "torchlike") here."""
    done = subprocess.run(
        [sys.executable, *prefix, str(path)], capture_output=True, text=True, timeout=600, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def main() -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, path in programs().items():
        (OUTPUT / f"{name}.txt").write_text(printed(path), encoding="utf-8")
        print("recorded", name)


if __name__ == "__main__":
    main()
