from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise.spectral.normalised_cut import affinity_embedding, row_normalised
from linkwise.spectral.rounding import assign_labels, cluster_centers, cluster_qr, discretise
from tests.repeats import for_seeds
from tests.spectral.spectral_oracle import gaussian


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def embedded(A, k, **options):
    return affinity_embedding(A, k, rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize("n_points", [40, 400])
def test_eigenvectors_are_those_of_scikit_learn(n_points):
    # scikit-learn ignores the diagonal of an affinity, so it is compared without one.
    A = gaussian(np.random.default_rng(0).normal(size=(n_points, 2)), 0.7)
    np.fill_diagonal(A, 0.0)
    found = embedded(A, 4, tol=1e-9)
    theirs = (
        spectral_embedding(A, n_components=4, drop_first=False, random_state=0)
        * np.sqrt(A.sum(axis=1))[:, np.newaxis]
    )
    theirs /= np.linalg.norm(theirs, axis=0)
    np.testing.assert_allclose(np.abs((theirs * found.vectors).sum(axis=0)), 1.0, atol=1e-6)
    assert found.eigenvalues[0] == pytest.approx(1.0, abs=1e-9)
    assert (np.diff(found.eigenvalues) <= 1e-12).all()


@pytest.mark.parametrize("n_points", [50, 350])
def test_dense_and_iterated_paths_solve_the_same_problem(n_points):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(n_points, n_points))
    A += A.T  # signed, indefinite
    found = embedded(A, 3, tol=1e-10)
    scale = 1.0 / np.sqrt(np.abs(A).sum(axis=1))
    expected = np.linalg.eigvalsh(scale[:, np.newaxis] * A * scale)[::-1][:3]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-8)
    assert found.converged


@pytest.mark.parametrize("n_points", [50, 350])
def test_degree_regularisation_is_a_constant_added_to_the_affinity(n_points):
    A = gaussian(np.random.default_rng(2).normal(size=(n_points, 2)), 0.3)
    added = A + 0.2 * A.sum(axis=1).mean() / n_points
    with_tau, explicit = embedded(A, 3, tol=1e-10, degree_regularisation=0.2), embedded(added, 3, tol=1e-10)
    np.testing.assert_allclose(with_tau.eigenvalues, explicit.eigenvalues, atol=1e-9)
    np.testing.assert_allclose(with_tau.degrees, explicit.degrees)
    np.testing.assert_allclose(np.abs((with_tau.vectors * explicit.vectors).sum(axis=0)), 1.0, atol=1e-6)


def test_points_without_affinity_do_not_divide_by_zero():
    A = np.zeros((5, 5))
    A[:3, :3] = 1.0
    assert np.isfinite(embedded(A, 2).rows()).all()
    assert np.isfinite(embedded(np.zeros((4, 4)), 2).rows()).all()
    np.testing.assert_array_equal(row_normalised(np.zeros((2, 2))), 0.0)


@pytest.mark.parametrize("method", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_blocks_are_found_by_every_assignment(method, k):
    rng = np.random.default_rng(k)
    truth = rng.permutation(np.repeat(np.arange(k), 12))
    A = np.where(truth[:, np.newaxis] == truth, 1.0, 0.03) + rng.uniform(0.0, 0.02, (12 * k, 12 * k))
    A += A.T
    rows = embedded(A, k).rows()
    labels = assign_labels(rows, k, method, n_init=3, rng=rng)
    assert adjusted_rand_score(truth, labels) == 1.0


@for_seeds(20)
def test_roundings_do_not_depend_on_the_rotation_of_the_eigenspace(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), 10)
    rows = row_normalised(np.eye(4)[truth] + 0.15 * rng.normal(size=(40, 4)))
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert adjusted_rand_score(truth, cluster_qr(rows @ rotation)) == 1.0
    assert adjusted_rand_score(truth, discretise(rows @ rotation, rng=rng)) == 1.0


def test_centres_of_empty_clusters_are_nan():
    centres = cluster_centers(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([0, 0]), 2)
    np.testing.assert_array_equal(centres[0], [2.0, 0.0])
    assert np.isnan(centres[1]).all()
