"""The page of the benchmarks and its summary; the measurements themselves are no tests."""

from __future__ import annotations

import json
import math
import re
import sys
import types

import pytest

import benchmarks.__main__ as command
from benchmarks import _results
from benchmarks._table import Measured, Table
from benchmarks._targets import TARGETS, Target, summary, verdict
from benchmarks._timing import attempt, best_of, one_line

AT_LEAST = Target("em", "work", "anchor", ">=", 6.0)
AT_MOST = Target("graph", "work", "anchor", "<=", 4.0)


def a_table(title: str = "First", value: float = 1.5, **measured: Measured) -> Table:
    return Table(title, ["what", "value"], [["a | b\nc", value], ["nothing", math.nan]], "A note.", measured)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write beside nothing of the project."""
    records, page = tmp_path / "results.json", tmp_path / "RESULTS.md"

    def write(name, measured, order):
        return _results.write(name, measured, order, records, page)

    monkeypatch.setattr(command, "write", write)
    return records, page


def add_section(monkeypatch, name, run):
    module = types.ModuleType(f"benchmarks.{name}", f"About {name}.")
    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(command, "SECTIONS", sorted({*command.SECTIONS, name}))


def test_table_rendering():
    assert a_table().markdown().splitlines() == [
        "### First",
        "",
        "| what | value |",
        "| --- | --- |",
        "| a \\| b c | 1.5 |",
        "| nothing |  |",
        "",
        "A note.",
    ]
    plain = a_table().plain().splitlines()
    assert plain[0] == "First"
    assert plain[-1] == "A note."
    assert len({len(line) for line in plain[1:-1]}) == 1
    assert Table("Empty", ["x"], []).markdown().splitlines()[-1] == "| --- |"


@pytest.mark.parametrize(
    ("target", "measured", "expected"),
    [
        (AT_LEAST, Measured(6.0), "met"),
        (AT_LEAST, Measured(5.99), "missed"),
        (AT_LEAST, Measured(7.0, at_least=True), "met"),
        (AT_LEAST, Measured(5.0, at_least=True), "open"),
        (AT_MOST, Measured(4.0), "met"),
        (AT_MOST, Measured(4.01), "missed"),
        (AT_MOST, Measured(3.0, at_least=True), "open"),
        (AT_MOST, Measured(5.0, at_least=True), "missed"),
        (AT_LEAST, Measured(reason="not installed"), "not measured"),
        (AT_MOST, None, "not measured"),
    ],
)
def test_verdict(target, measured, expected):
    assert verdict(target, measured) == expected


def test_summary_lists_every_target():
    found = {"icm": Measured(2.0), "gibbs": Measured(9.0), "e-step": Measured(7.0, at_least=True)}
    table = summary(found)
    assert len(table.rows) == len(TARGETS)
    rows = dict(zip(TARGETS, table.rows, strict=True))
    assert rows["icm"][-3:] == ["<= 3", "2", "met"]
    assert rows["gibbs"][-3:] == ["<= 4.5", "9", "missed"]
    assert rows["e-step"][-3:] == [">= 100", "> 7", "open"]
    assert rows["mean_field"][-3:] == ["<= 4", "", "not measured"]
    assert table.note.startswith("1 met, 1 missed, 1 open")
    assert f"{len(TARGETS) - 3} not measured" in table.note


def test_targets_belong_to_sections():
    assert {target.section for target in TARGETS.values()} <= set(command.SECTIONS)
    assert {target.sense for target in TARGETS.values()} == {">=", "<="}


def test_sections_are_the_public_modules():
    assert {"classes", "constraints", "em", "graph", "kmeans", "spectral", "startup"} <= set(command.SECTIONS)
    assert not any(name.startswith("_") for name in command.SECTIONS)


def test_unknown_section_is_refused():
    with pytest.raises(SystemExit, match=r"no benchmark section nonsense; there are active, classes, "):
        command.main(["nonsense"])


def test_one_section_replaces_only_its_part(files, monkeypatch, capsys):
    records, page = files
    for name, value in (("alpha", 1.5), ("beta", 2.5)):
        add_section(monkeypatch, name, lambda value=value: iter([a_table(f"Of {value}", value)]))
    command.main(["beta", "alpha"])
    before = page.read_text()
    assert before.index("## alpha") < before.index("## beta")
    old = json.loads(records.read_text())

    add_section(monkeypatch, "beta", lambda: iter([a_table("Anew", 3.5, icm=Measured(2.0))]))
    command.main(["beta"])
    after, new = page.read_text(), json.loads(records.read_text())
    assert new["alpha"] == old["alpha"]
    part = re.compile(r"## alpha\n.*?(?=\n## )", re.DOTALL)
    assert part.search(after)[0] == part.search(before)[0]
    assert "### Of 2.5" not in after
    assert "### Anew" in after
    assert "About beta." in after
    assert re.search(r"\| graph \| ICM sweep.*\| <= 3 \| 2 \| met \|", after)
    assert "Anew" in capsys.readouterr().out


def test_page_names_command_and_versions(files, monkeypatch):
    add_section(monkeypatch, "alpha", lambda: iter([a_table()]))
    command.main(["alpha"])
    text = files[1].read_text()
    for words in (
        'make bench SECTION="alpha"',
        "Python 3",
        "numpy ",
        "scikit-learn ",
        "numba ",
        "linkwise ",
        "cores",
    ):
        assert words in text
    assert text.startswith("# Speed and memory\n")


def test_a_section_that_fails_keeps_its_tables_and_lets_the_others_run(files, monkeypatch):
    def failing():
        yield a_table("Before")
        raise OSError("cannot read /some/folder/file.txt | at all")

    add_section(monkeypatch, "alpha", failing)
    add_section(monkeypatch, "beta", lambda: iter([a_table("Behind")]))
    command.main(["alpha", "beta"])
    text = files[1].read_text()
    assert "### Before" in text
    assert "| OSError: cannot read file.txt \\| at all |" in text
    assert "### Behind" in text


def test_a_section_that_cannot_be_imported_is_a_table(files, monkeypatch):
    monkeypatch.setattr(command, "SECTIONS", [*command.SECTIONS, "missing"])
    command.main(["missing"])
    assert "ModuleNotFoundError: No module named 'benchmarks.missing'" in files[1].read_text()


def test_sections_that_are_gone_leave_the_page(files, monkeypatch):
    _, page = files
    with monkeypatch.context() as patch:
        add_section(patch, "alpha", lambda: iter([a_table("Old")]))
        command.main(["alpha"])
    add_section(monkeypatch, "beta", lambda: iter([a_table("New")]))
    command.main(["beta"])
    assert "## alpha" not in page.read_text()


def test_attempt_and_error_text():
    assert attempt(lambda: 3) == (3, "")
    result, error = attempt(lambda: 1 / 0)
    assert result is None
    assert error == "ZeroDivisionError: division by zero"
    assert one_line(ImportError("no x\nin a (/opt/lib/python3/a.py)")) == "ImportError: no x in a (a.py)"
    assert one_line(ValueError("1/2 and a/b/c stay")) == "ValueError: 1/2 and a/b/c stay"
    assert len(one_line(ValueError("x" * 1000))) < 200


def test_best_of_takes_the_shortest():
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    calls = []
    assert best_of(lambda: calls.append(1) or len(calls), repeats=3, clock=lambda: next(ticks)) == (2.0, 4)
