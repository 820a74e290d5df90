"""K-means of an embedding with all starts side by side."""

import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise.spectral.rounding import kmeans_labels
from tests.repeats import for_seeds


def inertia(rows, labels):
    return sum(((rows[labels == k] - rows[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels))


@for_seeds(3)
def test_the_least_inertia_of_all_labels(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(8, 2))
    # The first row is in cluster 0: the names of clusters do not matter.
    best = min(inertia(rows, np.array([0, *rest])) for rest in itertools.product(range(3), repeat=7))
    assert inertia(rows, kmeans_labels(rows, 3, n_init=100, rng=rng)) == pytest.approx(best)


@pytest.mark.parametrize("k", [2, 5, 12])
def test_as_good_as_scikit_learn(k):
    rng = np.random.default_rng(k)
    rows = rng.normal(size=(300, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ours = [inertia(rows, kmeans_labels(rows, k, n_init=10, rng=np.random.default_rng(s))) for s in range(5)]
    theirs = [KMeans(k, n_init=10, random_state=s).fit(rows).inertia_ for s in range(5)]
    assert np.mean(ours) < 1.005 * np.mean(theirs)


def test_every_row_is_in_the_cluster_with_the_nearest_mean():
    X, y = make_blobs(200, centers=4, random_state=0)
    labels = kmeans_labels(X, 4, n_init=3, rng=np.random.default_rng(0))
    means = np.array([X[labels == k].mean(axis=0) for k in range(4)])
    distances = ((X[:, np.newaxis] - means) ** 2).sum(axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), labels)
    assert adjusted_rand_score(y, labels) > 0.8


@pytest.mark.parametrize("rows", [np.zeros((6, 2)), np.repeat(np.eye(3), 4, axis=0)])
def test_few_distinct_rows(rows):
    labels = kmeans_labels(rows, 5, n_init=2, rng=np.random.default_rng(0))
    assert inertia(rows, labels) == pytest.approx(0.0)


def test_as_many_clusters_as_rows():
    rows = np.random.default_rng(0).normal(size=(7, 2))
    assert len(set(kmeans_labels(rows, 7, n_init=5, rng=np.random.default_rng(0)))) == 7
