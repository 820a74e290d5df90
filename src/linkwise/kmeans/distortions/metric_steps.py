"""Steps that improve a metric for fixed labels and centres, and never make it worse.

For squared distances and divergences the objective of the metric step is, for weights or a matrix A,

    J(A) = <A, S> + c phi_max(A) + r(A),

S gathering the scatter within clusters and the violated links, c the weight of the violated cannot-links and
r a term that keeps A from vanishing. ``phi_max`` is convex (a maximum over pairs of points): replacing it by
its tangent gives a problem with a closed form, whose solution is then approached by backtracking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from linkwise._arrays import Floats

_HALVINGS = 30
# Decrease that the line search asks for, as a share of what the slope promises (Armijo's rule).
_ARMIJO = 1e-4


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
