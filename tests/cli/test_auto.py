"""``linkwise fit`` with its default method: candidates that the links compare, and what links gained.

Mixtures that see links are slow and left out; tests of the methods and of ``LinkedClustering`` have them.
"""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from linkwise import Constraints, LinkedClustering
from linkwise.auto import candidates
from linkwise.datasets import make_rings

QUICK = ("--effort", "quick")


@pytest.fixture
def rings(tmp_path):
    """Two rings in data.csv (a column ``known`` has the ring of a few rows), links of them in links.csv."""
    X, y = make_rings(50, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(ring=np.array(["inner", "outer"])[y])
    frame["known"] = frame["ring"].where(np.arange(len(y)) % 9 == 0)
    frame.to_csv(tmp_path / "data.csv", index=False)
    links = Constraints.sample(y, 30, random_state=0)
    kind = np.where(links.weights > 0, "must_link", "cannot_link")
    told = pd.DataFrame({"i": links.pairs[:, 0], "j": links.pairs[:, 1], "kind": kind})
    told.to_csv(tmp_path / "links.csv", index=False)
    told.head(3).to_csv(tmp_path / "few.csv", index=False)
    told.assign(certainty=np.where(np.arange(len(told)) % 2, "1", "0.9")).to_csv(
        tmp_path / "mixed.csv", index=False
    )
    return X / X.std(axis=0) - X.mean(axis=0) / X.std(axis=0), y, links


def fit(invoke, *arguments, code=0):
    result = invoke("fit", "data.csv", "--ignore", "known", "--label", "ring", *QUICK, *arguments)
    assert result.exit_code == code, result.output
    return result


def fit_json(invoke, *arguments):
    return json.loads(fit(invoke, *arguments, "--json").stdout)


@pytest.mark.usefixtures("fewer_candidates")
def test_the_same_as_the_library(invoke, rings, tmp_path):
    X, _, links = rings
    record = fit_json(invoke, "-l", "links.csv", "-k", 2, "-o", "out")
    model = LinkedClustering(2, effort="quick", random_state=0).fit(X, constraints=links)
    assert record["method"] == "auto"
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels["cluster"].tolist() == model.labels_.tolist()
    assert ("probability_0" in labels) == hasattr(model.best_estimator_, "responsibilities_")
    assert record["n_violated"] == 0  # hard links
    assert [record["gain"][name] for name in ("value", "low", "high")] == pytest.approx(model.gain_)
    found = [(one["candidate"], one["vote"], one["chosen"]) for one in record["candidates"]]
    assert found == [(one.candidate, one.weight, one.chosen) for one in model.selection_]
    assert record["gain"]["low"] > 0.1  # k-means and mixtures cut rings in halves
    assert record["scores"]["accuracy"] > 0.95


@pytest.mark.usefixtures("fewer_candidates")
def test_shares_of_votes_are_the_probabilities(invoke, rings, tmp_path):
    X, _, _ = rings
    fit(invoke, "-k", 2, "-o", "out")
    model = LinkedClustering(2, effort="quick", random_state=0).fit(X)
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    probabilities = labels[["probability_0", "probability_1"]].to_numpy()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(probabilities, model.predict_proba(X))  # no links that a member would know


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize("clusters", [(), ("-k", "2:3")])
def test_a_model_of_which_the_number_was_found_predicts(invoke, rings, clusters):
    X, _, links = rings
    record = fit_json(invoke, "-l", "links.csv", "-c", 0.9, *clusters, "-o", "out")
    result = invoke("predict", "out", "data.csv", "--json")
    assert result.exit_code == 0, result.output
    soft = Constraints(len(X), links.must_link, links.cannot_link, certainty=0.9)
    model = LinkedClustering(record["n_clusters"], effort="quick", random_state=0).fit(X, constraints=soft)
    found = [row["cluster"] for row in json.loads(result.stdout)["rows"]]
    assert found == model.predict(X).tolist()


@pytest.mark.usefixtures("fewer_candidates")
def test_files_and_report_hold_candidates_and_gain(invoke, rings, tmp_path):
    record = fit_json(invoke, "-l", "links.csv", "-k", "2:3", "-o", "out")
    table = pd.read_csv(tmp_path / "out" / "candidates.csv")
    assert table["candidate"].tolist() == [one["candidate"] for one in record["candidates"]]
    assert table["gain"].dropna().tolist() == pytest.approx([record["gain"]["value"]])
    assert table["chosen"].tolist() == table["gain"].notna().tolist()
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert record["gain"]["text"] in page
    for caption in ("Candidates", "Number of clusters"):
        assert f"<caption>{caption}</caption>" in page
    for one in table["candidate"][table["candidate"] != "consensus"]:
        assert one in page
    again = fit(invoke, "-l", "links.csv", "-k", "2:3", "-o", "out", "--format", "parquet")
    assert again.exit_code == 0  # an earlier run of the command is replaced
    assert not (tmp_path / "out" / "candidates.csv").exists()
    assert len(pd.read_parquet(tmp_path / "out" / "candidates.parquet")) == len(table)


@pytest.mark.usefixtures("fewer_candidates")
def test_tables_and_gain_on_the_terminal(invoke, rings):
    X, y, links = rings
    shown = fit(invoke, "-l", "links.csv", "-k", "2:4").stdout
    text = " ".join(shown.split())
    assert re.search(r"candidate agreement with held-out links vote", text)
    chosen = re.search(r" 2 chosen (.+?) \d\.\d{3} ± \d\.\d{3}", text).group(1)
    found = candidates.CANDIDATES[chosen].fit(X, links, 2, 0).labels_
    assert max((found == y).mean(), (found != y).mean()) > 0.95  # one that can find rings
    together = r"all votes together \d\.\d{3} ± \d\.\d{3} 1\.00"
    assert re.search(together, text) or f"method auto: {chosen}" in text
    assert float(re.search(r"known classes accuracy (\d\.\d{3})", text).group(1)) > 0.95
    assert re.search(r"mixture, no links \d\.\d{3} ± \d\.\d{3}", text)
    assert re.search(r"links gained about 0\.\d{3} \(90 % interval 0\.\d{3} to 0\.\d{3}\)", text)
    assert "not certain" not in text


@pytest.mark.usefixtures("fewest_candidates")
@pytest.mark.parametrize(
    ("clusters", "links", "labels", "certainty", "effort"),
    [
        *product(("2", "2:3"), ("links.csv", "mixed.csv"), (False,), (None,), ("quick",)),
        ("2", "mixed.csv", False, "0.9", "quick"),
        ("auto", "links.csv", False, "0.9", "quick"),  # without -k: in the test of predict above
        *product(("2", None), (None, "links.csv"), (True,), (None,), ("quick",)),
        ("2", "links.csv", True, "0.9", "thorough"),
    ],
)
def test_combinations_of_options(invoke, rings, clusters, links, labels, certainty, effort):
    _, y, told = rings
    given = [] if clusters is None else ["-k", clusters]
    given += [] if links is None else ["-l", links]
    given += ["--labels-column", "known"] if labels else ["--ignore", "known"]
    given += [] if certainty is None else ["-c", certainty]
    result = invoke("fit", "data.csv", "--label", "ring", "--effort", effort, *given, "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["method"] == "auto"
    assert record["n_clusters"] == 2
    # Twelve labels say less than thirty links.
    assert record["scores"]["accuracy"] > (0.8 if links is None else 0.9)
    found = np.array(record["labels"])
    if links == "links.csv" and certainty is None:
        assert not told.violations(found).any()
    if links == "mixed.csv" and certainty is None:  # every other link is hard
        assert not told.violations(found)[1::2].any()
    if labels:
        assert sorted(record["cluster_names"]) == ["inner", "outer"]
        names = np.array(record["cluster_names"])[found]
        rows = np.arange(len(y)) % 9 == 0
        assert (names[rows] == np.array(["inner", "outer"])[y[rows]]).all()


@pytest.mark.usefixtures("fewer_candidates")
def test_without_links_and_with_too_few(invoke, rings):
    record = fit_json(invoke, "-k", 2)
    assert record["gain"]["value"] is None
    assert record["gain"]["text"].startswith("Without links nothing could be compared")
    assert "<caption>" not in fit(invoke, "-k", 2).stdout
    assert "chosen by the silhouette" in fit_json(invoke)["gain"]["text"]
    few = fit_json(invoke, "-l", "few.csv", "-k", 2)
    assert few["gain"]["text"].startswith("3 links are too few")
    assert any("too few to choose" in line for line in few["warnings"])
    assert few["n_violated"] == 0


@pytest.mark.usefixtures("fewest_candidates")
def test_a_range_is_kept_to_and_its_edge_is_told(invoke, rings):
    record = fit_json(invoke, "-l", "links.csv", "-k", "3:4")
    assert {one["n_clusters"] for one in record["candidates"]} == {3, 4}
    assert record["n_clusters"] in (3, 4)
    assert any("edge of what was tried (3 to 4)" in line for line in record["warnings"])


@pytest.mark.usefixtures("fewer_candidates")
def test_numbers_that_hard_links_do_not_allow_are_left_out(invoke, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    corner = 9.0 * (y == 1)  # columns are standardised, so that both must tell clusters apart
    pd.DataFrame({"x": 9.0 * y + rng.normal(size=60), "z": corner + rng.normal(size=60)}).to_csv(
        tmp_path / "data.csv", index=False
    )
    apart = [(0, 20), (20, 40), (0, 40), (1, 2), (21, 22), (41, 42), (3, 44), (25, 47)]
    kinds = ["must" if y[i] == y[j] else "cannot" for i, j in apart]
    pd.DataFrame(apart, columns=["i", "j"]).assign(kind=kinds).to_csv(tmp_path / "links.csv", index=False)
    result = invoke("fit", "data.csv", "-l", "links.csv", "-k", "2:4", *QUICK)
    assert result.exit_code == 0, result.output
    assert "hard links need more than 2 clusters" in result.stdout
    assert "3 clusters" in result.stdout


@pytest.mark.usefixtures("fewest_candidates")
def test_options_of_other_methods_have_no_effect_and_are_told(invoke, rings):
    plain = fit_json(invoke, "-l", "links.csv", "-k", 2)
    given = fit_json(
        invoke, "-l", "links.csv", "-k", 2, "--starts", 3, "--covariance", "tied", "--repeats", 2
    )
    assert plain["labels"] == given["labels"]
    assert plain["warnings"] == []
    told = [line.split()[0] for line in given["warnings"]]
    assert told == ["--covariance", "--starts", "--repeats"]


def test_learned_noise_needs_ppc(invoke, refused, rings):
    noisy = ("fit", "data.csv", "--ignore", "ring,known", "-l", "links.csv", "--learn-noise", "all")
    result = invoke(*noisy, "-k", 2, "--starts", 1)
    assert "(auto: only ppc learns how often links are wrong)" in " ".join(result.stdout.split())
    assert "say how many clusters" in refused(*noisy, code=2)
    assert "only --method auto compares" in refused(*noisy, "-k", 2, *QUICK, code=2)


def test_refusals(refused, rings, tmp_path):
    given = ("fit", "data.csv", "--ignore", "ring,known")
    assert "say how many clusters" in refused(*given, "-m", "ppc", code=2)
    assert "say how many clusters" in refused(*given, "-m", "ppc", "-k", "auto", code=2)
    assert "leave it out" in refused(*given, "-m", "ppc", "-k", 2, *QUICK, code=2)
    assert "'best' is not one of" in refused(*given, "-k", 2, "--effort", "best", code=2)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "candidates.csv").write_text("mine")
    assert "candidates.csv is in the way" in refused(*given, "-k", 2, "-o", "out")


@pytest.mark.usefixtures("fewer_candidates")
def test_compare_has_a_row(invoke, rings):
    result = invoke(
        "compare", "data.csv", "--ignore", "known", "--label", "ring", "-l", "links.csv", "--starts", 1,
        "--effort", "quick", "--json",
    )  # fmt: skip
    rows = {one["method"]: one for one in json.loads(result.stdout)["methods"]}
    X, y, links = rings
    model = LinkedClustering(2, effort="quick", random_state=0).fit(X, constraints=links)
    assert rows["auto"]["accuracy"] == pytest.approx(
        max((model.labels_ == y).mean(), (model.labels_ != y).mean())
    )
    assert rows["auto"]["accuracy"] > max(rows[name]["accuracy"] for name in ("kmeans", "mixture")) + 0.2
