"""Columns of the user keep name and values: every command, every name of an output column."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from linkwise.cli import classes as classes_module
from linkwise.cli import compare as compare_module
from linkwise.cli import samples as samples_module
from linkwise.cli.fit import report as fit_module

IDS = [f"flower {row}" for row in range(24)]
LABELS = ["red" if row < 12 else "blue" for row in range(24)]


def remembered(monkeypatch, module, name):
    """Let the slow middle of a command run once; what is written around it is what is tested."""
    real, known = getattr(module, name), []

    def once(*arguments, **options):
        if not known:
            known.append(real(*arguments, **options))
        return known[0]

    monkeypatch.setattr(module, name, once)


class Command:
    """A command on the same rows, with columns of ids and classes under any names."""

    def __init__(self, invoke, folder):
        self.invoke, self.folder = invoke, folder
        self.data, self.out = folder / "data.csv", folder / "out"

    def write_data(self, id_name, label_name):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            rng.normal(size=(24, 2)) + 6.0 * (np.arange(24) >= 12)[:, None], columns=["u", "v"]
        )
        if label_name is not None:
            frame.insert(0, label_name, LABELS)
        if id_name is not None:
            frame.insert(0, id_name, IDS)
        frame.to_csv(self.data, index=False)
        return [] if id_name is None else ["--id", id_name]

    def done(self, *arguments):
        result = self.invoke(*arguments)
        assert result.exit_code == 0, result.output
        return result.stderr


class Fit(Command):
    roles = ("id",)

    def run(self, id_name, label_name):
        ids = self.write_data(id_name, None)
        stderr = self.done("fit", self.data, "-k", 2, *ids, "-m", "ppc", "--starts", 1, "-o", self.out)
        return pd.read_csv(self.out / "labels.csv"), stderr


class Predict(Command):
    """By a model with names for its clusters, which are a column more."""

    roles = ("id",)

    def prepare(self):
        self.write_data(None, "species")
        template = ("classes", self.data, "--label", "species", "-o", self.folder / "model")
        self.done(*template)
        self.done(*template, "-b", self.folder / "model" / "beliefs.csv", "-k", 2, "--repeats", 1)

    def run(self, id_name, label_name):
        if not (self.folder / "model").exists():
            self.prepare()
        ids = self.write_data(id_name, None)
        stderr = self.done("predict", self.folder / "model", self.data, *ids, "-o", self.out / "found.csv")
        return pd.read_csv(self.out / "found.csv"), stderr


class Classes(Command):
    roles = ("id", "label")

    def run(self, id_name, label_name):
        ids = self.write_data(id_name, label_name)
        beliefs = self.folder / "beliefs.csv"
        beliefs.write_text("class,blue,red\nblue,1,-1\nred,-1,1\n")
        stderr = self.done(
            "classes",
            self.data,
            "--label",
            label_name,
            *ids,
            "-b",
            beliefs,
            "-k",
            2,
            "--repeats",
            1,
            "-o",
            self.out,
        )
        return pd.read_csv(self.out / "labels.csv"), stderr


class Compare(Command):
    roles = ("id",)

    def run(self, id_name, label_name):
        ids = self.write_data(id_name, label_name)
        options = ("--starts", 1, "--effort", "quick", "-o", self.out)
        stderr = self.done("compare", self.data, "--label", label_name, *ids, *options)
        return pd.read_csv(self.out / "comparison.csv"), stderr


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("kind", [Fit, Predict, Classes, Compare])
@pytest.mark.parametrize("with_ids", [True, False])
def test_no_column_of_the_user_is_overwritten(kind, with_ids, invoke, tmp_path, monkeypatch):
    """The names of the results are taken from a run without collision; each is then given to the user."""
    if kind is Classes:
        remembered(monkeypatch, classes_module, "sweep_classes")
    if kind is Compare:
        remembered(monkeypatch, compare_module, "compare_methods")
    monkeypatch.setattr(fit_module, "clusters_png", lambda *_, **__: b"")
    monkeypatch.setattr(fit_module, "convergence_png", lambda *_, **__: None)
    monkeypatch.setattr(compare_module, "comparison_png", lambda *_, **__: b"")
    command = kind(invoke, tmp_path)
    id_name = "flower" if with_ids else None
    plain, stderr = command.run(id_name, "species")
    assert "column of the data" not in stderr
    results = [name for name in plain.columns if name not in ("flower", "species")]
    if not with_ids:
        assert results[0] == "row"
    for role in command.roles if with_ids else [role for role in command.roles if role == "label"]:
        for name in results:
            names = {"id": id_name, "label": "species", role: name}
            found, stderr = command.run(names["id"], names["label"])
            values = IDS if role == "id" else LABELS
            assert found[name].tolist() == values, (role, name)
            for result in results:
                renamed = f"{result}_linkwise" if result == name else result
                pd.testing.assert_series_equal(found[renamed], plain[result], check_names=False)
            assert (
                f"'{name}' is a column of the data; the results are in '{name}_linkwise'"
                in stderr.replace("\n", " ")
            )
            assert len(found.columns) == len(plain.columns)


def test_every_command_that_writes_rows_is_enumerated_above():
    """Whoever writes a table of samples uses the one function that keeps names apart."""
    folder = Path(samples_module.__file__).parent
    writers = {path for path in folder.rglob("*.py") if "output_frame(" in path.read_text()}
    known = ("samples", "fit/report", "predict", "classes", "compare")
    assert writers == {folder / f"{name}.py" for name in known}


def test_a_class_called_class(invoke, tmp_path):
    command = Classes(invoke, tmp_path)
    command.write_data(None, "species")
    text = command.data.read_text().replace("red", "class")
    command.data.write_text(text)
    (tmp_path / "beliefs.csv").write_text("name,blue,class\nblue,1,-1\nclass,-1,1\n")
    command.done(
        "classes",
        command.data,
        "--label",
        "species",
        "-b",
        tmp_path / "beliefs.csv",
        "-k",
        2,
        "--repeats",
        1,
        "-o",
        command.out,
    )
    table = pd.read_csv(command.out / "separability.csv")
    assert table.columns.tolist() == ["class_linkwise", "blue", "class"]
    assert table["class_linkwise"].tolist() == ["blue", "class"]


def test_one_column_cannot_be_id_and_label(refused, tmp_path):
    (tmp_path / "data.csv").write_text("a,x\nu,1\nv,2\n")
    line = refused("fit", tmp_path / "data.csv", "-k", 1, "--id", "a", "--label", "a")
    assert "--id and --label both name 'a'" in line


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("gap", [False, True])
def test_classes_beyond_2_53_go_through_whole_commands(invoke, tmp_path, suffix, gap):
    """Two classes that are one as floats: apart in the template, the beliefs, the scores and the tables."""
    first, second = 2**53, 2**53 + 1
    data, out = tmp_path / f"data{suffix}", tmp_path / "out"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(24, 2)) + 9.0 * (np.arange(24) >= 12)[:, None], columns=["u", "v"])
    labels = [first] * 12 + [second] * 12
    if gap:
        labels[5] = labels[20] = None
    frame["kind"] = pd.Series(labels, dtype="Int64")
    frame["id"] = [2**53 + row for row in range(24)]
    getattr(frame, "to_csv" if suffix == ".csv" else "to_parquet")(data, index=False)
    columns = [data, "--label", "kind", "--id", "id"]

    scores = json.loads(invoke("fit", *columns, "-k", 2, "--effort", "quick", "--json").stdout)["scores"]
    assert scores == {"accuracy": 1.0, "pairwise_f1": 1.0, "rand": 1.0, "n_rows": 22 if gap else 24}
    template = json.loads(invoke("classes", *columns, "-o", out, "--json").stdout)
    assert template["classes"] == [first, second]
    result = invoke(
        "classes", *columns, "-b", out / "beliefs.csv", "-k", 2, "--repeats", 1, "-o", out, "--json"
    )
    assert json.loads(result.stdout)["classes"] == [first, second]
    path = out / f"labels{suffix}"
    written = pd.read_csv(path, dtype=str) if suffix == ".csv" else pd.read_parquet(path).astype(str)
    assert written["id"].tolist() == [str(name) for name in frame["id"]]
    assert written["kind"][frame["kind"].notna()].tolist() == [str(y) for y in labels if y is not None]
