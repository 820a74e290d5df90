"""Canonical form of a list of unordered pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["unique_pairs"]


def unique_pairs(n_nodes: int, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each unordered pair once, smaller index first, rows sorted.

    Parameters
    ----------
    n_nodes : int
    pairs : (m, 2) int64
        Any orientation, any order, with repetitions.

    Returns
    -------
    pairs : (u, 2) int64
    row_of : (m,) int64
        The row of the result that each input pair became.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import unique_pairs
    >>> unique_pairs(9, np.array([[5, 2], [0, 1], [2, 5]]))
    (array([[0, 1], [2, 5]]), array([1, 0, 1]))
    """
    low = np.minimum(pairs[:, 0], pairs[:, 1])
    high = np.maximum(pairs[:, 0], pairs[:, 1])
    key = low * n_nodes + high
    if np.all(key[1:] > key[:-1]):
        return np.column_stack([low, high]), np.arange(len(key))
    unique, row_of = np.unique(key, return_inverse=True)
    return np.column_stack(np.divmod(unique, n_nodes)), row_of.astype(np.int64, copy=False)
