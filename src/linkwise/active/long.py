"""Long sessions: many links given at first, many answers, and which rows the posterior then sees.

The posterior learns from every row in an answer, and the search for groups costs the third power of their
number. So of thousands of links that are given at first it sees about ``N_ROWS`` rows (``summarise``): parts
that links join, those that have most links to each other, with a few rows of each.

Of many answers most are about rows whose group has been clear for long, and looking at all of them again
tells nothing new. So after ``N_EXACT`` answers the search sees about ``N_ROWS`` rows, the core:

- rows in answers since the groups were last remembered, and the first row of every group;
- the rows that were least sure then, up to half of the core;
- of the other rows a fixed random sample, a few of each group at least.

The first row of its group stands for a row outside of the core: what was answered about the row holds for the
first one, so that no answer between two groups is lost. Groups found in the core are then handed to the rows
outside, and what other rows and answers say decides whether one of them changes its group (``posterior``). A
row that has become doubtful is in the next core.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.special import expit, logit

from linkwise._arrays import Bools, Floats, Ints
from linkwise.active.evidence import Told
from linkwise.active.groups import join
from linkwise.active.knowledge import DIFFERENT, SAME, Answers

#: Rows of the core; links that are given about at most so many rows are taken as they are.
N_ROWS = 200
#: Rows of a group that are in the core if it has as many, and at first rows of a part that links join; what
#: is left is shared out at the end.
_FEW = 5
#: A row is as good as settled when its group is this probable.
_SETTLED = 0.99
#: A group of the core goes on in another one if that has this share of its rows.
_PIECE = 0.2
#: After so many answers one more question is taken from each look at all rows.
_ANSWERS_PER_QUESTION = 25
#: Up to so many answers the posterior sees every row in an answer; then the core of them.
N_EXACT = 200
#: Every so many answers the groups are remembered, up to ``N_EXACT``; then at every look.
_STEP = 10
#: Nats of a fact.
_MOST = 30.0


def looks() -> Iterator[int]:
    """Numbers of answers at which all rows are looked at: each look gives the questions up to the next."""
    first = 0
    while True:
        yield first
        first += 1 + first // _ANSWERS_PER_QUESTION


def last_look(n_answers: int) -> tuple[int, int]:
    """Number of answers at the last look at all rows, and how many questions were taken from it."""
    return next((first, then - first) for first, then in pairwise(looks()) if then > n_answers)


def steps(n_given: int, n_answers: int) -> Iterator[int]:
    """Numbers of answers, at most ``n_answers``, after which groups are remembered.

    The first ``n_given`` answers were given at once. A look is a step, so that it is settled once.
    """
    step = max(_STEP, n_given)
    while step <= n_answers and step - n_given <= N_EXACT:
        yield step
        step += _STEP
    for look in looks():
        if n_given + look > n_answers:
            return
        if look > N_EXACT:
            yield n_given + look


class Contracted(NamedTuple):
    """Answers in terms of the core."""

    kept: Ints  # (k,) places of the answers about two rows of the core, or rows that stand for others
    pairs: Ints  # (k, 2) their rows, numbered in the core
    dropped: Ints  # (r,) places of answers between two rows for which one row stands


def choose_core(group: Ints, sure: Floats, recent: Bools, seed: int, n_rows: int = N_ROWS) -> Bools:
    """Which asked rows (t,) are in the core, from the groups remembered, -1 for none, and how sure each was.

    Rows are in the order in which they were asked about. ``recent`` rows are always in the core.
    """
    inside = recent.copy()
    named = np.flatnonzero(group >= 0)
    inside[named[np.unique(group[named], return_index=True)[1]]] = True
    doubtful = np.flatnonzero(~inside & ((group < 0) | (sure < _SETTLED)))
    doubtful = doubtful[np.argsort(sure[doubtful], kind="stable")]
    inside[doubtful[: max(0, n_rows // 2 - int(inside.sum()))]] = True
    # One number for each row, however many rows there are: the sample hardly changes from step to step.
    chance = np.random.default_rng(seed).random(len(group))
    order = np.argsort(chance, kind="stable")
    for number in np.unique(group[named]):
        rows = order[(group[order] == number) & ~inside[order]]
        inside[rows[: max(0, _FEW - int(inside[group == number].sum()))]] = True
    left = order[~inside[order] & (group[order] >= 0)]
    inside[left[: max(0, n_rows - int(inside.sum()))]] = True
    return inside


def contract(told: Told, inside: Bools, group: Ints) -> Contracted:
    """The answers, with the first row of its group for every row outside of the core.

    Nothing stands for a row outside that has no group: answers about it are neither kept nor dropped.
    """
    stands = np.full(len(group), -1, dtype=np.int64)
    named = np.flatnonzero(group >= 0)
    first = named[np.unique(group[named], return_index=True)[1]]
    stands[named] = first[np.unique(group[named], return_inverse=True)[1]]
    stands[inside] = np.flatnonzero(inside)
    ends = stands[told.pairs].reshape(-1, 2)
    whole, one = (ends >= 0).all(axis=1), ends[:, 0] == ends[:, 1]
    kept = np.flatnonzero(whole & ~one)
    number = np.cumsum(inside) - 1
    return Contracted(kept, number[ends[kept]], np.flatnonzero(whole & one))


def hand_on(old: Ints, inside: Bools, found: Ints, predicted: Floats) -> Ints:
    """Groups (t,) of all rows: those ``found`` (c,) in the core, and for others where their old group is now.

    A group may have become part of another one, or several groups; of several, a row is in the one that
    predictions (t - c, g) say. Rows without a group have -1, also where no row of their group has one now.
    """
    group = np.full(len(old), -1, dtype=np.int64)
    group[inside] = found
    outside = np.flatnonzero(~inside)
    for number in np.unique(old[outside]):
        core = found[(old[inside] == number) & (found >= 0)]
        if number < 0 or not len(core):
            continue
        count = np.bincount(core, minlength=predicted.shape[1])
        pieces = np.flatnonzero((count >= _PIECE * len(core)) | (count == count.max()))
        rows = np.flatnonzero(old[outside] == number)
        group[outside[rows]] = pieces[predicted[np.ix_(rows, pieces)].argmax(axis=1)]
    return group


def summarise(given: Answers, n_rows: int = N_ROWS, seed: int = 0) -> Answers:
    """The links, or what they say about ``n_rows`` of their rows.

    Rows of a part are linked to its first row, and first rows of parts that links set apart are set apart. A
    part has the mean certainty of its links; two parts have the sum of the evidence between them.
    """
    rows, ends = np.unique(given.pairs, return_inverse=True)
    if len(rows) <= n_rows:
        return given
    ends = ends.reshape(-1, 2).astype(np.int64)
    odds = given.says * np.minimum(logit(given.certainty), _MOST)
    part = join(len(rows), ends, odds)
    members = _members(part, np.random.default_rng(seed))
    inside = (part[ends[:, 0]] == part[ends[:, 1]]) & (odds > 0.0)
    apart = _apart(part[ends], odds, len(members))
    taken, n_taken = _taken([len(one) for one in members], apart, n_rows)
    total = np.bincount(part[ends[inside, 0]], given.certainty[inside], minlength=len(members))
    certainty = total / np.maximum(np.bincount(part[ends[inside, 0]], minlength=len(members)), 1)
    pairs, says, sure = [], [], []
    for one in taken:
        first, *others = rows[members[one][: n_taken[one]]].tolist()
        for other in others:
            pairs.append((other, first))
            says.append(SAME)
            sure.append(certainty[one])
        for other, evidence in apart[one].items():
            if other < one and other in n_taken:
                pairs.append((first, int(rows[members[other][0]])))
                says.append(DIFFERENT)
                sure.append(1.0 if evidence >= _MOST else float(expit(evidence)))
    return Answers(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(says, dtype=np.int8),
        np.array(sure, dtype=np.float64),
        ("",) * len(pairs),
    )


def _members(part: Ints, rng: np.random.Generator) -> list[Ints]:
    """Rows of each part in random order."""
    order = rng.permutation(len(part))
    order = order[np.argsort(part[order], kind="stable")]
    return np.split(order, np.cumsum(np.bincount(part))[:-1])


def _apart(ends: Ints, odds: Floats, n_parts: int) -> list[dict[int, float]]:
    """For each part the parts that links set it apart from, and how strongly."""
    outside = ends[:, 0] != ends[:, 1]
    total = coo_array((odds[outside], ends[outside].T), shape=(n_parts, n_parts)).tocsr()
    total = (total + total.T).tocoo()
    found: list[dict[int, float]] = [{} for _ in range(n_parts)]
    for i, j, value in zip(total.row.tolist(), total.col.tolist(), total.data.tolist(), strict=True):
        if value < 0.0:
            found[i][j] = -value
    return found


def _taken(sizes: list[int], apart: list[dict[int, float]], n_rows: int) -> tuple[list[int], dict[int, int]]:
    """Parts to keep, the next always the one with most links to those before it, and the rows of each."""
    n_links = np.zeros(len(sizes))
    # Of parts with as many links to those taken, the one with most links, then the largest.
    worth = np.array([len(one) for one in apart]) + np.array(sizes) / (1.0 + max(sizes))
    worth /= 1.0 + worth.max()
    n_taken: dict[int, int] = {}
    left = n_rows
    while left > 0 and len(n_taken) < len(sizes):
        one = int((n_links + worth).argmax())
        n_taken[one] = min(sizes[one], _FEW, left)
        left -= n_taken[one]
        n_links[list(apart[one])] += 1.0
        n_links[list(n_taken)] = -np.inf
    while left > 0 and any(n_taken[one] < sizes[one] for one in n_taken):
        for one in n_taken:
            if left > 0 and n_taken[one] < sizes[one]:
                n_taken[one] += 1
                left -= 1
    return list(n_taken), n_taken
