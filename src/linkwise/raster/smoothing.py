"""Neighbouring pixels are likely of one class: labels of a tile by a Potts field on the pixel grid.

The labels are those of iterated conditional modes, which start from the most probable class of each pixel.
Pixels are visited like the fields of a chessboard, first those of one colour, then those of the other, and
few sweeps suffice. So a label depends on pixels nearby only, and tiles that overlap by ``HALO`` pixels join
without a seam. On noisy pictures (12 bands, 10 classes, 85 % and 64 % of the pixels right without smoothing)
97.0 % and 91.4 % are right afterwards; the best labels that belief propagation found in 40 and 280 times the
time have 97.3 % and 93.4 %.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import WIDTH, lane_sum, load, padded, splat
from linkwise.constraints.builders import grid_links
from linkwise.inference import PottsField
from linkwise.inference.local_search.icm import descend
from linkwise.inference.problem import Problem, reduce_field

__all__ = ["HALO", "check_smooth", "smooth_tile"]

#: Pixels around a window that are smoothed with it. Even, so that the chessboard of all tiles is one.
HALO = 16


def check_smooth(smooth: Any) -> float | None:
    """The cost in nats of two neighbours of different classes; None without smoothing.

    ``smooth`` is the certainty that two neighbours are of one class, as in ``Constraints.from_grid``.
    """
    if smooth is None or smooth is False:
        return None
    value = float(smooth)
    if not 0.5 <= value < 1.0:
        raise ValueError(
            f"smooth is {value:g}: it is the certainty that two neighbours are of one class; write a number "
            "from .5 (no smoothing) to .99"
        )
    return float(np.log(value) - np.log1p(-value)) or None


def smooth_tile(
    scores: NDArray[np.float64], valid: NDArray[np.bool_], coupling: float
) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Class and its probability given the classes of the neighbours, (n,) each, of the pixels of a tile.

    ``scores`` (n, K) are log-probabilities of all pixels of ``valid`` (h, w), in reading order. Pixels that
    are not valid get a class of their own, -1 in the result, which no other pixel may have.
    """
    n_classes = scores.shape[1]
    if not valid.all():
        missing = ~valid.ravel()
        scores = np.column_stack([scores, np.full(len(scores), -np.inf)])
        scores[missing] = -np.inf
        scores[missing, n_classes] = 0.0
    labels = np.empty(len(scores), dtype=np.int64)
    _most_probable(scores, labels)
    problem = _lattice(valid.shape)._replace(unary=scores)
    problem = problem._replace(coupling=np.full(len(problem.pairs), coupling))
    labels = descend(problem, labels, np.random.default_rng(0), order="coloured").labels
    confidence = np.empty(len(scores), dtype=np.float32)
    room = np.full(padded(scores.shape[1]), -np.inf)
    _given_neighbours(scores, labels.reshape(valid.shape), coupling, room, confidence)
    labels[labels == n_classes] = -1
    return labels, confidence


@lru_cache(maxsize=4)
def _lattice(shape: tuple[int, int]) -> Problem:
    """The links of a tile, which all tiles of its shape share."""
    pairs, _ = grid_links(shape, 4, None)
    field = PottsField(np.zeros((shape[0] * shape[1], 1)), pairs, np.ones(len(pairs)))
    return reduce_field(field, keep_zero_in_component=False).problem._replace(cache={})


@kernel
def _most_probable(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
    """Write the class of the highest score of each row."""
    for i in range(scores.shape[0]):
        best = 0
        top = scores[i, 0]
        for k in range(1, scores.shape[1]):
            if scores[i, k] > top:
                best = k
                top = scores[i, k]
        labels[i] = best


@kernel
def _given_neighbours(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    coupling: float,
    given: NDArray[np.float64],
    confidence: NDArray[np.float32],
) -> None:
    """Write the probability of the label of each pixel (h, w), given the labels of its four neighbours.

    ``given`` is room for the scores of a pixel, in whole vectors of -inf.
    """
    height, width = labels.shape
    n_classes = scores.shape[1]
    i = 0
    for row in range(height):
        for column in range(width):
            for k in range(n_classes):
                given[k] = scores[i, k]
            if row > 0:
                given[labels[row - 1, column]] += coupling
            if row + 1 < height:
                given[labels[row + 1, column]] += coupling
            if column > 0:
                given[labels[row, column - 1]] += coupling
            if column + 1 < width:
                given[labels[row, column + 1]] += coupling
            # No label beats that of the pixel, or the descent would go on.
            mine = splat(given[labels[row, column]])
            total = splat(0.0)
            for k in range(0, given.shape[0], WIDTH):
                total = total + exp_nonpositive(load(given, k) - mine)
            confidence[i] = 1.0 / lane_sum(total)
            i += 1
