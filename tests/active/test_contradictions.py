"""Contradictions against brute force: all cycles of answers, and all labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.active.contradictions import find_contradictions
from linkwise.active.knowledge import Answers
from tests.repeats import examples


def answers_of(*told) -> Answers:
    """Answers from tuples (i, j, says)."""
    table = np.array(told, dtype=np.int64).reshape(-1, 3)
    return Answers(table[:, :2], table[:, 2].astype(np.int8), np.full(len(table), np.nan), ("",) * len(table))


def can_hold(answers: Answers, chosen, n_clusters: int) -> bool:
    """Whether some labelling agrees with these answers: all are tried."""
    chosen = list(chosen)
    rows = sorted(set(answers.pairs[chosen].ravel().tolist()))
    place = {row: number for number, row in enumerate(rows)}
    for labels in itertools.product(range(n_clusters), repeat=len(rows)):
        if all(
            answers.says[one] == 0 or (labels[place[i]] == labels[place[j]]) == (answers.says[one] == 1)
            for one in chosen
            for i, j in [answers.pairs[one].tolist()]
        ):
            return True
    return not rows


def shortest_cycles(answers: Answers) -> dict[int, int]:
    """For every "different" answer the length of the shortest cycle that it closes with "same" answers.

    All simple cycles are walked: every path of different answers through different rows.
    """
    edges = [
        (place, *pair)
        for place, (pair, says) in enumerate(zip(answers.pairs.tolist(), answers.says.tolist(), strict=True))
        if says == 1
    ]
    shortest: dict[int, int] = {}

    def walk(closing: int, end: int, seen: tuple[int, ...]) -> None:
        if seen[-1] == end:
            shortest[closing] = min(shortest.get(closing, 99), len(seen))
            return
        for _, i, j in edges:
            for here, there in ((i, j), (j, i)):
                if here == seen[-1] and there not in seen:
                    walk(closing, end, (*seen, there))

    for place, (start, end) in enumerate(answers.pairs.tolist()):
        if answers.says[place] == -1:
            walk(place, end, (start,))
    return shortest


def random_answers(rng, n: int, m: int, p_same: float) -> Answers:
    return answers_of(
        *(
            (*rng.choice(n, 2, replace=False), rng.choice([1, -1, 0], p=[p_same, 0.9 - p_same, 0.1]))
            for _ in range(m)
        )
    )


@pytest.mark.parametrize("seed", range(examples(60)))
def test_chains_against_all_cycles(seed):
    rng = np.random.default_rng(seed)
    answers = random_answers(
        rng, int(rng.integers(2, 7)), int(rng.integers(0, 12)), rng.choice([0.3, 0.5, 0.7])
    )
    found = find_contradictions(answers)
    shortest = shortest_cycles(answers)
    assert {one.answers[-1]: len(one.answers) for one in found} == shortest
    assert [len(one.answers) for one in found] == sorted(shortest.values())
    n = len(set(answers.pairs.ravel().tolist()))
    assert bool(found) != can_hold(answers, range(len(answers.says)), max(n, 1))
    for one in found:
        assert len(set(one.answers)) == len(one.answers)
        assert not can_hold(answers, one.answers, n)
        for place in one.answers:  # each of them can be taken back
            assert can_hold(answers, [other for other in one.answers if other != place], n)
        assert one.says == (1,) * (len(one.says) - 1) + (-1,)
        for place, pair, says in zip(one.answers, one.pairs, one.says, strict=True):
            assert sorted(pair) == sorted(answers.pairs[place].tolist())
            assert answers.says[place] == says
        chain = one.pairs[:-1]
        assert (chain[0][0], chain[-1][1]) == one.pairs[-1]
        assert all(left[1] == right[0] for left, right in itertools.pairwise(chain))


@pytest.mark.parametrize("seed", range(examples(150)))
def test_too_few_clusters_against_all_labellings(seed):
    rng = np.random.default_rng(seed)
    n_clusters = int(rng.integers(1, 4))
    answers = random_answers(rng, int(rng.integers(3, 8)), int(rng.integers(3, 20)), rng.choice([0.1, 0.3]))
    chains = find_contradictions(answers)
    found = find_contradictions(answers, n_clusters)
    assert found[: len(chains)] == chains
    blamed = {one.answers[-1] for one in chains}
    rest = [place for place in range(len(answers.says)) if place not in blamed]
    assert (len(found) > len(chains)) != can_hold(answers, rest, n_clusters)
    for one in found[len(chains) :]:
        assert one.n_clusters == n_clusters
        assert set(one.answers) <= set(rest)
        assert not can_hold(answers, one.answers, n_clusters)
        for place in one.answers:
            assert can_hold(answers, [other for other in one.answers if other != place], n_clusters)


def test_the_words():
    answers = answers_of((5, 9, 1), (0, 1, 0), (2, 9, 1), (9, 5, -1), (5, 2, -1))
    direct, chain = find_contradictions(answers)
    assert str(direct) == "9 = 5, 9 ≠ 5"
    assert direct.answers == (0, 3)
    assert str(chain) == "5 = 9, 9 = 2, 5 ≠ 2"
    assert chain.text("row {}".format) == "row 5 = row 9, row 9 = row 2, row 5 ≠ row 2"
    three = answers_of((0, 1, -1), (1, 2, -1), (4, 0, 1), (4, 2, -1))
    (many,) = find_contradictions(three, n_clusters=2)
    assert str(many) == "0 ≠ 1, 1 ≠ 2, 4 = 0, 4 ≠ 2: more than 2 clusters"
    (one,) = find_contradictions(three, n_clusters=1)
    assert str(one) == "0 ≠ 1: more than 1 cluster"
    assert find_contradictions(three, n_clusters=3) == []


def test_nothing_told_contradicts_nothing():
    assert find_contradictions(answers_of()) == []
    assert find_contradictions(answers_of((0, 1, 0), (0, 1, 0)), n_clusters=1) == []
    assert find_contradictions(answers_of((10**6, 3, 1), (3, 10**6, 0)), n_clusters=1) == []


def test_many_answers_in_one_group_take_no_time():
    """A thousand rows of one group and a thousand wrong answers: a search for each, not all pairs."""
    rng = np.random.default_rng(0)
    told = [(int(rng.integers(row)), row, 1) for row in range(1, 1000)]
    wrong = [(*rng.choice(1000, 2, replace=False), -1) for _ in range(1000)]
    found = find_contradictions(answers_of(*told, *wrong))
    assert len(found) == 1000
    assert found[0].says[-1] == -1
