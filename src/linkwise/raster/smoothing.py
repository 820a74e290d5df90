"""Neighbouring pixels are likely of one class: labels of a tile by a Potts field on the pixel grid.

Iterated conditional modes, like the fields of a chessboard: few sweeps suffice, a label depends on pixels
nearby only, and tiles that overlap by ``HALO`` pixels join without a seam. On noisy pictures (12 bands, 10
classes, 85 % and 64 % right without smoothing) 97.0 % and 91.4 % are right afterwards; belief propagation
reaches 97.3 % and 93.4 % in 40 and 280 times the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import WIDTH, lane_sum, load, padded, splat

#: Pixels around a window that are smoothed with it. Even, so that the chessboard of all tiles is one.
HALO = 16
# Gains below this share of the compared scores are rounding: a tie, and ties keep the class.
_TIE = 1e-14


def check_smooth(smooth: Any) -> float | None:
    """The cost in nats of two neighbours of different classes, from the certainty that they are of one."""
    if smooth is None or smooth is False:
        return None
    value = float(smooth)
    if not 0.5 <= value < 1.0:
        raise ValueError(
            f"smooth is {value:g}: it is the certainty that two neighbours are of one class; write a number "
            "from .5 (no smoothing) to .99"
        )
    return float(np.log(value) - np.log1p(-value)) or None


def smooth_tile(scores: Floats, valid: Bools, coupling: float) -> tuple[Ints, NDArray[np.float32]]:
    """Class and its probability given the neighbours, (n,) each, of a tile; -1 and NaN where not valid.

    ``scores`` (n, K) are log-probabilities of all pixels of ``valid`` (h, w), in reading order.
    """
    n_classes = scores.shape[1]
    labels = np.empty(valid.shape, dtype=np.int64)
    confidence = np.empty(valid.shape, dtype=np.float32)
    _most_probable(scores, valid, labels)
    given = np.full(padded(n_classes + 1), -np.inf)
    _descend(scores, coupling, labels, valid.copy(), given)
    _given_neighbours(scores, coupling, labels, given, confidence)
    labels[labels == n_classes] = -1
    return labels.ravel(), confidence.ravel()


@kernel
def _most_probable(scores: Floats, valid: Bools, labels: Ints) -> None:
    """Write the class of the highest score of each pixel, K where there is no data."""
    n_classes = scores.shape[1]
    i = 0
    for row in range(valid.shape[0]):
        for column in range(valid.shape[1]):
            best = 0
            top = scores[i, 0]
            for k in range(1, n_classes):
                if scores[i, k] > top:
                    best = k
                    top = scores[i, k]
            labels[row, column] = best if valid[row, column] else n_classes
            i += 1


@kernel
def _scores_given(
    scores: Floats, coupling: float, labels: Ints, row: int, column: int, given: Floats
) -> None:
    """Scores of a pixel: its own, and ``coupling`` for each neighbour of the class; label K is no data."""
    height, width = labels.shape
    i = row * width + column
    for k in range(scores.shape[1]):
        given[k] = scores[i, k]
    if row > 0:
        given[labels[row - 1, column]] += coupling
    if row + 1 < height:
        given[labels[row + 1, column]] += coupling
    if column > 0:
        given[labels[row, column - 1]] += coupling
    if column + 1 < width:
        given[labels[row, column + 1]] += coupling


@kernel
def _descend(scores: Floats, coupling: float, labels: Ints, stale: Bools, given: Floats) -> None:
    """Give pixels their best class given their neighbours until nothing changes; ``stale`` ones are visited.

    ``inference.local_search.icm`` does the same by lists of links, which cost more to make than this descent.
    """
    height, width = labels.shape
    n_classes = scores.shape[1]
    changed = True
    while changed:
        changed = False
        for colour in range(2):
            for row in range(height):
                for column in range((row + colour) % 2, width, 2):
                    if not stale[row, column]:
                        continue
                    stale[row, column] = False
                    if labels[row, column] == n_classes:
                        continue
                    _scores_given(scores, coupling, labels, row, column, given)
                    best = given[0]
                    for k in range(1, n_classes):
                        best = given[k] if given[k] > best else best
                    current = given[labels[row, column]]
                    if best - current <= _TIE * (abs(best) + abs(current)):
                        continue
                    k = 0
                    while given[k] != best:
                        k += 1
                    labels[row, column] = k
                    changed = True
                    stale[max(row - 1, 0), column] = True
                    stale[min(row + 1, height - 1), column] = True
                    stale[row, max(column - 1, 0)] = True
                    stale[row, min(column + 1, width - 1)] = True


@kernel
def _given_neighbours(
    scores: Floats, coupling: float, labels: Ints, given: Floats, confidence: NDArray[np.float32]
) -> None:
    """Write the probability of the class of each pixel, given the classes of its four neighbours."""
    height, width = labels.shape
    for row in range(height):
        for column in range(width):
            if labels[row, column] == scores.shape[1]:
                confidence[row, column] = np.nan
                continue
            _scores_given(scores, coupling, labels, row, column, given)
            # No class beats that of the pixel, or the descent would go on.
            mine = splat(given[labels[row, column]])
            total = splat(0.0)
            for k in range(0, given.shape[0], WIDTH):
                total = total + exp_nonpositive(load(given, k) - mine)
            confidence[row, column] = 1.0 / lane_sum(total)
