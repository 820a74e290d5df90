"""The two numbers that describe a link, for couplings with and without labels.

A reduced link has the table ``log_agree(k)`` on the diagonal and one value ``log_differ`` elsewhere.

* coupling (m,): penalty form, both parts <= 0, so that strong links never overflow:
  must-link c > 0: agree 0, differ -c;  cannot-link c < 0: agree -abs(c), differ 0.
* coupling (m, K): reward form: agree c[k], differ 0 (``reduce`` has moved the rest into the unary).

``coupling.ndim`` is a compile-time constant, so the branch costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import inline_kernel

__all__ = ["log_agree", "log_differ", "log_ratio"]


@inline_kernel
def log_agree(coupling: NDArray[np.float64], edge: int, label: int) -> float:
    """Log potential of link ``edge`` when both ends have this label."""
    if coupling.ndim == 1:
        return min(coupling[edge], 0.0)
    return coupling[edge, label]


@inline_kernel
def log_differ(coupling: NDArray[np.float64], edge: int) -> float:
    """Log potential of link ``edge`` when its ends have different labels."""
    if coupling.ndim == 1:
        return -max(coupling[edge], 0.0)
    return 0.0


@inline_kernel
def log_ratio(coupling: NDArray[np.float64], edge: int, label: int) -> float:
    """log_agree - log_differ: what agreeing on this label gains over differing."""
    if coupling.ndim == 1:
        return coupling[edge]
    return coupling[edge, label]
