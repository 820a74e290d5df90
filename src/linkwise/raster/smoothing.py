"""Neighbouring pixels are likely of one class: labels of a tile by a Potts field on the pixel grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.constraints.builders import grid_links
from linkwise.inference import PottsField, best_labels

__all__ = ["HALO", "check_smooth", "smooth_tile"]

#: Pixels around a window that are smoothed with it, so that no seam is seen.
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
    """Class and its probability given the classes of the neighbours, of the valid pixels of a tile.

    ``scores`` (n, K) are log-probabilities of the valid pixels of ``valid`` (h, w), in reading order.
    """
    pairs, _ = grid_links(valid.shape, 4, valid)
    field = PottsField(scores, pairs, np.full(len(pairs), coupling))
    labels = best_labels(field, "icm", 0, order="coloured").labels
    given = scores.copy()
    for end in (0, 1):
        np.add.at(given, (pairs[:, end], labels[pairs[:, 1 - end]]), coupling)
    given -= given.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(given, labels[:, np.newaxis], axis=1)[:, 0]
    return labels, np.exp(chosen) / np.exp(given).sum(axis=1)
