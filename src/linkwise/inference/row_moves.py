"""Rows of a table of scores moved, added and normalised where they stand.

A table has a number for every point and label, the largest thing that inference handles, so the way from the
scores of points to those of groups, and from the probabilities of groups back, makes no second one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel

__all__ = ["add_groups", "gather_rows", "normalise_rows", "scatter_rows", "spread_groups"]


@kernel
def add_groups(table: NDArray[np.float64], groups: NDArray[np.int64]) -> None:
    """Put the sum of the rows of group g into row g.

    Parameters
    ----------
    table : (n, K) float64
        What follows the rows of the groups is left over.
    groups : (n,) int64
        Numbered in order of first appearance, so that no group comes before its row.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.row_moves import add_groups
    >>> table = np.array([[1.0], [2.0], [4.0]])
    >>> add_groups(table, np.array([0, 0, 1]))
    >>> table[:2]
    array([[3.], [4.]])
    """
    n_groups = 0
    for row in range(groups.shape[0]):
        group = groups[row]
        if group == n_groups:
            n_groups += 1
            for label in range(table.shape[1]):
                table[group, label] = table[row, label]
        else:
            for label in range(table.shape[1]):
                table[group, label] += table[row, label]


@kernel
def spread_groups(table: NDArray[np.float64], groups: NDArray[np.int64]) -> None:
    """Put row g into all rows of group g: ``table[:] = table[groups]``.

    Parameters
    ----------
    table : (n, K) float64
    groups : (n,) int64
        As for ``add_groups``.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.row_moves import spread_groups
    >>> table = np.array([[3.0], [4.0], [0.0]])
    >>> spread_groups(table, np.array([0, 0, 1]))
    >>> table
    array([[3.], [3.], [4.]])
    """
    for row in range(groups.shape[0] - 1, -1, -1):
        group = groups[row]
        if group != row:
            for label in range(table.shape[1]):
                table[row, label] = table[group, label]


@kernel
def gather_rows(table: NDArray[np.float64], order: NDArray[np.int64]) -> None:
    """Permute the rows: ``table[:] = table[order]``.

    Parameters
    ----------
    table : (n, K) float64
    order : (n,) int64
        Every row once.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.row_moves import gather_rows
    >>> table = np.array([[1.0], [2.0], [3.0]])
    >>> gather_rows(table, np.array([2, 0, 1]))
    >>> table
    array([[3.], [1.], [2.]])
    """
    moved = np.zeros(order.shape[0], dtype=np.bool_)
    held = np.empty(table.shape[1])
    for first in range(order.shape[0]):
        if moved[first] or order[first] == first:
            continue
        for label in range(table.shape[1]):
            held[label] = table[first, label]
        row = first
        while order[row] != first:
            moved[row] = True
            for label in range(table.shape[1]):
                table[row, label] = table[order[row], label]
            row = order[row]
        moved[row] = True
        for label in range(table.shape[1]):
            table[row, label] = held[label]


@kernel
def scatter_rows(table: NDArray[np.float64], order: NDArray[np.int64]) -> None:
    """Take ``gather_rows`` back: ``table[order] = table``.

    Parameters
    ----------
    table : (n, K) float64
    order : (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.row_moves import scatter_rows
    >>> table = np.array([[3.0], [1.0], [2.0]])
    >>> scatter_rows(table, np.array([2, 0, 1]))
    >>> table
    array([[1.], [2.], [3.]])
    """
    moved = np.zeros(order.shape[0], dtype=np.bool_)
    for first in range(order.shape[0]):
        if moved[first]:
            continue
        # Row ``first`` holds what has not found its place; it is swapped along the cycle until its own comes.
        row = order[first]
        while row != first:
            moved[row] = True
            for label in range(table.shape[1]):
                carried = table[first, label]
                table[first, label] = table[row, label]
                table[row, label] = carried
            row = order[row]


@kernel
def normalise_rows(table: NDArray[np.float64]) -> float:
    """Replace scores by probabilities, exp(s_ik) / sum_l exp(s_il).

    Parameters
    ----------
    table : (n, K) float64
        Finite or -inf, no row -inf throughout.

    Returns
    -------
    float
        Sum of the logarithms of the normalisers.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.row_moves import normalise_rows
    >>> table = np.log([[1.0, 3.0]])
    >>> round(normalise_rows(table), 6) == round(float(np.log(4.0)), 6)
    True
    >>> table.round(6)
    array([[0.25, 0.75]])
    """
    log_normalisers = 0.0
    lost = 0.0
    for row in range(table.shape[0]):
        top = -np.inf
        for label in range(table.shape[1]):
            top = max(top, table[row, label])
        total = 0.0
        for label in range(table.shape[1]):
            table[row, label] = math.exp(table[row, label] - top)
            total += table[row, label]
        for label in range(table.shape[1]):
            table[row, label] /= total
        # Compensated: digits lost to a long sum are added at its end.
        term = (top + math.log(total)) + lost
        new = log_normalisers + term
        lost = term - (new - log_normalisers)
        log_normalisers = new
    return log_normalisers
