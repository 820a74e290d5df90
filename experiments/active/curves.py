"""Labels after so many answers: by a session, by random pairs with LinkedClustering, by COBRAS."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.active.cobras import cobras_labels
from linkwise import LinkedClustering, active
from linkwise.active.knowledge import NO_ANSWERS, SAYS, Knowledge, append, as_constraints
from linkwise.active.strategies import find_strategy

__all__ = ["CHECKPOINTS", "Checked", "Curve", "cobras_curve", "linked_curve", "session_curve"]

#: Numbers of answers after which labels are looked at.
CHECKPOINTS = (0, 5, 10, 25, 50, 75, 100, 150, 200)

#: "same", "different" or "unsure" about two rows.
Person = Callable[[int, int], str]


class Checked(NamedTuple):
    """Labels (n,) after some answers; the interval of the share of right pairs and seconds, if known."""

    n_answers: int
    labels: NDArray[np.int64]
    interval: tuple[float, float] | None
    seconds: float | None


#: What a method finds, checkpoint by checkpoint.
Curve = Callable[[NDArray[np.float64], Person, tuple[int, ...], int], Iterator[Checked]]


def session_curve(strategy: str) -> Curve:
    """A session with this strategy; its own labels, number of clusters not given.

    Seconds are those of the processor for the questions alone, for labels none are counted.
    """

    def curve(
        X: NDArray[np.float64], person: Person, checkpoints: tuple[int, ...], seed: int
    ) -> Iterator[Checked]:
        seconds = 0.0
        with active.ActiveClustering(X, strategy=strategy, random_state=seed) as session:
            for m in range(max(checkpoints) + 1):
                if m in checkpoints:
                    quality = session.quality_
                    low, high = float(quality.low), float(quality.high)
                    yield Checked(m, np.asarray(session.labels_), (low, high), seconds)
                if m < max(checkpoints):
                    start = time.process_time()
                    i, j = session.ask()
                    seconds += time.process_time() - start
                    session.tell(i, j, person(i, j))

    return curve


def linked_curve(
    X: NDArray[np.float64], person: Person, checkpoints: tuple[int, ...], seed: int
) -> Iterator[Checked]:
    """Random pairs with ``LinkedClustering``, number of clusters not given; "unsure" gives no link.

    Seconds are those of the fits.
    """
    random_pairs = find_strategy("random")
    answers, seconds = NO_ANSWERS, 0.0
    for m in range(max(checkpoints) + 1):
        if m in checkpoints:
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                links = as_constraints(answers, len(X)) if m else None
                labels = LinkedClustering(random_state=seed).fit(X, constraints=links).labels_
            seconds += time.process_time() - start
            yield Checked(m, np.asarray(labels), None, seconds)
        (pair,) = random_pairs(Knowledge(X, answers), 1, np.random.default_rng([seed, m]))
        i, j = (int(row) for row in pair)
        answers = append(answers, i, j, SAYS[person(i, j)])


def cobras_curve(
    X: NDArray[np.float64], person: Person, checkpoints: tuple[int, ...], seed: int
) -> Iterator[Checked]:
    """COBRAS with each budget: better for it than its labels on the way to a larger one.

    It knows no "unsure"; it is told "different" then. Before the first answer it has no labels.
    """
    budgets = [m for m in checkpoints if m]
    found = cobras_labels(X, lambda i, j: person(i, j) == "same", budgets, seed)
    for budget, (labels, _) in zip(budgets, found, strict=True):
        yield Checked(budget, labels, None, None)
