"""Spread: ask about the row whose label is least clear and that resembles most others, by label spreading.

With the kernel P = (I - a S)^-1 of the graph of nearest neighbours, the label of a row is the neighbourhood
whose rows have most of P. The next row has the largest

    (entropy of its neighbourhood + 0.7 * (1 - its largest P to a known row)) * sqrt(sum of its P),

and is compared with the neighbourhoods, the likeliest first. The first row is the one with the largest sum.
K only limits the number of neighbourhoods.
"""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.active.knowledge import Knowledge
from linkwise.active.strategies.neighbourhoods import Neighbourhoods, ask_rows, neighbourhoods
from linkwise.active.strategies.registry import strategy

#: Place of the kernel with a = 0.95 among those of the landscape.
_KERNEL = 4
#: What a row that no known row covers is worth, in nats.
_COVER = 0.7


@strategy("spread")
def spread(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Questions about rows that are unclear, far from known rows and near many others."""
    landscape = knowledge.surveyed
    answers = knowledge.answers._replace(pairs=landscape.place[knowledge.answers.pairs])
    seen = Knowledge(landscape.features, answers, knowledge.n_clusters)
    kernel = landscape.kernels[_KERNEL]
    influence = np.sqrt(kernel.sum(axis=1))
    known = neighbourhoods(seen)
    if not known.members:
        known = known._replace(members=[np.array([influence.argmax()])])

    def choose(known: Neighbourhoods, free: Ints, chosen: list[int], rng: np.random.Generator) -> int:
        share = _shares(kernel, known)[free]
        entropy = -np.sum(share * np.log(np.where(share > 0.0, share, 1.0)), axis=1)
        covered = kernel[np.ix_(free, np.append(known.rows, chosen).astype(np.int64))].max(axis=1)
        return int(free[np.argmax((entropy + _COVER * (1.0 - covered)) * influence[free])])

    def order(known: Neighbourhoods, rows: Ints) -> Ints:
        return np.argsort(-_shares(kernel, known)[rows].mean(axis=0), kind="stable")

    return landscape.rows[ask_rows(seen, n_pairs, rng, choose, order, known)]


def _shares(kernel: Floats, known: Neighbourhoods) -> Floats:
    """Share of each neighbourhood in what reaches a row, (l, k); the same for all where nothing does."""
    reached = np.stack([kernel[:, rows].sum(axis=1) for rows in known.members], axis=1)
    total = reached.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, reached / np.where(total > 0.0, total, 1.0), 1.0 / len(known.members))
