"""Neighbourhoods: groups of rows that are known to be in different clusters, and the row that is under way.

Explore & Consolidate, MinMax and NPU build neighbourhoods in the same way: they choose a row, ask about it
and each neighbourhood in some order until one answer is "same", and found a new neighbourhood if none is.
They differ in the row they choose and in the order. All of it is read from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin_min

from linkwise.active.knowledge import Answers, Knowledge
from linkwise.active.strategies.random_pairs import new_random_pairs
from linkwise.graph import unique_pairs

__all__ = [
    "Choose",
    "Neighbourhoods",
    "Order",
    "ask_rows",
    "counted_votes",
    "farthest_row",
    "neighbourhoods",
]


class Neighbourhoods(NamedTuple):
    """What the answers say about neighbourhoods.

    Attributes
    ----------
    members : list of (.,) int64
        Rows of each neighbourhood, in the order in which they were asked about.
    turn : (n,) int64
        Place of a row among those asked about; n for a row that was not.
    pending : (.,) int64
        Rows, usually one, that are in one group but were not yet compared with all neighbourhoods; empty if
        there is no such group.
    compared : (k,) bool
        Neighbourhoods that these rows were compared with.
    """

    members: list[NDArray[np.int64]]
    turn: NDArray[np.int64]
    pending: NDArray[np.int64]
    compared: NDArray[np.bool_]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows in any neighbourhood."""
        return np.concatenate(self.members) if self.members else np.empty(0, dtype=np.int64)

    @property
    def last_founding(self) -> int:
        """Turn of the row that founded the newest neighbourhood."""
        return max(int(self.turn[rows[0]]) for rows in self.members)


#: Chooses a row: (neighbourhoods, rows to choose among, rows chosen before in this call, rng) -> row.
Choose = Callable[[Neighbourhoods, NDArray[np.int64], list[int], np.random.Generator], int]

#: Orders the neighbourhoods for the rows under way, first asked first: (neighbourhoods, rows) -> (k,) int64.
Order = Callable[[Neighbourhoods, NDArray[np.int64]], NDArray[np.int64]]


def neighbourhoods(knowledge: Knowledge) -> Neighbourhoods:
    """Neighbourhoods that the answers found.

    Groups are looked at in the order in which they were asked about. A group that is different from all
    neighbourhoods before it is one, too, unless there are ``n_clusters`` already. A group that was compared
    with all of them in vain (some answers were "unsure", or there are too many groups) is left aside: its
    rows are not asked about again. The first of the other groups is the one under way.
    """
    n, answers = knowledge.n_samples, knowledge.answers
    # The first question is about a row and the start, which was there before it.
    rows, first = np.unique(answers.pairs[:, ::-1], return_index=True)
    rows = rows[np.argsort(first)]
    turn = np.full(n, n, dtype=np.int64)
    turn[rows] = np.arange(len(rows))
    # A row that has only answers "unsure" is in no group of the knowledge: it gets a number of its own.
    group = knowledge.groups.copy()
    alone = rows[group[rows] < 0]
    group[alone] = knowledge.n_groups + np.arange(len(alone))
    known, different = _compared_groups(knowledge, group)
    found: list[int] = []
    pending = -1
    for number in dict.fromkeys(group[rows].tolist()):
        may_found = knowledge.n_clusters is None or len(found) < knowledge.n_clusters
        if may_found and all((other, number) in different for other in found):
            found.append(number)
        elif pending < 0 and not all((other, number) in known for other in found):
            pending = number
    return Neighbourhoods(
        [rows[group[rows] == number] for number in found],
        turn,
        rows[group[rows] == pending],
        np.array([(number, pending) in known for number in found], dtype=bool),
    )


def _compared_groups(
    knowledge: Knowledge, group: NDArray[np.int64]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pairs of groups that were asked about, and those among them that are different; in either order."""
    pairs, votes = counted_votes(knowledge.answers, knowledge.n_samples)
    both = [(int(i), int(j)) for i, j in group[pairs]]
    different = [pair for pair, vote in zip(both, votes, strict=True) if vote < 0]
    return _either_way(both), _either_way(different)


def counted_votes(answers: Answers, n_samples: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each pair asked about once, (q, 2) with i < j, and how many more answers say "same" than not, (q,)."""
    pairs, place = unique_pairs(n_samples, answers.pairs)
    return pairs, np.bincount(place, answers.says, minlength=len(pairs)).astype(np.int64)


def _either_way(pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    return {pair for i, j in pairs for pair in ((i, j), (j, i))}


def ask_rows(
    knowledge: Knowledge,
    n_pairs: int,
    rng: np.random.Generator,
    choose: Choose,
    order: Order,
    known: Neighbourhoods | None = None,
) -> NDArray[np.int64]:
    """Questions (n_pairs, 2), first about the row under way, then about rows that ``choose`` gives.

    A question is the row and the nearest row of the neighbourhood. More than one question is what would be
    asked if all answers were "different". Before the first answer a random row is the only neighbourhood.
    Where all rows were asked about, random pairs follow.
    """
    known = neighbourhoods(knowledge) if known is None else known
    free = known.turn == knowledge.n_samples
    if not known.members and free.any():
        start = int(rng.choice(np.flatnonzero(free)))
        free[start] = False
        known = known._replace(members=[np.array([start])])
    pairs: list[tuple[int, int]] = []
    if len(known.pending):
        ordered = [number for number in order(known, known.pending) if not known.compared[number]]
        pairs += [_nearest_pair(knowledge.X, known.pending, known.members[h]) for h in ordered]
    chosen: list[int] = known.pending.tolist()
    while len(pairs) < n_pairs and free.any():
        row = choose(known, np.flatnonzero(free), chosen, rng)
        free[row] = False
        chosen.append(row)
        asked = np.array([row])
        pairs += [_nearest_pair(knowledge.X, asked, known.members[h]) for h in order(known, asked)]
    questions = np.array(pairs, dtype=np.int64).reshape(-1, 2)[:n_pairs]
    if len(questions) < n_pairs:
        asked = np.concatenate([knowledge.asked, questions])
        more = new_random_pairs(knowledge.n_samples, asked, n_pairs - len(questions), rng)
        questions = np.concatenate([questions, more])
    return questions


def _nearest_pair(
    X: NDArray[np.float64], rows: NDArray[np.int64], others: NDArray[np.int64]
) -> tuple[int, int]:
    """A row of each kind, as near to each other as can be."""
    distances = pairwise_distances(X[rows], X[others])
    i, j = np.unravel_index(int(distances.argmin()), distances.shape)
    return int(rows[i]), int(others[j])


def farthest_row(X: NDArray[np.float64], free: NDArray[np.int64], covered: NDArray[np.int64]) -> int:
    """The free row whose nearest covered row is farthest away (farthest-first traversal)."""
    _, distances = pairwise_distances_argmin_min(X[free], X[covered])
    return int(free[distances.argmax()])
