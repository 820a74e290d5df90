"""Steps that improve a metric for fixed labels and centres, and never make it worse.

For squared distances and divergences the objective of the metric step is, for weights or a matrix A,

    J(A) = <A, S> + c phi_max(A) + r(A),

S gathering the scatter within clusters and the violated links, c the weight of the violated cannot-links and
r a term that keeps A from vanishing. ``phi_max``, the largest penalty of a pair or a bound of it, is convex
(a maximum over pairs of points): replacing it by its tangent gives a problem with a closed form, whose
solution is then approached by backtracking. For squared distances phi_max itself is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import reassociating_kernel

_HALVINGS = 30
# Decrease that the line search asks for, as a share of what the slope promises (Armijo's rule).
_ARMIJO = 1e-4
_BLOCK = 16384
# Pairs times features of a call of the kernel, about a tenth of a second; then a signal gets through.
_PAIRS = 10**8


class PenaltyBound(Protocol):
    """phi_max: an upper bound of the pair penalty over the data set, convex in the metric."""

    def value(self, metric: Floats) -> float:
        """The bound for this metric."""

    def slope(self, metric: Floats) -> Floats:
        """A subgradient: bound(B) >= <B, slope(A)> for every B, with equality for B = A."""


def log_det(metric: Floats, *, diagonal: bool) -> Floats:
    """Logarithm of the determinant of weights (..., d) on a diagonal, or of a matrix (d, d)."""
    if diagonal:
        return np.log(metric).sum(axis=-1)
    scale = np.sqrt(metric.diagonal())
    return 2.0 * np.log(scale).sum() + np.linalg.slogdet(metric / np.outer(scale, scale))[1]


def diagonal_minimiser(scatter: Floats, count: float, upper: Floats) -> Floats:
    """Weights (d,) that minimise sum_m a_m S_m - count log a_m over 0 < a_m <= upper_m."""
    # Dividing the other way round needs no special case for scatter <= 0.
    return count / np.maximum(scatter, count / upper)


def full_minimiser(scatter: Floats, count: float, scale: Floats, floor: float) -> Floats:
    """Matrix that minimises tr(A S) - count log det A among those with T A T <= I / floor, T = diag(scale).

    Eigenvalues of S in units of ``scale`` are clipped from below at count * floor, the exact minimiser.
    """
    units = scatter / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(0.5 * (units + units.T))
    inverse = count / np.maximum(values, count * floor)
    matrix = (vectors * inverse) @ vectors.T / np.outer(scale, scale)
    return 0.5 * (matrix + matrix.T)


def rayleigh_prior(weights: Floats) -> float:
    """sum_m a_m^2 / 2 - log a_m - 1/2: minus the log of a Rayleigh density, 0 where all weights are 1."""
    return float((0.5 * weights**2 - np.log(weights) - 0.5).sum())


def rayleigh_minimiser(scatter: Floats, strength: float) -> Floats:
    """Weights a (d,) that minimise sum_m a_m S_m + s (a_m^2 / 2 - log a_m): s a^2 + S a - s = 0, a > 0."""
    half = scatter / (2.0 * strength)
    # Beyond 1e8 the 1 is lost in rounding, and the square of a far larger number would overflow.
    root = np.where(np.abs(half) > 1e8, np.abs(half), np.sqrt(np.clip(half, -1e8, 1e8) ** 2 + 1.0))
    # 1 / (h + r) = r - h without cancellation, whichever the sign of h.
    return np.where(half >= 0.0, 1.0 / (np.abs(half) + root), np.abs(half) + root)


def backtrack(objective: Callable[[Floats], float], old: Floats, candidate: Floats) -> Floats:
    """First of candidate, half way to it, a quarter, ... that does not raise the objective, or ``old``."""
    start = objective(old)
    share = 1.0
    for _ in range(_HALVINGS):
        metric = candidate if share == 1.0 else old + share * (candidate - old)
        if objective(metric) <= start:
            return metric
        share *= 0.5
    return old


def linear_metric_step(
    scatter: Floats,
    cannot_weight: float,
    bound: PenaltyBound,
    minimise: Callable[[Floats], Floats],
    regulariser: Callable[[Floats], float],
    old: Floats,
) -> Floats:
    """Lower <A, S> + cannot_weight * bound(A) + regulariser(A), never worse than ``old``.

    ``minimise`` maps S to argmin_A <A, S> + regulariser(A): the answer itself if the bound is linear in A.
    """

    def objective(metric: Floats) -> float:
        value = float((metric * scatter).sum()) + regulariser(metric)
        return value + cannot_weight * bound.value(metric) if cannot_weight else value

    slope = scatter + cannot_weight * bound.slope(old) if cannot_weight else scatter
    return backtrack(objective, old, minimise(slope))


def descend_log_weights(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]], start: Floats, step: float, max_steps: int
) -> Floats:
    """Gradient descent on log a with backtracking from ``step``: positive weights, and it never rises."""
    weights = start
    value, gradient = value_and_gradient(weights)
    for _ in range(max_steps):
        slope = weights * gradient
        length = float(slope @ slope)
        for _ in range(_HALVINGS):
            # Weights change by at most e^2 in one step: far from the start the slope says nothing.
            trial = weights * np.exp(np.clip(-step * slope, -2.0, 2.0))
            trial_value, trial_gradient = value_and_gradient(trial)
            if trial_value <= value - _ARMIJO * step * length:
                break
            step *= 0.5
        else:
            return weights
        settled = value - trial_value <= 1e-12 * abs(value)
        weights, value, gradient = trial, trial_value, trial_gradient
        if settled:
            break
        step *= 2.0
    return weights


def metric_factor(metric: Floats) -> Floats:
    """L with A = L L', so that x'Ax = |L'x|^2; for weights on a diagonal their roots."""
    if metric.ndim == 1:
        return np.sqrt(metric)
    # Features in units of their own: otherwise rounding of the largest entries would drown the smallest.
    scale = np.sqrt(metric.diagonal())
    values, vectors = np.linalg.eigh(metric / np.outer(scale, scale))
    return np.ascontiguousarray(scale[:, np.newaxis] * vectors * np.sqrt(np.maximum(values, 0.0)))


@reassociating_kernel
def _farthest_pair(
    points: Floats, radius: Floats, start: int, best: float, best_i: int, best_j: int, max_pairs: int
) -> tuple[int, float, int, int]:
    """Largest squared distance so far; points come by falling ``radius``, so that most pairs are skipped.

    Goes on at point ``start`` and returns where to go on next, the number of points when all is done.
    """
    n_points, n_features = points.shape
    reach = np.sqrt(best)
    n_pairs = 0
    for i in range(start, n_points):
        if 2.0 * radius[i] <= reach:
            break
        if n_pairs >= max_pairs:
            return i, best, best_i, best_j
        for j in range(i + 1, n_points):
            n_pairs += 1
            if radius[i] + radius[j] <= reach:
                break
            total = 0.0
            for m in range(n_features):
                gap = points[i, m] - points[j, m]
                total += gap * gap
            if total > best:
                best, best_i, best_j = total, i, j
                reach = np.sqrt(best)
    return n_points, best, best_i, best_j


def squared_diameter(points: Floats) -> tuple[float, int, int]:
    """Squared distance of the two points farthest apart, and these two: up to n^2 / 2 distances."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    radius = np.sqrt(((points - middle) ** 2).sum(axis=1))
    order = np.argsort(-radius, kind="stable")
    by_radius, radius = np.ascontiguousarray(points[order]), radius[order]
    start, value, i, j, max_pairs = 0, 0.0, 0, 0, max(1, _PAIRS // points.shape[1])
    while start < len(points):
        start, value, i, j = _farthest_pair(by_radius, radius, start, value, i, j, max_pairs)
    first, second = sorted((int(order[i]), int(order[j])))
    return float(value), first, second


class BoxBound:
    """sum_m a_m range_m^2: the squared diagonal of the box around the data. Linear in the weights."""

    def __init__(self, squared_range: Floats) -> None:
        self.squared_range = squared_range

    def value(self, metric: Floats) -> float:
        """The bound for weights (d,)."""
        return float(metric @ self.squared_range)

    def slope(self, metric: Floats) -> Floats:
        """Its gradient, (d,)."""
        return self.squared_range


class SphereBound:
    """4 max_i |x_i - mean|_A^2: the squared diameter of the ball around the data, for a full matrix."""

    def __init__(self, centred: Floats) -> None:
        self.centred = centred

    def _farthest(self, metric: Floats) -> tuple[float, int]:
        factor = metric_factor(metric)
        best, place = -1.0, 0
        for start in range(0, len(self.centred), _BLOCK):
            length = ((self.centred[start : start + _BLOCK] @ factor) ** 2).sum(axis=1)
            row = int(length.argmax())
            if length[row] > best:
                best, place = float(length[row]), start + row
        return best, place

    def value(self, metric: Floats) -> float:
        """The bound for a matrix (d, d)."""
        return 4.0 * self._farthest(metric)[0]

    def slope(self, metric: Floats) -> Floats:
        """A subgradient, (d, d)."""
        gap = self.centred[self._farthest(metric)[1]]
        return 4.0 * np.outer(gap, gap)


class DiameterBound:
    """max_ij |x_i - x_j|_A^2 itself."""

    def __init__(self, X: Floats) -> None:
        self.X = X

    def _farthest(self, metric: Floats) -> tuple[float, int, int]:
        factor = metric_factor(metric)
        return squared_diameter(self.X * factor if factor.ndim == 1 else self.X @ factor)

    def value(self, metric: Floats) -> float:
        """The squared diameter under weights (d,) or a matrix (d, d)."""
        return self._farthest(metric)[0]

    def slope(self, metric: Floats) -> Floats:
        """A subgradient of the shape of the metric."""
        _, i, j = self._farthest(metric)
        gap = self.X[i] - self.X[j]
        return gap * gap if metric.ndim == 1 else np.outer(gap, gap)
