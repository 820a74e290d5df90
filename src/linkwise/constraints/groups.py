"""Groups that must-links join: which are apart, what they imply, and which of them centres start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.graph import adjacency, compact, group_labels

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints


def neighbourhoods(must_link: Ints) -> tuple[Ints, Ints, int]:
    """Rows that have a must-link (c,), the neighbourhood of each of them (c,), and how many there are."""
    members, local = compact(must_link)
    groups, n_groups = group_labels(len(members), local)
    return members, groups, n_groups


def groups_apart(must_link: Ints, cannot_link: Ints) -> tuple[Ints, Ints, int, Ints]:
    """Linked rows (c,), their groups (c,), the number of neighbourhoods, pairs of groups (m, 2) apart.

    Neighbourhoods are the first groups, other rows with a cannot-link groups of one. Cannot-links inside a
    neighbourhood are left out.
    """
    members, groups, n_neighbourhoods = neighbourhoods(must_link)
    single = np.setdiff1d(cannot_link, members)
    members = np.concatenate([members, single])
    groups = np.concatenate([groups, n_neighbourhoods + np.arange(len(single))])
    order = np.argsort(members)
    apart = groups[order[np.searchsorted(members, cannot_link, sorter=order)]].reshape(-1, 2)
    apart = np.unique(np.sort(apart[apart[:, 0] != apart[:, 1]], axis=1), axis=0)
    return members, groups, n_neighbourhoods, apart


def choose_far_apart(
    distances: Callable[[int], Floats],
    sizes: Floats,
    n_chosen: int,
    first: int | Sequence[int],
    *,
    apart: Ints | None = None,
    only_apart: bool = False,
    rng: np.random.Generator | None = None,
    distinct: bool = False,
) -> Ints:
    """Weighted farthest-first traversal: choose large groups far from those already chosen.

    ``distances(g)`` are those of all groups to group g; ``first`` is chosen already. Each next group
    maximises, over the nearest chosen group, the distance times the root of both sizes; with ``rng`` it is
    drawn by the square of that. Groups that are ``apart`` (m, 2) never count as near, so they come first.
    ``distinct`` ends where all others coincide with chosen ones, ``only_apart`` where no group is apart from
    all of them.
    """
    n_groups = len(sizes)
    graph = adjacency(n_groups, np.empty((0, 2), dtype=np.int64) if apart is None else apart)
    chosen = [first] if isinstance(first, int) else list(first)
    # To the nearest chosen group, and to the nearest of those that are not known to differ.
    nearest, gap = np.full(n_groups, np.inf), np.full(n_groups, np.inf)
    n_seen = 0
    while len(chosen) < n_chosen:
        for group in chosen[n_seen:]:
            value = distances(group) * np.sqrt(sizes * sizes[group])
            nearest = np.minimum(nearest, value)
            value[graph.neighbours[graph.indptr[group] : graph.indptr[group + 1]]] = np.inf
            gap = np.minimum(gap, value)
        n_seen = len(chosen)
        nearest[chosen] = gap[chosen] = -1.0
        differs = np.isinf(gap) & (nearest > 0.0)
        if differs.any():
            worth = np.where(differs, nearest, -1.0)
        elif only_apart:
            break
        else:
            worth = np.where(np.isinf(gap), nearest, gap)
        best = int(worth.argmax())
        if distinct and worth[best] <= 0.0:
            break
        if rng is not None and worth[best] > 0.0:
            chance = np.maximum(worth / worth[best], 0.0) ** 2
            best = int(rng.choice(n_groups, p=chance / chance.sum()))
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def pair_codes(n_samples: int, pairs: Ints) -> Ints:
    """One number (m,) for each pair (m, 2)."""
    return pairs @ np.array([n_samples, 1])


def codes_apart(links: Constraints, group: Ints) -> Ints:
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
    known = together | np.isin(codes, codes_apart(links, group))
    return pairs[known], together[known]
