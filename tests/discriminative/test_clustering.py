"""DiscriminativeClustering: what it finds, which links it keeps, what it does not depend on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from linkwise import Constraints, DiscriminativeClustering
from linkwise.datasets import make_rings, make_two_moons
from linkwise.discriminative.clustering import _evidence
from linkwise.exceptions import InfeasibleConstraints
from tests.repeats import examples
from tests.sklearn_checks import estimator_checks

KINDS = ("linear", "quadratic", "rbf", "graph")
X, y = make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
SOFT = Constraints.sample(y, 20, certainty=0.95, random_state=0)


CORRELATED = X @ np.array([[1.0, 40.0], [1.0, 41.0]])


def test_whitening_finds_what_a_wide_direction_hides():
    plain, white = (
        DiscriminativeClustering(3, whiten=whiten, random_state=0).fit(CORRELATED, constraints=SOFT).labels_
        for whiten in (False, True)
    )
    assert adjusted_rand_score(y, white) == 1.0
    assert adjusted_rand_score(y, plain) < 0.9


@estimator_checks(*[DiscriminativeClustering(2, features=kind, random_state=0) for kind in KINDS])
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("links", [SOFT, None], ids=["links", "no links"])
@pytest.mark.parametrize("kind", KINDS)
def test_clear_clusters_are_found(kind, links):
    model = DiscriminativeClustering(3, features=kind, random_state=0).fit(X, constraints=links)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.converged_
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert adjusted_rand_score(y, model.predict(X + 0.01)) == 1.0
    assert 0.6 < model.score(X) <= np.log(3.0)


def test_links_decide_between_two_clusterings_of_the_same_rows():
    """Four groups at the corners of a square: links say whether they pair by column or by row."""
    corners = np.repeat(np.array([[0, 0], [0, 4], [4, 0], [4, 4]]), 25, axis=0)
    rows = corners + np.random.default_rng(0).normal(size=(100, 2)) * 0.4
    for column in (0, 1):
        truth = (corners[:, column] > 0).astype(int)
        links = Constraints.sample(truth, 12, certainty=0.95, random_state=1)
        found = DiscriminativeClustering(2, features="linear", random_state=0).fit(rows, constraints=links)
        assert adjusted_rand_score(truth, found.labels_) == 1.0


@pytest.mark.parametrize(("kind", "weight"), [("quadratic", 50.0), ("rbf", 50.0), ("graph", 20.0)])
def test_winding_clusters(kind, weight):
    """The graph has gaps within the rings, too: with 50 it reaches .85."""
    rows, truth = make_rings(random_state=0)
    links = Constraints.sample(truth, 40, certainty=0.95, random_state=0)
    model = DiscriminativeClustering(2, features=kind, information_weight=weight, random_state=0)
    found = model.fit(rows, constraints=links)
    assert adjusted_rand_score(truth, found.labels_) > 0.9


def test_a_wrong_link_is_overruled_and_said_to_be_broken():
    wrong = Constraints(
        90, must_link=[(int(np.flatnonzero(y == 0)[0]), int(np.flatnonzero(y == 1)[0]))], certainty=0.8
    )
    links = SOFT + wrong
    model = DiscriminativeClustering(3, random_state=0).fit(X, constraints=links)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.violations_.sum() == 1
    assert model.inference_["method"] == "boundaries"


@settings(max_examples=examples(25, 12), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from(KINDS), st.integers(1, 25))
def test_hard_links_hold_or_are_refused(seed, k, kind, n_links):
    rng = np.random.default_rng(seed)
    rows, truth = rng.normal(size=(30, 2)), rng.integers(k, size=30)
    links = Constraints.sample(truth, n_links, overlap=True, random_state=seed)
    soft = Constraints(30, must_link=[(0, 1)], certainty=0.7)
    model = DiscriminativeClustering(k, features=kind, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, constraints=links + soft)
    assert not links.violations(model.labels_).any()
    assert sum(model.inference_["parts"].values()) == 30


def test_every_hard_link_counts_however_many_rows_there_are():
    """Of the 500,000 pairs of these rows only some are looked at for what they imply."""
    pairs = np.arange(1000).reshape(-1, 2)
    links = Constraints(1000, must_link=pairs[:300], cannot_link=pairs[300:])
    table = _evidence(links, 1000, 0)
    ends = np.column_stack([table.first.indices, table.second.indices])
    assert {tuple(pair) for pair in ends.tolist()} == {tuple(pair) for pair in pairs.tolist()}
    np.testing.assert_array_equal(table.together, ends[:, 0] < 600)
    assert (table.times == 1.0).all()


def test_hard_links_that_contradict_each_other():
    triangle = Constraints(90, cannot_link=[(0, 1), (1, 2), (0, 2)])
    with pytest.raises(InfeasibleConstraints):
        DiscriminativeClustering(2).fit(X, constraints=triangle)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_labelled_by_boundaries_of_some_of_them(kind):
    rows, truth = make_blobs(3000, centers=[[0, 0], [6, 0], [0, 6]], random_state=1)
    links = Constraints.sample(truth, 200, certainty=0.95, random_state=0)
    model = DiscriminativeClustering(3, features=kind, n_rows=150, random_state=0).fit(
        rows, constraints=links
    )
    assert adjusted_rand_score(truth, model.labels_) > 0.99
    # All linked rows are learned from, and half as many others as were asked for.
    assert model.n_rows_learned_ == len(np.unique(links.pairs)) + 75
    if kind in ("rbf", "graph"):
        assert len(model.landmarks_) == 150


def test_the_number_of_links_that_information_is_worth():
    """With weight 0 rows without links count for nothing but the penalty; the more, the clearer they are."""
    rows, truth = make_two_moons(random_state=0)
    links = Constraints.sample(truth, 10, certainty=0.9, random_state=0)
    scores = [
        DiscriminativeClustering(2, information_weight=weight, random_state=0)
        .fit(rows, constraints=links)
        .score(rows)
        for weight in (0.0, 5.0, 50.0)
    ]
    assert scores[0] < scores[1] < scores[2]


def test_more_penalty_makes_smaller_coefficients():
    sizes = [
        np.abs(DiscriminativeClustering(3, penalty=penalty, random_state=0).fit(X).coefficients_).max()
        for penalty in (0.1, 1.0, 10.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_steps_that_do_not_suffice_are_said():
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model = DiscriminativeClustering(3, max_iter=1, random_state=0).fit(X, constraints=SOFT)
    assert not model.converged_
    assert not model.inference_["converged"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_clusters", 0),
        ("features", "cubic"),
        ("width", 0.0),
        ("whiten", "yes"),
        ("penalty", -1.0),
        ("information_weight", -1.0),
        ("information_weight", np.nan),
        ("n_rows", 1),
        ("max_iter", 0),
        ("tol", -1.0),
    ],
)
def test_parameters_that_make_no_sense(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        DiscriminativeClustering(**{"n_clusters": 3, parameter: value}).fit(X)


def test_more_clusters_than_rows():
    with pytest.raises(ValueError, match="use at most as many clusters as rows"):
        DiscriminativeClustering(91).fit(X)


def test_labels_name_the_clusters():
    labels = np.full(90, "", dtype=object)
    labels[:] = None
    for number, name in enumerate(("left", "right", "top")):
        labels[np.flatnonzero(y == number)[:3]] = name
    links = Constraints.from_labels(labels)
    model = DiscriminativeClustering(3, random_state=0).fit(X, constraints=links)
    names = model.cluster_names_[model.labels_]
    assert (names == np.array(["left", "right", "top"])[y]).all()
