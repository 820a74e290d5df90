"""Pools of threads that run fixed pieces of work and return the results in the order of the pieces.

The pieces never depend on the number of threads, so sums over them are the same numbers for any number of
threads. Kernels release the interpreter lock. ``thread_map`` waits for all pieces; ``Workers.map`` yields
results as they are wanted and bounds how many wait, so that a pass over large data keeps its memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

__all__ = ["ThreadMap", "Workers", "chunk_bounds", "thread_map"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: ``mapper(function, items)``: the list of ``function(item)`` in the order of the items.
ThreadMap = Callable[[Callable[[Item], Result], Iterable[Item]], list[Result]]


def chunk_bounds(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut ``range(start, stop)`` into pieces of at most ``size``.

    Parameters
    ----------
    start, stop, size : int

    Returns
    -------
    list of (int, int)
        First and last-plus-one of each piece, in order.

    Examples
    --------
    >>> from linkwise._threads import chunk_bounds
    >>> chunk_bounds(2, 9, 3)
    [(2, 5), (5, 8), (8, 9)]
    """
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


@contextmanager
def thread_map(n_threads: int) -> Iterator[ThreadMap]:
    """A ``map`` that runs on ``n_threads`` threads and keeps the order; one thread means no pool at all.

    Parameters
    ----------
    n_threads : int
        At least 1.

    Yields
    ------
    callable
        ``mapper(function, items) -> list``.

    Examples
    --------
    >>> from linkwise._threads import thread_map
    >>> with thread_map(2) as mapper:
    ...     mapper(abs, [-3, -1, -2])
    [3, 1, 2]
    """
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1, got {n_threads}; pass n_threads=1 or more")
    if n_threads == 1:
        yield _map_here
        return
    with ThreadPoolExecutor(max_workers=n_threads) as pool:

        def map_there(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
            work = list(items)
            # Handing a single piece to the pool would only cost the hand-over.
            return _map_here(function, work) if len(work) == 1 else list(pool.map(function, work))

        yield map_there


def _map_here(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    return [function(item) for item in items]


class Workers:
    """A pool of threads for kernels, which release the interpreter lock. A context manager.

    Parameters
    ----------
    n_threads : int, default=1
        1 runs everything in the calling thread.

    Examples
    --------
    >>> from linkwise._threads import Workers
    >>> with Workers(n_threads=2) as workers:
    ...     list(workers.map(abs, [-3, 2, -1]))
    [3, 2, 1]
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Item], Result], tasks: Iterable[Item]) -> Iterator[Result]:
        """Results in the order of the tasks, computed ahead by at most two tasks a thread.

        The order makes a sum of the results the same for every number of threads; the limit bounds the
        memory of results that wait for their turn.
        """
        if self._pool is None:
            yield from map(function, tasks)
            return
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(self._pool.submit(function, task))
            if len(waiting) >= 2 * self.n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
