"""Neighbourhoods read from answers, on cases worked out by hand."""

from __future__ import annotations

import numpy as np

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, UNSURE, Knowledge, append
from linkwise.active.strategies.neighbourhoods import farthest_row, neighbourhoods


def found(n, *answers, n_clusters=None):
    told = NO_ANSWERS
    for i, j, says in answers:
        told = append(told, i, j, says)
    return neighbourhoods(Knowledge(np.arange(float(n))[:, None], told, n_clusters))


def lists(known):
    """Members, and the rows and comparisons of the first group under way."""
    rows, compared = known.pending[0] if known.pending else (np.empty(0), np.empty(0))
    return [own.tolist() for own in known.members], rows.tolist(), compared.tolist()


def test_nothing_is_known():
    known = found(3)
    assert lists(known) == ([], [], [])
    assert known.turn.tolist() == [3, 3, 3]


def test_rows_join_found_and_wait():
    told = [(2, 0, SAME), (3, 0, DIFFERENT), (4, 3, DIFFERENT)]
    known = found(6, *told)
    # Row 4 was not compared with the first neighbourhood.
    assert lists(known) == ([[0, 2], [3]], [4], [False, True])
    assert known.turn.tolist() == [0, 6, 1, 2, 3, 6]
    assert known.last_founding == 2
    assert lists(found(6, *told, (4, 2, SAME))) == ([[0, 2, 4], [3]], [], [])
    assert lists(found(6, *told, (4, 2, DIFFERENT))) == ([[0, 2], [3], [4]], [], [])


def test_an_unsure_row_is_compared_but_founds_nothing():
    told = [(1, 0, DIFFERENT), (2, 0, UNSURE)]
    assert lists(found(4, *told)) == ([[0], [1]], [2], [True, False])
    assert lists(found(4, *told, (2, 1, DIFFERENT)))[:2] == ([[0], [1]], [])
    assert lists(found(4, *told, (2, 1, UNSURE)))[:2] == ([[0], [1]], [])


def test_there_are_k_neighbourhoods_at_most():
    told = [(1, 0, DIFFERENT), (2, 0, DIFFERENT), (2, 1, DIFFERENT)]
    assert lists(found(4, *told, n_clusters=2))[:2] == ([[0], [1]], [])
    assert lists(found(4, *told, n_clusters=3))[:2] == ([[0], [1], [2]], [])


def test_the_majority_of_answers_counts():
    told = [(1, 0, SAME), (0, 1, DIFFERENT)]
    # One answer each: known to be neither, so row 1 was compared and is left aside.
    assert lists(found(2, *told)) == ([[0]], [], [])
    assert lists(found(2, *told, (0, 1, DIFFERENT)))[:2] == ([[0], [1]], [])


def test_groups_that_were_given_wait_in_turn():
    told = [(0, 1, SAME), (2, 3, SAME), (4, 5, DIFFERENT)]
    assert lists(found(6, *told)) == ([[1, 0]], [3, 2], [False])
    assert lists(found(6, *told, (2, 0, DIFFERENT))) == ([[1, 0], [3, 2]], [5], [False, False])


def test_several_groups_may_be_under_way():
    known = found(6, (1, 0, DIFFERENT), (2, 0, DIFFERENT), (3, 1, DIFFERENT), (4, 0, UNSURE))
    assert [one.rows.tolist() for one in known.pending] == [[2], [3], [4]]
    assert [one.compared.tolist() for one in known.pending] == [[True, False], [False, True], [True, False]]
    assert known.pending_rows.tolist() == [2, 3, 4]


def test_farthest_row_has_the_largest_smallest_distance():
    X = np.array([[0.0], [4.0], [10.0], [8.0], [5.5]])
    assert farthest_row(X, np.array([1, 3, 4]), np.array([0, 2])) == 4
