"""Starts of CPPC: splits and merges of classes."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.datasets import make_eleven_gaussians
from linkwise.mixture.classes.plan import class_start, half_start


def start(X, codes, n_components, seed=0):
    return class_start(
        np.asarray(X, dtype=float), np.asarray(codes), n_components, np.random.RandomState(seed)
    )


def groups(labels, y):
    """Which classes each cluster holds."""
    return sorted({tuple(np.unique(y[labels == k])) for k in np.unique(labels)})


@pytest.fixture(scope="module")
def eleven():
    X, y, _ = make_eleven_gaussians(random_state=0)
    return X, y


def test_as_many_clusters_as_classes(eleven):
    X, y = eleven
    np.testing.assert_array_equal(start(X, y - 1, 9), y - 1)


@pytest.mark.parametrize(
    ("n_components", "expected"),
    [
        (4, [(1,), (2, 3), (4,), (5, 6, 7, 8, 9)]),
        (5, [(1,), (2,), (3,), (4,), (5, 6, 7, 8, 9)]),
    ],
)
def test_merging_joins_the_groups_of_the_paper(eleven, n_components, expected):
    X, y = eleven
    assert groups(start(X, y - 1, n_components), y) == expected


def test_merging_pools_means_by_size():
    """The third class is nearer to the plain mean of the merged two than to their pooled mean."""
    X = np.array([[0.0]] * 9 + [[2.0]] + [[4.4]] + [[-3.9]])
    codes = np.array([0] * 9 + [1, 2, 3])
    # 0 and 1 merge first (distance 2; 2.4 between 1 and 2). Their pooled mean is 0.2, so 3 is next (4.1
    # against 4.2).
    labels = start(X, codes, 2)
    assert labels[0] == labels[9] == labels[11] != labels[10]


def test_splitting_halves_the_classes_with_two_modes(eleven):
    X, y = eleven
    labels = start(X, y - 1, 11)
    assert len(np.unique(labels)) == 11
    for label in (1, 4):
        halves = np.unique(labels[y == label])
        assert len(halves) == 2
        centres = sorted(X[labels == k, 0].mean() for k in halves)
        assert abs(centres[0] + 5) < 0.3
        assert abs(centres[1] + 2) < 0.3
    assert all(len(np.unique(labels[y == label])) == 1 for label in (2, 3, 5, 6, 7, 8, 9))


def test_the_widest_cluster_is_split_not_the_largest():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), 10 + 5 * rng.normal(size=(20, 2))])
    codes = np.repeat([0, 1], [200, 20])
    labels = start(X, codes, 3)
    assert len(np.unique(labels[:200])) == 1
    assert len(np.unique(labels[200:])) == 2


def test_unlabelled_rows_belong_nowhere(eleven):
    X, y = eleven
    codes = np.where(np.arange(len(y)) % 3 == 0, -1, y - 1)
    for n_components in (4, 9, 12):
        labels = start(X, codes, n_components)
        np.testing.assert_array_equal(labels < 0, codes < 0)
        assert len(np.unique(labels[labels >= 0])) == n_components


def test_no_half_has_a_single_row():
    X = np.array([[0.0], [0.1], [0.2], [100.0], [50.0], [50.1], [51.0], [51.1]])
    codes = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    # Class 0 is wider, but every split of it leaves the outlier alone.
    labels = start(X, codes, 3)
    assert len(np.unique(labels[:4])) == 1
    assert np.bincount(labels).tolist() == [4, 2, 2]


def test_impossible_splits_say_how_many_clusters_there_can_be():
    X = np.zeros((10, 2))
    with pytest.raises(ValueError, match="no more than 2 clusters"):
        start(X, np.repeat([0, 1], 5), 3)
    with pytest.raises(ValueError, match="n_components=4 is too many"):
        start(np.arange(6.0)[:, np.newaxis], np.repeat([0, 1], 3), 4)


class TestHalves:
    def test_a_half_of_every_cluster(self):
        labels = np.repeat([0, 1, 2, -1], [40, 21, 100, 9])
        X = np.zeros((len(labels), 2))
        half = half_start(X, labels, np.random.RandomState(0))
        np.testing.assert_array_equal(np.bincount(half[half >= 0]), [20, 11, 50])
        kept = half >= 0
        np.testing.assert_array_equal(half[kept], labels[kept])

    def test_reproducible_and_different(self):
        labels = np.repeat([0, 1], 50)
        random_state = np.random.RandomState(0)
        first, second = (half_start(np.zeros((100, 1)), labels, random_state) for _ in range(2))
        np.testing.assert_array_equal(first, half_start(np.zeros((100, 1)), labels, np.random.RandomState(0)))
        assert (first != second).any()

    @pytest.mark.parametrize(("n_rows", "n_kept"), [(2, 2), (6, 6), (7, 6), (11, 6), (13, 7)])
    def test_clusters_keep_enough_rows_for_a_covariance(self, n_rows, n_kept):
        labels = np.zeros(n_rows, dtype=np.int64)
        half = half_start(np.zeros((n_rows, 5)), labels, np.random.RandomState(1))
        assert (half == 0).sum() == n_kept
