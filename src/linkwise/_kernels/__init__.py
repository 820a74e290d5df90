"""The one place that decides how kernels are compiled, and that says so when it takes time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

#: Options of every kernel. ``nogil`` lets a thread pool run kernels side by side (numba's own
#: parallel back end is not used: its default layer aborts when two Python threads enter it).
#: ``error_model="numpy"`` drops the zero-division check that keeps loops from vectorising. Nobody calls
#: kernels from C, so that no function for that is compiled.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

#: Logged while kernels are compiled for the first time; the time is that of a first PPC fit.
COMPILING = "linkwise: compiling kernels for this machine, once (about 5 s)"
_told: set[str] = set()


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
    _tell_once(
        "linkwise: compiled code cannot be kept, neither beside the package nor in the home folder, so "
        "every process compiles anew; set NUMBA_CACHE_DIR to a folder that can be written to"
    )
    return numba.njit(**{**options, "cache": False})(function)


def _tell_once(message: str) -> None:
    """Log the first message of a process: no warning, which would fail under ``-W error``."""
    if not _told:
        _told.add(message)
        logging.getLogger("linkwise").warning(message)


class _Compilation(event.Listener):
    """Says once that kernels are compiled: numba announces it when its cache does not hold one."""

    def on_start(self, event: Any) -> None:
        """Log the message if the function to be compiled is one of linkwise's."""
        if event.data["dispatcher"].py_func.__module__.partition(".")[0] == "linkwise":
            _tell_once(COMPILING)

    def on_end(self, event: Any) -> None:
        """Do nothing when it ends."""


event.register("numba:compile", _Compilation())
