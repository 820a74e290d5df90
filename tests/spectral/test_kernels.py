from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from linkwise.datasets import make_two_moons
from linkwise.spectral.kernels import (
    check_kernel,
    gaussian_kernel,
    heat_columns,
    heat_kernel,
    local_scale,
    nearest_neighbours,
    neighbour_graph,
    normalised_adjacency,
    self_tuning_graph,
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def adjacency_of(X, n_neighbors=10):
    return normalised_adjacency(neighbour_graph(NearestNeighbors().fit(X), n_neighbors))


class TestHeat:
    @pytest.mark.parametrize("n_points", [2, 3, 9, 17, 60, 133])
    @pytest.mark.parametrize("time", [0.5, 20.0, 300.0])
    def test_against_the_matrix_exponential(self, n_points, time):
        X = np.random.default_rng(n_points).normal(size=(n_points, 2))
        S = adjacency_of(X)
        exact = expm(-time * (np.eye(n_points) - S.toarray()))
        chosen = np.random.default_rng(0).permutation(n_points)[: 1 + n_points // 2]
        np.testing.assert_allclose(heat_columns(S, chosen, time), exact[chosen], atol=1e-12)
        scale = np.sqrt(exact.diagonal())
        found = heat_kernel(S, time)
        np.testing.assert_allclose(found, exact / np.outer(scale, scale), atol=1e-10)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_array_equal(found.diagonal(), 1.0)
        assert found.min() >= 0.0

    def test_a_kernel_that_rounding_does_not_spoil(self):
        K = heat_kernel(adjacency_of(make_two_moons(60, random_state=0)[0]), 20.0)
        assert np.linalg.eigvalsh(K)[0] > -1e-11
        check_kernel(K)

    def test_parts_that_do_not_touch_exchange_no_heat(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 100.0])
        K = heat_kernel(adjacency_of(X, 5), 20.0)
        np.testing.assert_array_equal(K[:20, 20:], 0.0)

    def test_graph_is_symmetric_without_loops_even_with_duplicates(self):
        X = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], [9, 3, 2], axis=0)
        graph = neighbour_graph(NearestNeighbors().fit(X), 4)
        assert (graph != graph.T).nnz == 0
        np.testing.assert_array_equal(graph.diagonal(), 0.0)
        assert (graph.sum(axis=1) >= 4).all()

    def test_more_neighbours_than_points(self):
        graph = neighbour_graph(NearestNeighbors().fit(np.arange(4.0)[:, np.newaxis]), 10)
        np.testing.assert_array_equal(graph.toarray(), 1.0 - np.eye(4))


class TestGaussian:
    def test_against_the_formula(self):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
        expected = np.exp(-((X[:, np.newaxis] - Y) ** 2).sum(axis=2) / (2 * 0.7**2))
        np.testing.assert_allclose(gaussian_kernel(X, Y, 0.7), expected, rtol=1e-10)
        np.testing.assert_allclose(gaussian_kernel(sparse.csr_array(X), sparse.csr_array(Y), 0.7), expected)
        np.testing.assert_array_equal(gaussian_kernel(X, X, 0.7).diagonal(), 1.0)

    def test_width_is_the_median_distance_to_the_seventh_neighbour(self):
        X = np.random.default_rng(1).normal(size=(50, 2))
        distances = np.sqrt(((X[:, np.newaxis] - X) ** 2).sum(axis=2))
        assert local_scale(NearestNeighbors().fit(X)) == pytest.approx(np.median(np.sort(distances)[:, 7]))

    def test_width_of_duplicates_and_of_constant_data_is_positive(self):
        X = np.concatenate([np.zeros((60, 1)), np.arange(1.0, 11.0)[:, np.newaxis]])
        assert local_scale(NearestNeighbors().fit(X)) >= 1.0
        assert local_scale(NearestNeighbors().fit(np.ones((20, 2)))) == 1.0


class TestPrecomputed:
    def test_kernels_pass(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        check_kernel(gaussian_kernel(X, X, 3.0))  # condition 1e19
        check_kernel(X @ X.T)
        check_kernel(gaussian_kernel(X, X, 1.0).astype(np.float32).astype(np.float64))

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (np.ones((2, 3)), "square"),
            (np.array([[1.0, 0.2], [0.3, 1.0]]), r"K\[0, 1\] = 0.2 but K\[1, 0\] = 0.3"),
            (np.array([[1.0, 2.0], [2.0, 1.0]]), r"positive semi-definite \(smallest eigenvalue -1\)"),
            (np.array([[1.0, 0.0], [0.0, -1.0]]), r"K\[1, 1\] = -1"),
            (np.zeros((3, 3)), "diagonal"),
        ],
    )
    def test_other_matrices_are_refused_with_the_reason(self, matrix, message):
        with pytest.raises(ValueError, match=message):
            check_kernel(matrix)


class TestSelfTuningGraph:
    def dense(self, X, n_neighbors):
        """Loops over all pairs; no tree, no sparse matrix."""
        n = len(X)
        distances = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in X] for a in X])
        ranked = [sorted((distances[i, j], j) for j in range(n) if j != i) for i in range(n)]
        scale = np.array([ranked[i][min(7, n - 1) - 1][0] for i in range(n)])
        weights = np.zeros((n, n))
        for i in range(n):
            for distance, j in ranked[i][:n_neighbors]:
                weight = max(np.exp(-(distance**2) / (scale[i] * scale[j])), 1e-6)
                weights[i, j] = weights[j, i] = weight
        return weights

    @pytest.mark.parametrize("n_neighbors", [3, 7, 12])
    def test_against_the_definition(self, n_neighbors):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(size=(20, 2)), 0.01 * rng.normal(size=(20, 2)), [[40.0, 40.0]]])
        graph = self_tuning_graph(nearest_neighbours(X), n_neighbors)
        expected = self.dense(X, n_neighbors)
        np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-8)
        assert expected[expected > 0].min() == 1e-6  # the outlier is far in units of the others

    def test_does_not_depend_on_the_unit(self):
        X = np.random.default_rng(0).normal(size=(30, 3))
        graphs = [self_tuning_graph(nearest_neighbours(X * unit), 5).toarray() for unit in (1.0, 1e6)]
        np.testing.assert_allclose(graphs[0], graphs[1], rtol=1e-6)

    @pytest.mark.parametrize("X", [np.zeros((12, 2)), np.repeat([[0.0], [1.0]], 10, axis=0), [[0.0], [3.0]]])
    def test_duplicates_and_few_points(self, X):
        graph = self_tuning_graph(nearest_neighbours(np.asarray(X)), 5)
        assert np.isfinite(graph.data).all()
        assert (graph.sum(axis=1) > 0).all()
        assert abs(graph - graph.T).max() == 0.0

    def test_its_heat_kernel_is_a_kernel(self):
        X = np.random.default_rng(1).normal(size=(60, 2)) ** 3
        adjacency = normalised_adjacency(self_tuning_graph(nearest_neighbours(X), 6))
        matrix = heat_kernel(adjacency, 5.0)
        check_kernel(matrix)
        plain = expm(-5.0 * (np.eye(60) - adjacency.toarray()))
        scale = 1.0 / np.sqrt(plain.diagonal())
        np.testing.assert_allclose(matrix, scale[:, np.newaxis] * plain * scale, atol=1e-10)
