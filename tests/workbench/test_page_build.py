"""The built page in the package belongs to the sources in ``frontend/``."""

import json
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

import linkwise

FRONTEND = Path(__file__).parents[2] / "frontend"
STATIC = Path(linkwise.__file__).parent / "workbench" / "static"
ADVICE = "run npm ci && npm run build in frontend/ and commit what it writes"


def test_the_build_is_that_of_the_sources():
    record = json.loads((STATIC / "build.json").read_text(encoding="utf-8"))
    names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    names += [f"src/{path.name}" for path in (FRONTEND / "src").iterdir()]
    sources = sha256()
    for name in sorted(names):
        sources.update(f"{name}\0".encode() + (FRONTEND / name).read_bytes() + b"\0")
    assert record["sources"] == sources.hexdigest(), ADVICE
    assert {path.name for path in STATIC.iterdir()} == {*record["built"], "build.json"}, ADVICE
    for name, digest in record["built"].items():
        assert sha256((STATIC / name).read_bytes()).hexdigest() == digest, f"{name} was changed; {ADVICE}"


@pytest.mark.skipif(
    shutil.which("npm") is None or not (FRONTEND / "node_modules").is_dir(),
    reason="npm or its packages are not installed",
)
def test_the_sources_pass_their_own_checks():
    found = subprocess.run(["npm", "run", "check"], cwd=FRONTEND, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_page_has_nothing_inline_and_parses_no_html():
    """A strict policy forbids inline code and styles; text from data must never be parsed as HTML."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "style=" not in page
    assert "<style" not in page
    assert page.count("<script") == 1
    sources = "".join(path.read_text(encoding="utf-8") for path in (FRONTEND / "src").glob("*.ts"))
    for unsafe in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
        '"style"',
    ):
        assert unsafe not in sources
