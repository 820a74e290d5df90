"""Rows of a table of scores moved, added and normalised where they stand.

A table has a number for every point and label, the largest thing that inference handles. Groups are numbered
in order of first appearance, so that no row comes before its group. Some rows or one column at a time are
copied, never the table. NumPy, because a small fit would wait longer for a compiler than for this.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_groups", "gather_rows", "normalise_rows", "scatter_rows", "spread_groups"]

_ROWS_AT_ONCE = 1024


def add_groups(table: NDArray[np.float64], groups: NDArray[np.integer]) -> None:
    """Put the sum of the rows of group g into row g; what follows the rows of the groups is left over."""
    for column in table.T:
        sums = np.bincount(groups, column)
        column[: len(sums)] = sums


def spread_groups(table: NDArray[np.float64], groups: NDArray[np.integer]) -> None:
    """Put row g into all rows of group g: ``table[:] = table[groups]``."""
    # From the end: no row is read after it was written, for groups come before their rows.
    for start in reversed(range(0, len(table), _ROWS_AT_ONCE)):
        table[start : start + _ROWS_AT_ONCE] = table[groups[start : start + _ROWS_AT_ONCE]]


def gather_rows(table: NDArray[np.float64], order: NDArray[np.integer]) -> None:
    """Permute the rows: ``table[:] = table[order]``."""
    for column in table.T:
        column[:] = column[order]


def scatter_rows(table: NDArray[np.float64], order: NDArray[np.integer]) -> None:
    """Take ``gather_rows`` back: ``table[order] = table``."""
    for column in table.T:
        column[order] = column.copy()


def normalise_rows(table: NDArray[np.float64]) -> float:
    """Replace scores by exp(s_ik) / sum_l exp(s_il); returns the sum of the logarithms of the normalisers.

    Scores are finite or -inf, and no row is -inf throughout.
    """
    log_normalisers = []
    for start in range(0, len(table), _ROWS_AT_ONCE):
        rows = table[start : start + _ROWS_AT_ONCE]
        top = rows.max(axis=1, keepdims=True)
        rows -= top
        np.exp(rows, out=rows)
        total = rows.sum(axis=1, keepdims=True)
        rows /= total
        log_normalisers.append(float((top + np.log(total)).sum()))
    return math.fsum(log_normalisers)
