"""Features of rows that boundaries are linear in, and their values at rows that were not learned from.

- linear: the columns.
- quadratic: the columns and their products, so that a boundary is an ellipse, a parabola or a hyperbola.
- rbf: the leading eigenvectors of a Gaussian kernel, for smooth boundaries of any shape. Other rows have the
  values that the kernel gives them (Nystroem).
- graph: the smoothest functions on the graph of nearest neighbours, for clusters that hang together by dense
  rows, however winding. Other rows have the mean of their nearest neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.metrics import pairwise_distances

from linkwise._arrays import Floats
from linkwise._row_tables import exact_origin, from_origin
from linkwise.spectral.kernels import (
    nearest_neighbours,
    neighbour_weights,
    normalised_adjacency,
    self_tuning_graph,
)

#: Penalty of a coefficient for each kind of features. On half A of the leaderboard's sets (one draw, right
#: links over 30 % of the rows) mean adjusted Rand indices were .453 .465 .453 with a tenth of it, this, and
#: ten times it for linear features, .664 .675 .676 for quadratic and .668 .681 .553 for graph ones; .701 .706
#: .690 with a third, this, and three times it for rbf.
FEATURES = {"linear": 0.3, "quadratic": 0.3, "rbf": 0.0033, "graph": 2.7}

_N_KERNEL_FUNCTIONS = 60
_N_GRAPH_FUNCTIONS = 40
#: Functions on the graph are damped by exp(-5 (1 - eigenvalue)), as heat is after this time.
_DIFFUSION_TIME = 5.0
_N_NEIGHBOURS = 10
#: Eigenvalues of a kernel below this share of the largest are rounding.
_RANK = 1e-9
#: Whitening leaves out directions with fewer rows than this for each, and those that hardly vary: there it
#: would make noise as large as anything else.
_ROWS_PER_DIRECTION, _WIDTH = 5, 1e-6
#: Rows whose features are computed at once.
_BAND = 4096


class Features(NamedTuple):
    """How rows become features.

    ``centre`` (d,) and ``unit`` move and scale rows, ``directions`` (d, r) make them uncorrelated if there
    are any; ``landmarks`` (l, r) are such rows with the ``table`` (l, b) of what they contribute to each
    feature; ``width`` is that of the kernel. Without landmarks ``table`` (1, b) holds the scales of products.
    """

    kind: str
    centre: Floats
    unit: float
    directions: Floats | None
    width: float
    landmarks: Floats
    table: Floats


def learn_features(X: Floats, kind: str, width: float, *, whiten: bool = False) -> Features:
    """Learn features from rows (l, d). ``width`` is relative to the median distance of two rows."""
    centre = X.mean(axis=0)
    unit = float(np.sqrt(X.var(axis=0).mean())) or 1.0
    directions = _whitening((X - centre) / unit) if whiten else None
    rows = scaled_rows(Features(kind, centre, unit, directions, 1.0, np.empty((0, 0)), np.empty((0, 0))), X)
    if kind in ("linear", "quadratic"):
        scale = np.ones(0) if kind == "linear" else _products(rows).std(axis=0)
        table = np.where(scale > 0.0, scale, 1.0)[np.newaxis]
        return Features(kind, centre, unit, directions, 1.0, rows[:0], table)
    if kind == "rbf":
        distances = pairwise_distances(rows)
        apart = distances[distances > 0.0]
        width = width * float(np.median(apart)) if apart.size else 1.0
        kernel = np.exp(-0.5 * (distances / width) ** 2)
        values, vectors = _leading(kernel, _N_KERNEL_FUNCTIONS)
        real = values > _RANK * values[0]
        return Features(kind, centre, unit, directions, width, rows, vectors[:, real] / np.sqrt(values[real]))
    adjacency = normalised_adjacency(self_tuning_graph(nearest_neighbours(rows), _N_NEIGHBOURS))
    values, vectors = _leading(adjacency.toarray(), _N_GRAPH_FUNCTIONS)
    table = np.sqrt(len(rows)) * vectors * np.exp(-_DIFFUSION_TIME * (1.0 - values))
    return Features(kind, centre, unit, directions, 1.0, rows, table)


def scaled_rows(features: Features, X: NDArray[np.floating]) -> Floats:
    """Rows (n, d) around the centre in the common unit, uncorrelated (n, r) if the features want it."""
    rows = (np.asarray(X, dtype=np.float64) - features.centre) / features.unit
    return rows if features.directions is None else np.asarray(rows @ features.directions)


def feature_rows(features: Features, X: NDArray[np.floating]) -> Floats:
    """Features (n, b + 1) of rows (n, d); the last is 1."""
    bands = [
        _band(features, scaled_rows(features, X[start : start + _BAND])) for start in range(0, len(X), _BAND)
    ]
    values = np.concatenate(bands)
    return np.column_stack([values, np.ones(len(values))])


def _whitening(rows: Floats) -> Floats:
    """Directions (d, r) in which centred rows have variance 1 and are uncorrelated, the widest first.

    Rows that are all alike keep their unit.
    """
    _, spread, directions = np.linalg.svd(rows, full_matrices=False)
    count = min(len(spread), max(1, len(rows) // _ROWS_PER_DIRECTION))
    count = max(1, int((spread[:count] > _WIDTH * spread[0]).sum()))
    root = np.sqrt(len(rows))
    return np.asarray(directions[:count].T * (root / np.where(spread[:count] > 0.0, spread[:count], root)))


def _band(features: Features, rows: Floats) -> Floats:
    """Features (n, b) of scaled rows."""
    if features.kind == "linear":
        return rows
    if features.kind == "quadratic":
        return np.column_stack([rows, _products(rows) / features.table])
    if features.kind == "rbf":
        distances = pairwise_distances(rows, features.landmarks)
        return np.asarray(np.exp(-0.5 * (distances / features.width) ** 2) @ features.table)
    count = min(_N_NEIGHBOURS, len(features.landmarks))
    origin = exact_origin(features.landmarks)
    neighbours = nearest_neighbours(features.landmarks)
    distances, nearest = neighbours.kneighbors(from_origin(rows, origin), n_neighbors=count)
    return np.einsum("nm,nmb->nb", neighbour_weights(distances), features.table[nearest])


def _products(rows: Floats) -> Floats:
    """Products (n, d (d + 1) / 2) of all pairs of columns, squares included."""
    first, second = np.triu_indices(rows.shape[1])
    return np.asarray(rows[:, first] * rows[:, second])


def _leading(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Largest eigenvalues (b,) of a symmetric matrix and their eigenvectors (n, b), with a fixed sign."""
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(max(0, n - count), n - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
