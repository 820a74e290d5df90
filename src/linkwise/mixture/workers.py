"""Threads that share out the ranges of a pass and hand the results back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

__all__ = ["Workers"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers:
    """A pool of threads for kernels, which release the interpreter lock. A context manager.

    Parameters
    ----------
    n_threads : int, default=1
        1 runs everything in the calling thread.

    Examples
    --------
    >>> from linkwise.mixture.workers import Workers
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

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
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
