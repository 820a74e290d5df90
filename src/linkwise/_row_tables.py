"""Tables of rows, dense or compressed (CSR) alike, and the point that they are measured from.

Far from zero, squared distances and means lose their digits; ``exact_origin`` is a point amid the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import kernel, reassociating_kernel

_ROWS_AS_ONE = 64
#: A sparse matrix takes 60 microseconds to set up, in which numpy adds this many entries.
_FEW_ENTRIES = 2**12


def column_extremes(table: Any) -> tuple[Floats, Floats]:
    """Smallest and largest entry of each column, (d,) each; 64 rows are taken as one, 8 times as fast."""
    if not issparse(table) and table.flags.c_contiguous and len(table) >= _ROWS_AS_ONE:
        n_columns = table.shape[1]
        whole = len(table) // _ROWS_AS_ONE * _ROWS_AS_ONE
        long_rows, rest = table[:whole].reshape(-1, _ROWS_AS_ONE * n_columns), table[whole:]
        lowest = long_rows.min(axis=0).reshape(_ROWS_AS_ONE, n_columns)
        highest = long_rows.max(axis=0).reshape(_ROWS_AS_ONE, n_columns)
        return np.concatenate([lowest, rest]).min(axis=0), np.concatenate([highest, rest]).max(axis=0)
    ends = table.min(axis=0), table.max(axis=0)
    lowest, highest = (end.toarray().ravel() if issparse(end) else np.asarray(end) for end in ends)
    return lowest, highest


def label_sums(table: Any, labels: Ints, n_labels: int, weights: Floats | None = None) -> Floats:
    """Sum of the rows of each label, (n_labels, d), the rows times ``weights`` (n,) if given."""
    n_rows = len(labels)
    if not issparse(table) and table.size <= _FEW_ENTRIES:
        few = np.zeros((n_labels, table.shape[1]))
        np.add.at(few, labels, table if weights is None else table * weights[:, np.newaxis])
        return few
    factors = np.ones(n_rows) if weights is None else weights
    # One column per row: column pointers 0, 1, ..., n are all it takes.
    chooser = csr_matrix((factors, labels, np.arange(n_rows + 1)), shape=(n_rows, n_labels)).T
    sums = chooser @ table
    return sums.toarray() if issparse(sums) else np.asarray(sums)


@kernel
def _dots(data: Floats, indices: ShortInts, indptr: ShortInts, table: Floats, labels: Ints) -> Floats:
    """Product of each compressed row with the row of ``table`` that its label names."""
    n_rows = len(labels)
    result = np.empty(n_rows)
    for row in range(n_rows):
        total = 0.0
        for slot in range(indptr[row], indptr[row + 1]):
            total += data[slot] * table[labels[row], indices[slot]]
        result[row] = total
    return result


@reassociating_kernel
def _dense_dots(table: Floats, vectors: Floats, labels: Ints) -> Floats:
    """Product of each row with the vector of its label."""
    result = np.empty(len(labels))
    for row in range(len(labels)):
        total = 0.0
        for m in range(table.shape[1]):
            total += table[row, m] * vectors[labels[row], m]
        result[row] = total
    return result


def dot_by_label(table: Any, vectors: Floats, labels: Ints) -> Floats:
    """Product of each row with the vector of its label, (n,)."""
    if issparse(table):
        return _dots(table.data, table.indices, table.indptr, np.ascontiguousarray(vectors), labels)
    return _dense_dots(table, np.ascontiguousarray(vectors), labels)


def weighted_squares(table: Any, weights: Floats) -> Floats:
    """sum_m weights_m x_im^2 of every row, (n,)."""
    return np.asarray(row_products(table, table) @ weights)


def row_products(first: Any, second: Any) -> Any:
    """Entry by entry product of two tables of the same kind and shape."""
    return first.multiply(second).tocsr() if issparse(first) else first * second


# Sums of squares of numbers between these stay far from both ends of float64.
_LARGEST = 1e140
#: A feature that varies by less is constant: its squares vanish.
SMALLEST_RANGE = 1e-140


def exact_origin(X: Any) -> Floats:
    """A point (d,) amid the rows whose differences from them are exact in floating point; 0 for sparse rows.

    The middle of each feature, rounded toward 0 to a multiple of a power of two that is at least its range:
    the difference needs no more digits than the row has. Features around zero have the origin 0.
    """
    if issparse(X):
        return np.zeros(X.shape[1])
    return origin_between(*_spread(X))


def origin_between(lowest: Floats, spread: Floats) -> Floats:
    """The ``exact_origin`` of rows with this smallest entry and range of each feature."""
    # Features that are too wide stay where they are, for ``from_origin`` to refuse them.
    wide = spread > _LARGEST
    middle = np.where(wide, 0.0, lowest + 0.5 * np.where(wide, 0.0, spread))
    step = np.exp2(np.ceil(np.log2(np.clip(spread, np.spacing(np.abs(middle)), _LARGEST))))
    return np.where(spread == 0.0, lowest, np.trunc(middle / step) * step)


def from_origin(X: Any, origin: Floats) -> Any:
    """Rows measured from an origin; refused, naming the feature, if their squared distances overflow."""
    measured = X - origin if origin.any() else X
    refuse_overflowing(*column_extremes(measured))
    return measured


def refuse_overflowing(lowest: Floats, highest: Floats) -> None:
    """Refuse features in [lowest, highest] whose squares overflow; naming the feature."""
    size = np.maximum(highest, -lowest)
    column = int(size.argmax())
    if size[column] > _LARGEST:
        raise ValueError(
            f"column {column} of X holds {size[column]:.3g}: squared distances of such numbers overflow; "
            f"divide X by {size[column]:.0e}"
        )


def refuse_vanishing(X: Any) -> None:
    """Refuse rows that differ, but by numbers whose squares vanish; naming the feature."""
    refuse_narrow(_spread(X)[1])


def refuse_narrow(spread: Floats) -> None:
    """Refuse features of which all ranges (d,) are too small for squares, but not 0."""
    widest = int(spread.argmax())
    if 0.0 < spread[widest] < SMALLEST_RANGE:
        raise ValueError(
            f"column {widest} of X varies most, by {spread[widest]:.3g}: squares of such numbers vanish; "
            f"divide X by {spread[widest]:.0e}"
        )


def _spread(X: Any) -> tuple[Floats, Floats]:
    """Smallest entry and range of each feature."""
    lowest, highest = column_extremes(X)
    with np.errstate(over="ignore"):
        return lowest, highest - lowest
