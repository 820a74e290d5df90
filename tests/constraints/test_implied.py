"""Pairs that hard links imply, against all labellings of small cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from linkwise import Constraints
from linkwise.constraints.implied import implied_pairs


def divisions(n):
    """All ways to divide n rows into groups: labels of which each is at most one above those before it."""
    if n == 0:
        return [()]
    return [(*labels, new) for labels in divisions(n - 1) for new in range(max(labels, default=-1) + 2)]


def slow_pairs(links):
    """Pairs of hard-linked rows that have the same answer in every labelling that keeps all links."""
    hard = np.isinf(links.weights)
    rows = np.unique(links.pairs[hard]).tolist()
    kept = [
        labels
        for labels in divisions(len(rows))
        if all(
            (labels[rows.index(i)] == labels[rows.index(j)]) == (weight > 0)
            for (i, j), weight in zip(links.pairs[hard].tolist(), links.weights[hard], strict=True)
        )
    ]
    answers = {
        (rows[a], rows[b]): {labels[a] == labels[b] for labels in kept}
        for a, b in combinations(range(len(rows)), 2)
    }
    return {pair: answer.pop() for pair, answer in answers.items() if len(answer) == 1}


def test_the_oracle_knows_all_divisions():
    """Bell's numbers; names of groups do not matter, so these stand for all n ** n labellings."""
    assert [len(set(divisions(n))) for n in range(9)] == [1, 1, 2, 5, 15, 52, 203, 877, 4140]


def test_all_that_follow_and_no_other():
    rng, n_implied = np.random.default_rng(0), 0
    for _ in range(60):
        truth = rng.integers(3, size=8)
        links = Constraints.sample(truth, int(rng.integers(1, 5)), overlap=True, random_state=rng)
        links = links + Constraints(8, must_link=[(0, 1)], certainty=0.8)
        pairs, together = implied_pairs(links, 1000, rng)
        found = dict(zip(map(tuple, pairs.tolist()), together.tolist(), strict=True))
        assert found == slow_pairs(links)
        n_implied += len(found) - int(np.isinf(links.weights).sum())
    assert n_implied > 20


def test_of_many_pairs_some_are_drawn():
    links = Constraints.from_labels(np.arange(60) % 3)
    pairs, together = implied_pairs(links, 100, np.random.default_rng(0))
    assert len(pairs) == 100
    np.testing.assert_array_equal(together, (pairs[:, 0] - pairs[:, 1]) % 3 == 0)
