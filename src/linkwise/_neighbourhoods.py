"""Neighbourhoods, the groups that must-links join, and the choice of those that centres start from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.graph import group_labels

__all__ = ["choose_far_apart", "neighbourhoods"]


def neighbourhoods(
    n_samples: int, must_link: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows that have a must-link (c,), the neighbourhood of each of them (c,), and how many there are."""
    labels, _ = group_labels(n_samples, must_link)
    members = np.unique(must_link)
    kept, groups = np.unique(labels[members], return_inverse=True)
    return members, groups.astype(np.int64), len(kept)


def choose_far_apart(
    distances: Callable[[int], NDArray[np.float64]],
    sizes: NDArray[np.float64],
    n_chosen: int,
    first: int,
    *,
    distinct: bool = False,
) -> NDArray[np.int64]:
    """Weighted farthest-first traversal: choose large groups far from those already chosen.

    ``distances(g)`` are those of all groups to group g. Each next group maximises, over the nearest chosen
    group, the distance times the root of both sizes; of equals the first. With ``distinct`` it ends early
    where all others coincide with chosen ones.
    """
    chosen = [first]
    gap = np.full(len(sizes), np.inf)
    while len(chosen) < n_chosen:
        last = chosen[-1]
        gap = np.minimum(gap, distances(last) * np.sqrt(sizes * sizes[last]))
        gap[chosen] = -1.0
        if distinct and gap.max() <= 0.0:
            break
        chosen.append(int(gap.argmax()))
    return np.array(chosen, dtype=np.int64)
