"""``linkwise fit`` and ``linkwise predict`` on many Parquet files."""

from __future__ import annotations

import html
import json
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from linkwise import PPC, Constraints
from linkwise.auto import candidates
from linkwise.cli import parts as parts_files
from linkwise.cli.parts import fit as parts_fit
from linkwise.cli.parts import labels as parts_labels
from linkwise.dask import passes
from linkwise.persistence import save_model

NAMES = ["part-0", "part-1", "part-2"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Three files of 40 rows each in data/, some of whose row groups are small, and links by id."""
    monkeypatch.setattr(passes, "_FEWEST_NUMBERS", 1)
    monkeypatch.setattr(parts_files, "_CHUNK_NUMBERS", 60)
    monkeypatch.setattr(parts_labels, "_ROWS_AT_ONCE", 50)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    frame = pd.DataFrame(50 * (rng.normal(size=(120, 3)) + 4 * np.eye(3)[y]), columns=["a", "b", "c"])
    frame.insert(0, "id", [f"r{row:03d}" for row in range(120)])
    frame = frame.astype({"c": int})
    folder = tmp_path / "data"
    folder.mkdir()
    for place, name in enumerate(NAMES):
        frame[40 * place : 40 * place + 40].to_parquet(
            folder / f"{name}.parquet", index=False, row_group_size=15
        )
    links = Constraints.sample(y, 30, random_state=0)
    ids = frame["id"].to_numpy()
    told = pd.DataFrame(ids[links.pairs], columns=["i", "j"])
    told["kind"] = np.where(links.weights > 0, "must_link", "cannot_link")
    told.to_parquet(tmp_path / "links.parquet")
    with dask.config.set(scheduler="synchronous"):
        yield frame, links


@pytest.fixture
def fewer_mixtures(monkeypatch):
    """A quick choice among two mixtures and k-means."""
    monkeypatch.setattr(candidates, "_QUICK", ("mixture, tied", "mixture, no links", "k-means, no links"))


FIT = ("fit", "data/*.parquet", "--links", "links.parquet", "--id", "id", "-k", 3, "-m", "ppc",
       "--starts", 1, "-o", "out")  # fmt: skip


def labels_in(folder):
    return pd.concat([pd.read_parquet(folder / "labels" / f"{name}.parquet") for name in NAMES])


def in_memory(frame, links):
    X = frame[["a", "b", "c"]].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, PPC(3, random_state=0, n_init=1).fit(X, constraints=links)


def test_the_same_as_the_library(invoke, data, tmp_path):
    frame, links = data
    result = invoke(*FIT, "--json")
    assert result.exit_code == 0, result.output
    X, model = in_memory(frame, links)
    found = labels_in(tmp_path / "out")
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["cluster"].tolist() == model.labels_.tolist()
    np.testing.assert_allclose(found[["probability_0", "probability_1", "probability_2"]].to_numpy(),
                               model.responsibilities_, atol=1e-8)  # fmt: skip
    record = json.loads(result.stdout)
    assert record["sizes"] == np.bincount(model.labels_).tolist()
    assert (record["n_rows"], record["n_files"], record["n_violated"]) == (120, 3, 0)
    assert pd.read_parquet(tmp_path / "out" / "links.parquet")["kept"].all()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "labels", "links.parquet", "model", "report.html",
    ]  # fmt: skip
    assert "rows/s" in result.stderr
    # Predicted by the model, file by file, in chunks.
    result = invoke("predict", "out", "data", "--id", "id", "-o", "new")
    assert result.exit_code == 0, result.output
    found = labels_in(tmp_path / "new")
    assert found["cluster"].tolist() == model.predict(X).tolist()
    # By the plain command as well, of one file.
    result = invoke("predict", "out", "data/part-0.parquet", "--id", "id", "-o", "one.csv")
    assert result.exit_code == 0, result.output
    assert pd.read_csv("one.csv")["cluster"].tolist() == found["cluster"].tolist()[:40]
    spoilt = pd.read_parquet("data/part-2.parquet")
    spoilt.loc[5, "b"] = np.nan
    spoilt.to_parquet("data/part-2.parquet", index=False)
    result = invoke("predict", "out", "data", "--id", "id", "-o", "spoilt")
    assert result.exit_code == 1
    assert "data/part-2.parquet: row 5 (counted from 0): 'b' is missing; fill it in" in result.stderr


@pytest.mark.usefixtures("fewer_mixtures")
@pytest.mark.parametrize("method", ["auto", "hmrf"])
def test_other_methods_and_rows_by_number(invoke, data, tmp_path, method):
    _, links = data
    links.to_csv("rows.csv")
    result = invoke(
        "fit", "data", "--links", "rows.csv", "--ignore", "id", "-k", 3, "-m", method, "-o", "out",
        *(["--effort", "quick"] if method == "auto" else ["--starts", 2]),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = labels_in(tmp_path / "out")
    assert found["row"].tolist() == list(range(120))
    assert links.satisfaction(found["cluster"].to_numpy()) == 1.0


class Interrupted(KeyboardInterrupt):
    pass


def test_an_interrupted_fit_resumes_and_leaves_earlier_results(invoke, data, tmp_path, monkeypatch):
    """Killed in the middle of the fit, then while labels are written; the results before stay."""
    frame, links = data
    assert invoke(*FIT, "--seed", 1).exit_code == 0
    before = labels_in(tmp_path / "out")
    compute, count = passes.Runner.compute, {"emsums": 0, "fails": 9}

    def counted(self, name, layer, key):
        count["emsums"] += "emsums" in name
        if count["emsums"] == count["fails"]:
            raise Interrupted
        return compute(self, name, layer, key)

    monkeypatch.setattr(passes.Runner, "compute", counted)
    assert invoke(*FIT).exit_code == 130
    kept = [path.name for path in (tmp_path / "out").glob(".checkpoint-*/*")]
    assert kept == ["start-0.npz"]
    n_before, count["fails"], count["emsums"] = count["emsums"], None, 0
    write = parts_labels._write

    def stopped(folder, parts, file, *rest):
        if file == 2:
            raise Interrupted
        write(folder, parts, file, *rest)

    monkeypatch.setattr(parts_labels, "_write", stopped)
    assert invoke(*FIT).exit_code == 130
    resumed = count["emsums"]
    pd.testing.assert_frame_equal(labels_in(tmp_path / "out"), before)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []
    monkeypatch.setattr(parts_labels, "_write", write)
    count["emsums"] = 0
    assert invoke(*FIT).exit_code == 0
    assert resumed < count["emsums"] < resumed + n_before
    _, model = in_memory(frame, links)
    assert labels_in(tmp_path / "out")["cluster"].tolist() == model.labels_.tolist()
    # With other options it starts anew, and takes away what the interrupted run left.
    count.update(emsums=0, fails=5)
    assert invoke(*FIT).exit_code == 130
    count["fails"] = None
    assert invoke(*FIT, "--seed", 3).exit_code == 0
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ("ids", [], "data/part-1.parquet: ids in 'id' are double; write them as integers or text"),
        ("column", ["--features", "a,b"], "which data/part-0.parquet has; leave out the file"),
        ("text", ["--features", "a,b"], "not of numbers; write it as numbers"),
        (None, ["--id", "name"], "data/part-0.parquet has no column 'name'; it has id, a, b, c"),
        (None, ["-m", "spectral"], "--method spectral needs all rows in memory; use auto, ppc"),
        (None, ["--impute"], "--impute is for one file in memory; leave it out"),
        (None, ["--scheduler", "here"], "--scheduler here is no address; write local"),
        (None, ["-k", "2:3"], "-k must be one number here, or --method auto"),
        (None, ["-k", "1"], "more clusters"),
        ("text", [], "data/part-1.parquet: column 'b' is of type"),
        ("column", [], "data/part-1.parquet has no column 'b', which data/part-0.parquet has"),
        ("missing", [], "data/part-1.parquet: row 7 (counted from 0): 'b' is missing; fill it in"),
        ("damaged", [], "data/part-1.parquet is no Parquet file that can be read"),
        ("twice", [], "is the id of two rows (data/part-0.parquet: row"),
        ("unknown", [], "links.parquet, row 0 (counted from 0): i is 'r999', which is no id of the data"),
        ("csv", [], "data/part-0.csv: many files must be Parquet files; convert it"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(invoke, data, tmp_path, change, arguments, message):
    frame, _ = data
    path, part = tmp_path / "data" / "part-1.parquet", frame[40:80].reset_index(drop=True)
    links = pd.read_parquet(tmp_path / "links.parquet")
    if change == "text":
        part.astype({"b": str}).to_parquet(path)
    elif change == "column":
        part.drop(columns="b").to_parquet(path)
    elif change == "missing":
        part["b"].mask(part.index == 7).pipe(lambda b: part.assign(b=b)).to_parquet(path)
    elif change == "ids":  # pandas makes floats of integers with gaps
        part.assign(id=np.arange(40.0)).to_parquet(path)
    elif change == "damaged":
        path.write_bytes(path.read_bytes()[:-9])
    elif change == "twice":
        part.assign(id=frame["id"][:40].to_numpy()).to_parquet(path)
        links.head(3).assign(i=["r000", "r001", "r002"], j="r100").to_parquet("links.parquet")
    elif change == "unknown":
        links.assign(i="r999").to_parquet("links.parquet")
    elif change == "csv":
        frame.to_csv("data/part-0.csv")
    pattern = "data/*" if change == "csv" else "data/*.parquet"
    result = invoke("fit", pattern, *FIT[2:], *arguments)
    assert result.exit_code in (1, 2, 3), result.output
    assert message in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("linkwise:")]
    assert len(errors) == 1
    assert not (tmp_path / "out" / "labels").exists()


def test_no_file_of_that_name_and_no_folder(invoke, data):
    for command in (["fit", "daten", "-k", 3], ["ask", "daten"], ["compare", "daten", "--label", "y"]):
        assert "daten: no such file or directory; check the path" in invoke(*command).stderr
    assert (
        "data is a folder; pass a .csv or .parquet file" in invoke("compare", "data", "--label", "y").stderr
    )
    Path("data").rename("data[1]")  # no pattern
    assert (
        invoke("fit", "data[1]", "--id", "id", "-k", 3, "-m", "ppc", "--starts", 1, "-o", "o").exit_code == 0
    )
    result = invoke("fit", "data/*.pq", "-k", 3, "-o", "out")
    assert "data/*.pq: no Parquet file has such a name; check the path" in result.stderr
    result = invoke(*FIT[:-2])
    assert result.exit_code == 2
    assert "many files need a folder for their labels" in result.stderr


def test_float32_stays_and_equal_names_get_folders(invoke, data, tmp_path):
    frame, _ = data
    for number, folder in enumerate(("x", "y")):
        (tmp_path / folder).mkdir()
        rows = frame[60 * number : 60 * number + 60][["a", "b"]].astype("float32")
        rows.to_parquet(tmp_path / folder / "rows.parquet", index=False)
    result = invoke("fit", "?/rows.parquet", "-k", 2, "-m", "ppc", "-o", "out")
    assert result.exit_code == 0, result.output
    found = [pd.read_parquet(tmp_path / "out" / "labels" / folder / "rows.parquet") for folder in ("x", "y")]
    assert [len(one) for one in found] == [60, 60]
    assert found[1]["row"].tolist() == list(range(60, 120))
    assert found[0]["probability_0"].dtype == np.float32


def test_files_that_differ_in_their_ending_alone(tmp_path):
    paths = [tmp_path / name for name in ("a.parquet", "a.pq", "b.pq")]
    assert parts_files._output_names(paths) == ("a.parquet", "a.pq.parquet", "b.parquet")


def test_a_fit_that_did_not_converge_says_so_in_the_report(invoke, data, tmp_path, monkeypatch):
    build = parts_fit._build
    monkeypatch.setattr(parts_fit, "_build", lambda *given: build(*given).set_params(max_iter=1))
    result = invoke(*FIT, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert not found["converged"]
    (warning,) = [text for text in found["warnings"] if "did not converge" in text]
    assert warning in html.unescape((tmp_path / "out" / "report.html").read_text())


def test_settings_that_auto_does_not_have_are_told(invoke, data, fewer_mixtures):
    result = invoke(*FIT[:8], "--effort", "quick", "--covariance", "diag", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "--covariance has no effect on --method auto" in result.stderr


def test_certainties_in_the_file_of_links_make_them_soft(invoke, data, monkeypatch):
    """Chunklets are made of hard must-links, as of one file in memory."""
    pd.read_parquet("links.parquet").assign(certainty=0.9).to_parquet("links.parquet")
    build, built = parts_fit._build, []

    def kept(*given):
        built.append(build(*given))
        return built[-1]

    monkeypatch.setattr(parts_fit, "_build", kept)
    assert invoke(*FIT[:8], "-m", "cem", "--starts", 1, "-o", "out").exit_code == 0
    assert [model.sampling for model in built] == ["points"]


def test_a_cluster_without_training_rows_is_one(invoke, data, tmp_path):
    """A model that was saved in Python does not say how many clusters there are but by its parameters."""
    frame, _ = data
    model = PPC(2, random_state=0).fit(frame[["a", "b"]])
    model.labels_ = np.zeros_like(model.labels_)
    save_model(model, "model")
    result = invoke("predict", "model", "data/*.parquet", "-o", "new", "--json")
    assert result.exit_code == 0, result.output
    expected = np.bincount(model.predict(frame[["a", "b"]]), minlength=2)
    assert json.loads(result.stdout)["sizes"] == expected.tolist()


def test_results_of_empty_files_have_the_columns_of_all_others(invoke, data, tmp_path):
    """The first file tells a reader of the folder which columns there are, and of which type."""
    frame, _ = data
    frame[:0].to_parquet("data/empty.parquet", index=False)
    assert invoke(*FIT).exit_code == 0
    assert invoke("predict", "out", "data/*.parquet", "--id", "id", "-o", "new").exit_code == 0
    for folder in ("out", "new"):
        schemas = [
            pyarrow.parquet.read_schema(f"{folder}/labels/{name}.parquet") for name in ("empty", *NAMES)
        ]
        assert all(schema.remove_metadata() == schemas[1].remove_metadata() for schema in schemas)
        assert pd.read_parquet(f"{folder}/labels").shape == (120, 5)


def test_ids_of_files_may_be_of_several_types(invoke, data, tmp_path):
    """Long numbers after short ones, and texts after numbers, were an error at the end of the fit."""
    ids = [
        pyarrow.array(range(40), pyarrow.int32()),
        pyarrow.array(range(10**12, 10**12 + 40)),
        pyarrow.array([f"x{row}" for row in range(40)]),
    ]
    for name, column in zip(NAMES, ids, strict=True):
        table = pyarrow.parquet.read_table(f"data/{name}.parquet").set_column(0, "id", column)
        pyarrow.parquet.write_table(table, f"data/{name}.parquet")
    result = invoke("fit", "data", "--id", "id", "-k", 3, "-m", "ppc", "--starts", 1, "-o", "out")
    assert result.exit_code == 0, result.output
    for name, column in zip(NAMES, ids, strict=True):
        found = pyarrow.parquet.read_table(f"out/labels/{name}.parquet")["id"]
        assert found.combine_chunks().equals(column)


def test_only_checkpoints_of_the_command_are_cleared_away(invoke, data, tmp_path):
    outdated, stranger, mixed = (
        tmp_path / "out" / f".checkpoint-{name}" for name in ("0123456789abcdef", "of-my-network", "f" * 16)
    )
    for folder, name in ((outdated, "start-0.npz"), (stranger, "weights.npz"), (mixed, "notes.txt")):
        folder.mkdir(parents=True)
        (folder / name).write_text("mine")
    assert invoke(*FIT).exit_code == 0
    assert not outdated.exists()
    assert (stranger / "weights.npz").read_text() == "mine"
    assert (mixed / "notes.txt").read_text() == "mine"
