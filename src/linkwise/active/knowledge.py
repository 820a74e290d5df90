"""What was answered so far, and what follows from it: pure functions of the rows and the answers.

Nothing here has a state of its own, so undo and resume are a new computation from fewer or the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise.constraints import Constraints
from linkwise.graph import group_labels, unique_pairs

if TYPE_CHECKING:
    from linkwise.active.landscape import Landscape
    from linkwise.active.posterior import Posterior


SAME, DIFFERENT, UNSURE = 1, -1, 0

#: The words of an answer and their numbers in ``Answers.says``.
SAYS = {"same": SAME, "different": DIFFERENT, "unsure": UNSURE}
WORDS = {number: word for word, number in SAYS.items()}

# Certainties that are learned lie within these: no answer is ignored, and none becomes a hard link.
_LEAST_CERTAIN, _MOST_CERTAIN = 0.55, 0.99


class Answers(NamedTuple):
    """What was told about m pairs, in the order of telling."""

    pairs: Ints  # (m, 2) rows i != j, in the order in which they were asked about
    says: NDArray[np.int8]  # (m,) +1 same, -1 different, 0 unsure
    certainty: Floats  # (m,) P(answer | truth) in (0.5, 1]; NaN where it was not given
    source: tuple[str, ...]  # who answered, "" where nobody is named


NO_ANSWERS = Answers(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int8), np.empty(0), ())


def append(
    answers: Answers, i: int, j: int, says: int, certainty: float | None = None, source: str | None = None
) -> Answers:
    """The answers and one more; the arrays given are not changed."""
    return Answers(
        np.concatenate([answers.pairs, np.array([[i, j]], dtype=np.int64)]),
        np.append(answers.says, np.int8(says)),
        np.append(answers.certainty, np.nan if certainty is None else float(certainty)),
        (*answers.source, source or ""),
    )


def joined(first: Answers, second: Answers) -> Answers:
    """Answers, and others after them."""
    return Answers(
        np.concatenate([first.pairs, second.pairs]),
        np.concatenate([first.says, second.says]),
        np.concatenate([first.certainty, second.certainty]),
        first.source + second.source,
    )


def first_answers(answers: Answers, number: int) -> Answers:
    """The first so many answers."""
    pairs, says, certainty, source = answers
    return Answers(pairs[:number], says[:number], certainty[:number], source[:number])


def chosen_answers(answers: Answers, places: Ints) -> Answers:
    """The answers at these places (k,), counted from 0."""
    source = tuple(answers.source[place] for place in places.tolist())
    return Answers(answers.pairs[places], answers.says[places], answers.certainty[places], source)


def learned_certainty(error_rate: float) -> float:
    """Certainty of an answer without one, of people who err so often."""
    return float(np.clip(1.0 - error_rate, _LEAST_CERTAIN, _MOST_CERTAIN))


def as_constraints(answers: Answers, n_samples: int, *, certainty: float = 0.95) -> Constraints:
    """The answers as links that keep their sources; "unsure" gives no link.

    ``certainty`` is that of answers without one. Answers of certainty 1 are hard links, and raise
    InfeasibleConstraints where they contradict each other.
    """
    same, different = answers.says == SAME, answers.says == DIFFERENT
    order = np.concatenate([np.flatnonzero(same), np.flatnonzero(different)])
    sure = np.where(np.isnan(answers.certainty), certainty, answers.certainty)[order]
    named = [answers.source[place] for place in order]
    return Constraints(
        n_samples,
        answers.pairs[same],
        answers.pairs[different],
        certainty=sure,
        source=named if any(named) else None,
    )


def answered_groups(answers: Answers, n_samples: int) -> Ints:
    """Group of each row, (n,): rows joined by answers "same", numbered by the first row asked about.

    A row that was only found different from others is a group of its own; a row without an answer "same" or
    "different" has -1. A pair that was answered more than once is joined if more answers say so than not.
    """
    groups = np.full(n_samples, -1, dtype=np.int64)
    told = answers.says != UNSURE
    if not told.any():
        return groups
    pairs, row_of = unique_pairs(n_samples, answers.pairs[told])
    votes = np.bincount(row_of, answers.says[told])
    rows, first = np.unique(answers.pairs[told], return_index=True)
    # Rows in the order in which they were asked about, so that groups are numbered in that order too.
    order = np.argsort(first)
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows))
    joined = rank[np.searchsorted(rows, pairs[votes > 0])]
    labels, _ = group_labels(len(rows), joined)
    groups[rows[order]] = labels
    return groups


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a strategy sees: the rows, the answers, and what follows from both."""

    X: Floats  # (n, d) standardised rows
    answers: Answers = NO_ANSWERS
    n_clusters: int | None = None  # None: not known
    # computed before, if at all; rows that were asked about are among its landmarks
    landscape: Landscape | None = None
    n_given: int = 0  # so many of the answers were links given at first

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.X)

    @cached_property
    def groups(self) -> Ints:
        """Group of each row, (n,), -1 where nothing is known: see ``answered_groups``."""
        return answered_groups(self.answers, self.n_samples)

    @property
    def n_groups(self) -> int:
        """Number of groups found so far."""
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def asked(self) -> Ints:
        """Pairs that were asked about, also in vain: (q, 2), i < j, sorted, each once."""
        return unique_pairs(self.n_samples, self.answers.pairs)[0]

    @cached_property
    def surveyed(self) -> Landscape:
        """The landscape, computed if it was not given."""
        from linkwise.active.landscape import survey

        if self.landscape is not None:
            return self.landscape
        return survey(self.X, asked=np.unique(self.answers.pairs), n_clusters=self.n_clusters)

    @cached_property
    def posterior(self) -> Posterior:
        """What the answers say about every landmark."""
        from linkwise.active.posterior import infer

        return infer(self.surveyed, self.answers, self.n_clusters, self.n_given)
