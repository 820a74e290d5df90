"""What several fits to the same rows have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

import numpy as np

Found = TypeVar("Found")

#: Bytes of arrays that are kept. Twelve kernels of 1000 rows take 96 MB.
_MOST_BYTES = 2**28


class SharedWork:
    """Values by key, for fits to one table of rows; threads may share it, and results do not depend on it.

    A value is computed by whoever asks first; others wait for it. Nobody may change it. Once ``most_bytes``
    are kept, further values are computed anew each time.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = self._left = most_bytes
        self._found: dict[Hashable, Any] = {}
        self._lock = Lock()
        self._locks: dict[Hashable, Lock] = {}

    def __reduce__(self) -> tuple[type[SharedWork], tuple[int]]:
        # Workers of joblib may be processes, if the caller chose that backend: each begins with nothing.
        return SharedWork, (self._most_bytes,)

    def get(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """What ``find`` returns, found once for this key."""
        with self._lock:
            own = self._locks.setdefault(key, Lock())
        with own:
            if key not in self._found:
                value = find()
                size = _n_bytes(value)
                with self._lock:
                    if size > self._left:
                        return value
                    self._left -= size
                self._found[key] = value
            found: Found = self._found[key]
            return found


def shared(work: SharedWork | None, key: Hashable, find: Callable[[], Found]) -> Found:
    """What ``find`` returns, from the shared work if there is any."""
    return find() if work is None else work.get(key, find)


def _n_bytes(value: Any) -> int:
    """Bytes of the arrays that a value consists of."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(_n_bytes(part) for part in value)
    return sum(_n_bytes(part) for part in vars(value).values()) if hasattr(value, "__dict__") else 0
