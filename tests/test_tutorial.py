"""First steps: the files to download are up to date; notebook and commands show what the pages show."""

import ast
import doctest
import json
import re
import runpy
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

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


def cells() -> list[str]:
    """Code of the notebook."""
    book = json.loads((START / "tutorial.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def examples() -> list[doctest.Example]:
    """Statements of the page of the tutorial with what it shows below them."""
    page = (START / "tutorial.md").read_text(encoding="utf-8")
    return doctest.DocTestParser().get_examples(page)


def run_cell(source: str, names: dict[str, Any]) -> str:
    """What a notebook shows below a cell: what it prints, and the value of its last line."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as shown:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        if value is not None:
            print(repr(value))
    return shown.getvalue()


def test_notebook_shows_what_the_page_shows(tmp_path, monkeypatch):
    """The notebook runs beside its two files alone; the page itself is not collected as a doctest."""
    for name in ("digits.csv", "pairs.csv"):
        shutil.copy(START / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    same = doctest.OutputChecker().check_output
    statements = iter(examples())
    for cell in cells():
        source = ""
        while source.split() != cell.split():
            example = next(statements)
            source += example.source
        shown = run_cell(cell, names)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert same(example.want, shown, flags), f"{cell}\nshows\n{shown}\nnot\n{example.want}"
    assert next(statements, None) is None


def test_sentences_have_the_figures_of_the_code():
    page = (START / "tutorial.md").read_text(encoding="utf-8")
    shown = {example.source: example.want for example in examples()}
    (gain,) = [re.search(r"gain \+0\.(\d\d)", want)[1] for want in shown.values() if want.startswith("gain")]
    (alone, linked) = next(want for source, want in shown.items() if "clustering_accuracy(" in source).split()
    assert f"agrees with {gain} % more of the left-out pairs" in page
    sentence = f"right about {float(alone):.0%} of the scans, and the result above about {float(linked):.0%}:"
    assert sentence.replace("%", " %") in page


#: What a reader does between the commands of the page; keys of the session, which ends with q.
KEYS = {"ask": "ddsdsq"}


def blocks() -> dict[str, str]:
    """Commands of the page that are followed by what they print, at most a sentence between them."""
    page = (START / "command_line.md").read_text(encoding="utf-8")
    pattern = r"```sh\nlinkwise ([^\n]+)\n```\n\n(?:[^\n`]+:\n\n)?```text\n(.*?)```"
    return dict(re.findall(pattern, page, flags=re.DOTALL))


def test_all_output_of_the_page_is_compared():
    page = (START / "command_line.md").read_text(encoding="utf-8")
    texts = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    others = [text for text in texts if text not in blocks().values()]
    files = ("flowers.csv ", "known.csv\n")
    assert [text for text in others if not text.startswith(files)] == [CONTRADICTION]


#: Of another session: ``tests/cli/ask`` has such ones.
CONTRADICTION = """These answers cannot all be right.
  1  001 = 003   (answer 3)
  2  003 = 004   (answer 1)
  3  001 ≠ 004   (just given)
Which one is wrong?  1-3 take it back  k keep all  q quit >
"""


@pytest.mark.parametrize("command", blocks(), ids=lambda command: command[:30])
def test_command_prints_what_the_page_shows(command, tmp_path, monkeypatch):
    for name in ("flowers.csv", "links.csv", "known.csv", "legend.csv"):
        shutil.copy(START / name, tmp_path)
    (tmp_path / "beliefs.csv").write_text("class,other,setosa\nother,0.1,-1.0\nsetosa,-1.0,1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    result = CliRunner().invoke(app, command.split(), input=KEYS.get(command.split()[0]))
    assert result.exit_code == 0
    printed = [timeless(line) for line in result.stdout.splitlines()]
    for line in blocks()[command].splitlines():
        assert line == "..." or timeless(line) in printed, line


def test_table_of_beliefs_to_edit(tmp_path, monkeypatch):
    """The first run about classes writes the table that the page tells to edit."""
    shutil.copy(START / "legend.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ["classes", "legend.csv", "--label", "species", "--id", "flower", "-o", "new"]
    assert CliRunner().invoke(app, command).exit_code == 0
    written = (tmp_path / "new" / "beliefs.csv").read_text()
    assert written.splitlines() == ["class,other,setosa", "other,1.0,-1.0", "setosa,-1.0,1.0"]


def timeless(line: str) -> str:
    """A line without its spaces and its seconds."""
    return " ".join(re.sub(r"\d+\.\d+ s\b", "some s", line).split())
