"""``linkwise fit --labels-column``: a few known classes instead of links, or beside them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from linkwise import PPC, Constraints
from linkwise.cli.options import METHODS
from linkwise.cli.samples import load_prepared_model
from linkwise.persistence import load_model, save_model

FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@pytest.fixture
def partial(files, tmp_path):
    """Iris with the species of every tenth flower, in files of both formats; returns frame and truth."""
    frame = pd.read_csv(files / "iris.csv")
    truth = frame["species"].to_numpy()
    frame["known"] = np.where(np.arange(150) % 10 == 0, truth, None)
    frame.drop(columns="species").to_csv(tmp_path / "data.csv", index=False)
    frame.drop(columns="species").to_parquet(tmp_path / "data.parquet", index=False)
    return frame, truth


def fit(invoke, *arguments, data="data.csv"):
    result = invoke("fit", data, "--id", "flower", "--starts", 1, *arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("data", ["data.csv", "data.parquet"])
def test_the_same_as_the_library(invoke, partial, tmp_path, data):
    frame, _ = partial
    result = fit(invoke, "--labels-column", "known", "-m", "ppc", "-o", "out", "--json", data=data)
    record = json.loads(result.stdout)
    X = frame[FEATURES]
    X = (X - X.mean()) / X.std(ddof=0)
    links = Constraints.from_labels(frame["known"])
    model = PPC(3, n_init=1, random_state=0).fit(X, constraints=links)
    assert record["n_clusters"] == 3  # that of the classes
    assert record["cluster_names"] == model.cluster_names_.tolist()
    assert record["contingency"] == model.contingency_.tolist()
    assert record["classes"] == ["setosa", "versicolor", "virginica"]
    assert (record["split_classes"], record["shared_clusters"]) == ({}, {})
    suffix = data.removeprefix("data")
    labels = (pd.read_csv if suffix == ".csv" else pd.read_parquet)(tmp_path / "out" / f"labels{suffix}")
    assert labels["cluster"].tolist() == model.labels_.tolist()
    assert labels["name"].tolist() == model.cluster_names_[model.labels_].tolist()
    assert not set(labels) & {"known", "species"}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Classes of labelled rows" in page
    assert "virginica" in page


@pytest.mark.usefixtures("three_candidates")
@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_names_its_clusters(invoke, partial, method):
    frame, _ = partial
    effort = ["--effort", "quick"] if method == "auto" else []
    result = fit(invoke, "--labels-column", "known", "-m", method, *effort, "-o", "out", "--json")
    record = json.loads(result.stdout)
    labels = pd.read_csv("out/labels.csv")
    assert {*labels["name"]} <= {*record["cluster_names"]}
    known = frame["known"].notna()
    assert labels["name"][known].tolist() == frame["known"][known].tolist()
    again = invoke("predict", "out", "data.csv", "--id", "flower", "--json")
    assert again.exit_code == 0, again.output
    assert {row["name"] for row in json.loads(again.stdout)["rows"]} <= {*record["cluster_names"]}


def test_more_clusters_than_classes_and_links_beside_labels(invoke, partial, files):
    frame, truth = partial
    result = fit(
        invoke, "--labels-column", "known", "-k", 4, "-l", files / "links_by_id.csv", "-m", "cop", "-o", "out"
    )
    labels = pd.read_csv("out/labels.csv")
    known = frame["known"].notna()
    assert labels["name"][known].tolist() == truth[known].tolist()
    assert "cluster " in result.stdout
    written = pd.read_csv("out/links.csv", keep_default_na=False)
    asked = Constraints.read_csv(files / "links.csv", 150) + Constraints.from_labels(frame["known"])
    assert len(written) == asked.n_pairs
    assert written["kept"].all()
    back = Constraints.read_csv("out/links.csv", index=frame["flower"])
    np.testing.assert_array_equal(back.pairs, asked.pairs)
    assert back.classes.tolist() == ["setosa", "versicolor", "virginica"]


def test_a_file_of_links_with_classes_names_clusters(invoke, partial):
    frame, _ = partial
    Constraints.from_labels(frame["known"]).with_index(frame["flower"]).to_csv("links.csv")
    frame.drop(columns=["species", "known"]).to_csv("bare.csv", index=False)
    fit(invoke, "-l", "links.csv", "-k", 3, "-m", "cop", "-o", "out", data="bare.csv")
    assert {*pd.read_csv("out/labels.csv")["name"]} == {"setosa", "versicolor", "virginica"}


def test_classes_that_share_a_cluster_or_are_split_are_told(invoke, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.repeat([0.0, 20.0, 40.0], 20) + rng.normal(size=60)})
    frame["crop"] = ["rice"] * 40 + ["wheat"] * 20
    frame.loc[[3], "crop"] = "wheat"
    frame.to_csv("crops.csv", index=False)
    result = invoke(
        "fit", "crops.csv", "--labels-column", "crop", "--labels-certainty", 0.6, "-k", 3, "-m", "ppc",
        "--starts", 5, "-o", "out", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert sorted(record["cluster_names"]) == ["rice (1)", "rice (2)", "wheat"]
    assert list(record["shared_clusters"].values()) == [["rice", "wheat"]]
    assert {*record["split_classes"]} == {"rice", "wheat"}
    assert any("share a cluster" in line for line in record["warnings"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "split over 2 clusters; shares a cluster with rice" in page


def test_marks_of_unknown_labels_are_no_classes(invoke, partial):
    frame, _ = partial
    frame["known"] = frame["known"].where(frame["known"].notna(), "NA")
    frame.loc[1, "known"], frame.loc[2, "known"], frame.loc[3, "known"] = "-1", " ? ", "  "
    frame.drop(columns="species").to_csv("marks.csv", index=False)
    record = json.loads(
        fit(invoke, "--labels-column", "known", "-m", "cop", "--json", data="marks.csv").stdout
    )
    assert record["classes"] == ["setosa", "versicolor", "virginica"]
    (note,) = record["notes"]
    assert note == "column 'known': '-1' in 1 rows, '?' in 1 rows, 'NA' in 132 rows means unknown"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_as_classes(invoke, partial, files, suffix):
    frame, truth = partial
    codes = pd.Series(pd.factorize(truth)[0] + 7).where(np.arange(150) % 10 == 0)
    frame = frame.assign(known=codes).drop(columns="species")
    frame.to_csv("numbers.csv", index=False)
    frame.to_parquet("numbers.parquet", index=False)
    beside = ("-l", files / "links_by_id.csv", "-o", "out")  # links of rows without labels, too
    result = fit(invoke, "--labels-column", "known", "-m", "cop", "--json", *beside, data=f"numbers.{suffix}")
    record = json.loads(result.stdout)
    assert record["classes"] == [7, 8, 9]
    assert sorted(record["cluster_names"]) == ["7", "8", "9"]
    back = Constraints.read_csv(f"out/links.{suffix}", index=frame["flower"])
    assert back.classes.tolist() == [7, 8, 9]


def test_refusals(refused, invoke, partial, files):
    frame, _ = partial
    given = ("fit", "data.csv", "--id", "flower", "--labels-column")
    assert "no column 'kind'" in refused(*given, "kind")
    assert "--labels-column both name 'flower'" in refused(*given, "flower")
    assert "cannot score the fit" in refused(*given, "known", "--label", "known")
    frame.assign(known="").drop(columns="species").to_csv("empty.csv", index=False)
    assert "has no label" in refused("fit", "empty.csv", "--id", "flower", "--labels-column", "known")
    one = frame.assign(known=frame["known"].where(frame["known"] == "setosa")).drop(columns="species")
    one.to_csv("one.csv", index=False)
    assert "say it with -k" in refused("fit", "one.csv", "--id", "flower", "--labels-column", "known")
    line = refused(*given, "known", "-k", 2, code=3)
    assert "they need 3 clusters" in line
    pd.DataFrame({"i": ["f000"], "j": ["f050"], "kind": ["must_link"]}).to_csv("bad.csv", index=False)
    line = refused(*given, "known", "-l", "bad.csv", code=3)
    assert line.startswith("the links and labels cannot all hold")
    assert "'f050'" in line
    Constraints.from_labels(["virginica", "setosa", *[None] * 148]).to_csv("other.csv")
    assert "row 0 is of class" in refused(*given, "known", "-l", "other.csv", "--links-by", "row")
    assert "is outside 0.5" in refused(*given, "known", "--labels-certainty", 0.2, code=2)
    assert "with --labels-column" in refused("fit", "data.csv", "-k", 3, "--labels-certainty", 0.9, code=2)
    assert "name a column of labels" in refused("fit", "data.csv", "--id", "flower", "-m", "ppc", code=2)


def test_a_model_saved_in_python_predicts_names(invoke, partial, tmp_path):
    frame, _ = partial
    model = PPC(3, random_state=0).fit(frame[FEATURES], constraints=Constraints.from_labels(frame["known"]))
    save_model(model, tmp_path / "model")
    rows = json.loads(invoke("predict", "model", "data.csv", "--id", "flower", "--json").stdout)["rows"]
    assert [row["name"] for row in rows] == model.cluster_names_[model.predict(frame[FEATURES])].tolist()


@pytest.mark.usefixtures("fewer_candidates")
def test_a_choice_with_a_classifier_predicts_further_rows(invoke, partial, tmp_path):
    """Without mixtures the discriminant of groups votes; it is stored as all others are."""
    result = fit(invoke, "--labels-column", "known", "--effort", "quick", "-o", "out", "--json")
    record = json.loads(result.stdout)
    assert "discriminant of groups" in {one["candidate"] for one in record["candidates"] if one["vote"]}
    model = load_model(tmp_path / "out" / "model")
    rows = json.loads(invoke("predict", "out", "data.csv", "--id", "flower", "--json").stdout)["rows"]
    scaled = load_prepared_model(tmp_path / "out")[1].apply(partial[0][FEATURES])
    assert [row["name"] for row in rows] == model.cluster_names_[model.predict(scaled)].tolist()
