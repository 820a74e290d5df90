"""Arrays that grow inside kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel

__all__ = ["with_room"]


@kernel
def with_room(array: NDArray[np.int64], filled: int, needed: int) -> NDArray[np.int64]:
    """The array if it has ``needed`` places, else its first ``filled`` values in one twice as long."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, dtype=np.int64)
    for place in range(filled):
        larger[place] = array[place]
    return larger
