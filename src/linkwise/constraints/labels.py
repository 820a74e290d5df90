"""Known classes of rows, and the links that they give and keep when rows are taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Floats, Ints
from linkwise._validation import label_codes, listed, refuse_masked
from linkwise.constraints.evidence import certainty_weight
from linkwise.exceptions import InfeasibleConstraints, Witness
from linkwise.graph import group_labels

Pairs = Ints


class RowLabels(NamedTuple):
    """Names of the classes (L,), number of each row's class (n,), -1 if unknown, and its certainty (n,)."""

    classes: NDArray[Any]
    codes: Ints
    certainty: Floats | None = None

    @classmethod
    def of(cls, y: ArrayLike, certainty: float | ArrayLike | None = None) -> Self:
        """Check labels (n,) and certainties, one or (n,), given by a user."""
        codes, classes = label_codes(y)
        return cls(np.array(classes), codes, _label_certainty(codes, certainty))

    def take(self, rows: Ints) -> RowLabels:
        """Labels of some rows, which may repeat."""
        certainty = None if self.certainty is None else self.certainty[rows]
        return RowLabels(self.classes, self.codes[rows], certainty)

    def same_as(self, other: RowLabels) -> bool:
        """Whether classes and those of the rows are equal."""
        return np.array_equal(self.classes, other.classes) and np.array_equal(self.codes, other.codes)

    def refuse_few_clusters(self, n_clusters: int, witness: Witness) -> None:
        """Raise InfeasibleConstraints if certain labels have more classes than there are clusters."""
        certain = self.codes >= 0 if self.certainty is None else (self.codes >= 0) & (self.certainty == 1.0)
        found = np.unique(self.codes[certain])
        if len(found) > n_clusters:
            raise InfeasibleConstraints(
                replace(
                    witness,
                    message=f"the labels have {len(found)} classes ({listed(self.classes[found].tolist())}): "
                    f"they need {len(found)} clusters but n_clusters={n_clusters}; use n_clusters >= "
                    f"{len(found)}, or Constraints.from_labels(y, certainty=0.9) if labels may be wrong",
                )
            )

    def row_names(self) -> list[Any]:
        """Name of each row's class, None where it is unknown."""
        names = [*self.classes.tolist(), None]  # -1 is unknown
        return [names[code] for code in self.codes.tolist()]


def _label_certainty(codes: Ints, certainty: float | ArrayLike | None) -> Floats:
    """Certainty of each label, (n,); 1 by default and where the label is unknown."""
    sure = np.ones(len(codes))
    if certainty is None:
        return sure
    refuse_masked(certainty, "certainty")
    given = np.asarray(certainty, dtype=np.float64)
    if given.shape not in ((), codes.shape):
        raise ValueError(
            f"certainty has shape {given.shape}; give one value, or one for each of {len(codes)} labels"
        )
    known = codes >= 0
    sure[known] = np.broadcast_to(given, codes.shape)[known]
    bad = ~((sure >= 0.5) & (sure <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"certainty of label {row} is {sure[row]}: it must lie in [0.5, 1]; correct it")
    return sure


def label_links(labels: RowLabels) -> tuple[Pairs, Floats]:
    """Chain sure members of a class, link doubtful ones to the surest, link the surest of classes apart."""
    classes, codes, sure = labels
    assert sure is not None
    order = np.lexsort((-sure, codes))
    order = order[codes[order] >= 0]
    surest = order[np.searchsorted(codes[order], np.arange(len(classes)))]
    later = np.flatnonzero(codes[order[1:]] == codes[order[:-1]]) + 1
    member = order[later]
    partner = np.where(sure[member] == 1.0, order[later - 1], surest[codes[member]])
    a, b = np.triu_indices(len(classes), k=1)
    return _signed(np.column_stack([partner, member]), np.column_stack([surest[a], surest[b]]), sure)


def _signed(must: Pairs, cannot: Pairs, sure: Floats) -> tuple[Pairs, Floats]:
    """Links between labels, with signed weights: both labels are right, or both wrong."""
    pairs = np.concatenate([must, cannot])
    agree = 0.5 + 0.5 * (2.0 * sure[pairs[:, 0]] - 1.0) * (2.0 * sure[pairs[:, 1]] - 1.0)
    return pairs, np.repeat([1.0, -1.0], [len(must), len(cannot)]) * certainty_weight(agree)


def labelled_groups(groups: Ints, codes: Ints) -> Ints:
    """Chunklet (n,) of rows that hard must-links join to a labelled row; -1 for others."""
    named = np.zeros(len(groups), dtype=bool)
    named[groups[codes >= 0]] = True
    return np.where(named[groups], groups, -1)


def stand_ins(groups: Ints, rows: Ints) -> Ints:
    """For each row (n,) itself or, if it is not among ``rows``, one of them that is in its group (>= 0)."""
    every = np.arange(len(groups))
    kept = np.zeros(len(groups), dtype=bool)
    kept[rows] = True
    first = np.full(len(groups) + 1, -1)  # the last place is that of group -1
    first[groups[rows][::-1]] = rows[::-1]
    found = np.where(groups >= 0, first[groups], -1)
    return np.where(kept | (found < 0), every, found)


def _reconnect(groups: Ints, joined: Ints) -> Pairs:
    """Pairs of rows that join the parts (n,) of each group (n,) again; rows of group -1 are left alone."""
    members = np.flatnonzero(groups >= 0)
    key = groups[members] * (len(groups) + 1) + joined[members]
    first = members[np.unique(key, return_index=True)[1]]  # one row of each part, by group
    later = np.flatnonzero(groups[first[1:]] == groups[first[:-1]]) + 1
    return np.column_stack([first[later - 1], first[later]])


def _relink(codes: Ints, sure: Floats, joined: Ints, apart: Pairs) -> tuple[Pairs, Pairs]:
    """Must-links and cannot-links of surest rows that labels (n,) lack: parts of a class, and classes."""
    order = np.lexsort((-sure, codes))
    order = order[codes[order] >= 0]
    key = codes[order] * (len(codes) + 1) + joined[order]
    first = order[np.sort(np.unique(key, return_index=True)[1])]  # of each part, by class, the surest first
    head = np.diff(codes[first], prepend=-1) != 0
    surest = first[head]
    number = np.cumsum(head) - 1
    must = np.column_stack([surest[number[~head]], first[~head]])
    present = codes[surest]
    linked = np.zeros((len(surest), len(surest)), dtype=bool)
    ends = codes[apart]
    ends = np.searchsorted(present, ends[(ends >= 0).all(axis=1)])
    linked[ends[:, 0], ends[:, 1]] = linked[ends[:, 1], ends[:, 0]] = True
    a, b = np.nonzero(np.triu(~linked, k=1))
    return must, np.column_stack([surest[a], surest[b]])


def lost_label_links(
    labels: RowLabels, together: Ints, pairs: Pairs, weights: Floats
) -> tuple[Pairs, Floats]:
    """Links and weights that labels imply and that went through rows which were left out."""
    joined, _ = group_labels(len(together), pairs[weights == np.inf])
    chain = _reconnect(together, joined)
    strength = np.full(len(chain), np.inf)
    if labels.certainty is None:
        return chain, strength
    joined, _ = group_labels(len(together), np.concatenate([pairs[weights > 0], chain]))
    must, cannot = _relink(labels.codes, labels.certainty, joined, pairs[weights < 0])
    lost, lost_weights = _signed(must, cannot, labels.certainty)
    return np.concatenate([chain, lost]), np.append(strength, lost_weights)


def joined_labels(mine: RowLabels | None, theirs: RowLabels | None) -> RowLabels | None:
    """Labels of two sets of links about the same rows; a row cannot be of two classes."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    names, own = mine.row_names(), theirs.classes.tolist()
    for row in np.flatnonzero(theirs.codes >= 0).tolist():
        name = own[theirs.codes[row]]
        if names[row] is not None and names[row] != name:
            raise ValueError(
                f"row {row} is of class {names[row]!r} in one and {name!r} in the other of the links to "
                "add; correct its label"
            )
        names[row] = name
    codes, classes = label_codes(names)
    sure = None
    if mine.certainty is not None and theirs.certainty is not None:
        sure = np.maximum(
            np.where(mine.codes >= 0, mine.certainty, 0.5), np.where(theirs.codes >= 0, theirs.certainty, 0.5)
        )
    return RowLabels(classes, codes, sure)
