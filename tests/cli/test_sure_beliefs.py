"""``linkwise classes`` and beliefs of ±1: the template is obeyed, and what contradicts a belief is said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine


@pytest.fixture
def cultivars(tmp_path):
    """Wine with its cultivars as classes, and the unedited template of beliefs about them."""
    wine = load_wine(as_frame=True)
    frame = wine.data.assign(kind=np.array(["barolo", "grignolino", "barbera"])[wine.target])
    frame.to_csv(tmp_path / "cultivars.csv", index=False)
    return tmp_path / "cultivars.csv"


def test_the_template_of_classes_keeps_them_apart(invoke, cultivars):
    """Keep every class, apart by -1: no cluster may hold two cultivars, with every setting left as it is."""
    assert invoke("classes", cultivars, "--label", "kind").exit_code == 0
    result = invoke("classes", cultivars, "--label", "kind", "-b", "beliefs.csv", "--repeats", 2, "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {(entry["kind"], *entry["classes"]) for entry in record["decisions"]} == {
        ("kept", "barbera"), ("kept", "barolo"), ("kept", "grignolino")
    }  # fmt: skip
    assert record["contradictions"] == []
    assert record["best_n_clusters"] == 3
    assert record["evidence"] == []
    assert "curve" not in record


def test_classes_says_what_contradicts_a_sure_belief(invoke, cultivars, tmp_path):
    """Two clusters cannot keep three classes apart: a certain merge is shown beside the belief against it."""
    invoke("classes", cultivars, "--label", "kind")
    command = ("classes", cultivars, "--label", "kind", "-b", "beliefs.csv", "-k", "2", "--repeats", 1)
    record = json.loads(invoke(*command, "-o", "out", "--json").stdout)
    (found,) = record["contradictions"]
    assert found["outcome"] == "merged"
    assert found["belief"] == -1.0
    merged = next(entry for entry in record["decisions"] if entry["kind"] == "merged")
    assert merged["classes"] == found["classes"]
    assert merged["belief"] == -1.0
    assert merged["certainty"] == pytest.approx(found["certainty"])
    assert found["certainty"] > 0.9
    counts = pd.read_csv(cultivars)["kind"].value_counts()
    assert found["n_rows"] == pytest.approx(counts[found["classes"]].sum(), abs=5)
    sentence = (
        f"the belief −1 keeps {' and '.join(found['classes'])} apart, but {found['n_rows']} of their rows"
    )
    assert sentence in merged["contradiction"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    decisions = pd.read_csv(tmp_path / "out" / "decisions.csv").set_index("decision")
    assert sentence in decisions.loc["merged", "contradiction"]
    text = invoke(*command).stdout
    assert sentence in text
    assert f"(certainty {found['certainty']:.2f}" in text
