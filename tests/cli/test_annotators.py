"""Annotators, unknown numbers of clusters and comparisons without labels, on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import linkwise.cli.compare as compare
from linkwise import PPC, Constraints
from linkwise.cli.options import METHODS


@pytest.fixture
def blobs(tmp_path):
    """Three clusters in data.csv, links of Ann (right) and Carl (35 % wrong) in links.csv."""
    X, y = make_blobs(120, centers=[[0, 0], [7, 0], [0, 7]], cluster_std=1.0, random_state=0)
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "data.csv", index=False)
    rng = np.random.default_rng(0)
    pairs = rng.choice(np.column_stack(np.triu_indices(120, k=1)), 160, replace=False)
    who = np.repeat(["Ann", "Carl"], 80)
    wrong = rng.random(160) < np.where(who == "Carl", 0.35, 0.0)
    kind = np.where((y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong, "same", "different")
    frame = pd.DataFrame({"i": pairs[:, 0], "j": pairs[:, 1], "kind": kind, "source": who})
    frame.to_csv(tmp_path / "links.csv", index=False)
    frame[frame["source"] == "Ann"].drop(columns="source").to_csv(tmp_path / "good.csv", index=False)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, frame, wrong


def test_rates_of_annotators(invoke, blobs, tmp_path):
    X, _, frame, wrong = blobs
    arguments = ("fit", "data.csv", "-k", 3, "-l", "links.csv", "--learn-noise", "source", "--starts", 1)
    result = invoke(*arguments, "-o", "out", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["method"] == "ppc"
    same = (frame["kind"] == "same").to_numpy()
    pairs = frame[["i", "j"]].to_numpy()
    source = np.concatenate([frame["source"][same], frame["source"][~same]])
    links = Constraints(120, pairs[same], pairs[~same], certainty=0.8, source=source)
    model = PPC(3, n_init=1, learn_noise="source", random_state=0).fit(X, constraints=links)
    for name, found in record["noise"].items():
        assert found["rate"] == pytest.approx(model.noise_[name], abs=1e-6)
        assert found["low"] <= found["rate"] <= found["high"]
        assert found["n_answers"] == 80
    assert record["noise"]["Carl"]["n_wrong"] == wrong.sum()
    told = invoke(*arguments).stdout
    assert "How often answers are wrong" in told
    assert "Answers to ask for again, the first 15 of" in told
    assert "Share of wrong answers of each source" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("wanted", "names"), [("all", ["all links"]), ("kind", ["must_link", "cannot_link"])]
)
def test_other_rates(invoke, blobs, wanted, names):
    result = invoke(
        "fit", "data.csv", "-k", 3, "-l", "links.csv", "--learn-noise", wanted, "--starts", 1, "--json"
    )
    assert list(json.loads(result.stdout)["noise"]) == names


def test_refusals_of_learning(refused, blobs):
    fit = ("fit", "data.csv", "-k", 3, "--learn-noise", "source")
    assert "pass the links with --links" in refused(*fit, code=2)
    assert "good.csv names no sources; add a column source" in refused(*fit, "-l", "good.csv")
    assert "--method cop cannot learn" in refused(*fit, "-l", "links.csv", "-m", "cop")


@pytest.mark.parametrize(
    ("method", "links"), [(name, "good.csv") for name in METHODS if name != "auto"] + [("ppc", None)]
)
def test_a_range_of_clusters(invoke, blobs, tmp_path, method, links):
    given = () if links is None else ("-l", links)
    result = invoke(
        "fit", "data.csv", "-k", "2:4", *given, "-m", method, "--starts", 1, "--repeats", 1, "-o", "out",
        "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["n_clusters"] == 3
    criterion = "held_out_links+bic" if method in ("ppc", "cem") else "held_out_links"
    assert record["sweep"]["criterion"] == ("bic" if links is None else criterion)
    ks = [row["n_components"] for row in record["sweep"]["table"]]
    if links is not None:  # hard links among three clusters
        assert record["sweep"]["infeasible"] == [2]
        assert result.stderr == ""
    assert ks == ([3, 4] if links is not None else [2, 3, 4])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Number of clusters" in page
    for name in record["sweep"]["criterion"].split("+"):
        assert {"bic": "bic", "held_out_links": "share of held-out links broken"}[name] in page


def test_refusals_of_ranges(refused, blobs):
    assert "runs backwards" in refused("fit", "data.csv", "-k", "5:2", code=2)
    assert "no number of clusters" in refused("fit", "data.csv", "-k", "0", code=2)
    line = refused("fit", "data.csv", "-k", "2:4", "-m", "hmrf")
    assert "needs must-links and cannot-links" in line
    assert "cannot be made of 120 rows" in refused("fit", "data.csv", "-k", "2:400")


@pytest.mark.usefixtures("fewest_candidates")
def test_compare_without_labels(invoke, refused, blobs, tmp_path, monkeypatch):
    result = invoke(
        "compare", "data.csv", "-k", 3, "-l", "good.csv", "--starts", 1, "--repeats", 1, "-o", "out",
        "--effort", "quick", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert [entry["method"] for entry in record["methods"]] == ["kmeans", "mixture", *METHODS]
    for entry in record["methods"]:
        assert entry["held_out_links"] > 0.95
        assert "accuracy" not in entry
    written = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert {"kmeans", *METHODS} <= set(written.columns)
    assert not any(column.startswith("true_") for column in written.columns)
    assert "held-out links kept" in (tmp_path / "out" / "report.html").read_text()
    # Too many clusters are seen in k-means; of the others those that take hard links only are made to.
    few = {name: method for name, method in METHODS.items() if method.only_hard or name == "ppc"}
    monkeypatch.setattr(compare, "METHODS", few)
    worse = invoke(
        "compare", "data.csv", "-k", 6, "-l", "good.csv", "-c", 0.9, "--starts", 1, "--repeats", 1,
        "--effort", "quick", "--json",
    )  # fmt: skip
    found = {entry["method"]: entry for entry in json.loads(worse.stdout)["methods"]}
    assert list(found) == ["kmeans", "mixture", *few]
    assert found["kmeans"]["held_out_links"] < 0.95
    assert "pass known classes, or --links" in refused("compare", "data.csv", code=2)
    assert "say how many clusters" in refused("compare", "data.csv", "-l", "good.csv", code=2)
    pd.read_csv(tmp_path / "good.csv").query("kind == 'same'").to_csv(tmp_path / "must.csv", index=False)
    assert "must-links and cannot-links are needed" in refused(
        "compare", "data.csv", "-k", 3, "-l", "must.csv"
    )
