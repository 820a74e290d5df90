"""Links vote on eigenvectors, clusterings vote on links."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from linkwise import ConstrainedSpectralClustering, Constraints
from linkwise.datasets import make_rings
from linkwise.metrics import rand_score
from linkwise.spectral.normalised_cut import row_normalised
from linkwise.spectral.rounding import (
    assign_labels,
    kept_links,
    labels_by_vote,
    leading_rows,
    link_reliability,
    trusted_weights,
)
from tests.repeats import examples

CERTAINTY = 0.5 + 0.5 * np.tanh(1.0)  # of a link of weight 1


def random_problem(rng, n=30, m=5, n_links=12):
    rows = row_normalised(rng.normal(size=(n, m)))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(n_links)])
    weights = rng.choice([-np.inf, -2.0, -0.5, 0.5, 1.0, np.inf], n_links)
    return rows, pairs, weights


def test_kept_links_agree_with_a_loop():
    rng = np.random.default_rng(0)
    for _ in range(50):
        _, pairs, weights = random_problem(rng)
        labels = rng.integers(0, 3, 30)
        expected = [(labels[i] == labels[j]) == (w > 0) for (i, j), w in zip(pairs, weights, strict=True)]
        np.testing.assert_array_equal(kept_links(labels, pairs, weights), expected)


def test_leading_rows_are_those_of_the_unnormalised_vectors():
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    np.testing.assert_allclose(leading_rows(row_normalised(vectors), 3), row_normalised(vectors[:, :3]))


def test_the_vote_is_won_by_the_labels_that_keep_most():
    rng = np.random.default_rng(1)
    used = set()
    for seed in range(examples(60)):
        rows, pairs, weights = random_problem(rng)
        labels, n_columns = labels_by_vote(rows, 3, pairs, weights, n_init=2, seed=seed)
        kept = {}
        for m in (3, 4, 5):
            found = assign_labels(
                row_normalised(rows[:, :m]), 3, "kmeans", n_init=2, rng=np.random.default_rng(seed)
            )
            together = found[pairs[:, 0]] == found[pairs[:, 1]]
            kept[m] = sum(
                min(abs(w), 1.0) if np.isinf(w) else abs(w) for w in weights[together == (weights > 0)]
            )
            if m == n_columns:
                np.testing.assert_array_equal(labels, found)
        assert n_columns == min(kept, key=lambda m, kept=kept: (-kept[m], m))
        used.add(n_columns)
    assert used == {3, 4, 5}


def test_reliability_asks_only_clusterings_without_the_link():
    rng = np.random.default_rng(2)
    _, pairs, weights = random_problem(rng, n_links=8)
    calls = []

    def label(some_pairs, some_weights):
        labels = rng.integers(0, 2, 30)
        calls.append(
            ({(*pair, w) for pair, w in zip(some_pairs.tolist(), some_weights, strict=True)}, labels)
        )
        return labels

    found = link_reliability(label, pairs, weights, 6, np.random.default_rng(3))
    for (i, j), weight, share in zip(pairs.tolist(), weights, found, strict=True):
        votes = [
            (labels[i] == labels[j]) == (weight > 0) for seen, labels in calls if (i, j, weight) not in seen
        ]
        assert share == pytest.approx(np.mean(votes)) if votes else np.isnan(share)
    assert len(calls) == 6


def test_a_link_seen_by_all_is_left_alone():
    pairs, weights = np.array([[0, 1]]), np.array([-np.inf])
    reliability = link_reliability(lambda *_: np.zeros(2, int), pairs, weights, 0, np.random.default_rng(0))
    assert np.isnan(reliability).all()
    assert trusted_weights(weights, reliability)[0] == -np.inf


def digits(classes, n_samples):
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(y, classes)))[:n_samples]
    return X[rows], y[rows]


def test_extra_eigenvectors_and_reliability_help_against_wrong_links():
    X, y = digits([2, 5, 6, 7], 240)
    settings = {
        "paper": {"softness": 0.1, "n_extra_eigenvectors": 0},
        "extra": {"softness": 0.3},
        "reliability": {"softness": 0.3, "reliability_subsets": 5},
    }
    scores = {name: [] for name in settings}
    for seed in range(3):
        links = Constraints.sample(y, 100, overlap=True, flip=0.1, certainty=CERTAINTY, random_state=seed)
        for name, options in settings.items():
            model = ConstrainedSpectralClustering(4, n_init=4, random_state=0, **options)
            scores[name].append(rand_score(y, model.fit(X, constraints=links).labels_))
    mean = {name: np.mean(values) for name, values in scores.items()}
    assert mean["extra"] > mean["paper"] + 0.05
    assert mean["reliability"] > 0.95


def test_wrong_links_have_low_reliability():
    X, y = digits([1, 4, 7], 300)
    links = Constraints.sample(y, 80, overlap=True, flip=0.1, certainty=CERTAINTY, random_state=0)
    model = ConstrainedSpectralClustering(3, reliability_subsets=6, random_state=0).fit(X, constraints=links)
    wrong = ~kept_links(y, links.pairs, links.weights)
    assert 3 < wrong.sum() < 20
    asked = ~np.isnan(model.link_reliability_)
    assert (
        model.link_reliability_[asked & wrong].mean()
        < 0.3
        < 0.8
        < model.link_reliability_[asked & ~wrong].mean()
    )


@pytest.mark.parametrize("solver", ["dense", "landmark", "basis", "signed_laplacian"])
def test_new_rows_are_embedded_like_old_ones(solver):
    X, y = make_rings(60, random_state=0)
    for seed in range(8):
        links = Constraints.sample(y, 12, overlap=True, random_state=seed)
        # On a graph without weights some of these links choose more eigenvectors than clusters.
        model = ConstrainedSpectralClustering(
            2, affinity="heat", softness=0.3, solver=solver, n_init=2, random_state=0
        )
        model.fit(X, constraints=links)
        if model.embedding_.shape[1] > 2:
            break
    assert model.embedding_.shape[1] > 2
    assert model.embedding_centers_.shape == (2, model.embedding_.shape[1])
    assert len(model.eigenvalues_) == model.embedding_.shape[1]
    assert (model.predict(X) == model.labels_).mean() > 0.95
    assert not hasattr(model, "link_reliability_")
    assert model.update(None).embedding_.shape == (120, 2)


def test_few_points_have_few_eigenvectors():
    X = np.array([[0.0], [0.1], [5.0]])
    model = ConstrainedSpectralClustering(3, affinity="rbf", sigma=1.0, random_state=0)
    assert len(set(model.fit(X, constraints=Constraints(3, cannot_link=[(0, 1)])).labels_)) == 3
