from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from linkwise.spectral.eigenvectors import factor_stays_sparse, leading_eigenpairs, smallest_eigenpairs
from linkwise.spectral.kernels import neighbour_graph, normalised_adjacency
from tests.repeats import examples, for_seeds


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


@for_seeds(examples(30))
def test_random_symmetric_matrices(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 120))
    k = int(rng.integers(1, min(n, 8) + 1))
    matrix = rng.normal(size=(n, n))
    matrix += matrix.T
    found = leading_eigenpairs(lambda block: matrix @ block, n, k, rng=rng, tol=1e-9)
    expected = np.linalg.eigvalsh(matrix)[::-1][:k]
    assert found.converged
    np.testing.assert_allclose(found.values, expected, atol=1e-7 * max(1.0, abs(expected[0])))
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(
        matrix @ found.vectors, found.vectors * found.values, atol=1e-7 * np.abs(matrix).sum(axis=1).max()
    )


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-7])
def test_equal_eigenvalues_are_all_found_with_a_loose_tolerance(gap):
    rng = np.random.default_rng(0)
    values = np.concatenate([1.0 - gap * np.arange(6), rng.uniform(-0.5, 0.9, 394)])
    basis = orthogonal(rng, 400)
    matrix = (basis * values) @ basis.T
    found = leading_eigenpairs(lambda block: matrix @ block, 400, 6, rng=rng, tol=1e-4)
    assert found.converged
    np.testing.assert_allclose(found.values, 1.0, atol=1e-6)
    # The whole eigenspace, not six vectors near one of them.
    overlap = np.linalg.svd(basis[:, :6].T @ found.vectors, compute_uv=False)
    assert overlap.min() > 1.0 - 1e-5


def test_running_out_of_products_is_reported():
    values = np.linspace(0.999, 1.0, 2000)
    found = leading_eigenpairs(
        lambda block: values[:, np.newaxis] * block,
        2000,
        3,
        rng=np.random.default_rng(0),
        tol=1e-12,
        max_iter=10,
    )
    assert not found.converged
    assert found.residual > 1e-12


@pytest.mark.parametrize("direct", [True, False])
def test_smallest_eigenpairs_of_a_neighbour_graph(direct):
    rng = np.random.default_rng(2)
    # Three parts: the eigenvalue 0 three times.
    X = np.concatenate([rng.normal(size=(100, 2)) + 50 * part for part in range(3)])
    adjacency = normalised_adjacency(neighbour_graph(NearestNeighbors().fit(X), 8))
    laplacian = sparse.csr_array(sparse.eye_array(300) - adjacency)
    found = smallest_eigenpairs(laplacian, 6, rng=rng, tol=1e-8, direct=direct)
    expected = np.linalg.eigvalsh(laplacian.toarray())[:6]
    assert found.converged
    np.testing.assert_allclose(found.values, expected, atol=1e-8)
    np.testing.assert_allclose(laplacian @ found.vectors, found.vectors * found.values, atol=1e-6)


def test_factors_stay_sparse_in_the_plane_only():
    rng = np.random.default_rng(3)
    for dimension, expected in ((2, True), (10, False)):
        X = rng.normal(size=(4000, dimension))
        adjacency = normalised_adjacency(neighbour_graph(NearestNeighbors().fit(X), 10))
        laplacian = sparse.csr_array(sparse.eye_array(4000) - adjacency)
        assert factor_stays_sparse(laplacian) is expected
