"""Time, memory and failures, measured alike in every section."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["attempt", "best_of", "in_child", "one_line", "peak_mebibytes"]

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_LONGEST_ERROR = 160


def best_of(
    function: Callable[[], Any],
    *,
    repeats: int = 3,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Any]:
    """Shortest of several times in seconds, and the last result.

    ``time.thread_time`` as the clock counts the processor time of this thread alone, which other work on the
    machine disturbs least; work on several threads needs the wall clock.
    """
    if warm_up:
        function()
    best, result = float("inf"), None
    for _ in range(repeats):
        start = clock()
        result = function()
        best = min(best, clock() - start)
    return best, result


def one_line(error: BaseException) -> str:
    """Kind and text of an error for a cell: a single line, folders of this machine left out."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    text = re.sub(r"(?<![\w.])(?:/[\w.+@-]+)+/", "", text)
    return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 3] + "..."


def attempt(function: Callable[[], Any]) -> tuple[Any, str]:
    """The result and "", or None and the error: a package that breaks makes a row and not an end."""
    try:
        return function(), ""
    except Exception as error:
        return None, one_line(error)


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a module in a fresh process, whose memory is then its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _status_mebibytes(name: str) -> float:
    found = re.search(rf"{name}:\s*(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1]) / 1024.0


def peak_mebibytes(function: Callable[[], Any]) -> float:
    """Resident memory a call needs at its peak beyond what the process held before, MiB (Linux only).

    Counts what compiled code allocates as well, which ``tracemalloc`` does not see. Meaningful in a process
    of its own (:func:`in_child`).
    """
    # Freed memory that the allocator keeps would be used again without being seen.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _RESET.write_text("5")
    before = _status_mebibytes("VmRSS")
    function()
    return _status_mebibytes("VmHWM") - before
