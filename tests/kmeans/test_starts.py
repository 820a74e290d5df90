"""First centres."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.kmeans.distortions.registry import make_distortion
from linkwise.kmeans.starts import start_centres

NO_LINKS = np.empty((0, 2), dtype=np.int64)


def test_many_neighbourhoods_give_their_means():
    X = np.array([[0.0], [2.0], [10.0], [12.0], [10.0], [5.0], [6.0]])
    distortion = make_distortion("euclidean", None, 2)
    must_link = np.array([[0, 1], [2, 3], [3, 4], [5, 6]])
    centres = start_centres(distortion, distortion.rows(X), 2, must_link, np.random.default_rng(0))
    assert centres.ravel().tolist() == pytest.approx([32 / 3, 1.0])  # the largest, then the farthest


def test_few_neighbourhoods_are_completed_far_away():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 2)) * 0.01, rng.normal(size=(50, 2)) * 0.01 + 100.0])
    distortion = make_distortion("euclidean", None, 2)
    for seed in range(5):
        centres = start_centres(
            distortion, distortion.rows(X), 2, np.array([[0, 1]]), np.random.default_rng(seed)
        )
        assert centres[0] == pytest.approx(X[:2].mean(axis=0))
        assert centres[1] == pytest.approx([100.0, 100.0], abs=1.0)


def test_fewer_distinct_rows_than_clusters():
    distortion = make_distortion("euclidean", None, 3)
    centres = start_centres(
        distortion, distortion.rows(np.zeros((5, 2))), 3, NO_LINKS, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(centres, np.zeros((3, 2)))


@pytest.mark.parametrize("name", ["cosine", "kl", "i_divergence"])
def test_other_distortions(name):
    rng = np.random.default_rng(1)
    X = rng.uniform(0.1, 1.0, size=(30, 4))
    distortion = make_distortion(name, None, 3)
    rows = distortion.rows(X)
    for must_link in (NO_LINKS, np.array([[0, 1], [2, 3]]), rng.permutation(24).reshape(12, 2)):
        centres = start_centres(distortion, rows, 3, must_link, np.random.default_rng(0))
        assert centres.shape == (3, 4)
        assert len(np.unique(centres.round(9), axis=0)) == 3
