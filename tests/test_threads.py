from __future__ import annotations

import threading

import pytest

from linkwise._threads import chunk_bounds, thread_map


@pytest.mark.parametrize(
    ("start", "stop", "size"), [(0, 10, 3), (5, 5, 4), (2, 3, 100), (0, 12, 4), (7, 20, 1)]
)
def test_chunks_cover_the_range_once_and_in_order(start, stop, size):
    chunks = chunk_bounds(start, stop, size)
    assert [i for first, last in chunks for i in range(first, last)] == list(range(start, stop))
    assert all(0 < last - first <= size for first, last in chunks)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_keep_the_order_of_the_items(n_threads):
    with thread_map(n_threads) as mapper:
        assert mapper(lambda x: x * x, range(50)) == [x * x for x in range(50)]
        assert mapper(str, [3]) == ["3"]
        assert mapper(str, []) == []


def test_threads_run_side_by_side():
    """Three tasks that all wait for each other finish only if they run at the same time."""
    barrier = threading.Barrier(3, timeout=20)
    with thread_map(3) as mapper:
        assert sorted(mapper(lambda _: barrier.wait(), range(3))) == [0, 1, 2]


def test_one_thread_stays_in_the_caller():
    with thread_map(1) as mapper:
        assert set(mapper(lambda _: threading.current_thread(), range(4))) == {threading.current_thread()}


def test_an_error_reaches_the_caller():
    with thread_map(2) as mapper, pytest.raises(ZeroDivisionError):
        mapper(lambda x: 1 // x, [1, 0, 2])


def test_no_threads_is_refused():
    with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"), thread_map(0):
        pass
