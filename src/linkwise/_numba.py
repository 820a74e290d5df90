"""The one place that decides how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

#: Options of every kernel. ``nogil`` lets a thread pool run kernels side by side (numba's own
#: parallel back end is not used: its default layer aborts when two Python threads enter it).
#: ``error_model="numpy"`` drops the zero-division check that keeps loops from vectorising.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on arrays with linkwise's options, in strict IEEE arithmetic."""
    return numba.njit(**OPTIONS)(function)


def reassociating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, allowing sums to be reordered so that they vectorise (NaN and inf stay exact)."""
    return numba.njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})(function)


def inline_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a scalar helper that LLVM must inline into the loops of its callers."""
    return numba.njit(**OPTIONS, forceinline=True, fastmath={"contract", "nsz"})(function)
