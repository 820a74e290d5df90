"""The built wheel in an empty environment runs the README: ``python -m tests.wheel``, a few minutes.

It is no part of ``make test``, because it installs packages. It builds the wheel, makes a virtual
environment, and runs the README there: without extras, with ``[cli]``, and from an install in which nothing
can be written, with a cache folder of the user and without one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path, fails: bool = False, **variables: str) -> str:
    """Output of a command, which must succeed or, if ``fails``, must not."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")
    }
    print("$", " ".join(Path(word).name if isinstance(word, Path) else word for word in command), flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if (done.returncode == 0) == fails:
        raise SystemExit(f"exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, with what a user needs and nothing else."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("linkwise-*.whl")
    return wheel


def freeze(package: Path) -> None:
    """Let nobody write there; root is stopped by a plain file in place of ``__pycache__``."""
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
        folder.chmod(0o555)


def readme(python: Path, place: Path, **variables: str) -> None:
    """Run the Python of the README beside the files that it names, and nothing else of the repository."""
    (place / "docs" / "start").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "README.md", place)
    for name in ("digits.csv", "pairs.csv"):
        shutil.copy(ROOT / "docs" / "start" / name, place / "docs" / "start")
    assert str(ROOT) not in run(python, "-c", "import linkwise; print(linkwise.__file__)", cwd=place)
    run(python, "-m", "doctest", "README.md", cwd=place, **variables)


def shell_commands() -> list[str]:
    """Commands of the README that need no file but those it names."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"`(linkwise fit [^`]+)`", text)


def main() -> None:
    """Build, install and run; the first failure ends it."""
    with TemporaryDirectory() as name:
        place = Path(name)
        wheel = build(place)
        venv.create(place / "empty", with_pip=True)
        scripts = place / "empty" / ("Scripts" if os.name == "nt" else "bin")
        python, command = scripts / "python", scripts / "linkwise"
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")

        run(*install, wheel, cwd=place)
        told = run(command, "fit", "data.csv", cwd=place, fails=True)
        assert len(told.splitlines()) == 1, told
        assert "linkwise[cli]" in told, told
        run(*install, "pandas", cwd=place)  # the README reads its table with it
        readme(python, place)

        run(*install, f"{wheel}[cli]", cwd=place)
        readme(python, place)
        run(command, "--help", cwd=place)
        for line in shell_commands():
            run(command, *line.split()[1:], cwd=place)
            assert (place / "result" / "labels.csv").exists()

        freeze(Path(run(python, "-c", "import linkwise; print(linkwise.__path__[0])", cwd=place).strip()))
        readme(python, place, XDG_CACHE_HOME=str(place / "cache"), LOCALAPPDATA=str(place / "cache"))
        assert list((place / "cache").rglob("*.nbi")), "kernels are kept in the user's cache"
        readme(python, place, HOME=os.devnull, XDG_CACHE_HOME=os.devnull, LOCALAPPDATA=os.devnull)
    print("The wheel runs the README without extras, with [cli], and from a read-only install.")


if __name__ == "__main__":
    main()
