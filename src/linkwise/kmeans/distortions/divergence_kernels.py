"""Entropies and pair divergences of compressed rows that carry a constant share in every feature.

Entry (i, m) of the data is ``table[i, m] + share[i]``, so a sparse table stays sparse although every entry of
the data is positive. Features absent from a row cost nothing: what they add is the same for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel

__all__ = ["entropy_by_feature", "entropy_by_row", "pair_divergence", "pair_divergence_by_feature"]


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
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    share: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
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
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    share: NDArray[np.float64],
    result: NDArray[np.float64],
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
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    share: NDArray[np.float64],
    i: int,
    j: int,
    absent: float,
    weights: NDArray[np.float64],
    factor: float,
    result: NDArray[np.float64],
) -> float:
    """Walk through the features of two rows: the weighted excess of their divergence over ``absent``.

    If ``result`` has entries, ``factor`` times the excess of each feature is added there.
    """
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
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    share: NDArray[np.float64],
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    factors: NDArray[np.float64],
    by_feature: NDArray[np.float64],
) -> NDArray[np.float64]:
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


def entropy_by_row(
    table: Any, share: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sum_m a_m x_im log x_im of every row, (n,)."""
    return _entropy_by_row(table.data, table.indices, table.indptr, share, weights)


def entropy_by_feature(table: Any, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """sum_i x_im log x_im of every feature, (d,)."""
    result = np.zeros(table.shape[1])
    _entropy_by_feature(table.data, table.indices, table.indptr, share, result)
    return result


def pair_divergence(
    table: Any, share: NDArray[np.float64], pairs: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sum_m a_m (x_m log(2 x_m / (x_m + y_m)) + y_m log(2 y_m / (x_m + y_m))) of pairs (m, 2), (m,).

    The indices of the table must be sorted.
    """
    unused = np.empty(0)
    factors = np.zeros(len(pairs))
    return _pair_divergence(table.data, table.indices, table.indptr, share, pairs, weights, factors, unused)


def pair_divergence_by_feature(
    table: Any, share: NDArray[np.float64], pairs: NDArray[np.int64], factors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Summands of ``pair_divergence`` without weights, summed over pairs times their factors, (d,)."""
    result = np.zeros(table.shape[1])
    unit = np.ones(table.shape[1])
    _pair_divergence(table.data, table.indices, table.indptr, share, pairs, unit, factors, result)
    return result
