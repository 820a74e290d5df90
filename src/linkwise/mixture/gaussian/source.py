"""Where the rows of a mixture are. EM sees sums over all rows, and the few rows that carry links.

``RowsInMemory`` has them in one array; ``linkwise.dask`` has a source that reads them chunk by chunk.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise._threads import Workers
from linkwise.mixture.gaussian.data import Points, condition
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics
from linkwise.mixture.gaussian.passes import em_pass, log_density_pass, posterior_pass, statistics_pass
from linkwise.mixture.gaussian.shrinkage import column_moments


class Sample(NamedTuple):
    """Rows (s,) of the data that starts are made from; ``rows`` is None if they are all.

    ``X`` (s, d) is what k-means sees, see ``Conditioned``.
    """

    X: AnyFloats
    points: Points
    rows: Ints | None


class Source(Protocol):
    """What EM asks of the data."""

    workers: Workers
    """Threads for the passes in this process."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def em_statistics(self, gaussians: Gaussians, log_weights: Floats, excluded: Ints | None) -> Statistics:
        """Sums over all rows but the excluded ones, see ``em_pass``."""

    def log_density(self, gaussians: Gaussians, rows: Ints) -> Floats:
        """Log-densities (r, K) of some rows that carry links."""

    def statistics(
        self, means: Floats, responsibilities: Floats, covariance_type: str, rows: Ints
    ) -> Statistics:
        """Sums over rows that carry links, with these responsibilities (r, K)."""

    def column_moments(self, covariance_type: str = "diag") -> Floats:
        """Sums over all rows of the distance to the middle of the data, and of its square."""

    def label_counts(self, gaussians: Gaussians, log_weights: Floats, rows: Ints) -> tuple[Ints, Ints]:
        """Number of rows whose most probable component is each (K,): of all rows, and of these."""

    def sample(self) -> Sample:
        """The rows that starts are made from."""


class RowsInMemory:
    """All rows in one array."""

    def __init__(self, data: AnyFloats, reg_covar: float, names: NDArray[np.object_] | None = None) -> None:
        self.points, self._for_starts = condition(data, reg_covar, names)
        self.workers = Workers()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.points.n_samples

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.points.n_features

    def em_statistics(self, gaussians: Gaussians, log_weights: Floats, excluded: Ints | None) -> Statistics:
        """One fused pass."""
        return em_pass(self.points, gaussians, log_weights, excluded=excluded, workers=self.workers)

    def log_density(self, gaussians: Gaussians, rows: Ints) -> Floats:
        """The rows are read in place."""
        return log_density_pass(self.points, gaussians, rows=rows, workers=self.workers)

    def statistics(
        self, means: Floats, responsibilities: Floats, covariance_type: str, rows: Ints
    ) -> Statistics:
        """The rows are read in place."""
        return statistics_pass(
            self.points, means, responsibilities, covariance_type, rows=rows, workers=self.workers
        )

    def column_moments(self, covariance_type: str = "diag") -> Floats:
        """A few thousand rows at a time."""
        return column_moments(self.points, covariance_type)

    def label_counts(self, gaussians: Gaussians, log_weights: Floats, rows: Ints) -> tuple[Ints, Ints]:
        """One pass that keeps a label for each row."""
        labels = posterior_pass(self.points, gaussians, log_weights, labels=True, workers=self.workers).labels
        assert labels is not None
        n_components = len(log_weights)
        return np.bincount(labels, minlength=n_components), np.bincount(labels[rows], minlength=n_components)

    def sample(self) -> Sample:
        """All rows."""
        return Sample(self._for_starts, self.points, None)
