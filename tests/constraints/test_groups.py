"""Groups of must-links, the choice of those far apart, and pairs that hard links imply, by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.constraints.groups import choose_far_apart, groups_apart, implied_pairs, neighbourhoods
from tests.repeats import for_seeds


def test_neighbourhoods_are_the_groups_of_two_and_more():
    members, groups, n_groups = neighbourhoods(np.array([[0, 3], [3, 5], [7, 8]]))
    assert members.tolist() == [0, 3, 5, 7, 8]
    assert groups.tolist() == [0, 0, 0, 1, 1]
    assert n_groups == 2


@for_seeds(30)
def test_far_apart_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    place, sizes = rng.normal(size=(8, 2)), rng.integers(2, 9, size=8).astype(float)
    distance = np.sqrt(((place[:, np.newaxis] - place) ** 2).sum(axis=2))
    found = choose_far_apart(lambda g: distance[g], sizes, 5, first=3)
    chosen = [3]
    while len(chosen) < 5:
        scores = {
            g: min(distance[g, c] * np.sqrt(sizes[g] * sizes[c]) for c in chosen)
            for g in range(8)
            if g not in chosen
        }
        chosen.append(max(scores, key=lambda g: (scores[g], -g)))
    assert found.tolist() == chosen


def test_coincident_groups_are_still_chosen_once_each():
    found = choose_far_apart(lambda g: np.zeros(4), np.ones(4), 3, first=2)
    assert sorted(found.tolist()) == [0, 1, 2]


def test_distinct_leaves_coincident_groups_out():
    place = np.array([0.0, 0.0, 3.0, 0.0])
    found = choose_far_apart(lambda g: np.abs(place - place[g]), np.ones(4), 4, first=1, distinct=True)
    assert found.tolist() == [1, 2]


def test_groups_apart_by_hand():
    must_link, cannot_link = np.array([[0, 3], [7, 8]]), np.array([[3, 8], [0, 7], [2, 8], [4, 2], [0, 3]])
    members, groups, n_neighbourhoods, apart = groups_apart(must_link, cannot_link)
    assert members.tolist() == [0, 3, 7, 8, 2, 4]
    assert groups.tolist() == [0, 0, 1, 1, 2, 3]  # rows 2 and 4 are groups of one
    assert n_neighbourhoods == 2
    # Twice said is said once; the cannot-link inside the first neighbourhood says nothing about groups.
    assert apart.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_groups_apart_without_links_of_a_kind():
    none, pairs = np.empty((0, 2), dtype=np.int64), np.array([[1, 4], [4, 2]])
    members, groups, n_neighbourhoods, apart = groups_apart(pairs, none)
    assert (members.tolist(), groups.tolist(), n_neighbourhoods) == ([1, 2, 4], [0, 0, 0], 1)
    assert apart.shape == (0, 2)
    members, groups, n_neighbourhoods, apart = groups_apart(none, pairs)
    assert (members.tolist(), groups.tolist(), n_neighbourhoods) == ([1, 2, 4], [0, 1, 2], 0)
    assert apart.tolist() == [[0, 2], [1, 2]]


class TestGroupsKnownToDiffer:
    #: On a line; all of one size.
    place = np.array([0.0, 1.0, 10.0, 11.0])

    def choose(self, n_chosen, apart, **options):
        return choose_far_apart(
            lambda g: np.abs(self.place - self.place[g]),
            np.ones(4),
            n_chosen,
            apart=np.array(apart).reshape(-1, 2),
            **{"first": 0, **options},
        ).tolist()

    def test_by_hand(self):
        assert self.choose(3, []) == [0, 3, 1]  # the farthest, and then 1 and 2 at distance 1
        assert self.choose(2, [(0, 1)]) == [0, 1]  # near, but known to differ
        assert self.choose(2, [(0, 1), (0, 2)]) == [0, 2]  # of two that are, the farther
        assert self.choose(3, [(0, 1), (1, 2)]) == [0, 1, 2]  # 2 counts from 0 only, and 3 from 1
        assert self.choose(3, [(0, 1), (1, 2), (0, 2)]) == [0, 2, 1]  # three that all differ

    def test_what_is_known_ends_the_choice(self):
        assert self.choose(4, [(0, 1), (2, 3)], only_apart=True) == [0, 1]
        assert self.choose(4, [(0, 3), (1, 3), (1, 2)], first=[0, 1], only_apart=True) == [0, 1, 3]

    def test_a_group_at_the_same_place_is_no_seed_though_it_differs(self):
        same = np.array([0.0, 0.0, 5.0])
        found = choose_far_apart(
            lambda g: np.abs(same - same[g]), np.ones(3), 2, first=0, apart=np.array([[0, 1]])
        )
        assert found.tolist() == [0, 2]

    @for_seeds(30)
    def test_equals_the_definition(self, seed):
        rng = np.random.default_rng(seed)
        place, sizes = rng.normal(size=(9, 2)), rng.integers(1, 9, size=9).astype(float)
        distance = np.sqrt(((place[:, np.newaxis] - place) ** 2).sum(axis=2))
        pairs = [(i, j) for j in range(9) for i in range(j) if rng.random() < 0.3]
        found = choose_far_apart(lambda g: distance[g], sizes, 5, first=3, apart=np.array(pairs))
        known = {frozenset(pair) for pair in pairs}
        chosen = [3]
        while len(chosen) < 5:

            def value(g, c):
                return distance[g, c] * np.sqrt(sizes[g] * sizes[c])

            scores = {}
            for g in set(range(9)) - set(chosen):
                unsure = [value(g, c) for c in chosen if frozenset((g, c)) not in known]
                scores[g] = (min(unsure, default=np.inf), min(value(g, c) for c in chosen))
            chosen.append(max(scores, key=scores.get))
        assert found.tolist() == chosen

    def test_draws_in_proportion_to_the_squared_value(self):
        rng, counts = np.random.default_rng(0), np.zeros(4)
        for _ in range(4000):
            counts[self.choose(2, [], rng=rng)[1]] += 1
        expected = self.place**2 / (self.place**2).sum()
        assert counts / 4000 == pytest.approx(expected, abs=0.03)


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
