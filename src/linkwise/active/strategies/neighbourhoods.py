"""Neighbourhoods: groups of rows that are known to be in different clusters, and the row that is under way.

Explore & Consolidate, MinMax and NPU build neighbourhoods in the same way: they choose a row, ask about it
and each neighbourhood in some order until one answer is "same", and found a new neighbourhood if none is.
They differ in the row they choose and in the order. All of it is read from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances_argmin_min

from linkwise._arrays import Bools, Floats, Ints
from linkwise.active.knowledge import Answers, Knowledge
from linkwise.active.strategies.random_pairs import new_random_pairs
from linkwise.graph import unique_pairs


class Pending(NamedTuple):
    """Rows of a group under way, usually one row, and which neighbourhoods they were compared with."""

    rows: Ints
    compared: Bools


class Neighbourhoods(NamedTuple):
    """What the answers say about neighbourhoods."""

    members: list[Ints]  # rows of each neighbourhood, in the order in which they were asked about
    turn: Ints  # (n,) place of a row among those asked about; n for a row that was not
    # groups not yet compared with all neighbourhoods; one question at a time leaves one at most
    pending: list[Pending]

    @property
    def rows(self) -> Ints:
        """Rows in any neighbourhood."""
        return np.concatenate(self.members) if self.members else np.empty(0, dtype=np.int64)

    @property
    def pending_rows(self) -> Ints:
        """Rows under way."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in self.pending)])

    @property
    def last_founding(self) -> int:
        """Turn of the row that founded the newest neighbourhood."""
        return max(int(self.turn[rows[0]]) for rows in self.members)


#: Chooses a row: (neighbourhoods, rows to choose among, rows chosen before in this call, rng) -> row.
Choose = Callable[[Neighbourhoods, Ints, list[int], np.random.Generator], int]

#: Orders the neighbourhoods for the rows under way, first asked first: (neighbourhoods, rows) -> (k,) int64.
Order = Callable[[Neighbourhoods, Ints], Ints]


def neighbourhoods(knowledge: Knowledge) -> Neighbourhoods:
    """Neighbourhoods that the answers found.

    Groups are looked at in the order in which they were asked about. A group that is different from all
    neighbourhoods before it is one, too, unless there are ``n_clusters`` already. A group that was compared
    with all of them in vain (some answers were "unsure", or there are too many groups) is left aside: its
    rows are not asked about again. The other groups are under way.
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
    waiting: list[int] = []
    for number in dict.fromkeys(group[rows].tolist()):
        may_found = knowledge.n_clusters is None or len(found) < knowledge.n_clusters
        if may_found and all((other, number) in different for other in found):
            found.append(number)
        elif not all((other, number) in known for other in found):
            waiting.append(number)
    pending = [
        Pending(rows[group[rows] == one], np.array([(other, one) in known for other in found], dtype=bool))
        for one in waiting
    ]
    return Neighbourhoods([rows[group[rows] == number] for number in found], turn, pending)


def _compared_groups(knowledge: Knowledge, group: Ints) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pairs of groups that were asked about, and those among them that are different; in either order."""
    pairs, votes = counted_votes(knowledge.answers, knowledge.n_samples)
    both = [(int(i), int(j)) for i, j in group[pairs]]
    different = [pair for pair, vote in zip(both, votes, strict=True) if vote < 0]
    return _either_way(both), _either_way(different)


def counted_votes(answers: Answers, n_samples: int) -> tuple[Ints, Ints]:
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
) -> Ints:
    """Questions (n_pairs, 2), first about the rows under way, then about rows that ``choose`` gives.

    A question is the row and the nearest row of the neighbourhood. Several questions are about as many rows,
    so that none presupposes the answer to another. Before the first answer a random row is the only
    neighbourhood, unless ``known`` has one. Where all rows were asked about, random pairs follow.
    """
    known = neighbourhoods(knowledge) if known is None else known
    free = known.turn == knowledge.n_samples
    if not known.members:
        known = known._replace(members=[np.array([rng.choice(knowledge.n_samples)])])
    free[known.rows] = False

    def questions(rows: Ints, compared: Bools) -> list[tuple[int, int]]:
        return [
            _nearest_pair(knowledge.X, rows, known.members[number])
            for number in order(known, rows)
            if not compared[number]
        ]

    waiting = [questions(*one) for one in known.pending[:n_pairs]]
    chosen: list[int] = known.pending_rows.tolist()
    while len(waiting) < n_pairs and free.any():
        row = choose(known, np.flatnonzero(free), chosen, rng)
        free[row] = False
        chosen.append(row)
        waiting.append(questions(np.array([row]), np.zeros(len(known.members), dtype=bool)))
    pairs = [pair for turn in zip_longest(*waiting) for pair in turn if pair is not None][:n_pairs]
    asked = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if len(asked) < n_pairs:
        taken = np.concatenate([knowledge.asked, asked])
        more = new_random_pairs(knowledge.n_samples, taken, n_pairs - len(asked), rng)
        asked = np.concatenate([asked, more])
    return asked


def _nearest_pair(X: Floats, rows: Ints, others: Ints) -> tuple[int, int]:
    """A row of each kind, as near to each other as can be."""
    distances = cdist(X[rows], X[others])
    i, j = np.unravel_index(int(distances.argmin()), distances.shape)
    return int(rows[i]), int(others[j])


def farthest_row(X: Floats, free: Ints, covered: Ints) -> int:
    """The free row whose nearest covered row is farthest away (farthest-first traversal)."""
    _, distances = pairwise_distances_argmin_min(X[free], X[covered])
    return int(free[distances.argmax()])
