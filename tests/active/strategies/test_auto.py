"""The default strategy changes over from one strategy to another."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active import ActiveClustering, LabelOracle
from linkwise.active.knowledge import Answers, Knowledge
from linkwise.active.strategies import auto, information, spread
from linkwise.datasets import load_bundled


@pytest.mark.parametrize(
    ("n_told", "n_unsure", "expected"), [(0, 0, spread), (11, 5, spread), (12, 0, information)]
)
def test_changes_over_after_twelve_answers(n_told, n_unsure, expected):
    X, y = load_bundled("iris")
    rng = np.random.default_rng(0)
    drawn = [rng.choice(150, 2, replace=False) for _ in range(n_told + n_unsure)]
    pairs = np.array(drawn, dtype=np.int64).reshape(-1, 2)
    says = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1).astype(np.int8)
    says[n_told:] = 0
    knowledge = Knowledge(X, Answers(pairs, says, np.full(len(says), np.nan), ("",) * len(says)))
    found = auto(knowledge, 2, np.random.default_rng(1))
    assert np.array_equal(found, expected(knowledge, 2, np.random.default_rng(1)))


def test_is_the_default_of_a_session():
    X, y = load_bundled("iris")
    person = LabelOracle(y)
    sessions = [ActiveClustering(X, random_state=0), ActiveClustering(X, strategy="auto", random_state=0)]
    for _ in range(15):
        (i, j), other = [session.ask() for session in sessions]
        assert (i, j) == other
        for session in sessions:
            session.tell(i, j, person(i, j))
