"""One pass of K-means over the rows: nearest centre and moments of the clusters, without an n x K table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._kernels import kernel, reassociating_kernel
from linkwise._kernels.simd import WIDTH, load, select_below, splat, store
from linkwise._threads import Workers, chunk_bounds

# Points that a step of the kernel treats side by side: four registers of lanes.
_POINTS = 4 * WIDTH
# Rows of a task; sums over tasks are taken in order, so results do not depend on the threads.
_CHUNK = 16384


class Assigned(NamedTuple):
    """Labels (n,), what each row pays (n,), and sums (K, d) of x - centre and of its squares."""

    labels: Ints
    cost: Floats
    counts: Floats
    first: Floats
    second: Floats


@kernel
def _nearest(
    X: Floats,
    start: int,
    stop: int,
    centres: Floats,
    weights: Floats,
    bias: Floats,
    labels: Ints,
    cost: Floats,
) -> None:
    """Cheapest cluster of each row: argmin_k bias_k + sum_m weights_km (x_m - centre_km)^2."""
    n_clusters, n_features = centres.shape
    tile = np.zeros(n_features * _POINTS)
    found = np.empty(_POINTS)
    place = np.empty(_POINTS)
    for base in range(start, stop, _POINTS):
        width = min(_POINTS, stop - base)
        for point in range(width):
            for m in range(n_features):
                tile[m * _POINTS + point] = X[base + point, m]
        best_0 = best_1 = best_2 = best_3 = splat(np.inf)
        label_0 = label_1 = label_2 = label_3 = splat(0.0)
        for k in range(n_clusters):
            sum_0 = sum_1 = sum_2 = sum_3 = splat(bias[k])
            for m in range(n_features):
                centre, weight = splat(centres[k, m]), splat(weights[k, m])
                at = m * _POINTS
                gap_0 = load(tile, at) - centre
                gap_1 = load(tile, at + WIDTH) - centre
                gap_2 = load(tile, at + 2 * WIDTH) - centre
                gap_3 = load(tile, at + 3 * WIDTH) - centre
                sum_0 = sum_0 + weight * gap_0 * gap_0
                sum_1 = sum_1 + weight * gap_1 * gap_1
                sum_2 = sum_2 + weight * gap_2 * gap_2
                sum_3 = sum_3 + weight * gap_3 * gap_3
            label = splat(float(k))
            label_0 = select_below(sum_0, best_0, label, label_0)
            label_1 = select_below(sum_1, best_1, label, label_1)
            label_2 = select_below(sum_2, best_2, label, label_2)
            label_3 = select_below(sum_3, best_3, label, label_3)
            best_0 = select_below(sum_0, best_0, sum_0, best_0)
            best_1 = select_below(sum_1, best_1, sum_1, best_1)
            best_2 = select_below(sum_2, best_2, sum_2, best_2)
            best_3 = select_below(sum_3, best_3, sum_3, best_3)
        store(found, 0, best_0)
        store(found, WIDTH, best_1)
        store(found, 2 * WIDTH, best_2)
        store(found, 3 * WIDTH, best_3)
        store(place, 0, label_0)
        store(place, WIDTH, label_1)
        store(place, 2 * WIDTH, label_2)
        store(place, 3 * WIDTH, label_3)
        for point in range(width):
            labels[base + point] = int(place[point])
            cost[base + point] = found[point]


@kernel
def _accumulate(
    X: Floats,
    start: int,
    stop: int,
    centres: Floats,
    weights: Floats,
    bias: Floats,
    given: Ints,
    labels: Ints,
    cost: Floats,
    counts: Floats,
    first: Floats,
    second: Floats,
) -> None:
    """Put rows with a given label there, and add every row to the moments of its cluster."""
    n_features = centres.shape[1]
    for row in range(start, stop):
        if given.shape[0] > 0 and given[row] >= 0:
            k = given[row]
            labels[row] = k
            total = bias[k]
            for m in range(n_features):
                gap = X[row, m] - centres[k, m]
                total += weights[k, m] * gap * gap
            cost[row] = total
        k = labels[row]
        counts[k] += 1.0
        for m in range(n_features):
            gap = X[row, m] - centres[k, m]
            first[k, m] += gap
            second[k, m] += gap * gap


@reassociating_kernel
def _fill_table(X: Floats, centres: Floats, weights: Floats, table: Floats) -> None:
    """Weighted squared distances of all rows to all centres."""
    for row in range(X.shape[0]):
        for k in range(centres.shape[0]):
            total = 0.0
            for m in range(X.shape[1]):
                gap = X[row, m] - centres[k, m]
                total += weights[k, m] * gap * gap
            table[row, k] = total


def assign_rows(
    X: Floats,
    centres: Floats,
    weights: Floats,
    bias: Floats,
    given: Ints | None = None,
    *,
    n_threads: int = 1,
) -> Assigned:
    """Send each row to argmin_k bias_k + sum_m weights_km (x_m - centre_km)^2, or its label if ``given``."""
    n_samples = len(X)
    labels = np.empty(n_samples, dtype=np.int64)
    cost = np.empty(n_samples)
    fixed = np.empty(0, dtype=np.int64) if given is None else given
    centres, weights = np.ascontiguousarray(centres), np.ascontiguousarray(weights)

    def assign_chunk(bounds: tuple[int, int]) -> tuple[Floats, ...]:
        moments = (np.zeros(len(centres)), np.zeros(centres.shape), np.zeros(centres.shape))
        _nearest(X, *bounds, centres, weights, bias, labels, cost)
        _accumulate(X, *bounds, centres, weights, bias, fixed, labels, cost, *moments)
        return moments

    parts = list(Workers(n_threads).map(assign_chunk, chunk_bounds(0, n_samples, _CHUNK)))
    counts, first, second = (np.sum([part[place] for part in parts], axis=0) for place in range(3))
    return Assigned(labels, cost, counts, first, second)


def weighted_distances(X: Floats, centres: Floats, weights: Floats) -> Floats:
    """Squared distances (n, K) of all rows to all centres, weighted by cluster and feature."""
    table = np.empty((len(X), len(centres)))
    # Of any order: a kernel would be compiled for each.
    X = np.ascontiguousarray(X)
    _fill_table(X, np.ascontiguousarray(centres), np.ascontiguousarray(weights), table)
    return table
