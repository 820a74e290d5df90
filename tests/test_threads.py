"""Threads: pieces of work, their order, their errors."""

from __future__ import annotations

import os
import threading

import pytest
from threadpoolctl import threadpool_limits

from linkwise import _threads
from linkwise._threads import Workers, chunk_bounds, one_thread_if_small


@pytest.mark.parametrize(
    ("start", "stop", "size"), [(0, 10, 3), (2, 9, 7), (5, 5, 4), (0, 4, 1), (3, 8, 100)]
)
def test_chunks_cover_the_range_once(start, stop, size):
    chunks = chunk_bounds(start, stop, size)
    assert [i for first, last in chunks for i in range(first, last)] == list(range(start, stop))
    assert all(0 < last - first <= size for first, last in chunks)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_keep_the_order_of_the_tasks(n_threads):
    # Later tasks finish first: each waits for its successor within a group of n_threads.
    done = [threading.Event() for _ in range(40)]

    def wait_for_the_next(number):
        last_of_group = number % n_threads == n_threads - 1 or number == len(done) - 1
        assert last_of_group or done[number + 1].wait(10)
        done[number].set()
        return number

    workers = Workers(n_threads)
    assert list(workers.map(wait_for_the_next, range(len(done)))) == list(range(len(done)))
    assert list(workers.map(lambda x: x**2, range(100))) == [x**2 for x in range(100)]
    assert list(workers.map(abs, [])) == []


def test_few_results_wait_for_their_turn():
    started = []
    results = Workers(2).map(lambda number: started.append(number) or number, range(1000))
    assert next(results) == 0
    assert len(started) <= 5
    assert list(results) == list(range(1, 1000))


def test_threads_run_side_by_side():
    both = threading.Barrier(3, timeout=10)
    assert sorted(Workers(3).map(lambda _: both.wait(), range(3))) == [0, 1, 2]


@pytest.mark.parametrize(("n_threads", "n_tasks"), [(1, 4), (3, 1)])
def test_one_thread_or_one_task_stays_in_the_calling_thread(n_threads, n_tasks):
    here = threading.get_ident()
    assert set(Workers(n_threads).map(lambda _: threading.get_ident(), range(n_tasks))) == {here}


def test_helpers_are_shared_by_all_workers_of_a_process():
    seen = set()
    for _ in range(20):
        seen.update(Workers(2).map(lambda _: threading.get_ident(), range(8)))
    assert len(seen) <= 2


def test_the_first_error_reaches_the_caller_after_running_tasks_have_ended():
    running = []

    def divide(number):
        running.append(number)
        result = 1 / (number - 3)
        running.remove(number)
        return result

    results = Workers(2).map(divide, range(100))
    with pytest.raises(ZeroDivisionError):
        list(results)
    assert set(running) <= {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own():
    assert list(Workers(2).map(abs, range(9))) == list(range(9))
    child = os.fork()
    if child == 0:
        os._exit(0 if list(Workers(2).map(abs, range(9))) == list(range(9)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_threads_is_refused():
    with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"):
        Workers(0)


@pytest.mark.parametrize(("n_rows", "limited"), [(10, True), (3000, True), (3001, False)])
def test_libraries_have_one_thread_for_few_rows(n_rows, limited):
    def counts():
        return [library["num_threads"] for library in _threads._libraries().info()]

    with threadpool_limits(2):
        before = counts()
        with one_thread_if_small(n_rows):
            assert counts() == ([1] * len(before) if limited else before)
        assert counts() == before
