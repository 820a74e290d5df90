"""The one place that decides how kernels are compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba

#: Options of every kernel. ``nogil`` lets a thread pool run kernels side by side (numba's own
#: parallel back end is not used: its default layer aborts when two Python threads enter it).
#: ``error_model="numpy"`` drops the zero-division check that keeps loops from vectorising.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}

_told = False


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on arrays with linkwise's options, in strict IEEE arithmetic."""
    return _compiled(function, OPTIONS)


def contracting_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, allowing a * b + c to be one instruction that rounds once."""
    return _compiled(function, {**OPTIONS, "fastmath": {"contract", "nsz"}})


def reassociating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, allowing sums to be reordered so that they vectorise (NaN and inf stay exact)."""
    return _compiled(function, {**OPTIONS, "fastmath": {"reassoc", "contract", "nsz"}})


def inline_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a scalar helper that LLVM must inline into the loops of its callers."""
    return _compiled(function, {**OPTIONS, "forceinline": True, "fastmath": {"contract", "nsz"}})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Compile with a cache on disk, or without one where no folder for it can be written to."""
    try:
        return numba.njit(**options)(function)
    except RuntimeError as error:
        # numba has no public way to ask for a cache folder beforehand, and no type of its own for this error.
        if "no locator available" not in str(error):
            raise
    _tell_once()
    return numba.njit(**{**options, "cache": False})(function)


def _tell_once() -> None:
    """Say that compiled code is not kept.

    A line of the log and no warning: the caller's code can do nothing about it, and under ``-W error`` the
    import would fail again.
    """
    global _told
    if not _told:
        _told = True
        logging.getLogger("linkwise").warning(
            "linkwise: compiled code cannot be kept, neither beside the package nor in the home folder, so "
            "every process compiles anew; set NUMBA_CACHE_DIR to a folder that can be written to"
        )
