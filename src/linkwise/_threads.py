"""Threads that share out fixed pieces of work; results come in the order of the pieces.

The pieces never depend on the number of threads, so that sums over them do not either. Whole fits side by
side (restarts, repeats, candidates) are not such pieces: joblib runs them, as ``n_jobs`` says.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Helper threads of this process by their number. They are kept, because starting one takes 0.1 ms, which
#: is long beside a piece of work.
_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def chunk_bounds(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut ``range(start, stop)`` into pieces of at most ``size``: first and last-plus-one of each."""
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of this process that have threads; kept, because looking for them takes 5 ms."""
    return ThreadpoolController()


def blas_threads(n_threads: int) -> Any:
    """Limit matrix products inside the block to so many threads."""
    return _libraries().limit(limits=n_threads, user_api="blas")


#: Tables with at most so many rows are clustered by one thread: others would wait most of the time. A choice
#: on 178 rows took 5.2 processor seconds with one thread and 13.6 with two, on a machine with other work.
_ROWS_OF_ONE_THREAD = 3000


def one_thread_if_small(n_rows: int, most: int = _ROWS_OF_ONE_THREAD) -> Any:
    """Limit matrix products and scikit-learn's loops over few rows to one thread inside the block."""
    return _libraries().limit(limits=1 if n_rows <= most else None)


class Workers:
    """The calling thread and ``n_threads - 1`` helpers, which all fits of a process share."""

    def __init__(self, n_threads: int = 1) -> None:
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, got {n_threads}; pass n_threads=1 or more")
        self.n_threads = n_threads

    def map(self, function: Callable[[Item], Result], tasks: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the tasks, computed ahead by at most two tasks a thread."""
        tasks = iter(tasks)
        first = list(islice(tasks, 2)) if self.n_threads > 1 else []
        if len(first) < 2:
            yield from map(function, chain(first, tasks))
            return
        helpers = self.n_threads - 1
        pool = _pools.get(helpers) or _pools.setdefault(helpers, ThreadPoolExecutor(helpers, "linkwise"))
        waiting: deque[tuple[Future[Result], Item]] = deque()
        try:
            for task in chain(first, tasks):
                waiting.append((pool.submit(function, task), task))
                if len(waiting) >= 2 * self.n_threads:
                    yield _oldest(function, waiting)
            while waiting:
                yield _oldest(function, waiting)
        finally:
            for future, _ in waiting:
                future.cancel()
            wait([future for future, _ in waiting])

    def each(self, function: Callable[[Item], Any], tasks: Iterable[Item]) -> None:
        """Run the function for every task, for what it writes."""
        for _ in self.map(function, tasks):
            pass


def _oldest(function: Callable[[Item], Result], waiting: deque[tuple[Future[Result], Item]]) -> Result:
    """Take the oldest result; as long as a helper works on it, do waiting tasks here."""
    while not waiting[0][0].done():
        for place, (future, task) in enumerate(waiting):
            if future.cancel():
                waiting[place] = (_done_here(function, task), task)
                break
        else:
            break
    return waiting.popleft()[0].result()


def _done_here(function: Callable[[Item], Result], task: Item) -> Future[Result]:
    """The result of a task, or its error, which must not overtake those of earlier tasks."""
    future: Future[Result] = Future()
    try:
        future.set_result(function(task))
    except Exception as error:
        future.set_exception(error)
    return future
