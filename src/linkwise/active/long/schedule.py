"""When all rows are looked at again, and after how many answers the posterior looks at a core of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

__all__ = ["N_EXACT", "last_look", "looks", "steps"]

#: After so many answers one more question is taken from each look at all rows.
_ANSWERS_PER_QUESTION = 25
#: Up to so many answers the posterior sees every row in an answer; then a core of them (``core``).
N_EXACT = 200
#: Every so many answers the groups are remembered, up to ``N_EXACT``; then at every look.
_STEP = 10


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
