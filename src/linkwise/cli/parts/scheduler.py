"""Where a command on many files is computed: threads of this process, a local cluster, or a scheduler."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linkwise.cli.errors import CommandError

# Seconds that a scheduler has to answer, and seconds between two lines of progress in a file.
_PATIENCE = 10
_BETWEEN_LINES = 2.0


def check_scheduler(address: str | None) -> None:
    """Refuse an address that is none."""
    if address is not None and address != "local" and "://" not in address:
        raise CommandError(
            f"--scheduler {address} is no address; write local, or for example tcp://host:8786"
        )


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the scheduler, or None for threads of this process; close what was started."""
    try:
        import dask.array  # noqa: F401
    except ImportError as error:
        raise CommandError(f'many files need Dask ({error}); pip install "linkwise[dask]"') from None
    if address is None:
        yield None
        return
    from distributed import Client, LocalCluster

    if address == "local":
        with (
            LocalCluster(
                n_workers=os.cpu_count(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CommandError(
            f"no scheduler answers at {address} ({reason}); start one with `dask scheduler`, or check the "
            "address"
        ) from None
    with client:
        yield client


class Progress:
    """Lines on standard error: one that changes on a terminal, else one every two seconds."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.iteration = n_rows, 0
        self._last = self._said = time.perf_counter()
        self._live = sys.stderr.isatty()

    def __call__(self, iteration: int, objective: float) -> None:
        """Tell about an iteration that has ended."""
        now = time.perf_counter()
        if iteration > 0:
            speed = self.n_rows / max(now - self._last, 1e-9)
            self.say(f"iteration {iteration}: objective {objective:.6f}, {speed:.3g} rows/s", now)
        self.iteration, self._last = iteration, now

    def say(self, line: str, now: float | None = None) -> None:
        """Print a line, unless the last one is too young."""
        if self._live:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif now is None or now - self._said >= _BETWEEN_LINES or self.iteration == 0:
            print(line, file=sys.stderr, flush=True)
            self._said = time.perf_counter()

    def end(self) -> None:
        """Clear the line that changes."""
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
