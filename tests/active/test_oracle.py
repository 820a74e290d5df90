"""The oracle: right answers, and errors that depend on the pair alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.active import LabelOracle

Y = np.repeat([0, 1, 2], 25)
PAIRS = list(itertools.combinations(range(len(Y)), 2))


def answers(pairs, **options):
    oracle = LabelOracle(Y, **options)
    return [oracle(i, j) for i, j in pairs]


def truth(pairs):
    return ["same" if Y[i] == Y[j] else "different" for i, j in pairs]


def test_without_rates_every_answer_is_right():
    assert answers(PAIRS) == truth(PAIRS)


def test_an_answer_depends_on_the_pair_alone():
    options = {"error_rate": 0.3, "unsure_rate": 0.2, "random_state": 4}
    first = answers(PAIRS, **options)
    order = np.random.default_rng(0).permutation(len(PAIRS))
    again = answers([PAIRS[place][::-1] for place in order], **options)
    assert [first[place] for place in order] == again
    oracle = LabelOracle(Y, **options)
    assert [oracle(*pair) for pair in PAIRS[:200] * 3] == first[:200] * 3
    assert oracle.n_asked == 600
    assert answers(PAIRS, **(options | {"random_state": 5})) != first


def test_rates_are_met_and_do_not_depend_on_the_rows():
    n = len(PAIRS)
    given = np.array(answers(PAIRS, error_rate=0.1, unsure_rate=0.2, random_state=0))
    unsure = given == "unsure"
    wrong = ~unsure & (given != np.array(truth(PAIRS)))
    for seen, rate in ((unsure, 0.2), (wrong, 0.8 * 0.1)):
        assert abs(seen.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / n)
        # Every row has its share: a draw that mixed up rows would give some rows all the errors.
        per_row = np.bincount(np.array(PAIRS)[seen].ravel(), minlength=len(Y))
        assert per_row.max() < 74 * rate + 5 * np.sqrt(74 * rate * (1 - rate))
        assert per_row.min() > 74 * rate - 5 * np.sqrt(74 * rate * (1 - rate))


def test_unsure_wins_and_leaves_the_errors_where_they_are():
    both = answers(PAIRS, error_rate=0.3, unsure_rate=0.4, random_state=1)
    errors = answers(PAIRS, error_rate=0.3, random_state=1)
    unsure = answers(PAIRS, unsure_rate=0.4, random_state=1)
    for given, with_errors, with_unsure in zip(both, errors, unsure, strict=True):
        assert given == ("unsure" if with_unsure == "unsure" else with_errors)
    assert set(answers(PAIRS, error_rate=1.0, unsure_rate=1.0)) == {"unsure"}
    flipped = answers(PAIRS, error_rate=1.0)
    assert all(a != b for a, b in zip(flipped, truth(PAIRS), strict=True))


@pytest.mark.parametrize("y", [["a", None, "b"], [0, -1, 1], [0.0, np.nan, 1.0]])
def test_a_row_without_a_class_is_named_when_it_is_asked_about(y):
    oracle = LabelOracle(y)
    assert oracle(0, 2) == "different"
    with pytest.raises(ValueError, match=r"y\[1\] is missing.*row 1; fill in"):
        oracle(0, np.int64(1))
    assert oracle.n_asked == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelOracle([0, 1])(1, 1), r"\(1, 1\): a row cannot be compared with itself"),
        (lambda: LabelOracle([0, 1])(0, 2), r"j is 2: rows are numbered 0\.\.1"),
        (lambda: LabelOracle([0, 1])(-1, 0), "i is -1"),
        (lambda: LabelOracle([0, 1])(0.0, 1), r"i is 0\.0"),
        (lambda: LabelOracle([0, 1])(True, 0), "i is True"),
        (lambda: LabelOracle([0, 1], error_rate=1.5), r"error_rate is 1\.5.*from 0 to 1"),
        (lambda: LabelOracle([0, 1], unsure_rate=-0.1), "unsure_rate must be"),
        (lambda: LabelOracle([[0, 1]]), r"y has shape \(1, 2\)"),
        (lambda: LabelOracle([0, 1], random_state="x"), "random_state"),
    ],
)
def test_wrong_use_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()
