"""Starts with several Gaussians per cluster: links decide which of them belong together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, Constraints
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.links.starts import component_start_labels, group_pieces
from tests.repeats import LONG, for_seeds


def ward_groups(X, pieces, n_clusters, weight_between):
    """Merge sets of rows, written without any update formula."""
    groups = [set(np.flatnonzero(pieces == piece)) for piece in range(pieces.max() + 1)]

    def scatter(rows):
        rows = sorted(rows)
        return ((X[rows] - X[rows].mean(axis=0)) ** 2).sum()

    while len(groups) > n_clusters:
        _, _, a, b = min(
            (
                -round(sum(weight_between(i, j) for i in a for j in b), 9),
                scatter(a | b) - scatter(a) - scatter(b),
                groups.index(a),
                groups.index(b),
            )
            for a, b in itertools.combinations(groups, 2)
        )
        groups[a] |= groups.pop(b)
    labels = np.empty(len(X), dtype=int)
    for number, rows in enumerate(groups):
        labels[sorted(rows)] = number
    return labels


@for_seeds(40)
def test_grouping_against_sets_of_rows(seed):
    rng = np.random.default_rng(seed)
    n, n_pieces = 24, int(rng.integers(3, 8))
    X = rng.normal(size=(n, 2))
    pieces = np.concatenate([np.arange(n_pieces), rng.integers(n_pieces, size=n - n_pieces)])
    pairs = list(itertools.combinations(range(n), 2))
    chosen = rng.choice(len(pairs), size=int(rng.integers(0, 15)), replace=False)
    links = [pairs[i] for i in chosen]
    must, cannot = links[::2], links[1::2]
    weights = rng.uniform(0.2, 2.0, size=len(links))
    constraints = Constraints(
        n, must_link=must, cannot_link=cannot, weight=np.concatenate([weights[::2], weights[1::2]])
    )
    table = {
        tuple(pair): 2.0 * w for pair, w in zip(constraints.pairs.tolist(), constraints.weights, strict=True)
    }

    def weight_between(i, j):
        return table.get((min(i, j), max(i, j)), 0.0)

    n_clusters = int(rng.integers(1, n_pieces + 1))
    found = group_pieces(X, pieces, n_clusters, constraints)[pieces]
    np.testing.assert_array_equal(found, ward_groups(X, pieces, n_clusters, weight_between))


def test_hard_links_count_as_a_few_nats():
    X = np.array([[0.0], [1.0], [5.0]])
    links = Constraints(3, must_link=[(0, 2)], cannot_link=[(0, 1)])
    np.testing.assert_array_equal(group_pieces(X, np.arange(3), 2, links), [0, 1, 0])


@pytest.mark.parametrize("method", ["constraints", "kmeans"])
def test_components_of_a_cluster_stand_side_by_side(method):
    """Three clusters far apart, each of two lumps: a cluster's components are its own lumps."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 20)
    X = np.array([[0, 0], [0, 3], [40, 0], [40, 3], [0, 80], [0, 83]])[y] + rng.normal(
        scale=0.3, size=(120, 2)
    )
    links = Constraints(120, must_link=[(0, 20), (40, 60), (80, 100)])
    labels = component_start_labels(X, 3, 2, method, links, np.random.RandomState(3))
    for lump in range(6):
        assert len(np.unique(labels[y == lump])) == 1
    for cluster in range(3):
        assert len(np.unique(labels[y // 2 == cluster] // 2)) == 1
    assert len(np.unique(labels)) == 6


def test_links_join_lumps_that_are_far_apart():
    rng = np.random.default_rng(1)
    angle = np.repeat(np.arange(6), 30)
    X = 4.0 * np.column_stack([np.cos(angle * np.pi / 3), np.sin(angle * np.pi / 3)])
    X += rng.normal(scale=0.5, size=X.shape)
    y = angle % 3
    links = Constraints.sample(y, 20, random_state=0)
    model = PPC(3, components_per_cluster=2, random_state=0).fit(X, constraints=links)
    assert clustering_accuracy(y, model.labels_) > 0.98


@pytest.mark.parametrize(("load", "covariance_type"), [(load_iris, "full"), (load_wine, "diag")])
def test_three_components_are_not_worse_than_no_links(load, covariance_type):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    accuracy = []
    for seed in range(3 if LONG else 1):
        links = Constraints.sample(y, 70, random_state=seed)
        model = PPC(3, components_per_cluster=3, covariance_type=covariance_type, random_state=seed)
        accuracy.append(clustering_accuracy(y, model.fit_predict(X, constraints=links)))
    alone = PPC(3, covariance_type=covariance_type, random_state=0).fit_predict(X)
    assert np.mean(accuracy) > min(clustering_accuracy(y, alone), 0.93)


def test_fewer_distinct_rows_than_components():
    X = np.repeat([[0.0], [5.0], [6.0]], 10, axis=0)
    links = Constraints(30, must_link=[(0, 1)], cannot_link=[(0, 10)])
    labels = component_start_labels(X, 2, 3, "constraints", links, np.random.RandomState(0))
    assert len(set(labels[:10])) == 1
    assert len(set(labels[10:] // 3)) == 1
    assert labels[0] // 3 != labels[10] // 3
    model = PPC(2, components_per_cluster=3, reg_covar=0.1, random_state=0).fit(X, constraints=links)
    assert np.isfinite(model.means_).all()
