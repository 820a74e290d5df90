"""First steps: files to download are what their script writes, and commands print what the page shows."""

import doctest
import json
import re
import runpy
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linkwise.cli.app import app

DOCS = Path(__file__).parents[1] / "docs"
START = DOCS / "start"


def test_files_are_up_to_date():
    """Otherwise run ``python docs/make_tutorial.py``."""
    script = runpy.run_path(str(DOCS / "make_tutorial.py"))
    for name, text in script["files"]().items():
        assert (START / name).read_text(encoding="utf-8") == text


def test_notebook_is_the_page():
    """Its cells are the statements of the page, which runs as a doctest, and none is cut in two."""
    book = json.loads((START / "tutorial.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        compile(cell, "cell", "exec")
    page = (START / "tutorial.md").read_text(encoding="utf-8")
    statements = [example.source for example in doctest.DocTestParser().get_examples(page)]
    assert "\n".join(cells).split() == "".join(statements).split()
    assert len(cells) > 4


def blocks() -> dict[str, str]:
    """Commands of the page that are followed by what they print."""
    page = (START / "command_line.md").read_text(encoding="utf-8")
    return dict(re.findall(r"```sh\nlinkwise ([^\n]+)\n```\n\n```text\n(.*?)```", page, flags=re.DOTALL))


@pytest.mark.parametrize("first", ["check links.csv", "fit flowers.csv --links links.csv -k 3"])
def test_command_prints_what_the_page_shows(first, tmp_path, monkeypatch):
    for name in ("flowers.csv", "links.csv"):
        shutil.copy(START / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    ((command, shown),) = [item for item in blocks().items() if item[0].startswith(first)]
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0
    printed = [timeless(line) for line in result.stdout.splitlines()]
    for line in shown.splitlines():
        assert line == "..." or timeless(line) in printed


def timeless(line: str) -> str:
    """A line without its spaces and its seconds."""
    return " ".join(re.sub(r"\d+\.\d+ s\b", "some s", line).split())
