"""What a distortion must offer to the descent of HMRF-KMeans.

``assign_blocks`` finds nearest centres for distortions that have no kernel of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._threads import Workers, chunk_bounds

__all__ = ["AssignmentPass", "Distortion", "Metric", "ViolatedLinks", "assign_blocks"]

#: None (the plain distortion), weights (d,), a matrix (d, d) or weights of every cluster (K, d).
Metric = NDArray[np.float64] | None


class ViolatedLinks(NamedTuple):
    """The soft links that the labels violate, with the labels (v, 2) of their ends."""

    pairs: NDArray[np.int64]
    must: NDArray[np.bool_]
    weight: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def signed_weight(self) -> NDArray[np.float64]:
        """How the pair penalty enters the objective: + weight for must-links, - weight for cannot-links."""
        return np.where(self.must, self.weight, -self.weight)

    @property
    def cannot_weight(self) -> float:
        """Weight of phi_max in the objective: that of all violated cannot-links together."""
        return float(self.weight[~self.must].sum())


class AssignmentPass(NamedTuple):
    """One pass over the rows: labels (n,), what each row pays (n,), rows of each cluster (K,).

    ``moments`` is what the distortion needs to move the centres.
    """

    labels: NDArray[np.int64]
    cost: NDArray[np.float64]
    counts: NDArray[np.float64]
    moments: Any

    @property
    def paid(self) -> float:
        """What all rows pay for their clusters."""
        return float(self.cost.sum())

    @property
    def size(self) -> float:
        """Size of the numbers in that sum."""
        # Mostly none is negative, and then it takes no second table: 1 ms for 1e6 rows instead of 2.
        return self.paid if self.cost.min(initial=0.0) >= 0.0 else float(np.abs(self.cost).sum())

    def repeats(self, other: AssignmentPass) -> bool:
        """Whether all rows are where they were."""
        return np.array_equal(self.labels, other.labels)


class Distortion(ABC):
    """How far a row is from a centre, how far two rows are apart, and what follows from it.

    Rows are objects of the distortion's own kind with ``len``, ``take(indices)`` and ``n_features``.
    """

    name: str
    metrics: tuple[str | None, ...]
    accepts_sparse: bool

    @abstractmethod
    def rows(self, X: Any, origin: NDArray[np.float64] | None = None) -> Any:
        """Check data (n, d), dense or CSR, and bring it into the form that the other methods read.

        Rows, and then all centres, are measured from ``origin`` (d,), by default from zero.
        """

    def origin(self, X: Any) -> NDArray[np.float64]:
        """Where to measure these data from in a fit, (d,); zero for distortions that need their zero."""
        return np.zeros(X.shape[1])

    def refuse_unresolved(self, rows: Any) -> None:
        """Refuse to fit rows that differ, but by less than rounding leaves of the distortion.

        Rows that are all the same are fine: they make one cluster.
        """
        return

    @abstractmethod
    def rows_of_centres(self, centres: NDArray[np.float64]) -> Any:
        """Centres (K, d) as rows."""

    @abstractmethod
    def start_metric(self, rows: Any) -> Metric:
        """Metric of the first assignment."""

    @abstractmethod
    def distances(self, rows: Any, centres: NDArray[np.float64], metric: Metric) -> NDArray[np.float64]:
        """What each row would pay for each cluster, (n, K)."""

    @abstractmethod
    def assign(
        self,
        rows: Any,
        centres: NDArray[np.float64],
        metric: Metric,
        given: NDArray[np.int64] | None,
        n_threads: int,
    ) -> AssignmentPass:
        """Send rows without a given label (-1) to their cheapest cluster; the first of several."""

    @abstractmethod
    def group_centres(self, rows: Any, groups: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
        """Centres (n_groups, d) of groups of rows, none of them empty, without a metric."""

    @abstractmethod
    def move_centres(
        self, rows: Any, found: AssignmentPass, centres: NDArray[np.float64], metric: Metric
    ) -> tuple[NDArray[np.float64], Any]:
        """The best centres of the clusters, and what ``within_cost`` needs; empty clusters keep theirs."""

    @abstractmethod
    def within_cost(self, within: Any, metric: Metric) -> float:
        """Sum over rows of what they pay for their clusters, after ``move_centres``."""

    @abstractmethod
    def metric_term(self, rows: Any, metric: Metric) -> float:
        """The part of the objective that depends on the metric alone."""

    def normaliser(self, metric: Metric) -> float:
        """What a learned metric adds per row to ``distances`` to make a negative log-likelihood."""
        return 0.0

    @abstractmethod
    def pair_penalty(self, rows: Any, pairs: NDArray[np.int64], metric: Metric) -> NDArray[np.float64]:
        """Penalty phi of pairs of rows, (m,); with metrics of every cluster (m, K)."""

    @abstractmethod
    def largest_penalty(self, rows: Any, metric: Metric) -> float | NDArray[np.float64]:
        """phi_max: a bound of phi over all pairs of rows; with metrics of every cluster (K,)."""

    @abstractmethod
    def move_metric(self, rows: Any, within: Any, violated: ViolatedLinks, metric: Metric) -> Metric:
        """A metric that lowers the objective for these labels and centres, or the same one."""


_BLOCK = 8192


def assign_blocks(
    distances: Callable[[Any], NDArray[np.float64]],
    rows: Any,
    given: NDArray[np.int64] | None,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Label of the smallest distance, or the given one (-1 for free rows), and that distance; both (n,).

    ``distances`` turns rows into a table (n, K), of which a few thousand rows exist at a time.
    """
    n_rows = len(rows)
    labels = np.empty(n_rows, dtype=np.int64)
    cost = np.empty(n_rows)

    def assign_block(bounds: tuple[int, int]) -> None:
        block = slice(*bounds)
        table = distances(rows.take(block))
        chosen = table.argmin(axis=1)
        if given is not None:
            chosen = np.where(given[block] >= 0, given[block], chosen)
        labels[block] = chosen
        cost[block] = np.take_along_axis(table, chosen[:, np.newaxis], axis=1)[:, 0]

    Workers(n_threads).each(assign_block, chunk_bounds(0, n_rows, _BLOCK))
    return labels, cost
