from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from linkwise.spectral.algorithm_b import largest_products, weakest_affinity
from linkwise.spectral.normalised_cut import CutSettings, constrained_affinity
from tests.repeats import for_seeds
from tests.spectral.spectral_oracle import algorithm_b, gaussian, random_links


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The matrices are small: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


@for_seeds(100)
def test_against_the_literal_definition(seed):
    rng = np.random.default_rng(seed)
    n_points = int(rng.integers(2, 40))
    K = gaussian(rng.normal(size=(n_points, 2)), 0.5) + np.eye(n_points)
    pairs, signs = random_links(rng, n_points, int(rng.integers(0, 25)))
    weights = signs * rng.exponential(size=len(signs))
    softness = 10.0 ** rng.uniform(-1.0, 0.5)
    affinity, *_ = constrained_affinity(K, pairs, weights, CutSettings(3, "B", "clip", softness, 0.0, 1e-4))
    expected = algorithm_b(K, pairs, signs, softness**2 / np.abs(weights) * K.diagonal().mean())
    assert np.abs(affinity - expected).max() < 1e-12
    np.testing.assert_array_equal(affinity, affinity.T)


@pytest.mark.parametrize(
    ("n_links", "n_points"), [(1, 1), (1, 5), (3, 8), (7, 9), (2, 31), (40, 64), (5, 67)]
)
def test_blocks_of_every_shape(n_links, n_points):
    rng = np.random.default_rng(n_points)
    matrix = rng.normal(size=(n_points, n_points))
    matrix += matrix.T
    vectors = rng.normal(size=(n_links, n_points))
    products = np.array([np.outer(w, w) for w in vectors]).max(axis=0)
    np.testing.assert_array_equal(
        weakest_affinity(matrix.copy(), vectors), np.maximum(matrix - products, 0.0)
    )
    np.testing.assert_array_equal(weakest_affinity(matrix.copy(), vectors, clip=False), matrix - products)
    others = rng.normal(size=(n_links, 70))
    expected = (vectors[:, :, np.newaxis] * others[:, np.newaxis]).max(axis=0)
    np.testing.assert_array_equal(largest_products(vectors, others), expected)


def test_memory_does_not_grow_with_links_times_points_squared():
    rng = np.random.default_rng(0)
    K = gaussian(rng.normal(size=(400, 2)), 0.5)
    pairs, _ = random_links(rng, 400, 200)
    settings = CutSettings(3, "B", "clip", 0.1, 0.0, 1e-4)
    weights = np.full(200, -np.inf)
    constrained_affinity(K, pairs, weights, settings)
    tracemalloc.start()
    constrained_affinity(K, pairs, weights, settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * K.nbytes  # 200 versions of the kernel would be 200


def test_false_affinity_of_figure_4_is_avoided():
    # Two cannot-links 5-15 and 16-35: algorithm A makes friends of 5 and 35.
    K = gaussian(np.linspace(0.0, 4.0, 40), 0.2)
    pairs, weights = np.array([[5, 15], [16, 35]]), np.full(2, -np.inf)
    A, B = (
        constrained_affinity(K, pairs, weights, CutSettings(3, name, "clip", 0.1, 0.0, 1e-4))[0]
        for name in "AB"
    )
    assert A[5, 35] > 0.2
    assert B[5, 35] < 1e-6
    assert B[10, 10] > 0.9
