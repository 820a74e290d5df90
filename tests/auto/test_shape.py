"""Gaussian clusters are told from bent ones by the rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_blobs

from linkwise.auto.shape import gaussian_nats, paired_t
from linkwise.datasets import make_rings, make_two_moons
from tests.repeats import LONG


def test_t_is_that_of_a_one_sample_test():
    differences = np.random.default_rng(0).normal(0.3, size=40)
    assert paired_t(differences) == pytest.approx(stats.ttest_1samp(differences, 0.0).statistic)
    assert paired_t(np.full(5, 2.0)) == 0.0


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_gaussians_gain_and_bent_clusters_do_not(seed):
    rng = np.random.default_rng(seed)
    overlapping = np.concatenate([rng.normal(0, 1, (150, 4)), rng.normal(0, 4, (150, 4))])
    apart = make_blobs(300, centers=[[0, 0], [6, 0], [0, 6]], random_state=seed)[0]
    assert gaussian_nats(overlapping, 2, seed) > 1.0
    assert 0.2 < gaussian_nats(apart, 3, seed) <= 2.0
    assert gaussian_nats(apart, 1, seed) == 0.0
    assert gaussian_nats(make_two_moons(150, noise=0.08, random_state=seed)[0], 2, seed) == 0.0
    assert gaussian_nats(make_rings(150, random_state=seed)[0], 2, seed) == 0.0


def test_does_not_depend_on_the_unit():
    X = make_blobs(200, centers=3, n_features=3, random_state=1)[0]
    nats = gaussian_nats(X, 3, 0)
    assert 0.0 < nats < 2.0
    assert gaussian_nats(X * 1024.0 + 7.0, 3, 0) == pytest.approx(nats, abs=1e-3)


@pytest.mark.parametrize(
    ("rows", "k"),
    [
        (np.zeros((40, 2)), 2),
        (np.arange(4.0)[:, np.newaxis], 1),
        (np.random.default_rng(0).normal(size=(20, 2)), 5),
    ],
    ids=["repeated rows", "fewer rows than folds", "too few rows for 2 K clusters"],
)
def test_too_little_to_tell(rows, k):
    assert gaussian_nats(rows, k, 0) == 0.0
