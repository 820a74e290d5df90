"""What follows from answers, against loops over them."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import (
    NO_ANSWERS,
    SAYS,
    Answers,
    Knowledge,
    answered_groups,
    append,
    as_constraints,
    chosen_answers,
    first_answers,
)
from linkwise.exceptions import InfeasibleConstraints


def told(*answers) -> Answers:
    """Answers from tuples (i, j, word[, certainty[, source]])."""
    all_answers = NO_ANSWERS
    for i, j, word, *rest in answers:
        all_answers = append(all_answers, i, j, SAYS[word], *rest)
    return all_answers


def same(a: Answers, b: Answers) -> bool:
    return a.source == b.source and all(
        np.array_equal(x, y, equal_nan=x.dtype.kind == "f") and x.dtype == y.dtype
        for x, y in zip(a[:3], b[:3], strict=True)
    )


def groups_by_loops(answers: Answers, n: int) -> list[int]:
    """Spread a number from each row that was asked about over the pairs that more say are the same."""
    votes: dict[frozenset, int] = {}
    known = []
    for (i, j), says in zip(answers.pairs.tolist(), answers.says.tolist(), strict=True):
        if says:
            votes[frozenset((i, j))] = votes.get(frozenset((i, j)), 0) + says
            known += [row for row in (i, j) if row not in known]
    groups, number = [-1] * n, 0
    for row in known:
        if groups[row] >= 0:
            continue
        waiting = [row]
        while waiting:
            one = waiting.pop()
            groups[one] = number
            for pair, count in votes.items():
                waiting += [other for other in pair if one in pair and count > 0 and groups[other] < 0]
        number += 1
    return groups


def test_append_and_without_are_inverse_and_change_nothing():
    first = told((3, 1, "same", 0.9, "Ann"), (2, 5, "unsure"))
    second = append(first, 5, 1, SAYS["different"], source="Bob")
    assert second.pairs.tolist() == [[3, 1], [2, 5], [5, 1]]
    assert second.says.tolist() == [1, 0, -1]
    assert second.certainty[0] == 0.9
    assert np.isnan(second.certainty[1:]).all()
    assert second.source == ("Ann", "", "Bob")
    assert len(first.says) == 2
    assert same(first_answers(second, 2), first)
    assert same(chosen_answers(second, np.array([0, 1])), first)
    assert same(
        chosen_answers(second, np.array([1, 2])), told((2, 5, "unsure"), (5, 1, "different", None, "Bob"))
    )
    assert len(NO_ANSWERS.says) == 0


def test_links_are_soft_by_certainty_and_keep_their_sources():
    answers = told(
        (4, 0, "different", None, "Bob"),
        (0, 1, "same", 0.8, "Ann"),
        (1, 2, "unsure", 0.9),
        (0, 1, "same", 0.8),
    )
    links = as_constraints(answers, 6, certainty=0.9)
    assert links.pairs.tolist() == [[0, 1], [0, 4]]
    # Two answers about one pair are independent evidence: 2 * 0.5 log(.8 / .2).
    assert links.weights == pytest.approx([np.log(4.0), -0.5 * np.log(9.0)])
    assert links.source.tolist() == ["", "Ann", "Bob"]
    assert as_constraints(told((0, 1, "same")), 3).source is None
    assert as_constraints(NO_ANSWERS, 3).n_pairs == 0
    assert as_constraints(told((0, 1, "unsure")), 3).n_pairs == 0


def test_sure_answers_are_hard_and_may_not_contradict():
    assert np.isinf(as_constraints(told((0, 1, "same", 1.0)), 3).weights).all()
    with pytest.raises(InfeasibleConstraints):
        as_constraints(told((0, 1, "same", 1.0), (1, 2, "same", 1.0), (2, 0, "different", 1.0)), 3)


def test_groups_are_numbered_by_the_first_row_asked_about():
    answers = told((7, 2, "different"), (5, 2, "same"), (1, 3, "unsure"), (6, 0, "same"), (0, 7, "same"))
    #                rows in order of asking: 7, 2, 5, 6, 0
    assert answered_groups(answers, 9).tolist() == [0, -1, 1, -1, -1, 1, 0, 0, -1]
    assert answered_groups(NO_ANSWERS, 3).tolist() == [-1, -1, -1]


def test_the_more_answers_about_one_pair_decide():
    twice = told((0, 1, "same"), (1, 0, "different"))
    assert answered_groups(twice, 2).tolist() == [0, 1]
    assert answered_groups(append(twice, 0, 1, 1), 2).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_groups_and_asked_against_loops(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 15)), int(rng.integers(0, 25))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)], dtype=np.int64).reshape(m, 2)
    says = rng.choice([-1, 0, 1], m, p=[0.4, 0.2, 0.4]).astype(np.int8)
    answers = Answers(pairs, says, np.full(m, np.nan), ("",) * m)
    knowledge = Knowledge(np.zeros((n, 2)), answers)
    assert knowledge.groups.tolist() == groups_by_loops(answers, n)
    assert knowledge.n_groups == max(knowledge.groups.tolist(), default=-1) + 1
    seen = {tuple(sorted(pair)) for pair in pairs.tolist()}
    assert [tuple(pair) for pair in knowledge.asked.tolist()] == sorted(seen)
