"""Answers that cannot all be right: chains such as a = b, b = c, a ≠ c, and too many different groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from linkwise._arrays import Bools, Ints
from linkwise.active.knowledge import DIFFERENT, SAME, Answers
from linkwise.graph import check_feasibility, group_labels, unique_pairs

# A proof with more answers than this is shown as it is: making it smaller costs a search for each of them.
_MOST_REDUCED = 100


@dataclass(frozen=True)
class Contradiction:
    """A few answers of which at least one is wrong; without any one of them the others agree.

    >>> from linkwise.active.knowledge import NO_ANSWERS, append
    >>> answers = append(append(append(NO_ANSWERS, 3, 8, 1), 17, 8, 1), 3, 17, -1)
    >>> print(find_contradictions(answers)[0])
    3 = 8, 8 = 17, 3 ≠ 17
    """

    # Places among all answers: those "same" in the order of a chain, and last "different" about its two ends.
    answers: tuple[int, ...]
    # The rows of each, turned so that a chain can be read from one end to the other.
    pairs: tuple[tuple[int, int], ...]
    says: tuple[int, ...]  # +1 same, -1 different
    # What the answers are too many groups for; None for a chain, which is wrong for every number of clusters.
    n_clusters: int | None = None

    def text(self, name: Callable[[int], str] = str) -> str:
        """Say it in one line, with these names of the rows."""
        parts = [
            f"{name(i)} {'=' if says == SAME else '≠'} {name(j)}"
            for (i, j), says in zip(self.pairs, self.says, strict=True)
        ]
        if self.n_clusters is None:
            return ", ".join(parts)
        clusters = "1 cluster" if self.n_clusters == 1 else f"{self.n_clusters} clusters"
        return f"{', '.join(parts)}: more than {clusters}"

    def __str__(self) -> str:
        return self.text()


def find_contradictions(answers: Answers, n_clusters: int | None = None) -> list[Contradiction]:
    """Find a shortest chain for each answer "different" that answers "same" contradict; the shortest first.

    If ``n_clusters`` is known, one contradiction about more groups than clusters is added where there is one
    among the answers without those "different" ones. It is left out where the search for it would take long.
    """
    told = np.flatnonzero(answers.says)
    rows, ends = np.unique(answers.pairs[told], return_inverse=True)
    ends = ends.reshape(-1, 2).astype(np.int64)
    same = answers.says[told] == SAME
    groups, _ = group_labels(len(rows), ends[same])
    clash = ~same & (groups[ends[:, 0]] == groups[ends[:, 1]])
    neighbours = _neighbours(len(rows), ends, same)
    found = []
    for place in np.flatnonzero(clash).tolist():
        start, end = ends[place].tolist()
        chain = [*_shortest_chain(neighbours, start, end), place]
        points = _points(ends[chain[:-1]], start)
        pairs = [*pairwise(points), (start, end)]
        found.append(_contradiction(chain, pairs, told, rows, same))
    found.sort(key=lambda one: (len(one.answers), one.answers[-1]))
    if n_clusters is not None:
        kept = np.flatnonzero(~clash)
        proof = _too_many_groups(ends[kept], same[kept], n_clusters)
        if proof.size:
            chosen = kept[proof].tolist()
            pairs = [(int(i), int(j)) for i, j in ends[chosen]]
            found.append(_contradiction(chosen, pairs, told, rows, same, n_clusters))
    return found


def _contradiction(
    chosen: list[int],
    pairs: list[tuple[int, int]],
    told: Ints,
    rows: Ints,
    same: Bools,
    n_clusters: int | None = None,
) -> Contradiction:
    """The record, in the numbers of all rows and answers."""
    return Contradiction(
        tuple(told[chosen].tolist()),
        tuple((int(rows[i]), int(rows[j])) for i, j in pairs),
        tuple(SAME if same[place] else DIFFERENT for place in chosen),
        n_clusters,
    )


def _neighbours(n_nodes: int, ends: Ints, same: Bools) -> list[list[tuple[int, int]]]:
    """For every node the nodes that answers "same" join to it, and the place of each answer."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for place in np.flatnonzero(same).tolist():
        i, j = ends[place].tolist()
        neighbours[i].append((j, place))
        neighbours[j].append((i, place))
    return neighbours


def _shortest_chain(neighbours: list[list[tuple[int, int]]], start: int, end: int) -> list[int]:
    """Places of the fewest answers "same" that lead from one node to another, breadth first."""
    came_by: dict[int, tuple[int, int]] = {start: (start, -1)}
    waiting = deque([start])
    while end not in came_by:
        node = waiting.popleft()
        for other, place in neighbours[node]:
            if other not in came_by:
                came_by[other] = (node, place)
                waiting.append(other)
    chain: list[int] = []
    node = end
    while node != start:
        node, place = came_by[node]
        chain.append(place)
    return chain[::-1]


def _points(chain: Ints, start: int) -> list[int]:
    """The nodes along a chain of pairs."""
    points = [start]
    for i, j in chain.tolist():
        points.append(j if i == points[-1] else i)
    return points


def _too_many_groups(ends: Ints, same: Bools, n_clusters: int) -> Ints:
    """Places of answers that this many clusters cannot satisfy, none of which can be left out; or none."""
    proof = _proof(ends, same, n_clusters)
    if proof.size > _MOST_REDUCED:
        return proof
    for place in proof.tolist():
        fewer = proof[proof != place]
        if _proof(ends[fewer], same[fewer], n_clusters).size:
            proof = fewer
    return proof


def _proof(ends: Ints, same: Bools, n_clusters: int) -> Ints:
    """Places of the answers in a witness that these need more clusters; the first one about each pair."""
    n_nodes = int(ends.max(initial=-1)) + 1
    pairs, row_of = unique_pairs(n_nodes, ends)
    first = np.empty(len(pairs), dtype=np.int64)
    first[row_of[::-1]] = np.arange(len(row_of))[::-1]
    weights = np.where(same[first], np.inf, -np.inf)
    witness = check_feasibility(n_nodes, pairs, weights, n_clusters, labelling=False).witness
    if witness is None:
        return np.empty(0, dtype=np.int64)
    blamed = {*witness.must_link, *witness.cannot_link}
    return np.sort(first[[tuple(pair) in blamed for pair in pairs.tolist()]])
