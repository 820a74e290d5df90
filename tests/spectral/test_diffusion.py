"""Diffusion maps against their definition."""

import numpy as np
import pytest
from scipy.linalg import expm
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import euclidean_distances

from linkwise.datasets import make_rings, make_two_moons
from linkwise.spectral import diffusion
from linkwise.spectral.diffusion import diffusion_embedding
from linkwise.spectral.kernels import nearest_neighbours, neighbour_graph, self_tuning_graph


@pytest.mark.parametrize(
    ("affinity", "graph"), [("heat", neighbour_graph), ("self_tuning", self_tuning_graph)]
)
@pytest.mark.parametrize("time", [0.5, 4.0])
def test_distances_are_those_of_walks(affinity, graph, time):
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = diffusion_embedding(X, 39, affinity=affinity, n_neighbors=6, diffusion_time=time)
    weights = graph(nearest_neighbours(X), 6).toarray()
    degrees = weights.sum(axis=1)
    walk = expm(-time * (np.eye(40) - weights / degrees[:, np.newaxis]))
    expected = euclidean_distances(walk / np.sqrt(degrees / degrees.sum()))
    np.testing.assert_allclose(euclidean_distances(found), expected, atol=1e-7)


def test_few_coordinates_are_the_first_of_many():
    X, _ = make_two_moons(60, noise=0.1, random_state=0)
    many, few = diffusion_embedding(X, 10), diffusion_embedding(X, 3)
    np.testing.assert_allclose(np.abs(many[:, :3]), np.abs(few), atol=1e-8)
    assert (np.diff(np.linalg.norm(many, axis=0)) < 0).all()


def test_large_graphs_have_the_same_coordinates(monkeypatch):
    X, _ = make_rings(150, random_state=0)
    dense = diffusion_embedding(X, 4, n_neighbors=12)
    monkeypatch.setattr(diffusion, "_DENSE", 10)
    sparse = diffusion_embedding(X, 4, n_neighbors=12)
    np.testing.assert_allclose(euclidean_distances(sparse), euclidean_distances(dense), atol=1e-5)


def test_parts_of_a_graph_are_points_apart():
    X, y = make_blobs(120, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    rows = diffusion_embedding(X, 2, n_neighbors=8)
    within = euclidean_distances(rows)[y[:, np.newaxis] == y]
    assert within.max() < 1e-6
    assert len(np.unique(np.round(rows, 6), axis=0)) == 3
