"""relabel: predictions, honest confidence, cross-validation, small labels and refusals."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from linkwise.mixture.classes import relabel as module
from linkwise.mixture.classes.relabel import relabel


@pytest.fixture(autouse=True)
def one_thread():
    """Threads would only wait for each other on so few rows."""
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture
def few_trees(monkeypatch):
    """A third of the trees: they are nearly all of the time, and clear clusters need no more."""
    monkeypatch.setattr(
        module, "HistGradientBoostingClassifier", partial(HistGradientBoostingClassifier, max_iter=30)
    )


@pytest.fixture
def blobs():
    return make_blobs(120, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=1.2, random_state=0)


@pytest.mark.usefixtures("few_trees")
class TestLabels:
    def test_gaps_are_filled_and_given_labels_stay(self, blobs):
        X, y = blobs
        given = y.copy()
        given[::3] = -1
        given[1] = (y[1] + 1) % 3
        result = relabel(X, given, cv=3, random_state=0)
        known = given >= 0
        np.testing.assert_array_equal(result.labels[known], given[known])
        assert np.mean(result.labels[~known] == y[~known]) > 0.95
        assert result.n_trained == known.sum()
        probability = result.classifier.predict_proba(X[~known])
        np.testing.assert_array_equal(result.confidence[~known], probability.max(axis=1))
        np.testing.assert_array_equal(result.labels[~known], result.classifier.predict(X[~known]))
        # The wrong label is contradicted by a classifier that has not seen it.
        assert result.confidence[1] < 0.1 < np.median(result.confidence[known])

    def test_new_rows(self, blobs):
        X, y = blobs
        result = relabel(X[:100], y[:100], X[100:], cv=2, random_state=0)
        assert result.labels.shape == result.confidence.shape == (20,)
        assert np.mean(result.labels == y[100:]) > 0.95
        same = relabel(X, np.where(np.arange(120) < 100, y, -1), cv=2, random_state=0)
        np.testing.assert_array_equal(same.labels[100:], result.labels)
        np.testing.assert_array_equal(same.confidence[100:], result.confidence)

    @pytest.mark.parametrize(
        ("names", "gap"),
        [
            (np.array(["a", "b", "c"], dtype=object), None),
            (np.array([1.0, 2.0, 5.0]), np.nan),
            (np.array([10, 20, 30]), -1),
        ],
    )
    def test_kinds_of_labels_and_gaps(self, blobs, names, gap):
        X, y = blobs
        labels = names[y]
        labels[::4] = gap
        result = relabel(X, labels, cv=2, random_state=0)
        assert set(result.labels.tolist()) == set(names.tolist())
        assert set(result.classifier.classes_.tolist()) == set(names.tolist())

    def test_nothing_to_predict(self, blobs):
        X, y = blobs
        np.testing.assert_array_equal(relabel(X, y, cv=2, random_state=0).labels, y)

    def test_frames_and_missing_values(self, blobs):
        X, y = blobs
        frame = pd.DataFrame(X, columns=["red", "infrared"])
        frame.iloc[5, 0] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = relabel(frame, np.where(np.arange(120) < 100, y, -1), cv=2, random_state=0)
            relabel(frame, y, frame.iloc[:3], cv=2, random_state=0)
        assert result.classifier.feature_names_in_.tolist() == ["red", "infrared"]


class TestValidation:
    def test_accuracy_is_that_of_held_out_rows(self, blobs):
        X, y = blobs
        rng = np.random.default_rng(0)
        noisy = np.where(rng.random(120) < 0.3, rng.integers(0, 3, 120), y)
        result = relabel(X, noisy, cv=3, random_state=7)
        seeds = np.random.default_rng(7)
        folds = StratifiedKFold(3, shuffle=True, random_state=int(seeds.integers(2**31)))
        classifier = HistGradientBoostingClassifier(
            random_state=int(seeds.integers(2**31)), l2_regularization=1.0
        )
        probability = cross_val_predict(classifier, X, noisy, cv=folds, method="predict_proba")
        right = probability.argmax(axis=1) == noisy
        shares = [right[test].mean() for _, test in folds.split(X, noisy)]
        np.testing.assert_allclose(result.fold_accuracies, shares)
        assert result.accuracy == pytest.approx(np.mean(shares))
        assert result.accuracy_std == pytest.approx(np.std(shares, ddof=1))
        np.testing.assert_allclose(result.confidence, probability[np.arange(120), noisy])
        assert 0.6 < result.accuracy < 0.9
        assert f"{result.accuracy:.3f}" in repr(result)

    @pytest.mark.usefixtures("few_trees")
    def test_reproducible(self, blobs):
        X, y = blobs
        first, second, third = (relabel(X, y, cv=2, random_state=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.confidence, second.confidence)
        assert not np.array_equal(first.confidence, third.confidence)


@pytest.mark.usefixtures("few_trees")
class TestSmallLabels:
    def test_they_are_named(self, blobs):
        X, y = blobs
        labels = y.astype(str).astype(object)
        labels[:3] = "rare"
        labels[3] = "single"
        with pytest.warns(
            UserWarning, match=r"fewer rows than the 5 folds: 'rare' \(3\), 'single' \(1\)"
        ) as caught:
            result = relabel(X, labels, random_state=0)
        assert len(caught) == 1
        assert result.confidence[3] == 0.0
        assert {"rare", "single"} <= set(result.classifier.classes_.tolist())

    def test_many_rows_with_a_single_one(self):
        # Early stopping would try to hold back a part of the single row.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12_001, 1))
        labels = (X[:, 0] > 0).astype(int)
        labels[0] = 7
        with pytest.warns(UserWarning, match=r"7 \(1\)"):
            result = relabel(X, labels, cv=2, random_state=0)
        assert result.accuracy > 0.99

    def test_refusals(self, blobs):
        X, y = blobs
        with pytest.raises(ValueError, match="all labelled rows are"):
            relabel(X, np.zeros(120))
        with pytest.raises(ValueError, match=r"labels mix kinds of names, \[0, 'a'\]"):
            relabel(X, np.array([0, "a"], dtype=object)[np.arange(120) % 2])
        with pytest.raises(ValueError, match="no row is labelled"):
            relabel(X, np.full(120, -1))
        with pytest.raises(ValueError, match="labels has 10 entries, but X has 120 rows"):
            relabel(X, y[:10])
        for cv in (1, 2.5, True):
            with pytest.raises(ValueError, match="cv must be a whole number >= 2"):
                relabel(X, y, cv=cv)
        with pytest.raises(ValueError, match="no label has 3 rows, the largest has 2; use cv <= 2"):
            relabel(X[:4], [0, 0, 1, 1], cv=3)
