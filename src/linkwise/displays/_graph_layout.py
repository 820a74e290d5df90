"""Places for the nodes of a graph: each component by its distances, components side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

__all__ = ["circle", "pack", "stress_layout"]

_SWEEPS = 60


def circle(n_nodes: int) -> NDArray[np.float64]:
    """Put nodes one unit apart on a circle, (n, 2)."""
    angle = 2.0 * np.pi * np.arange(n_nodes) / n_nodes
    return n_nodes / (2.0 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])


def stress_layout(
    n_nodes: int, pairs: NDArray[np.int64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Place the nodes of a connected graph so that distances follow those along the edges, (n, 2).

    Minimises sum_{i<j} (|x_i - x_j| - d_ij)^2 / d_ij^2 by majorisation (Gansner, Koren and North 2004), from
    classical scaling; nothing is random. ``lengths`` (m,) are the wanted lengths of the edges, > 0.
    """
    if n_nodes < 3:
        return np.column_stack([np.arange(n_nodes) * lengths.max(initial=1.0), np.zeros(n_nodes)])
    graph = sparse.coo_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    distance = shortest_path(graph, directed=False)
    places = _classical_scaling(distance)
    weight = 1.0 / np.where(distance > 0.0, distance, np.inf) ** 2
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(_SWEEPS):
        apart = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
        ratio = weight * distance / np.maximum(apart, 1e-9)
        places = inverse @ (ratio.sum(axis=1)[:, np.newaxis] * places - ratio @ places)
    # Lengthwise, so that rows of components fill the width.
    centred = places - places.mean(axis=0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2].T)


def _classical_scaling(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = distance**2
    means = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (squares - means - means[:, np.newaxis] + means.mean()))
    return np.asarray(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))


def pack(layouts: list[NDArray[np.float64]], gap: float = 1.0) -> list[NDArray[np.float64]]:
    """Move layouts so that their boxes stand in rows in the given order, at least ``gap`` apart."""
    sizes = [np.ptp(layout, axis=0) + gap for layout in layouts]
    area = sum(float(width * height) for width, height in sizes)
    row_width = max(1.5 * area**0.5, max((float(size[0]) for size in sizes), default=0.0))
    moved = []
    x = y = row_height = 0.0
    for layout, (width, height) in zip(layouts, sizes, strict=True):
        if x > 0.0 and x + width > row_width:
            x, y, row_height = 0.0, y - row_height, 0.0
        corner = np.array([layout[:, 0].min(), layout[:, 1].max()])
        moved.append(layout - corner + np.array([x, y]))
        x += float(width)
        row_height = max(row_height, float(height))
    return moved
