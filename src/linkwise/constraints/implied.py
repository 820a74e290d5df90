"""Pairs whose answer hard links imply: rows of one group, and rows of groups that are linked apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise._arrays import Bools, Ints

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints


def pair_codes(n_samples: int, pairs: Ints) -> Ints:
    """One number (m,) for each pair (m, 2)."""
    return pairs @ np.array([n_samples, 1])


def groups_apart(links: Constraints, group: Ints) -> Ints:
    """Codes of the pairs of groups between which there is a hard cannot-link; ``group`` (n,) of each row."""
    between = group[links.pairs[np.isneginf(links.weights)]]
    return np.unique(pair_codes(links.n_samples, np.sort(between, axis=1)))


def implied_pairs(links: Constraints, most: int, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Pairs (m, 2) whose answer hard links imply, at most ``most``, and whether they are together (m,)."""
    group = links.chunklets()
    rows = np.unique(links.pairs[np.isinf(links.weights)])
    first, second = np.triu_indices(len(rows), 1)
    if len(first) > most:
        some = rng.choice(len(first), most, replace=False)
        first, second = first[some], second[some]
    pairs = np.stack([rows[first], rows[second]], axis=1)
    together = group[pairs[:, 0]] == group[pairs[:, 1]]
    codes = pair_codes(links.n_samples, np.sort(group[pairs], axis=1))
    known = together | np.isin(codes, groups_apart(links, group))
    return pairs[known], together[known]
