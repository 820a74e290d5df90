"""MinMax (Mallapragada, Jin & Jain, ICPR 2008).

The first phase is Explore of Basu, Banerjee & Mooney. Afterwards the next row is the one whose largest
similarity to the rows S in neighbourhoods is smallest, and neighbourhoods are asked about in the order of
their largest similarity to it:

    x* = argmin over x of  max over y in S of  s(x, y),     s(x, y) = exp(-|x - y|^2 / (2 width^2)).

The similarity falls with the distance, so that x* is the row that is farthest from its nearest row in S,
whatever the width. It is computed so, since the similarities of far rows are all 0 in floating point. It
follows that both phases choose the same rows. Without K nothing changes, but a row that is
different from all neighbourhoods founds one at any time.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from linkwise._arrays import Ints
from linkwise.active.knowledge import Knowledge
from linkwise.active.strategies.neighbourhoods import Neighbourhoods, ask_rows, farthest_row
from linkwise.active.strategies.registry import among_landmarks, strategy


@strategy("min_max")
@among_landmarks
def min_max(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Questions about the row that is least like all rows in neighbourhoods."""

    def choose(known: Neighbourhoods, free: Ints, chosen: list[int], rng: np.random.Generator) -> int:
        return farthest_row(knowledge.X, free, np.append(known.rows, chosen).astype(np.int64))

    def order(known: Neighbourhoods, rows: Ints) -> Ints:
        nearest = [cdist(knowledge.X[rows], knowledge.X[others]).min() for others in known.members]
        return np.argsort(nearest, kind="stable")

    return ask_rows(knowledge, n_pairs, rng, choose, order)
