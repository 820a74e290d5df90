"""Kernels that are called again and again, so that Ctrl-C gets through: the same results in any slices."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from linkwise.kmeans.distortions import metric_steps
from linkwise.kmeans.distortions.metric_steps import squared_diameter
from linkwise.spectral import algorithm_b
from linkwise.spectral import kernels as heat
from linkwise.spectral.algorithm_b import largest_products, weakest_affinity
from linkwise.spectral.kernels import heat_columns, neighbour_graph, normalised_adjacency


def counted(monkeypatch, module, name):
    """Number of calls of a kernel, as a list that grows."""
    calls, kernel = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: calls.append(1) or kernel(*arguments))
    return calls


@pytest.mark.parametrize("size", [1, 5000])
def test_heat_columns(monkeypatch, size):
    X = np.random.default_rng(0).normal(size=(70, 2))
    adjacency = normalised_adjacency(neighbour_graph(NearestNeighbors().fit(X), 5))
    columns = np.random.default_rng(1).permutation(70)[:50]
    whole = heat_columns(adjacency, columns, 20.0)
    calls = counted(monkeypatch, heat, "_heat_columns")
    monkeypatch.setattr(heat, "_SLICE", size)
    np.testing.assert_array_equal(heat_columns(adjacency, columns, 20.0), whole)
    assert len(calls) > 3


@pytest.mark.parametrize("size", [1, 5000])
def test_largest_products(monkeypatch, size):
    rng = np.random.default_rng(0)
    kernel, vectors = rng.random((61, 61)), rng.normal(size=(9, 61))
    kernel = kernel + kernel.T
    whole = weakest_affinity(kernel.copy(), vectors), largest_products(vectors, vectors[:, :13])
    names = ("_subtract_largest_products", "_raise_to_products")
    calls = [counted(monkeypatch, algorithm_b, name) for name in names]
    monkeypatch.setattr(algorithm_b, "_SLICE", size)
    np.testing.assert_array_equal(weakest_affinity(kernel.copy(), vectors), whole[0])
    np.testing.assert_array_equal(largest_products(vectors, vectors[:, :13]), whole[1])
    np.testing.assert_allclose(
        whole[0], np.maximum(kernel - (vectors[:, :, None] * vectors[:, None]).max(0), 0)
    )
    assert min(map(len, calls)) > 1


@pytest.mark.parametrize("size", [1, 600])
def test_squared_diameter(monkeypatch, size):
    calls = counted(monkeypatch, metric_steps, "_farthest_pair")
    monkeypatch.setattr(metric_steps, "_PAIRS", size)
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(40, 12))
        distances = ((X[:, None] - X) ** 2).sum(axis=2)
        value, i, j = squared_diameter(X)
        assert value == pytest.approx(distances.max())
        assert (i, j) == np.unravel_index(distances.argmax(), distances.shape)
    assert len(calls) > 40
    assert squared_diameter(np.ones((5, 2)))[0] == 0.0
