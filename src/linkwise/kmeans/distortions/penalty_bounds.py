"""phi_max for squared distances: the largest penalty of a pair, or a bound of it, for a given metric."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels import reassociating_kernel

_BLOCK = 16384
# Pairs times features of a call of the kernel, about a tenth of a second; then a signal gets through.
_PAIRS = 10**8


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
