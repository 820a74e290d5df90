"""Rows in the plane: principal components, the plane that tells clusters apart, and a graph of neighbours."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from linkwise._arrays import Floats

#: Rows of which the graph is made; the others stand among their neighbours in it.
N_GRAPH = 2000
_N_NEIGHBOURS = 10
_N_AROUND = 5
_TITLES = {
    "pca": "Principal components",
    "discriminant": "What tells clusters apart (linear discriminants)",
    "spectral": "Graph of neighbours (spectral)",
}


def principal_plane(X: Floats) -> Floats:
    """The two directions of largest variance, (n, 2)."""
    centred = X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    plane = vectors[:, ::-1][:, :2]
    if plane.shape[1] < 2:
        plane = np.column_stack([plane, np.zeros(len(plane))])
    return np.asarray(centred @ plane)


def discriminant_plane(X: Floats, labels: NDArray[Any]) -> Floats:
    """The plane (n, 2) in which clusters lie furthest apart for their width (Fisher's discriminants).

    The second direction of two clusters is that of largest variance across the first; one cluster is shown by
    its principal components.
    """
    centred = X - X.mean(axis=0)
    clusters, place = np.unique(labels, return_inverse=True)
    if len(clusters) < 2:
        return principal_plane(X)
    counts = np.bincount(place).astype(np.float64)
    sums = np.zeros((len(clusters), X.shape[1]))
    np.add.at(sums, place, centred)
    means = sums / counts[:, None]
    total = centred.T @ centred / len(X)
    between = (means * counts[:, None]).T @ means / len(X)
    width = float(np.trace(total)) / X.shape[1]
    within = total - between + 1e-3 * max(width, 1e-12) * np.eye(X.shape[1])
    vectors = eigh(between, within)[1][:, ::-1]
    first = centred @ vectors[:, 0]
    if len(clusters) > 2 and X.shape[1] > 1:
        return np.column_stack([first, centred @ vectors[:, 1]])
    across = centred - np.outer(first, first @ centred / max(float(first @ first), 1e-300))
    return np.column_stack([first, principal_plane(across)[:, 0]])


def spectral_plane(X: Floats) -> Floats:
    """The graph of neighbours of at most 2000 rows by its Laplacian, (n, 2); others join their nearest."""
    from sklearn.manifold import SpectralEmbedding
    from sklearn.neighbors import NearestNeighbors

    n = len(X)
    if n < 4:
        return principal_plane(X)
    chosen = np.arange(n)
    if n > N_GRAPH:
        chosen = np.sort(np.random.default_rng(0).choice(n, N_GRAPH, replace=False))
    # A hundred-thousandth of noise keeps rows that are equal from being a graph of their own.
    points = X[chosen] + 1e-5 * X.std() * np.random.default_rng(1).normal(size=(len(chosen), X.shape[1]))
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(points, min(_N_NEIGHBOURS, len(chosen) - 1), include_self=True)
    graph = 0.5 * (graph + graph.T) + _bridges(points, graph)
    layout = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(graph)
    if len(chosen) == n:
        return np.asarray(layout)
    distances, near = NearestNeighbors(n_neighbors=_N_AROUND).fit(X[chosen]).kneighbors(X)
    weights = 1.0 / (distances + 1e-6 * max(float(distances.mean()), 1e-300))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nk,nkd->nd", weights, layout[near]))


def _bridges(points: Floats, graph: Any) -> Any:
    """Edges that join the parts of a graph to its largest one: in parts it has no layout."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from sklearn.metrics import pairwise_distances_argmin_min

    n_parts, part = connected_components(graph, directed=False)
    largest = np.flatnonzero(part == np.bincount(part).argmax())
    ends = []
    for number in range(n_parts):
        rows = np.flatnonzero(part == number)
        if rows[0] in largest:
            continue
        near, distance = pairwise_distances_argmin_min(points[rows], points[largest])
        best = int(distance.argmin())
        ends.append((int(rows[best]), int(largest[near[best]])))
    if not ends:
        return coo_array(graph.shape).tocsr()
    i, j = np.array(ends).T
    values = np.full(2 * len(ends), 0.5)
    return coo_array((values, (np.append(i, j), np.append(j, i))), shape=graph.shape).tocsr()


def scaled(points: Floats) -> NDArray[np.float32]:
    """Points in [-1, 1], with one scale for both directions."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) / 2.0
    return np.ascontiguousarray((points - (low + high) / 2.0) / (size or 1.0), dtype="<f4")


class Pictures:
    """The planes, each computed when it is first asked for; that of clusters again for new labels."""

    def __init__(self, X: Floats, labels: Callable[[], tuple[int, NDArray[Any] | None]]) -> None:
        self._X, self._labels = X, labels
        self._locks = {name: threading.Lock() for name in _TITLES}
        self._kept: dict[str, tuple[int, NDArray[np.float32]]] = {}

    def listed(self) -> list[dict[str, Any]]:
        """Name and title of each, and whether it is there already."""
        titles = dict(_TITLES)
        if len(self._X) > N_GRAPH:
            titles["spectral"] += f", laid out by {N_GRAPH} rows"
        return [{"name": name, "title": title, "ready": name in self._kept} for name, title in titles.items()]

    def points(self, name: str) -> tuple[int, NDArray[np.float32]]:
        """Version of the labels that were used (0: none), and the points, (n, 2) float32."""
        version, labels = self._labels() if name == "discriminant" else (0, None)
        with self._locks[name]:
            kept = self._kept.get(name)
            if kept is not None and kept[0] == version:
                return kept
            if name == "spectral":
                points = spectral_plane(self._X)
            elif labels is None:
                points = principal_plane(self._X)
            else:
                points = discriminant_plane(self._X, labels)
            found = scaled(points)
            if kept is not None:
                # A direction has no sign of its own: keep that of the last picture.
                turned = (found * kept[1]).sum(axis=0) < 0.0
                found[:, turned] *= -1.0
            self._kept[name] = version, found
            return self._kept[name]
