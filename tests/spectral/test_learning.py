from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import Constraints
from linkwise.datasets import make_rings, make_two_moons
from linkwise.metrics import rand_score
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.kernels import gaussian_kernel
from linkwise.spectral.learning import SpectralLearning, overwritten_affinity
from tests.sklearn_checks import estimator_checks


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


@estimator_checks(
    SpectralLearning(random_state=0),
    SpectralLearning(affinity="heat", random_state=0),
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_only_linked_entries_change():
    X, y = make_two_moons(30, random_state=0)
    links = Constraints.sample(y, 20, overlap=True, random_state=0)
    found = SpectralLearning(2, sigma=0.5, random_state=0).fit(X, constraints=links)
    K = gaussian_kernel(X, X, 0.5)
    expected = K.copy()
    for i, j in links.must_link:
        expected[i, j] = expected[j, i] = 1.0
    for i, j in links.cannot_link:
        expected[i, j] = expected[j, i] = 0.0
    np.testing.assert_allclose(found.affinity_matrix_, expected, atol=1e-12)


def test_a_certainty_moves_an_entry_part_of_the_way():
    K = np.full((3, 3), 0.5) + 1.5 * np.eye(3)
    links = Constraints(3, must_link=[(0, 1)], cannot_link=[(1, 2)], certainty=[0.9, 0.75])
    found = overwritten_affinity(K, links.pairs, links.weights)
    assert found[0, 1] == found[1, 0] == pytest.approx(0.2 * 0.5 + 0.8 * 2.0)
    assert found[1, 2] == pytest.approx(0.5 * 0.5)
    assert found[0, 2] == 0.5


def test_without_links_it_is_the_other_estimator_without_links():
    X, _ = make_two_moons(100, random_state=0)
    ours = SpectralLearning(2, random_state=0).fit(X)
    other = ConstrainedSpectralClustering(2, affinity="rbf", random_state=0).fit(X)
    np.testing.assert_array_equal(ours.labels_, other.labels_)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_many_links_do_help_and_violations_are_reported():
    X, y = make_rings(50, random_state=0)
    few = SpectralLearning(2, random_state=0).fit(X)
    links = Constraints.sample(y, 1500, overlap=True, random_state=0)
    many = SpectralLearning(2, random_state=0).fit(X, constraints=links)
    assert rand_score(y, few.labels_) < 0.7
    assert rand_score(y, many.labels_) > 0.9
    assert many.violation_rate_ == pytest.approx(links.violations(many.labels_).mean())


def test_precomputed_and_heat():
    X, y = make_two_moons(80, random_state=0)
    K = gaussian_kernel(X, X, 0.3)
    links = Constraints.sample(y, 30, overlap=True, random_state=0)
    by_kernel = SpectralLearning(2, affinity="precomputed", random_state=0).fit(K, constraints=links)
    by_rows = SpectralLearning(2, sigma=0.3, random_state=0).fit(X, constraints=links)
    assert adjusted_rand_score(by_kernel.labels_, by_rows.labels_) == 1.0
    with pytest.raises(ValueError, match="n_clusters=9"):
        SpectralLearning(9).fit(X[:5])
