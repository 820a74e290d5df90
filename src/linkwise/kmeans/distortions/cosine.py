"""Cosine distortion of directions, plain or with learned weights of the features."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import diags_array, issparse

from linkwise._arrays import Floats, Ints
from linkwise._row_tables import (
    column_extremes,
    dot_by_label,
    label_sums,
    row_products,
    weighted_squares,
)
from linkwise.kmeans.distortions.base import AssignmentPass, Metric, ViolatedLinks, WeightedDistortion
from linkwise.kmeans.distortions.metric_steps import descend_log_weights, rayleigh_prior

# Mean of 1 - cosine about the common direction, of which rounding leaves two digits.
_UNRESOLVED = 1e-13
# Gradient steps of one metric step; the descent comes back for more.
_STEPS = 5


class UnitRows:
    """Rows of length one, a table (n, d), dense or CSR."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def take(self, indices: Any) -> UnitRows:
        """Some of the rows."""
        return UnitRows(self.table[indices])

    @cached_property
    def squares(self) -> Any:
        """Squared entries."""
        return row_products(self.table, self.table)

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no entry is negative, so that no two rows are more than a right angle apart."""
        values = self.table.data if issparse(self.table) else self.table
        return bool((values >= 0.0).all())

    def lengths(self, metric: Metric) -> Floats:
        """|x|_A of every row, (n,)."""
        return np.ones(len(self)) if metric is None else np.sqrt(self.squares @ metric)

    @cached_property
    def total_distortion(self) -> float:
        """Distortion of all rows about their common direction."""
        total = np.asarray(self.table.sum(axis=0)).ravel()
        return len(self) - float(np.linalg.norm(total))


class _Within(NamedTuple):
    """What the objective of the metric needs: the rows, their labels and the centres."""

    rows: UnitRows
    labels: Ints
    counts: Floats
    centres: Floats


class Cosine(WeightedDistortion):
    """1 - x'A mu / (|x|_A |mu|_A), A = diag(a); centres are the directions of the sums of x / |x|_A.

    A Rayleigh prior keeps all weight from gathering on one feature (Basu, Bilenko & Mooney 2004); its
    strength is the distortion about one direction, per feature, times ``metric_weight``.
    """

    name = "cosine"

    def __init__(self, metric: str | None, *, metric_weight: float = 1.0) -> None:
        self.metric = metric
        self.metric_weight = metric_weight

    def rows(self, X: Any, origin: Floats | None = None) -> UnitRows:
        """Data (n, d) scaled to rows of length one; a zero row is refused."""
        table = X.astype(np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
        # Scaling by the largest entry first: squares of tiny or huge entries would leave the range of floats.
        if issparse(table):
            largest = np.asarray(abs(table).max(axis=1).todense(), dtype=np.float64).ravel()
        else:
            largest = np.abs(table).max(axis=1)
        empty = np.flatnonzero(largest == 0.0)
        if empty.size:
            raise ValueError(
                f"row {empty[0]} is zero throughout and has no direction; distortion='cosine' needs a "
                "nonzero entry in every row: remove such rows (and their links: constraints[rows])"
            )
        table = _scaled(table, 1.0 / largest)
        return UnitRows(_scaled(table, 1.0 / np.sqrt(weighted_squares(table, np.ones(table.shape[1])))))

    def refuse_unresolved(self, rows: UnitRows) -> None:
        """Angles of 1e-7 are too small for 1 - cosine."""
        lowest, highest = column_extremes(rows.table)
        column = int((highest - lowest).argmax())
        same = highest[column] - lowest[column] <= 16 * np.finfo(float).eps
        if not same and rows.total_distortion < _UNRESOLVED * len(rows):
            raise ValueError(
                "all rows of X point nearly the same way, closer than distortion='cosine' can tell apart; "
                f"column {column} differs most: subtract its mean, or use distortion='euclidean'"
            )

    def rows_of_centres(self, centres: Floats) -> UnitRows:
        """Centres scaled to length one."""
        return UnitRows(_normalised(centres))

    def _strength(self, rows: UnitRows) -> float:
        total = rows.total_distortion
        per_feature = total / rows.table.shape[1] if total > 1e-12 * len(rows) else 1.0
        return self.metric_weight * per_feature

    def distances(self, rows: UnitRows, centres: Floats, metric: Metric) -> Floats:
        """One minus the cosines of rows and centres, (n, K)."""
        weighted = centres if metric is None else centres * metric
        weighted = weighted / np.sqrt((centres * weighted).sum(axis=1))[:, np.newaxis]
        return 1.0 - np.asarray(rows.table @ weighted.T) / rows.lengths(metric)[:, np.newaxis]

    def group_centres(self, rows: UnitRows, groups: Ints, n_groups: int) -> Floats:
        """Directions of the sums."""
        sums = label_sums(rows.table, groups, n_groups)
        # Opposite rows may cancel; then any of them is as good a direction.
        cancelled = np.linalg.norm(sums, axis=1) < 1e-12
        if cancelled.any():
            first = np.unique(groups, return_index=True)[1][cancelled]
            members = rows.table[first]
            sums[cancelled] = members.toarray() if issparse(members) else members
        return _normalised(sums)

    def move_centres(
        self, rows: UnitRows, found: AssignmentPass, centres: Floats, metric: Metric
    ) -> tuple[Floats, _Within]:
        """Directions of the sums of x / abs(x)_A."""
        sums = label_sums(rows.table, found.labels, len(centres), 1.0 / rows.lengths(metric))
        length = np.sqrt((sums * sums if metric is None else sums * sums * metric).sum(axis=1))
        # Where the rows of a cluster cancel, every direction costs the same: keep the old one.
        kept = length <= 1e-12 * np.maximum(found.counts, 1.0)
        moved = np.where(kept[:, np.newaxis], centres, sums / np.where(kept, 1.0, length)[:, np.newaxis])
        return moved, _Within(rows, found.labels, found.counts, moved)

    def within_cost(self, within: _Within, metric: Metric) -> float:
        """Number of rows less the sum of their cosines."""
        cosines = _cosines_to_centres(within, metric, within.rows.lengths(metric))[0]
        return float(len(within.labels) - cosines.sum())

    def pair_penalty(self, rows: UnitRows, pairs: Ints, metric: Metric) -> Floats:
        """One minus the cosines of pairs."""
        products = row_products(rows.table[pairs[:, 0]], rows.table[pairs[:, 1]])
        weights = np.ones(rows.table.shape[1]) if metric is None else metric
        lengths = rows.lengths(metric)[pairs].prod(axis=1)
        return np.maximum(1.0 - np.asarray(products @ weights) / lengths, 0.0)

    def largest_penalty(self, rows: UnitRows, metric: Metric) -> float:
        """1 for nonnegative data, else 2."""
        return 1.0 if rows.nonnegative else 2.0

    def move_metric(self, rows: UnitRows, within: _Within, violated: ViolatedLinks, metric: Metric) -> Metric:
        """A few gradient steps on log a, with backtracking."""
        if metric is None:
            return None
        strength = self._strength(rows)
        products = row_products(rows.table[violated.pairs[:, 0]], rows.table[violated.pairs[:, 1]])

        def value_and_gradient(weights: Floats) -> tuple[float, Floats]:
            cost, gradient = cosine_scatter(within, violated, products, weights)
            prior = weights - 1.0 / weights
            return cost + strength * rayleigh_prior(weights), gradient + strength * prior

        return descend_log_weights(value_and_gradient, metric, 0.5 / strength, _STEPS)


def cosine_scatter(
    within: _Within, violated: ViolatedLinks, products: Any, weights: Floats
) -> tuple[float, Floats]:
    """Distortion of rows and violated links under weights a (d,), and its gradient (d,).

    For one pair of vectors, with p = |x|_A, q = |y|_A and c the cosine,
    dD/da_m = -x_m y_m / (p q) + c (x_m^2 / p^2 + y_m^2 / q^2) / 2. ``products`` (v, d) are those of the two
    rows of each violated link.
    """
    rows = within.rows
    lengths = rows.lengths(weights)
    cosines, centre_lengths = _cosines_to_centres(within, weights, lengths)
    cost = len(rows) - float(cosines.sum())
    directions = within.centres / centre_lengths[:, np.newaxis]
    sums = label_sums(rows.table, within.labels, len(directions), 1.0 / lengths)
    per_cluster = np.bincount(within.labels, cosines, len(directions))
    gradient = 0.5 * per_cluster @ directions**2 - (directions * sums).sum(axis=0)

    ends = lengths[violated.pairs]
    pair_cosines = np.asarray(products @ weights) / ends.prod(axis=1)
    signed = violated.signed_weight
    # phi_max does not depend on the weights, so it is left out.
    cost += float(signed @ (1.0 - pair_cosines))
    gradient -= np.asarray(products.T @ (signed / ends.prod(axis=1)))

    of_squares = cosines + np.bincount(
        violated.pairs.ravel(), np.repeat(signed * pair_cosines, 2), minlength=len(rows)
    )
    gradient += 0.5 * np.asarray(rows.squares.T @ (of_squares / lengths**2))
    return cost, gradient


def _cosines_to_centres(within: _Within, metric: Metric, lengths: Floats) -> tuple[Floats, Floats]:
    """Cosine of each row to its centre, and |centre|_A."""
    weighted = within.centres if metric is None else within.centres * metric
    centre_lengths = np.sqrt((weighted * within.centres).sum(axis=1))
    products = dot_by_label(within.rows.table, weighted, within.labels)
    return products / (lengths * centre_lengths[within.labels]), centre_lengths


def _scaled(table: Any, factors: Floats) -> Any:
    """Rows times their factors."""
    return (diags_array(factors) @ table).tocsr() if issparse(table) else table * factors[:, np.newaxis]


def _normalised(table: Floats) -> Floats:
    return table / np.linalg.norm(table, axis=1, keepdims=True)
