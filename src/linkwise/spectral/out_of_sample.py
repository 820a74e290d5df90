"""Embedding rows of points that were not part of the eigenproblem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from linkwise._arrays import Floats, Ints
from linkwise._row_tables import exact_origin, from_origin
from linkwise._threads import chunk_bounds
from linkwise.spectral.kernels import gaussian_kernel, nearest_neighbours, neighbour_weights
from linkwise.spectral.normalised_cut import KernelCut, extend_rows, row_normalised

#: Points extended at once, so that no large kernel is stored.
_POINTS_AT_ONCE = 2048


class Extension(Protocol):
    """Gives embedding rows to further points."""

    def rows(self, X: Any) -> Floats:
        """Rows of length one, (n, k)."""

    def state(self) -> dict[str, Any]:
        """What :func:`extension_of` needs to make it again."""


class NeighbourExtension:
    """Mean embedding of the nearest reference points by inverse distance; they keep their own rows."""

    def __init__(self, reference: Any, neighbours: NearestNeighbors, rows: Floats, n_neighbors: int) -> None:
        self._reference = reference
        self._origin = exact_origin(reference)
        self._neighbours = neighbours
        self._rows = rows
        self._count = min(n_neighbors, len(rows))

    def state(self) -> dict[str, Any]:
        """Reference points, their rows and the number of neighbours."""
        if sparse.issparse(self._reference):
            raise TypeError("a spectral model of sparse data cannot be stored; fit it to dense rows")
        return {"reference": self._reference, "rows": self._rows, "n_neighbors": self._count}

    def rows(self, X: Any) -> Floats:
        """Rows of further points."""
        distances, nearest = self._neighbours.kneighbors(
            from_origin(X, self._origin), n_neighbors=self._count
        )
        return self.rows_at(distances, nearest)

    def rows_at(self, distances: Floats, nearest: Ints) -> Floats:
        """The same from known distances to the nearest reference points."""
        return row_normalised(np.einsum("nm,nmk->nk", neighbour_weights(distances), self._rows[nearest]))


class _KernelExtension(ABC):
    """Extension by a kernel that has values at further points."""

    def __init__(self, cut: KernelCut) -> None:
        # The affinity is the largest part and of no use here.
        self._cut = cut._replace(affinity=np.empty((0, 0)))

    @abstractmethod
    def _kernel_rows(self, X: Any) -> Floats:
        """Kernel between further points and those of the cut."""

    def state(self) -> dict[str, Any]:
        """Not offered: it would be the whole kernel."""
        raise TypeError(
            "a spectral model can be stored with affinity='heat' or 'self_tuning' only; others need the "
            "kernel for new rows, so fit with one of these"
        )

    def rows(self, X: Any) -> Floats:
        """Rows of further points."""
        parts = [
            extend_rows(self._cut, self._kernel_rows(X[start:stop]))
            for start, stop in chunk_bounds(0, X.shape[0], _POINTS_AT_ONCE)
        ]
        return np.concatenate(parts)


class GaussianExtension(_KernelExtension):
    """Extension by the Gaussian kernel."""

    def __init__(self, cut: KernelCut, reference: Any, sigma: float) -> None:
        super().__init__(cut)
        self._reference = reference
        self._sigma = sigma

    def _kernel_rows(self, X: Any) -> Floats:
        return gaussian_kernel(X, self._reference, self._sigma)


class PrecomputedExtension(_KernelExtension):
    """Extension by kernel values at all training points; ``columns`` (m,) are those of the cut."""

    def __init__(self, cut: KernelCut, columns: Ints) -> None:
        super().__init__(cut)
        self._columns = columns

    def _kernel_rows(self, X: Any) -> Floats:
        return np.ascontiguousarray(X[:, self._columns], dtype=np.float64)


def extension_of(state: dict[str, Any]) -> NeighbourExtension:
    """An extension from its state, as loading a stored model needs it."""
    reference, rows, count = state["reference"], state["rows"], state["n_neighbors"]
    return NeighbourExtension(reference, nearest_neighbours(reference), rows, count)
