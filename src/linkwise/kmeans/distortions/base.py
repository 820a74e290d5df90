"""What a distortion must offer to the descent of HMRF-KMeans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise._threads import Workers, chunk_bounds
from linkwise.kmeans.distortions.metric_steps import rayleigh_prior

#: None (the plain distortion), weights (d,), a matrix (d, d) or weights of every cluster (K, d).
Metric = Floats | None


class ViolatedLinks(NamedTuple):
    """The soft links that the labels violate, with the labels (v, 2) of their ends."""

    pairs: Ints
    must: Bools
    weight: Floats
    labels: Ints

    @property
    def signed_weight(self) -> Floats:
        """How the pair penalty enters the objective: + weight for must-links, - weight for cannot-links."""
        return np.where(self.must, self.weight, -self.weight)

    @property
    def cannot_weight(self) -> float:
        """Weight of phi_max in the objective: that of all violated cannot-links together."""
        return float(self.weight[~self.must].sum())


class AssignmentPass(NamedTuple):
    """One pass over the rows: labels (n,), what each pays (n,), rows of each cluster (K,), and moments."""

    labels: Ints
    cost: Floats
    counts: Floats
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
    """How far a row is from a centre, how far two rows are apart, and what follows from it."""

    name: str
    metrics: tuple[str | None, ...]
    accepts_sparse: bool

    @abstractmethod
    def rows(self, X: Any, origin: Floats | None = None) -> Any:
        """Check data (n, d), dense or CSR, and bring it into the form that methods read, from ``origin``."""

    def origin(self, X: Any) -> Floats:
        """Where to measure these data from in a fit, (d,); zero for distortions that need their zero."""
        return np.zeros(X.shape[1])

    def refuse_unresolved(self, rows: Any) -> None:
        """Refuse to fit rows that differ, but by less than rounding leaves of the distortion."""
        return

    @abstractmethod
    def rows_of_centres(self, centres: Floats) -> Any:
        """Centres (K, d) as rows."""

    @abstractmethod
    def start_metric(self, rows: Any) -> Metric:
        """Metric of the first assignment."""

    @abstractmethod
    def distances(self, rows: Any, centres: Floats, metric: Metric) -> Floats:
        """What each row would pay for each cluster, (n, K)."""

    @abstractmethod
    def assign(
        self, rows: Any, centres: Floats, metric: Metric, given: Ints | None, n_threads: int
    ) -> AssignmentPass:
        """Send rows without a given label (-1) to their cheapest cluster; the first of several."""

    @abstractmethod
    def group_centres(self, rows: Any, groups: Ints, n_groups: int) -> Floats:
        """Centres (n_groups, d) of groups of rows, none of them empty, without a metric."""

    @abstractmethod
    def move_centres(
        self, rows: Any, found: AssignmentPass, centres: Floats, metric: Metric
    ) -> tuple[Floats, Any]:
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
    def pair_penalty(self, rows: Any, pairs: Ints, metric: Metric) -> Floats:
        """Penalty phi of pairs of rows, (m,); with metrics of every cluster (m, K)."""

    @abstractmethod
    def largest_penalty(self, rows: Any, metric: Metric) -> float | Floats:
        """phi_max: a bound of phi over all pairs of rows; with metrics of every cluster (K,)."""

    @abstractmethod
    def move_metric(self, rows: Any, within: Any, violated: ViolatedLinks, metric: Metric) -> Metric:
        """A metric that lowers the objective for these labels and centres, or the same one."""


class WeightedDistortion(Distortion):
    """A distortion of nonnegative weights of features, learned under a Rayleigh prior, without a kernel."""

    metrics = (None, "diag")
    accepts_sparse = True
    metric: str | None

    @abstractmethod
    def _strength(self, rows: Any) -> float:
        """How much the prior counts."""

    def start_metric(self, rows: Any) -> Metric:
        """Weights of 1."""
        return None if self.metric is None else np.ones(rows.table.shape[1])

    def metric_term(self, rows: Any, metric: Metric) -> float:
        """The Rayleigh prior."""
        return 0.0 if metric is None else self._strength(rows) * rayleigh_prior(metric)

    def assign(
        self, rows: Any, centres: Floats, metric: Metric, given: Ints | None, n_threads: int
    ) -> AssignmentPass:
        """Blocks of rows at a time."""
        to_centres = partial(self.distances, centres=centres, metric=metric)
        labels, cost = assign_blocks(to_centres, rows, given, n_threads)
        counts = np.bincount(labels, minlength=len(centres)).astype(np.float64)
        return AssignmentPass(labels, cost, counts, None)


_BLOCK = 8192


def assign_blocks(
    distances: Callable[[Any], Floats], rows: Any, given: Ints | None, n_threads: int
) -> tuple[Ints, Floats]:
    """Label of the smallest of ``distances`` (n, K), or the given one, and that distance; both (n,)."""
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
