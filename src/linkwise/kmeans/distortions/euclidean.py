"""Squared Euclidean distance: plain, with weights of the features, a matrix, or weights of each cluster."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from linkwise._arrays import Bools, Floats, Ints
from linkwise._row_tables import (
    SMALLEST_RANGE,
    column_extremes,
    exact_origin,
    label_sums,
    refuse_narrow,
    refuse_overflowing,
)
from linkwise.kmeans.distortions.base import AssignmentPass, Distortion, Metric, ViolatedLinks
from linkwise.kmeans.distortions.metric_steps import (
    BoxBound,
    DiameterBound,
    PenaltyBound,
    SphereBound,
    diagonal_minimiser,
    full_minimiser,
    linear_metric_step,
    log_det,
    metric_factor,
)
from linkwise.kmeans.lloyd import Assigned, assign_rows, weighted_distances

#: Smallest variance within clusters that a metric answers to, as a share of the variance of the data.
VARIANCE_FLOOR = 1e-6
_BLOCK = 16384


class EuclideanRows:
    """Dense rows (n, d), measured from ``origin`` (d,), and what is known of them."""

    def __init__(self, X: Floats, origin: Floats | None = None) -> None:
        self.X = X
        self.origin = np.zeros(X.shape[1]) if origin is None else origin
        self._last_gaps: tuple[Ints, Floats] | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def take(self, indices: Ints) -> EuclideanRows:
        """Some of the rows."""
        return EuclideanRows(self.X[indices])

    @cached_property
    def mean(self) -> Floats:
        """Mean of the rows, (d,)."""
        return self.X.mean(axis=0)

    @cached_property
    def centred(self) -> Floats:
        """Rows less their mean, (n, d)."""
        return self.X - self.mean

    @cached_property
    def extremes(self) -> tuple[Floats, Floats]:
        """Smallest and largest entry of each feature, (d,) each."""
        return column_extremes(self.X)

    @cached_property
    def squared_range(self) -> Floats:
        """(max - min)^2 of each feature, (d,)."""
        lowest, highest = self.extremes
        return (highest - lowest) ** 2

    @cached_property
    def constant(self) -> Bools:
        """Features that are the same for all rows, up to rounding; they keep a weight of 1."""
        return constant_columns(*self.extremes, self.origin)

    @cached_property
    def variance(self) -> Floats:
        """Variance of each feature, 1 for constant ones, (d,)."""
        first, second = moments_about(self.X, self.mean)
        return np.where(self.constant, 1.0, (second - first**2 / len(self)) / len(self))

    def gaps(self, pairs: Ints) -> Floats:
        """Differences of pairs of rows, (m, d); the last ones are kept, for every step asks for the links."""
        if self._last_gaps is None or self._last_gaps[0] is not pairs:
            self._last_gaps = (pairs, self.differences(pairs))
        return self._last_gaps[1]

    def differences(self, pairs: Ints) -> Floats:
        """Differences of pairs of rows, (m, d)."""
        return self.X[pairs[:, 0]] - self.X[pairs[:, 1]]


def moments_about(X: Floats, middle: Floats) -> Floats:
    """Sums (2, d) over the rows of x - middle and of its squares."""
    whole = assign_rows(X, middle[np.newaxis], np.ones((1, len(middle))), np.zeros(1))
    return np.stack([whole.first[0], whole.second[0]])


def constant_columns(lowest: Floats, highest: Floats, origin: Floats) -> Bools:
    """Features in [lowest, highest] (d,), measured from an origin, that are the same up to rounding."""
    size = np.maximum(np.abs(lowest + origin), np.abs(highest + origin))
    return highest - lowest <= np.maximum(16 * np.finfo(float).eps * size, SMALLEST_RANGE)


class _Within(NamedTuple):
    """Scatter about the centres: (K, d), or (d, d) for a full metric."""

    counts: Floats
    scatter: Floats


class SquaredEuclidean(Distortion):
    """(x - mu)' A (x - mu), with - log det A of the Gaussian normaliser once A is learned.

    ``shrinkage``: points that a prior adds to every cluster, with variances / K^(2/d) (Fraley & Raftery
    2007).
    """

    name = "euclidean"
    metrics = (None, "diag", "full", "per_cluster")
    accepts_sparse = False

    def __init__(
        self,
        metric: str | None,
        n_clusters: int,
        *,
        metric_weight: float = 1.0,
        shrinkage: float = 1.0,
        penalty_bound: str = "box",
    ) -> None:
        self.metric = metric
        self.n_clusters = n_clusters
        self.metric_weight = metric_weight
        self.shrinkage = shrinkage
        self.penalty_bound = penalty_bound

    def origin(self, X: Any) -> Floats:
        """A point amid the rows, exact differences from which keep their digits."""
        return exact_origin(X)

    def rows(self, X: Any, origin: Floats | None = None) -> EuclideanRows:
        """Dense data (n, d), contiguous; refused if squared distances overflow."""
        if issparse(X):
            raise TypeError(
                "distortion='euclidean' needs dense data; use distortion='cosine' or 'kl' for sparse counts, "
                "or pass X.toarray()"
            )
        table = np.ascontiguousarray(X, dtype=np.float64)
        origin = np.zeros(table.shape[1]) if origin is None else origin
        found = EuclideanRows(table - origin if origin.any() else table, origin)
        refuse_overflowing(*found.extremes)
        return found

    def refuse_unresolved(self, rows: EuclideanRows) -> None:
        """Squares of tiny numbers vanish."""
        lowest, highest = rows.extremes
        refuse_narrow(highest - lowest)

    def rows_of_centres(self, centres: Floats) -> EuclideanRows:
        """Centres are rows like any other."""
        return EuclideanRows(centres)

    def start_metric(self, rows: EuclideanRows) -> Metric:
        """The same weight for all features that vary."""
        if self.metric is None:
            return None
        weights = np.where(rows.constant, 1.0, self._isotropic(rows))
        if self.metric == "diag":
            return weights
        if self.metric == "full":
            return np.diag(weights)
        return np.tile(weights, (self.n_clusters, 1))

    def _isotropic(self, rows: EuclideanRows) -> float:
        """The multiple of the identity that suits all rows as one cluster: the units of X do not matter."""
        varying = rows.variance[~rows.constant]
        return self.metric_weight / float(varying.mean()) if varying.size else 1.0

    def _upper(self, rows: EuclideanRows) -> Floats:
        """Largest weights; constant features, where no scatter answers, get their weight of 1 this way."""
        cap = np.maximum(self.metric_weight / (VARIANCE_FLOOR * rows.variance), self._isotropic(rows))
        return np.where(rows.constant, 1.0, cap)

    def _prior_variance(self, rows: EuclideanRows) -> Floats:
        return rows.variance / self.n_clusters ** (2.0 / len(rows.variance))

    def _bias(self, metric: Metric) -> Floats:
        """-log det A_k: what a row pays for the volume of its cluster."""
        if self.metric != "per_cluster" or metric is None:
            return np.zeros(self.n_clusters)
        return -self.metric_weight * log_det(metric, diagonal=True)

    def metric_term(self, rows: EuclideanRows, metric: Metric) -> float:
        """Gaussian normaliser of a shared metric; the prior of metrics of clusters, whose rows pay theirs."""
        if metric is None:
            return 0.0
        if self.metric == "per_cluster":
            prior = (metric * self._prior_variance(rows)).sum() + self._bias(metric).sum()
            return self.shrinkage * float(prior)
        return len(rows) * self.normaliser(metric)

    def normaliser(self, metric: Metric) -> float:
        """Minus log det A of a shared metric, times ``metric_weight``."""
        if metric is None or self.metric == "per_cluster":
            return 0.0
        return -self.metric_weight * float(log_det(metric, diagonal=metric.ndim == 1))

    def _spaced(self, rows: EuclideanRows, centres: Floats, metric: Metric) -> tuple[Floats, Floats, Floats]:
        """Rows, centres and weights (K, d) whose weighted squared distances are those under the metric."""
        if metric is not None and metric.ndim == 2 and self.metric == "full":
            factor = metric_factor(metric)
            middle = centres.mean(axis=0)
            return (rows.X - middle) @ factor, (centres - middle) @ factor, np.ones(centres.shape)
        weights = np.ones(centres.shape[1]) if metric is None else metric
        # A copy: what broadcast_to gives is read-only for one centre, and kernels would be compiled twice.
        return rows.X, centres, np.broadcast_to(weights, centres.shape).copy()

    def distances(self, rows: EuclideanRows, centres: Floats, metric: Metric) -> Floats:
        """Squared distances under the metric, (n, K); with metrics of clusters plus - log det A_k."""
        table = weighted_distances(*self._spaced(rows, centres, metric))
        return table if metric is None else table + self._bias(metric)

    def assign(
        self, rows: EuclideanRows, centres: Floats, metric: Metric, given: Ints | None, n_threads: int
    ) -> AssignmentPass:
        """One fused pass over the rows."""
        X, moved, weights = self._spaced(rows, centres, metric)
        found = assign_rows(X, moved, weights, self._bias(metric), given, n_threads=n_threads)
        moments: Any = (found.first, found.second)
        if self.metric == "full":
            moments = _full_moments(rows.X, centres, found)
        return AssignmentPass(found.labels, found.cost, found.counts, moments)

    def group_centres(self, rows: EuclideanRows, groups: Ints, n_groups: int) -> Floats:
        """Means."""
        sizes = np.bincount(groups, minlength=n_groups)
        return label_sums(rows.X, groups, n_groups) / sizes[:, np.newaxis]

    def move_centres(
        self, rows: EuclideanRows, found: AssignmentPass, centres: Floats, metric: Metric
    ) -> tuple[Floats, _Within]:
        """Means, and the scatter about them."""
        first, second = found.moments
        counts = found.counts
        shift = first / np.maximum(counts, 1.0)[:, np.newaxis]
        if self.metric == "full":
            scatter = second - (first.T @ shift)
        else:
            scatter = np.maximum(second - first * shift, 0.0)
        return centres + shift, _Within(counts, scatter)

    def within_cost(self, within: _Within, metric: Metric) -> float:
        """Scatter weighted by the metric."""
        if metric is None:
            return float(within.scatter.sum())
        return float((within.scatter * metric).sum() + within.counts @ self._bias(metric))

    def pair_penalty(self, rows: EuclideanRows, pairs: Ints, metric: Metric) -> Floats:
        """Squared distances of pairs under the metric."""
        gap = rows.gaps(pairs)
        if metric is None:
            return (gap * gap).sum(axis=1)
        if self.metric == "full":
            return ((gap @ metric_factor(metric)) ** 2).sum(axis=1)
        return (gap * gap) @ metric.T

    def _bound(self, rows: EuclideanRows) -> PenaltyBound:
        if self.penalty_bound == "diameter":
            return DiameterBound(rows.X)
        if self.metric == "full":
            return SphereBound(rows.centred)
        return BoxBound(rows.squared_range)

    def largest_penalty(self, rows: EuclideanRows, metric: Metric) -> float | Floats:
        """Box, ball or diameter, see ``penalty_bound``."""
        bound = self._bound(rows)
        if metric is None:
            return bound.value(np.ones(rows.n_features))
        if self.metric == "per_cluster":
            return np.array([bound.value(weights) for weights in metric])
        return bound.value(metric)

    def move_metric(
        self, rows: EuclideanRows, within: _Within, violated: ViolatedLinks, metric: Metric
    ) -> Metric:
        """Closed form for the tangent of phi_max, with backtracking where it is not linear."""
        if metric is None:
            return None
        bound = self._bound(rows)
        gap = rows.differences(violated.pairs)
        if self.metric == "full":
            return self._move_full(rows, within, violated, gap, metric, bound)
        if self.metric == "diag":
            scatter = within.scatter.sum(axis=0) + violated.signed_weight @ (gap * gap)
            count = self.metric_weight * len(rows)
            return self._move_weights(rows, scatter, count, violated.cannot_weight, metric, bound)
        prior = self.shrinkage * self._prior_variance(rows)
        moved = np.empty_like(metric)
        for k, weights in enumerate(metric):
            # A violated must-link is shared by the clusters of its two ends, a cannot-link has one cluster.
            share = 0.5 * (violated.labels == k).sum(axis=1)
            scatter = within.scatter[k] + prior + (share * violated.signed_weight) @ (gap * gap)
            count = self.metric_weight * (float(within.counts[k]) + self.shrinkage)
            cannot_weight = float((share * violated.weight)[~violated.must].sum())
            moved[k] = self._move_weights(rows, scatter, count, cannot_weight, weights, bound)
        return moved

    def _move_weights(
        self,
        rows: EuclideanRows,
        scatter: Floats,
        count: float,
        cannot_weight: float,
        weights: Floats,
        bound: PenaltyBound,
    ) -> Floats:
        if count == 0.0:
            return weights
        upper = self._upper(rows)
        return linear_metric_step(
            scatter,
            cannot_weight,
            bound,
            lambda total: diagonal_minimiser(np.where(rows.constant, 0.0, total), count, upper),
            lambda weights: -count * float(log_det(weights, diagonal=True)),
            weights,
        )

    def _move_full(
        self,
        rows: EuclideanRows,
        within: _Within,
        violated: ViolatedLinks,
        gap: Floats,
        metric: Floats,
        bound: PenaltyBound,
    ) -> Floats:
        count = self.metric_weight * len(rows)
        varying = np.outer(~rows.constant, ~rows.constant)
        floor = min(VARIANCE_FLOOR, 1.0 / len(metric)) / self.metric_weight

        def minimise(total: Floats) -> Floats:
            total = np.where(varying, total, np.diag(np.where(rows.constant, count, 0.0)))
            return full_minimiser(total, count, np.sqrt(rows.variance), floor)

        return linear_metric_step(
            within.scatter + (violated.signed_weight[:, np.newaxis] * gap).T @ gap,
            violated.cannot_weight,
            bound,
            minimise,
            lambda matrix: -count * float(log_det(matrix, diagonal=False)),
            metric,
        )


def _full_moments(X: Floats, centres: Floats, found: Assigned) -> tuple[Floats, Floats]:
    """Sums of x - centre by cluster (K, d), and of its outer products over all rows (d, d)."""
    first = np.zeros(centres.shape)
    second = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), _BLOCK):
        labels = found.labels[start : start + _BLOCK]
        gap = X[start : start + _BLOCK] - centres[labels]
        first += label_sums(gap, labels, len(centres))
        second += gap.T @ gap
    return first, second
