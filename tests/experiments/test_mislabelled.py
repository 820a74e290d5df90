"""Flipped labels: the flips are what they should be, and the scores are counted from them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.classes import mislabelled as experiment
from experiments.framework.data_files import DataMissing
from experiments.framework.tables import wide


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2])
def test_flips_are_to_other_classes_and_of_the_share_asked_for(rate):
    y = np.arange(1000) % 7
    labels, wrong = experiment.flip_labels(y, rate, 3)
    assert wrong.sum() == round(rate * 1000)
    assert ((labels != y) == wrong).all()
    assert set(labels) == set(range(7))
    if rate:
        # All other classes are drawn about as often.
        assert np.bincount((labels - y)[wrong] % 7, minlength=7)[1:].min() > 0.08 * wrong.sum()
        assert not np.array_equal(experiment.flip_labels(y, rate, 4)[0], labels)


def test_flips_to_the_next_class():
    y = np.arange(1000) % 7
    labels, wrong = experiment.flip_labels(y, 0.1, 3, "next class")
    assert wrong.sum() == 100
    assert np.array_equal(labels, np.where(wrong, (y + 1) % 7, y))


def test_scores_are_counted_by_hand():
    flagged = np.array([True, True, True, False, False, False, False, False])
    wrong = np.array([True, False, True, True, True, False, False, False])
    scores = experiment._scores(flagged, wrong)
    assert scores == {"flagged": 3 / 8, "precision": 2 / 3, "recall": 0.5}
    none = experiment._scores(np.zeros(8, dtype=bool), np.zeros(8, dtype=bool))
    assert none["flagged"] == 0.0
    assert np.isnan([none["precision"], none["recall"]]).all()


def test_digits_reach_what_is_required(monkeypatch):
    """Precision and recall of at least .7 at 10 % flips; no method sees the truth."""
    classifiers = experiment._classifiers

    def few_trees(draw):
        found = classifiers(draw)
        found["random forest"].set_params(n_estimators=20)
        return found

    monkeypatch.setattr(experiment, "_classifiers", few_trees)
    rows = {row["method"]: row for row in experiment.mislabelled(0, "digits", "any class", 0.1)}
    assert list(rows) == ["linkwise", "random forest", "shrunk LDA", "10 neighbours"]
    found = rows["linkwise"]
    assert min(found["precision"], found["recall"]) > 0.8
    assert found["told"] > 0.9
    assert found["learned_rate"] == pytest.approx(0.1, abs=0.02)
    assert found["at_90"] > 0.85
    for row in rows.values():
        assert set(row) == {"method", *experiment._MEASURES}
        assert 0.05 < row["flagged"] < 0.35


def test_few_right_labels_are_flagged(monkeypatch):
    monkeypatch.setattr(experiment, "_classifiers", lambda draw: {})
    found = experiment.mislabelled(0, "digits", "any class", 0.0)[0]
    assert found["flagged"] < 0.02
    assert np.isnan(found["recall"])


def test_missing_data_are_named(monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    with pytest.raises(DataMissing, match="satimage"):
        experiment.mislabelled(0, "satimage", "any class", 0.1)


def test_a_measure_without_a_value_is_an_empty_cell():
    """Classifiers learn no rate of errors, and without wrong labels there is no recall."""
    row = {"rate": 0.0, "method": "LDA", "measure": "recall", "n": 0, "low": None, "high": None}
    for missing in (None, float("nan")):
        assert wide([{**row, "mean": missing}], "recall")[1] == [["0.0", "0", ""]]
