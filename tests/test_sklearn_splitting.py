"""Constraints under scikit-learn's own splitting tools, with metadata routing on and off."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, resample

from linkwise import Constraints

N = 60


class LinkKeeper(ClusterMixin, BaseEstimator):
    """Stores the links it was fitted with and checks that they are those of its rows.

    The first column of X is the row number, so the estimator can tell which links it should have got.
    """

    __metadata_request__fit: ClassVar = {"constraints": True}
    # Pipeline.score always passes sample_weight on (scikit-learn 1.9), so the last step has to ask for it.
    __metadata_request__score: ClassVar = {"constraints": True, "sample_weight": True}

    def __init__(self, offset=0, truth=None):
        self.offset = offset
        self.truth = truth

    def fit(self, X, y=None, *, constraints=None):
        assert isinstance(constraints, Constraints)
        assert len(constraints) == len(X)
        rows = np.rint(X[:, 0]).astype(int)
        whole = {
            tuple(pair): weight for pair, weight in zip(self.truth.pairs, self.truth.weights, strict=True)
        }
        position = {row: place for place, row in enumerate(rows)}
        expected = {
            tuple(sorted((position[i], position[j]))): weight
            for (i, j), weight in whole.items()
            if i in position and j in position
        }
        got = {
            tuple(pair): weight for pair, weight in zip(constraints.pairs, constraints.weights, strict=True)
        }
        assert got == expected
        assert got
        self.n_links_ = constraints.n_pairs
        self.labels_ = np.zeros(len(X), dtype=int)
        return self

    def score(self, X, y=None, *, constraints=None, sample_weight=None):
        return float(self.n_links_)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    links = Constraints.sample(y, 400, overlap=True, certainty=0.9, random_state=0)
    X = np.column_stack([np.arange(N), rng.normal(size=N)])
    return X, y, links


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


def test_train_test_split(data):
    X, _, links = data
    X_train, X_test, links_train, links_test = train_test_split(X, links, random_state=1)
    LinkKeeper(truth=links).fit(X_train, constraints=links_train)
    assert links_test == links[X_test[:, 0].astype(int)]


def test_safe_indexing_and_resample(data):
    X, _, links = data
    rows = np.array([5, 1, 9])
    mask = np.isin(np.arange(N), rows)
    assert _safe_indexing(links, rows) == links[rows]
    assert _safe_indexing(links, mask) == links[mask]
    X_boot, links_boot = resample(X, links, random_state=0)
    assert links_boot == links[X_boot[:, 0].astype(int)]


def test_cross_validate(data, routing):
    X, y, links = data
    result = cross_validate(
        LinkKeeper(truth=links), X, y, cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise", params={"constraints": links},
    )  # fmt: skip
    assert (result["test_score"] > 0).all()


def test_grid_search(data, routing):
    X, y, links = data
    search = GridSearchCV(LinkKeeper(truth=links), {"offset": [0, 1]}, cv=3, error_score="raise")
    search.fit(X, y, constraints=links)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.n_links_ == links.n_pairs


def test_grid_search_over_a_pipeline(data, routing):
    X, y, links = data
    keep = StandardScaler(with_mean=False, with_std=False)
    pipeline = Pipeline([("keep", keep), ("links", LinkKeeper(truth=links))])
    search = GridSearchCV(pipeline, {"links__offset": [0, 1]}, cv=3, error_score="raise")
    name = "constraints" if routing else "links__constraints"
    search.fit(X, y, **{name: links})
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
