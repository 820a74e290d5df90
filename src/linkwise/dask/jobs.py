"""What workers do with the rows of a chunk: the kernels are those of the estimators in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._row_tables import column_extremes
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics
from linkwise.mixture.gaussian.passes import em_pass, posterior_pass
from linkwise.mixture.gaussian.shrinkage import column_moments


class Overview(NamedTuple):
    """What a first look tells of columns (D,); the first bad entry; rows (t, D) that were asked for."""

    n_rows: int
    low: Floats
    high: Floats
    total: Floats
    bad: tuple[int, int, float] | None
    taken: NDArray[np.floating]

    def __add__(self, other: object) -> Overview:
        assert isinstance(other, Overview)
        bad = self.bad
        if bad is None and other.bad is not None:
            bad = (self.n_rows + other.bad[0], *other.bad[1:])
        return Overview(
            self.n_rows + other.n_rows,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.total + other.total,
            bad,
            np.concatenate([self.taken, other.taken]),
        )


@dataclass(frozen=True)
class Look:
    """A first look at the rows; those that are chosen come back."""

    dtype: np.dtype[Any]

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Overview:
        """Look at rows."""
        low, high = (end.astype(np.float64) for end in column_extremes(block))
        bad = None
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = (int(place) for place in np.argwhere(~np.isfinite(block))[0])
            bad = (row, column, float(block[row, column]))
        return Overview(len(block), low, high, block.sum(axis=0, dtype=np.float64), bad, block[chosen])


@dataclass(frozen=True)
class ColumnMoments:
    """Sums of the distance to the offset and of its square, see ``column_moments``."""

    dtype: np.dtype[Any]
    offset: Floats
    covariance_type: str = "diag"

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Floats:
        """Sum over rows."""
        return column_moments(points_of(block, self.offset), self.covariance_type)


@dataclass(frozen=True)
class EMSums:
    """E-step and sums of all rows but the chosen ones, which carry links."""

    dtype: np.dtype[Any]
    offset: Floats
    gaussians: Gaussians
    log_weights: Floats

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Statistics:
        """Sum over rows."""
        return em_pass(points_of(block, self.offset), self.gaussians, self.log_weights, excluded=chosen)


@dataclass(frozen=True)
class LabelCounts:
    """Number of rows (2, K) whose most probable component is each: of all rows, and of the chosen ones."""

    dtype: np.dtype[Any]
    offset: Floats
    gaussians: Gaussians
    log_weights: Floats

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Ints:
        """Count rows."""
        points, n_components = points_of(block, self.offset), len(self.log_weights)
        labels = posterior_pass(points, self.gaussians, self.log_weights, labels=True).labels
        assert labels is not None
        return np.array([np.bincount(some, minlength=n_components) for some in (labels, labels[chosen])])


@dataclass(frozen=True)
class Probabilities:
    """Probability (n, K) of each cluster; ``model`` is a fitted mixture in memory."""

    dtype: np.dtype[Any]
    offset: Floats
    model: Any

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Floats:
        """Compute the table of some rows."""
        found = self.model._posterior(points_of(block, self.offset), probabilities=True)
        table: Floats = self.model._sum_clusters(found.probabilities.astype(np.float64, copy=False))
        return table


@dataclass(frozen=True)
class RowLabels:
    """Most probable cluster (n,), by the probabilities where there are links, as in memory."""

    dtype: np.dtype[Any]
    offset: Floats
    model: Any
    linked: bool

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Ints:
        """Label some rows."""
        if self.linked:
            table = Probabilities(self.dtype, self.offset, self.model)(block, chosen)
            return table.argmax(axis=1).astype(np.int64)
        points = points_of(block, self.offset)
        labels: Ints = self.model._labels_of(self.model._posterior(points, labels=True))
        return labels


@dataclass(frozen=True)
class ClusterSizes:
    """Number of rows (K,) of each cluster, the chosen ones left out."""

    dtype: np.dtype[Any]
    labels: RowLabels
    n_clusters: int

    def __call__(self, block: NDArray[np.floating], chosen: Ints) -> Ints:
        """Count rows."""
        labels = np.delete(self.labels(block, chosen), chosen)
        return np.bincount(labels, minlength=self.n_clusters)
