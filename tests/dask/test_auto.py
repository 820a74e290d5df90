"""LinkedClustering with Dask chooses on a sample and fits the winner to all rows."""

from __future__ import annotations

import itertools
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

import linkwise
from linkwise import Constraints
from linkwise.auto.choice import doubted_links
from linkwise.dask import PPC, LinkedClustering, PCKMeans, auto
from linkwise.exceptions import InfeasibleConstraints
from linkwise.metrics import rand_score
from tests.dask.dask_cases import assert_same_fit, blobs, lazy, quietly

X, Y = blobs(300, k=3)
X = X + 6.0 * np.eye(3)[Y]
SOFT = Constraints.sample(Y, 60, certainty=0.95, random_state=0)
CHUNKS = ((100, 0, 120, 80), (3,))
FEW = ["mixture, tied", "k-means, no links", "mixture, no links"]
QUICK = {"random_state": 0, "cv": 2, "effort": "quick", "candidates": FEW}


def fit(data=None, **parameters):
    links = parameters.pop("constraints", SOFT)
    labels = parameters.pop("labels", None)
    model = LinkedClustering(**{"n_clusters": 3, **QUICK, **parameters})
    return quietly(
        lambda: model.fit(lazy(X, CHUNKS) if data is None else data, constraints=links, labels=labels)
    )


def test_the_winner_is_fitted_to_all_rows(monkeypatch):
    monkeypatch.setattr(auto, "_SAMPLE_ROWS", 50)
    model = fit()
    assert isinstance(model.labels_, da.Array)
    assert rand_score(Y, model.labels_.compute()) > 0.95
    chosen = [record for record in model.selection_ if record.chosen]
    assert len(chosen) == 1
    # All linked rows and some others were looked at, not all rows.
    assert len(np.unique(SOFT.pairs)) <= model.n_rows_compared_ < 300
    # The winner is what its namesake in memory finds in all rows.
    best = model.best_estimator_
    twin = best.to_local(labels=False)
    doubted = doubted_links(SOFT, -logit(model.violation_probability_))
    assert (np.abs(doubted.weights) != np.abs(SOFT.weights)).any()
    theirs = quietly(lambda: type(twin)(**twin.get_params()).fit(X, constraints=doubted))
    assert_same_fit(best, theirs)
    np.testing.assert_array_equal(model.violations_, SOFT.violations(model.labels_.compute()))
    assert model.noise_ == pytest.approx(model.violations_.mean())


def test_choice_does_not_depend_on_the_chunks():
    one, other = fit(), fit(lazy(X, ((300,), (1, 2))))
    assert [record.candidate for record in one.selection_ if record.chosen] == [
        record.candidate for record in other.selection_ if record.chosen
    ]
    np.testing.assert_array_equal(one.labels_.compute(), other.labels_.compute())


def test_hard_links_hold_whoever_wins():
    """The only candidate does not use links, and these are against the data."""
    wrong = np.flatnonzero(Y == 0)[:2], np.flatnonzero(Y == 1)[:2]
    links = Constraints(300, np.column_stack(wrong))
    model = fit(constraints=links, candidates=["k-means, no links"])
    assert isinstance(model.best_estimator_, PCKMeans)
    assert not model.violations_.any()


def test_links_by_id(monkeypatch):
    ids = [f"flower {row}" for row in range(len(X))]
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"], index=ids), npartitions=3, sort=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the links have ids")
        links = SOFT.with_index(ids)
        model = LinkedClustering(3, **QUICK).fit(frame, constraints=links)
    np.testing.assert_array_equal(model.labels_.compute(), fit().labels_.compute())
    # Contradictions name rows of the data, not of the sample.
    monkeypatch.setattr(auto, "_SAMPLE_ROWS", 50)
    four = [f"flower {row}" for row in (290, 292, 294, 296)]
    apart = Constraints(len(X), cannot_link=[*itertools.combinations(four, 2)], index=ids)
    with pytest.raises(InfeasibleConstraints, match=r"^290, 292.* row 292 is 'flower 292'"):
        fit(frame, constraints=apart)


def test_labels_and_names_of_clusters():
    known = np.where(np.arange(300) % 20 == 0, np.array(["ash", "elm", "oak"])[Y], None)
    model = fit(constraints=None, labels=known, n_clusters="auto")
    assert model.n_clusters_ == 3
    named = model.cluster_names_[model.labels_.compute()]
    assert (named == np.array(["ash", "elm", "oak"])[Y]).mean() > 0.95


def test_own_candidates_and_those_that_cannot_be():
    model = fit(candidates=[linkwise.PPC(covariance_type="spherical"), ("mine", linkwise.PCKMeans())])
    assert isinstance(model.best_estimator_, PPC | PCKMeans)
    for candidate in ("spectral, near", linkwise.COPKMeans()):
        with pytest.raises(ValueError, match="cannot be fitted chunk by chunk; use 'mixture'"):
            fit(candidates=[candidate])


def test_without_links():
    model = fit(constraints=None, candidates="auto")
    assert model.labels_.compute().shape == (300,)
    assert np.isnan(model.gain_.value)


def test_prediction_and_the_way_back_to_memory():
    model = fit()
    new = lazy(X[:60], ((20, 40), (3,)))
    local = model.to_local()
    assert type(local) is linkwise.LinkedClustering
    np.testing.assert_array_equal(model.predict(new).compute(), local.predict(X[:60]))
    np.testing.assert_array_equal(local.labels_, model.labels_.compute())
    assert local.share_without_links_ == 0.0
    names = pd.DataFrame(X[:60], columns=["a", "b", "c"])
    named = fit(dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = named.predict(dd.from_pandas(names, npartitions=2))
        np.testing.assert_array_equal(frame.compute(), named.predict(names))
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(new).shape == (60, 3)
