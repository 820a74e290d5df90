"""``python -m experiments`` from end to end on a small experiment, and what it says of missing data."""

from __future__ import annotations

import dataclasses
import json

import pytest
from typer.testing import CliRunner

import experiments
from experiments.__main__ import app
from experiments.framework.data_files import data_path
from experiments.framework.experiment import Experiment, Size
from experiments.framework.tables import read_table


def trial(draw, data, links):
    if data == "folder":
        data_path("something.csv.gz")
    if data == "broken":
        raise ZeroDivisionError("no")
    return [{"method": "plain", "f": 0.5}, {"method": "linked", "f": 0.5 + links / 100 + draw / 1000}]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def register(monkeypatch):
    def add(name, sets):
        settings = [{"data": data, "links": links} for data in sets for links in (10, 20)]
        experiment = Experiment(
            name, f"About {name}", "a paper", trial, Size(settings, 2), Size(settings, 4), ("f",),
            reference="plain", axis="links",
        )  # fmt: skip
        monkeypatch.setitem(experiments.EXPERIMENTS, name, experiment)

    return add


def test_tables_figure_and_provenance(invoke, register, tmp_path):
    register("small", ["bundled"])
    result = invoke("small", "--full", "-j", "1", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "0.600" in result.stdout or "0.601" in result.stdout
    table = read_table(tmp_path / "out" / "small.csv")
    assert {row["n"] for row in table} == {4}
    assert [row["difference"] for row in table if row["method"] == "linked"] == [
        pytest.approx(0.1015), pytest.approx(0.2015),
    ]  # fmt: skip
    record = json.loads((tmp_path / "out" / "small.json").read_text())
    assert record["command"] == "python -m experiments small --full"
    assert record["trials"] == 8
    assert set(record["versions"]) >= {"python", "numpy", "linkwise"}
    assert (tmp_path / "out" / "small.png").exists()
    assert str(tmp_path) not in (tmp_path / "out" / "small.json").read_text()


def test_second_run_measures_nothing_again(invoke, register, tmp_path, monkeypatch):
    register("small", ["bundled"])
    assert invoke("small", "-j", "1").exit_code == 0
    stored = (tmp_path / "build/reproduce/trials/small-quick.jsonl").read_text()
    assert len(stored.splitlines()) == 4
    assert invoke("small", "-j", "1").exit_code == 0
    assert (tmp_path / "build/reproduce/trials/small-quick.jsonl").read_text() == stored
    assert invoke("small", "-j", "1", "--fresh").exit_code == 0
    again = (tmp_path / "build/reproduce/trials/small-quick.jsonl").read_text()
    assert again != stored  # seconds differ
    assert len(again.splitlines()) == 4


def test_missing_data_are_a_warning(invoke, register, monkeypatch, tmp_path):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    register("small", ["bundled", "folder"])
    result = invoke("small", "-j", "1")
    assert result.exit_code == 0
    assert "2 settings skipped: something.csv.gz is needed: set LINKWISE_DATA" in result.stderr
    record = json.loads((tmp_path / "build/reproduce/small-quick.json").read_text())
    assert list(record["skipped"].values()) == [
        [{"data": "folder", "links": 10}, {"data": "folder", "links": 20}]
    ]


def test_failed_trials_are_named_and_make_the_command_fail(invoke, register):
    register("small", ["broken"])
    result = invoke("small", "-j", "1")
    assert result.exit_code == 1
    assert "ZeroDivisionError: no" in result.stderr
    assert "4 trials failed" in result.stderr


def test_quick_results_do_not_replace_full_ones(invoke, register, tmp_path):
    register("small", ["bundled"])
    invoke("small", "--full", "-j", "1", "-o", "out")
    full = (tmp_path / "out" / "small.csv").read_text()
    assert invoke("small", "--quick", "-j", "1", "-o", "out").exit_code == 0
    assert (tmp_path / "out" / "small.csv").read_text() == full
    assert {row["n"] for row in read_table(tmp_path / "out" / "small-quick.csv")} == {2}


def test_picture_that_fails_leaves_table_and_provenance(invoke, register, monkeypatch, tmp_path):
    def fail(path):
        path.write_bytes(b"half")
        raise ValueError("no picture today")

    register("small", ["bundled"])
    changed = dataclasses.replace(experiments.EXPERIMENTS["small"], picture=fail)
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", changed)
    result = invoke("small", "-j", "1", "-o", "out")
    assert result.exit_code == 1
    assert "no picture today" in result.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"small-quick.csv", "small-quick.json", "trials"}


def test_progress_in_a_log(invoke, register):
    register("small", ["bundled"])
    result = invoke("small", "-j", "1", "--json")
    assert "small: 4 of 4 trials" in result.stderr
    assert json.loads(result.stdout)["experiments"][0]["trials"] == 4


def test_list_and_unknown_names(invoke, register):
    register("small", ["bundled"])
    listed = invoke("--list", "small", "--json")
    assert json.loads(listed.stdout)["experiments"] == [
        {"name": "small", "paper": "a paper", "title": "About small", "quick": "4", "full": "8"}
    ]
    assert "small" in invoke("--list").stdout
    unknown = invoke("smal")
    assert unknown.exit_code == 2
    assert "no experiment smal" in unknown.stderr


def test_folder_of_data_must_exist(invoke, register):
    register("small", ["bundled"])
    result = invoke("small", "--data", "nowhere")
    assert result.exit_code == 1
    assert "nowhere is not a folder" in result.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["nothing"], 2), (["--data", "nowhere"], 1)])
def test_bad_calls_are_one_line_and_an_object(invoke, arguments, code):
    result = invoke(*arguments, "--json")
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert "; " in line
    assert json.loads(result.stdout)["error"]["exit_code"] == code


def test_failed_trials_are_told_with_what_was_found(invoke, monkeypatch):
    """One object, not two: the results and the error."""
    monkeypatch.setattr(
        "experiments.__main__._run", lambda *arguments: {"name": "one", "failed": [{"draw": 0}]}
    )
    result = invoke("normaliser", "--json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["experiments"][0]["name"] == "one"
    assert record["error"]["message"].startswith("1 trials failed; ")


def test_stored_trials_are_written_and_nothing_is_run(invoke, register, tmp_path, monkeypatch):
    register("small", ["bundled"])
    assert invoke("small", "-j", "1").exit_code == 0
    path = tmp_path / "build/reproduce/trials/small-quick.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    result = invoke("small", "-j", "1", "--stored")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "build/reproduce/small-quick.json").read_text())["trials"] == 3
    assert path.read_text() == "".join(lines[:3])
    assert invoke("small", "--stored", "--fresh").exit_code == 2


def test_chart_is_drawn_from_the_table(invoke, register, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    register("small", ["bundled"])
    drawn = []

    def chart(table):
        drawn.append(table)
        return Figure()

    changed = dataclasses.replace(experiments.EXPERIMENTS["small"], chart=chart)
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", changed)
    assert invoke("small", "-j", "1", "-o", "out").exit_code == 0
    assert (tmp_path / "out" / "small-quick.png").exists()
    assert {row["links"] for row in drawn[0]} == {10, 20}


def test_part_of_an_experiment_is_run_and_the_rest_kept(invoke, register, tmp_path, monkeypatch):
    register("small", ["bundled", "other"])
    assert invoke("small", "-j", "1", "-o", "old").exit_code == 0
    before = read_table(tmp_path / "old" / "small-quick.csv")
    chosen = ("--only", "data=other", "--only", "links=20", "--draws", "1")
    result = invoke("small", "-j", "1", "-o", "new", *chosen, "--keep", "old")
    assert result.exit_code == 0, result.output
    after = read_table(tmp_path / "new" / "small-quick.csv")
    assert len((tmp_path / "new/trials/small-quick.jsonl").read_text().splitlines()) == 1
    new = [row for row in after if row["data"] == "other" and row["links"] == 20]
    assert [row["n"] for row in new] == [1, 1]
    # The setting that was run is the last one.
    assert after[:-2] == before[:-2]
    assert after[-2:] == new
    (kept,) = json.loads((tmp_path / "new" / "small-quick.json").read_text())["kept"]
    assert kept["rows"] == len(before) - 2
    assert sum(kept["sources"].values()) == 8


def _several(draw, flip, methods=("plain", "linked", "other")):
    return [{"method": name, "f": len(methods) + flip + draw} for name in methods]


def test_one_method_is_run_alone_and_the_others_keep_their_rows(invoke, tmp_path, monkeypatch):
    size = Size([{"flip": 0.0}, {"flip": 0.5}], 1)
    experiment = Experiment(
        "small", "", "", _several, size, size, ("f",), methods=("plain", "linked", "other")
    )
    monkeypatch.setitem(experiments.EXPERIMENTS, "small", experiment)
    assert invoke("small", "-j", "1", "-o", "out").exit_code == 0
    chosen = ("--only", "method=linked", "--only", "flip=0.5")
    result = invoke("small", "-j", "1", "-o", "out", *chosen, "--keep", "out")
    assert result.exit_code == 0, result.output
    found = {
        (row["flip"], row["method"]): row["mean"] for row in read_table(tmp_path / "out/small-quick.csv")
    }
    expected = {(flip, name): 3 + flip for flip in (0.0, 0.5) for name in ("plain", "linked", "other")}
    assert found == {**expected, (0.5, "linked"): 1.5}
    assert json.loads((tmp_path / "out/small-quick.json").read_text())["kept"][0]["rows"] == 5
    result = invoke("small", "--only", "method=nobody")
    assert result.exit_code == 2
    assert "there is no method 'nobody'; use one of plain, linked, other" in " ".join(result.output.split())


def test_fresh_forgets_only_what_is_chosen(invoke, register, tmp_path):
    register("small", ["bundled"])
    path = tmp_path / "build/reproduce/trials/small-quick.jsonl"
    assert invoke("small", "-j", "1").exit_code == 0
    first = path.read_text().splitlines()
    assert invoke("small", "-j", "1", "--fresh", "--only", "links=20").exit_code == 0
    again = path.read_text().splitlines()
    assert len(again) == 4
    assert [line for line in first if line in again] == [line for line in first if '"links": 10' in line]


@pytest.mark.parametrize("only", ["colour=red", "links", "links=99"])
def test_settings_that_do_not_exist_are_refused(invoke, register, only):
    register("small", ["bundled"])
    result = invoke("small", "--only", only)
    assert result.exit_code == 2
    assert "--only" in result.output
