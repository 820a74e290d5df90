"""Explore & Consolidate (Basu, Banerjee & Mooney, SIAM Data Mining 2004, sections 4.1 and 4.2).

**Explore** looks for a row of every cluster. It begins with a random row and goes on with the row that is
farthest from all neighbourhoods, until there are K neighbourhoods. **Consolidate** takes random rows outside
of the neighbourhoods and asks about each neighbourhood in the order of the distance to its centroid until one
answer is "same". The centroids are those at the end of Explore, as in the paper.

The paper leaves open which row of a neighbourhood is shown and in which order Explore asks about
neighbourhoods: here it is the nearest row, and the nearest centroid first.

Without K, Explore goes on until ``PATIENCE`` rows in a row have founded no neighbourhood. A row that
founds one later starts Explore again.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.active.knowledge import Knowledge
from linkwise.active.strategies.neighbourhoods import Neighbourhoods, ask_rows, farthest_row
from linkwise.active.strategies.registry import among_landmarks, strategy

#: Rows in a row that found nothing new before Explore ends, where the number of clusters is not known.
PATIENCE = 10


@strategy("explore_consolidate")
@among_landmarks
def explore_consolidate(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Questions of Explore while it lasts, then of Consolidate."""

    def choose(known: Neighbourhoods, free: Ints, chosen: list[int], rng: np.random.Generator) -> int:
        if _explores(knowledge, known, len(chosen)):
            return farthest_row(knowledge.X, free, np.append(known.rows, chosen).astype(np.int64))
        return int(rng.choice(free))

    def order(known: Neighbourhoods, rows: Ints) -> Ints:
        gaps = _centroids(knowledge, known) - knowledge.X[rows].mean(axis=0)
        return np.argsort(np.einsum("kd,kd->k", gaps, gaps), kind="stable")

    return ask_rows(knowledge, n_pairs, rng, choose, order)


def _explores(knowledge: Knowledge, known: Neighbourhoods, n_under_way: int) -> bool:
    """Whether Explore has not come to its end; rows under way found nothing, for all we know."""
    if knowledge.n_clusters is not None:
        return len(known.members) < knowledge.n_clusters
    n_asked = int((known.turn < knowledge.n_samples).sum()) - len(known.pending_rows)
    return n_asked - 1 - known.last_founding + n_under_way < PATIENCE if n_asked else True


def _centroids(knowledge: Knowledge, known: Neighbourhoods) -> Floats:
    """Means of the neighbourhoods (k, d), while Explore lasts; afterwards as they were at its end."""
    last = known.last_founding
    if knowledge.n_clusters is None:
        last += PATIENCE
    elif len(known.members) < knowledge.n_clusters:
        last = knowledge.n_samples
    return np.array([knowledge.X[rows[known.turn[rows] <= last]].mean(axis=0) for rows in known.members])
