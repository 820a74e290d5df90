"""Threads that keep the order."""

from __future__ import annotations

import threading

import pytest

from linkwise._threads import Workers


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order(n_threads):
    # Later tasks finish first: each waits for its successor within a group of n_threads.
    done = [threading.Event() for _ in range(20)]

    def task(number):
        last_of_group = number % n_threads == n_threads - 1 or number == len(done) - 1
        if not last_of_group:
            done[number + 1].wait(timeout=10)
        done[number].set()
        return number

    with Workers(n_threads) as workers:
        assert list(workers.map(task, range(len(done)))) == list(range(len(done)))


def test_results_ahead_are_bounded():
    started = []
    with Workers(2) as workers:
        results = workers.map(started.append, range(100))
        for taken in range(100):
            next(results)
            assert len(started) <= taken + 1 + 4
    assert len(started) == 100


def test_an_error_reaches_the_caller():
    with Workers(2) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(lambda n: 1 // n, [1, 0, 1]))
