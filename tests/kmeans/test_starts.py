"""First centres."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.kmeans.distortions import make_distortion
from linkwise.kmeans.starts import start_centres
from tests.repeats import for_seeds

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


class TestCannotLinks:
    #: Pairs of rows on a line, around 0.5, 3.5, 20.5 and 40.5.
    X = np.array([0.0, 1.0, 3.0, 4.0, 20.0, 21.0, 40.0, 41.0])[:, np.newaxis]
    must_link = np.arange(8).reshape(4, 2)

    def start(self, n_clusters, must_link, cannot_link, seed=0, **options):
        distortion = make_distortion("euclidean", None, n_clusters)
        rows, links = distortion.rows(self.X), np.array(cannot_link, dtype=np.int64).reshape(-1, 2)
        rng = np.random.default_rng(seed)
        return start_centres(
            distortion, rows, n_clusters, must_link, rng, cannot_link=links, **options
        ).ravel()

    def test_groups_linked_apart_are_different_seeds(self):
        assert self.start(2, self.must_link, []).tolist() == [0.5, 40.5]
        # Groups 0 and 1 are near each other, but differ for certain.
        assert self.start(2, self.must_link, [(1, 2)]).tolist() == [0.5, 3.5]
        assert self.start(3, self.must_link, [(1, 2)]).tolist() == [0.5, 3.5, 40.5]

    @for_seeds(20)
    def test_also_in_restarts(self, seed):
        centres = self.start(2, self.must_link[:3], [(0, 3), (1, 4), (2, 5)], seed, largest_first=False)
        assert set(centres.tolist()) < {0.5, 3.5, 20.5}
        clique = self.start(3, self.must_link, [(0, 3), (1, 4), (2, 5)], seed, largest_first=False)
        if clique[0] != 40.5:
            assert sorted(clique.tolist()) == [0.5, 3.5, 20.5]

    def test_single_rows_complete_too_few_groups(self):
        for seed in range(20):
            # Row 3 differs from the group of rows 0 and 1, row 2 from both; row 7 from row 2 only.
            centres = self.start(3, self.must_link[:1], [(0, 3), (1, 2), (2, 3), (2, 7)], seed)
            assert centres.tolist() == [0.5, 4.0, 3.0]

    def test_cannot_links_alone(self):
        for seed in range(20):
            centres = self.start(2, np.empty((0, 2), dtype=np.int64), [(2, 3)], seed)
            assert sorted(centres.tolist()) == [3.0, 4.0]

    def test_restarts_differ(self):
        starts = {tuple(self.start(2, self.must_link, [], seed, largest_first=False)) for seed in range(60)}
        assert len(starts) >= 6
