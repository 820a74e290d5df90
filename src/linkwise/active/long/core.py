"""The core of a long session: the rows that the search for groups sees, and what stands for the others.

The search for groups costs the third power of the rows in answers. Of many answers most are about rows whose
group has been clear for long, and looking at all of them again tells nothing new. So after ``N_EXACT``
answers (``schedule``) the search sees about ``N_ROWS`` rows, the core:

- rows in answers since the groups were last remembered, and the first row of every group;
- the rows that were least sure then, up to half of the core;
- of the other rows a fixed random sample, a few of each group at least.

The first row of its group stands for a row outside of the core: what was answered about the row holds for the
first one, so that no answer between two groups is lost. Groups found in the core are then handed to the rows
outside, and what other rows and answers say decides whether one of them changes its group (``posterior``). A
row that has become doubtful is in the next core.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.active.evidence import Told

__all__ = ["N_ROWS", "Contracted", "choose_core", "contract", "hand_on"]

#: Rows of the core.
N_ROWS = 200
#: Rows of a group that are in the core if it has as many.
_FEW = 5
#: A row is as good as settled when its group is this probable.
_SETTLED = 0.99
#: A group of the core goes on in another one if that has this share of its rows.
_PIECE = 0.2


class Contracted(NamedTuple):
    """Answers in terms of the core.

    Attributes
    ----------
    kept : (k,) int64
        Places of the answers that say something about two rows of the core, or rows that stand for others.
    pairs : (k, 2) int64
        Their rows, numbered in the core.
    dropped : (r,) int64
        Places of answers between two rows for which one row stands.
    """

    kept: NDArray[np.int64]
    pairs: NDArray[np.int64]
    dropped: NDArray[np.int64]


def choose_core(
    group: NDArray[np.int64],
    sure: NDArray[np.float64],
    recent: NDArray[np.bool_],
    seed: int,
    n_rows: int = N_ROWS,
) -> NDArray[np.bool_]:
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


def contract(told: Told, inside: NDArray[np.bool_], group: NDArray[np.int64]) -> Contracted:
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


def hand_on(
    old: NDArray[np.int64],
    inside: NDArray[np.bool_],
    found: NDArray[np.int64],
    predicted: NDArray[np.float64],
) -> NDArray[np.int64]:
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
