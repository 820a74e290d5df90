"""Random pairs: every pair that was not asked about is as likely as any other."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Ints
from linkwise.active.knowledge import Knowledge
from linkwise.active.strategies.registry import among_landmarks, strategy

#: With a smaller share of new pairs these are listed; else drawing until one is new takes a few draws.
_CROWDED = 0.1


@strategy("random")
@among_landmarks
def random_pairs(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Pairs drawn uniformly among those that were not asked about; the number of clusters does not matter."""
    return new_random_pairs(knowledge.n_samples, knowledge.asked, n_pairs, rng)


def new_random_pairs(n_samples: int, asked: Ints, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Different pairs (n_pairs, 2) outside of ``asked`` (q, 2), each uniform; fewer if there are no more."""
    taken = {(min(pair), max(pair)) for pair in asked.tolist()}
    n_all = n_samples * (n_samples - 1) // 2
    drawn: list[tuple[int, int]] = []
    if n_all - len(taken) - n_pairs < _CROWDED * n_all:
        rows, others = np.triu_indices(n_samples, 1)
        left = [pair for pair in zip(rows.tolist(), others.tolist(), strict=True) if pair not in taken]
        drawn = [left[place] for place in rng.permutation(len(left))[:n_pairs]]
        n_pairs = len(drawn)
    while len(drawn) < n_pairs:
        i, j = sorted(rng.choice(n_samples, size=2, replace=False).tolist())
        if (i, j) not in taken:
            taken.add((i, j))
            drawn.append((i, j))
    return np.array(drawn, dtype=np.int64).reshape(-1, 2)
