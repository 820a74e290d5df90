"""A loop that asks and answers, for strategies and for the direct transcriptions of the papers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn import config_context

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, UNSURE, Knowledge, append
from linkwise.active.strategies import Strategy


def rng_at(seed: int, n_answers: int) -> np.random.Generator:
    """The generator that a session with this seed passes after this many answers."""
    return np.random.default_rng([seed, n_answers])


def asked_by(
    strategy: Strategy,
    X: np.ndarray,
    answer: Callable[[int, int], int],
    n_questions: int,
    *,
    n_clusters: int | None = None,
    seed: int = 0,
) -> list[tuple[int, int]]:
    """Questions, one at a time, each with the answers to all before it."""
    answers, asked = NO_ANSWERS, []
    for m in range(n_questions):
        # scikit-learn takes three times as long to check its arguments as to find distances of a few rows.
        with config_context(skip_parameter_validation=True, assume_finite=True):
            pairs = strategy(Knowledge(X, answers, n_clusters), 1, rng_at(seed, m))
        i, j = pairs[0].tolist()
        asked.append((i, j))
        answers = append(answers, i, j, answer(i, j))
    return asked


def asks_again(knowledge: Knowledge, pairs: np.ndarray) -> bool:
    """Whether some of the pairs were asked about before, in either order."""
    seen = {frozenset(pair) for pair in knowledge.answers.pairs.tolist()}
    return any(frozenset(pair) in seen for pair in pairs.tolist())


def truth(y: np.ndarray) -> Callable[[int, int], int]:
    return lambda i, j: SAME if y[i] == y[j] else DIFFERENT


def faulty(y: np.ndarray, seed: int, wrong: float = 0.15, unsure: float = 0.1) -> Callable[[int, int], int]:
    """Some answers wrong, some unsure, the same whenever a pair is asked about."""
    draws = np.random.default_rng(seed).random((len(y), len(y)))

    def answer(i: int, j: int) -> int:
        draw = draws[min(i, j), max(i, j)]
        if draw < unsure:
            return UNSURE
        right = truth(y)(i, j)
        return -right if draw < unsure + wrong else right

    return answer


def small_set(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, classes and their number: blobs that overlap, of different sizes."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n = int(rng.integers(3 * k, 28))
    y = np.append(np.arange(k), rng.choice(k, size=n - k, p=rng.dirichlet(np.full(k, 2.0))))
    X = 2.0 * rng.standard_normal((k, 3))[y] + rng.standard_normal((n, 3))
    return X, y, k


class Budget(Exception):
    """All questions are used up."""


class Person:
    """Answers until the budget is used up, and keeps what was asked."""

    def __init__(self, answer: Callable[[int, int], int], n_questions: int):
        self.answer, self.n_questions = answer, n_questions
        self.asked: list[tuple[int, int]] = []

    def __call__(self, i: int, j: int) -> int:
        if len(self.asked) == self.n_questions:
            raise Budget
        self.asked.append((int(i), int(j)))
        return self.answer(i, j)


def nearest(X: np.ndarray, row: int, members: list[int]) -> int:
    """The member that is nearest to a row: the one that is shown."""
    return members[int(np.argmin(np.linalg.norm(X[row] - X[members], axis=1)))]
