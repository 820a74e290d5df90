"""KL and I-divergence of nonnegative rows, plain or with learned weights of the features."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array, issparse
from scipy.special import xlogy

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import inline_kernel, kernel
from linkwise._row_tables import column_extremes, label_sums
from linkwise.kmeans.distortions.base import AssignmentPass, Metric, ViolatedLinks, WeightedDistortion
from linkwise.kmeans.distortions.metric_steps import linear_metric_step, rayleigh_minimiser, rayleigh_prior


@inline_kernel
def _x_log_x(x: float) -> float:
    """Product of x and log x, 0 at 0."""
    return x * np.log(x) if x > 0.0 else 0.0


@inline_kernel
def _from_mean(x: float, y: float) -> float:
    """Divergence of two numbers from their mean: x log(2x / (x + y)) + y log(2y / (x + y))."""
    middle = 0.5 * (x + y)
    total = 0.0
    if x > 0.0:
        total += x * np.log(x / middle)
    if y > 0.0:
        total += y * np.log(y / middle)
    return max(total, 0.0)


@kernel
def _entropy_by_row(
    data: Floats, indices: ShortInts, indptr: ShortInts, share: Floats, weights: Floats
) -> Floats:
    """sum_m a_m x_im log x_im."""
    result = np.empty(len(share))
    total_weight = weights.sum()
    for row in range(len(share)):
        absent = _x_log_x(share[row])
        total = absent * total_weight
        for slot in range(indptr[row], indptr[row + 1]):
            total += weights[indices[slot]] * (_x_log_x(data[slot] + share[row]) - absent)
        result[row] = total
    return result


@kernel
def _entropy_by_feature(
    data: Floats, indices: ShortInts, indptr: ShortInts, share: Floats, result: Floats
) -> None:
    """Add sum_i x_im log x_im to ``result``."""
    everywhere = 0.0
    for row in range(len(share)):
        absent = _x_log_x(share[row])
        everywhere += absent
        for slot in range(indptr[row], indptr[row + 1]):
            result[indices[slot]] += _x_log_x(data[slot] + share[row]) - absent
    result += everywhere


@kernel
def _merge_pair(
    data: Floats,
    indices: ShortInts,
    indptr: ShortInts,
    share: Floats,
    i: int,
    j: int,
    absent: float,
    weights: Floats,
    factor: float,
    result: Floats,
) -> float:
    """The weighted excess of the divergence of two rows over ``absent``; ``result`` gets it by feature."""
    total = 0.0
    a, b = indptr[i], indptr[j]
    end_a, end_b = indptr[i + 1], indptr[j + 1]
    while a < end_a or b < end_b:
        at_a = indices[a] if a < end_a else np.int64(2**62)
        at_b = indices[b] if b < end_b else np.int64(2**62)
        feature = min(at_a, at_b)
        x, y = share[i], share[j]
        if at_a == feature:
            x += data[a]
            a += 1
        if at_b == feature:
            y += data[b]
            b += 1
        excess = _from_mean(x, y) - absent
        total += weights[feature] * excess
        if len(result) > 0:
            result[feature] += factor * excess
    return total


@kernel
def _pair_divergence(
    data: Floats,
    indices: ShortInts,
    indptr: ShortInts,
    share: Floats,
    pairs: Ints,
    weights: Floats,
    factors: Floats,
    by_feature: Floats,
) -> Floats:
    """Divergence of each pair from its mean; if asked for, also summed by feature with ``factors``."""
    result = np.empty(len(pairs))
    total_weight = weights.sum()
    everywhere = 0.0
    for row in range(len(pairs)):
        i, j = pairs[row, 0], pairs[row, 1]
        absent = _from_mean(share[i], share[j])
        factor = factors[row]
        excess = _merge_pair(data, indices, indptr, share, i, j, absent, weights, factor, by_feature)
        result[row] = max(excess + absent * total_weight, 0.0)
        everywhere += factor * absent
    by_feature += everywhere
    return result


def entropy_by_row(table: Any, share: Floats, weights: Floats) -> Floats:
    """sum_m a_m x_im log x_im of every row, (n,)."""
    return _entropy_by_row(table.data, table.indices, table.indptr, share, weights)


def entropy_by_feature(table: Any, share: Floats) -> Floats:
    """sum_i x_im log x_im of every feature, (d,)."""
    result = np.zeros(table.shape[1])
    _entropy_by_feature(table.data, table.indices, table.indptr, share, result)
    return result


def pair_divergence(table: Any, share: Floats, pairs: Ints, weights: Floats) -> Floats:
    """sum_m a_m (x_m log(2 x_m / (x_m + y_m)) + y_m log(2 y_m / (x_m + y_m))) of pairs (m, 2), (m,)."""
    unused = np.empty(0)
    factors = np.zeros(len(pairs))
    return _pair_divergence(table.data, table.indices, table.indptr, share, pairs, weights, factors, unused)


def pair_divergence_by_feature(table: Any, share: Floats, pairs: Ints, factors: Floats) -> Floats:
    """Summands of ``pair_divergence`` without weights, summed over pairs times their factors, (d,)."""
    result = np.zeros(table.shape[1])
    unit = np.ones(table.shape[1])
    _pair_divergence(table.data, table.indices, table.indptr, share, pairs, unit, factors, result)
    return result


_LOG2 = float(np.log(2.0))
# Smallest entry of a centre inside a logarithm: a feature that no row of a cluster has.
_TINY = 1e-300
# Numbers whose sums, logarithms and inverses stay within float64 lie between these.
_SMALLEST, _LARGEST = 1e-280, 1e280
# Divergence from the mean as a share of the sum of the data, of which rounding leaves two digits.
_UNRESOLVED = 1e-12


class SmoothedRows:
    """Nonnegative rows x = z + e: a table z (n, d), dense or CSR, plus a share e_i in every feature."""

    def __init__(self, table: Any, share: Floats) -> None:
        self.table = table
        self.share = share

    def __len__(self) -> int:
        return len(self.share)

    def take(self, indices: Any) -> SmoothedRows:
        """Some of the rows."""
        return SmoothedRows(self.table[indices], self.share[indices])

    @cached_property
    def compressed(self) -> csr_matrix:
        """The table z as CSR with sorted indices."""
        table = csr_matrix(self.table)
        table.sort_indices()
        return table

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.table.shape[1])

    def totals(self, weights: Floats) -> Floats:
        """sum_m a_m x_im of every row, (n,)."""
        return np.asarray(self.table @ weights) + self.share * weights.sum()

    def row(self, index: int) -> Floats:
        """One row, (d,)."""
        values = self.table[index : index + 1]
        return np.asarray(values.toarray() if issparse(values) else values).ravel() + self.share[index]

    @cached_property
    def entropy_by_feature(self) -> Floats:
        """sum_i x_im log x_im, (d,)."""
        return entropy_by_feature(self.compressed, self.share)

    def sums(self, labels: Ints, n_labels: int) -> Floats:
        """Sum of the rows of each label, (n_labels, d)."""
        shares = np.bincount(labels, self.share, n_labels)
        return label_sums(self.table, labels, n_labels) + shares[:, np.newaxis]

    @cached_property
    def total_divergence(self) -> float:
        """Divergence of all rows from their mean."""
        total = self.sums(np.zeros(len(self), dtype=np.int64), 1)
        return float((self.entropy_by_feature - xlogy(total, total / len(self))).sum())


class _RowTotalBound:
    """2 log 2 max_i sum_m a_m x_im: a summand of phi is at most a_m (x_m + y_m) log 2."""

    def __init__(self, rows: SmoothedRows) -> None:
        self.rows = rows

    def value(self, metric: Floats) -> float:
        return 2.0 * _LOG2 * float(self.rows.totals(metric).max())

    def slope(self, metric: Floats) -> Floats:
        return 2.0 * _LOG2 * self.rows.row(int(self.rows.totals(metric).argmax()))


class _Within(NamedTuple):
    """Divergence within clusters, feature by feature, (d,)."""

    scatter: Floats


class Divergence(WeightedDistortion):
    """sum_m a_m (x_m log(x_m / mu_m) - x_m + mu_m), of rows as they are or normalised to sum 1 (KL).

    Centres are means, the penalty of a pair is the divergence of both from their mean (``pair_divergence``).
    Weights are learned in closed form under a Rayleigh prior, as for ``Cosine``. Every row is mixed with the
    share ``smoothing`` of a uniform row of the same sum.
    """

    def __init__(
        self, metric: str | None, *, normalise: bool, metric_weight: float = 1.0, smoothing: float = 0.1
    ) -> None:
        self.name = "kl" if normalise else "i_divergence"
        self.metric = metric
        self.normalise = normalise
        self.metric_weight = metric_weight
        self.smoothing = smoothing

    def rows(self, X: Any, origin: Floats | None = None) -> SmoothedRows:
        """Nonnegative data (n, d), normalised for KL and smoothed."""
        table = csr_matrix(X, dtype=np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
        smallest = table.min(axis=1)
        smallest = smallest.toarray().ravel() if issparse(smallest) else smallest
        negative = np.flatnonzero(smallest < 0.0)
        if negative.size:
            row = negative[0]
            raise ValueError(
                f"Negative values in data: row {row} holds {smallest[row]:g}, but distortion={self.name!r} "
                "is for counts and other nonnegative data; use 'euclidean' or 'cosine'"
            )
        highest = column_extremes(table)[1]
        column = int(highest.argmax())
        if highest[column] > _LARGEST or 0.0 < highest[column] < _SMALLEST:
            raise ValueError(
                f"column {column} of X holds {highest[column]:.3g}, which leaves no room for sums and "
                f"logarithms; divide X by a constant, e.g. {highest[column]:.0e}"
            )
        totals = np.asarray(table.sum(axis=1), dtype=np.float64).ravel()
        if self.normalise:
            empty = np.flatnonzero(totals == 0.0)
            if empty.size:
                raise ValueError(
                    f"row {empty[0]} is zero throughout and cannot be normalised; distortion='kl' needs a "
                    "positive entry in every row: remove such rows, or use 'i_divergence'"
                )
            small = np.flatnonzero(totals < _SMALLEST)
            if small.size:
                raise ValueError(
                    f"row {small[0]} sums to {totals[small[0]]:.3g}, too little to be normalised; remove "
                    "such rows, or multiply them by a constant"
                )
            factors, totals = (1.0 - self.smoothing) / totals, np.ones(len(totals))
        else:
            factors = np.full(len(totals), 1.0 - self.smoothing)
        share = self.smoothing * totals / table.shape[1]
        if issparse(table):
            return SmoothedRows(csr_matrix(diags_array(factors) @ table), share)
        return SmoothedRows(table * factors[:, np.newaxis], share)

    def refuse_unresolved(self, rows: SmoothedRows) -> None:
        """Rows that differ by a millionth of their size are too close for divergences."""
        lowest, highest = column_extremes(rows.table)
        share = (highest - lowest) / np.maximum(highest, _TINY)
        column = int(share.argmax())
        size = float(rows.totals(np.ones(rows.n_features)).sum())
        if share[column] > 16 * np.finfo(float).eps and rows.total_divergence < _UNRESOLVED * size:
            raise ValueError(
                f"the rows of X differ by too little beside their size for distortion={self.name!r}: column "
                f"{column}, which differs most, by a share of {share[column]:.1e}; subtract what they have "
                "in common, or use distortion='euclidean'"
            )

    def rows_of_centres(self, centres: Floats) -> SmoothedRows:
        """Centres are smooth already."""
        return SmoothedRows(centres, np.zeros(len(centres)))

    def _strength(self, rows: SmoothedRows) -> float:
        total = rows.total_divergence
        size = float(rows.totals(np.ones(rows.n_features)).sum())
        per_feature = total / rows.n_features if total > 1e-12 * size else 1.0
        return self.metric_weight * per_feature

    def distances(self, rows: SmoothedRows, centres: Floats, metric: Metric) -> Floats:
        """Divergences of rows from centres, (n, K)."""
        weights = np.ones(rows.n_features) if metric is None else metric
        logs = np.log(np.maximum(centres, _TINY)) * weights
        of_rows = entropy_by_row(rows.compressed, rows.share, weights) - rows.totals(weights)
        table = np.asarray(rows.table @ logs.T) + rows.share[:, np.newaxis] * logs.sum(axis=1)
        return np.maximum(of_rows[:, np.newaxis] - table + centres @ weights, 0.0)

    def group_centres(self, rows: SmoothedRows, groups: Ints, n_groups: int) -> Floats:
        """Means."""
        return rows.sums(groups, n_groups) / np.bincount(groups, minlength=n_groups)[:, np.newaxis]

    def move_centres(
        self, rows: SmoothedRows, found: AssignmentPass, centres: Floats, metric: Metric
    ) -> tuple[Floats, _Within]:
        """Means, and the divergence from them by feature."""
        sums = rows.sums(found.labels, len(centres))
        filled = found.counts > 0
        moved = np.where(filled[:, np.newaxis], sums / np.maximum(found.counts, 1.0)[:, np.newaxis], centres)
        # Sums equal counts times centres, so the linear terms cancel.
        within = rows.entropy_by_feature - xlogy(sums, np.maximum(moved, _TINY)).sum(axis=0)
        return moved, _Within(np.maximum(within, 0.0))

    def within_cost(self, within: _Within, metric: Metric) -> float:
        """Divergence weighted by the metric."""
        return float(within.scatter.sum() if metric is None else within.scatter @ metric)

    def pair_penalty(self, rows: SmoothedRows, pairs: Ints, metric: Metric) -> Floats:
        """Divergences of pairs from their means."""
        weights = np.ones(rows.n_features) if metric is None else metric
        return pair_divergence(rows.compressed, rows.share, pairs, weights)

    def largest_penalty(self, rows: SmoothedRows, metric: Metric) -> float:
        """Twice log 2 times the largest weighted sum of a row."""
        return _RowTotalBound(rows).value(np.ones(rows.n_features) if metric is None else metric)

    def move_metric(
        self, rows: SmoothedRows, within: _Within, violated: ViolatedLinks, metric: Metric
    ) -> Metric:
        """Closed form for the tangent of phi_max, with backtracking."""
        if metric is None:
            return None
        strength = self._strength(rows)
        of_links = pair_divergence_by_feature(
            rows.compressed, rows.share, violated.pairs, violated.signed_weight
        )
        return linear_metric_step(
            within.scatter + of_links,
            violated.cannot_weight,
            _RowTotalBound(rows),
            lambda total: rayleigh_minimiser(total, strength),
            lambda weights: strength * rayleigh_prior(weights),
            metric,
        )
