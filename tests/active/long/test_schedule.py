"""Looks and steps against the rules in words."""

from __future__ import annotations

import pytest

from linkwise.active.long.schedule import N_EXACT, last_look, steps


def slow_last_look(n_answers):
    first, n_pairs = 0, 1
    while first + n_pairs <= n_answers:
        first += n_pairs
        n_pairs = 1 + first // 25
    return first, n_pairs


def test_last_look_is_the_last_one_before_so_many_answers():
    for n_answers in range(1200):
        assert last_look(n_answers) == slow_last_look(n_answers)


@pytest.mark.parametrize("n_given", [0, 3, 10, 57, 300])
def test_steps_are_every_ten_and_then_the_looks(n_given):
    for n_answers in range(n_given, n_given + N_EXACT):
        expected = range(max(10, n_given), n_answers + 1, 10)
        assert list(steps(n_given, n_answers)) == list(expected)
    found = list(steps(n_given, n_given + 1000))
    assert found == sorted(set(found))
    late = [step for step in found if step - n_given > N_EXACT + 10]
    assert late
    assert all(last_look(step - n_given)[0] == step - n_given for step in late)
    # Every look after the exact part is a step, so that a look is settled once.
    looks = {last_look(told)[0] for told in range(N_EXACT + 1, 1001)} - {last_look(N_EXACT)[0]}
    assert {n_given + look for look in looks if look > N_EXACT} <= set(found)
