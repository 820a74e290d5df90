"""Landmarks and kernels: what they promise, for ordinary rows and for odd ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from linkwise import LinkedClustering
from linkwise.active import landscape as module
from linkwise.active.landscape import landmarks, survey

pytestmark = pytest.mark.usefixtures("looked_at_anew")


def blobs(n=60, seed=0, d=3):
    rng = np.random.default_rng(seed)
    return 4.0 * rng.standard_normal((3, d))[np.arange(n) % 3] + rng.standard_normal((n, d))


def warped(n=40, seed=0):
    """Distances that no points have: the triangle inequality fails."""
    distances = np.random.default_rng(seed).uniform(0.1, 5.0, size=(n, n)) ** 2
    distances = np.triu(distances, 1)
    return distances + distances.T


ODD = {
    "blobs": blobs(),
    "duplicates": np.repeat(blobs(8), 9, axis=0),
    "all rows equal": np.full((30, 2), 3.5),
    "constant column": np.column_stack([blobs(), np.ones(60)]),
    "one feature": blobs(d=1),
    "two rows": np.array([[0.0, 1.0], [2.0, 5.0]]),
    "two equal rows": np.ones((2, 2)),
    "three rows": blobs(3),
    "far outlier": np.vstack([blobs(), np.full((1, 3), 1e9)]),
    "tiny": 1e-12 * blobs(),
    "huge": 1e12 * blobs(),
    "single precision": blobs().astype(np.float32),
}


def check_kernels(found, n):
    assert found.kernels.shape == (7, n, n)
    assert np.isfinite(found.kernels).all()
    assert found.kernels.min() >= 0.0
    assert found.kernels.max() <= 1.0 + 1e-12
    for kernel in found.kernels:
        np.testing.assert_allclose(kernel, kernel.T, atol=1e-9)
        np.testing.assert_allclose(np.diag(kernel), 1.0, atol=1e-9)
        assert np.linalg.eigvalsh(kernel).min() > -1e-8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_kernels_are_kernels(name):
    X = ODD[name]
    found = survey(X)
    check_kernels(found, len(X))
    assert found.features.dtype == np.float64
    np.testing.assert_array_equal(found.rows, np.arange(len(X)))
    np.testing.assert_array_equal(found.nearest, np.arange(len(X)))
    np.testing.assert_array_equal(found.together, found.kernels[6])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("distances", [warped(), warped(2), np.zeros((5, 5))])
def test_kernels_of_distances_that_no_points_have(distances):
    found = survey(distances, metric="precomputed")
    check_kernels(found, len(distances))
    assert found.features.shape[1] >= 1


def test_gaussian_kernels_by_hand():
    X = np.array([[0.0], [3.0], [4.0]])
    # Distances 3, 4 and 1: their median is 3.
    for kernel, width in zip(survey(X).kernels[:3], (0.75, 1.5, 3.0), strict=True):
        expected = [[np.exp(-((a - b) ** 2) / (2 * width**2)) for b in X[:, 0]] for a in X[:, 0]]
        np.testing.assert_allclose(kernel, expected)


def test_graph_kernels_are_sums_over_walks():
    X = blobs(40, seed=2)
    n, distances = 40, cdist(X, X)
    weights = np.zeros((n, n))
    scale = np.sort(distances, axis=1)[:, 7]  # column 0 is the row itself
    for i in range(n):
        for j in np.argsort(distances[i])[1:11]:
            weights[i, j] = weights[j, i] = np.exp(-(distances[i, j] ** 2) / (scale[i] * scale[j]))
    degree = weights.sum(axis=1)
    step = weights / np.sqrt(np.outer(degree, degree))
    for kernel, a in zip(survey(X).kernels[3:6], (0.8, 0.95, 0.99), strict=True):
        walks, power = np.eye(n), np.eye(n)
        for _ in range(4000):
            power = a * power @ step
            walks += power
        expected = walks / np.sqrt(np.outer(np.diag(walks), np.diag(walks)))
        np.testing.assert_allclose(kernel, expected, atol=1e-9)


def test_together_is_a_share_of_clusterings():
    together = survey(blobs(80)).together
    # Grains 4, 8, 12, 20 and 30, three clusterings of each.
    np.testing.assert_allclose(together * 15, np.round(together * 15), atol=1e-9)
    # Rows 0 and 1 are of two blobs.
    assert together[0, 1] < 1.0
    # Equal rows are always together, at any grain.
    assert survey(np.repeat(blobs(20), 2, axis=0)).together[0, 1] == 1.0


def manhattan(a, b):
    return float(np.abs(a - b).sum())


def euclidean(a, b):
    return float(np.sqrt(((a - b) ** 2).sum()))


@pytest.mark.parametrize("n_landmarks", [1000, 25])
def test_metrics_agree_on_the_same_distances(n_landmarks):
    X = blobs(50)
    plain = survey(X, n_landmarks=n_landmarks)
    for given, metric in ((cdist(X, X), "precomputed"), (X, euclidean), (X, "l2")):
        other = survey(given, metric=metric, n_landmarks=n_landmarks)
        np.testing.assert_array_equal(other.rows, plain.rows)
        np.testing.assert_array_equal(other.nearest, plain.nearest)
        np.testing.assert_allclose(other.kernels[:6], plain.kernels[:6], atol=1e-7)
        # Coordinates have the distances of the rows, so K-means from the same draws finds the same.
        np.testing.assert_allclose(cdist(other.features, other.features), plain.distances, atol=1e-6)
        np.testing.assert_allclose(other.together, plain.together, atol=0.2)


def test_callable_and_its_distances_agree():
    X = blobs(40)
    by_function = survey(X, metric=manhattan)
    by_name = survey(X, metric="manhattan")
    by_distances = survey(cdist(X, X, "cityblock"), metric="precomputed")
    np.testing.assert_allclose(by_function.kernels, by_distances.kernels, atol=1e-9)
    np.testing.assert_allclose(by_function.kernels, by_name.kernels, atol=1e-9)
    check_kernels(by_function, 40)


@pytest.mark.parametrize("n", [29, 30, 31, 35])
def test_number_of_landmarks(n):
    found = survey(blobs(n), n_landmarks=30, asked=(0, n - 1, 5))
    assert len(found.rows) == min(n, 30)
    assert np.isin([0, 5, n - 1], found.rows).all()
    assert (np.diff(found.rows) > 0).all()
    np.testing.assert_array_equal(found.place[found.rows], np.arange(len(found.rows)))
    assert (found.place >= 0).sum() == len(found.rows)


def test_more_rows_asked_about_than_landmarks():
    asked = np.arange(10, 50)
    np.testing.assert_array_equal(landmarks(100, asked, n_landmarks=30), asked)


def test_landmarks_do_not_depend_on_the_order_of_events():
    before = landmarks(5000, seed=4)
    np.testing.assert_array_equal(landmarks(5000, before[::7], seed=4), before)
    outside = np.setdiff1d(np.arange(5000), before)[:3]
    once = landmarks(5000, [*outside, *before[:50]], seed=4)
    assert len(once) == module.N_LANDMARKS
    assert len(np.setdiff1d(before, once)) == 3
    assert not np.array_equal(landmarks(5000, seed=5), before)


def test_landmarks_come_from_all_parts_of_the_rows():
    # Rows outside of the sample push landmarks out: also then, all parts of the rows keep their share.
    asked = np.setdiff1d(np.arange(500), landmarks(5000))[:300]
    others = np.setdiff1d(landmarks(5000, asked), asked)
    assert len(others) == 700
    counts = np.histogram(others, bins=5, range=(0, 5000))[0]
    # 140 are expected in each fifth, with a standard deviation of about 10.
    assert (np.abs(counts - 140) < 50).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", manhattan])
def test_nearest_landmark(metric):
    X = blobs(90, seed=3)
    found = survey(X, n_landmarks=20, metric=metric)
    apart = cdist(X, X[found.rows], "euclidean" if metric == "euclidean" else "cityblock")
    np.testing.assert_array_equal(found.nearest, apart.argmin(axis=1))
    by_distances = survey(
        cdist(X, X, "euclidean" if metric == "euclidean" else "cityblock"),
        n_landmarks=20,
        metric="precomputed",
    )
    np.testing.assert_array_equal(by_distances.nearest, found.nearest)


def test_a_landmark_is_nearest_to_itself():
    X = np.zeros((40, 2))
    found = survey(X, n_landmarks=10)
    np.testing.assert_array_equal(found.nearest[found.rows], np.arange(10))


def test_start_and_centre():
    X = blobs(45, seed=1)
    X[:3] = X[3:6]
    found = survey(X, n_clusters=3)
    assert found.start.max() == 2
    largest = np.bincount(found.start).argmax()
    assert found.start[found.centre] == largest
    members = np.flatnonzero(found.start == largest)
    sums = [sum(found.together[i, j] for j in members) for i in members]
    assert members[int(np.argmax(sums))] == found.centre
    assert survey(blobs(3)).start.tolist() == [0, 0, 0]


def test_same_seed_same_landscape():
    X = blobs(60)
    np.testing.assert_array_equal(survey(X, seed=3).kernels, survey(X, seed=3).kernels)
    assert (survey(X, seed=3).together != survey(X, seed=4).together).any()


def test_first_clusters_are_two_at_least():
    """Rows of one Gaussian: LinkedClustering alone says that they are one cluster."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert LinkedClustering(effort="quick", random_state=0).fit(X).n_clusters_ == 1
    assert len(np.unique(survey(X).start)) >= 2
    assert set(survey(X, n_clusters=1).start) == {0}
