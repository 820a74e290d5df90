"""Operations on tables of rows that are dense or compressed (CSR) alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from linkwise._numba import kernel, reassociating_kernel

__all__ = ["column_extremes", "dot_by_label", "label_sums", "row_products", "weighted_squares"]


def column_extremes(table: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest entry of each column.

    Parameters
    ----------
    table : (n, d), dense or CSR

    Returns
    -------
    (d,), (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.row_tables import column_extremes
    >>> column_extremes(np.array([[1.0, 5.0], [3.0, 4.0]]))
    (array([1., 4.]), array([3., 5.]))
    """
    ends = table.min(axis=0), table.max(axis=0)
    lowest, highest = (end.toarray().ravel() if issparse(end) else np.asarray(end) for end in ends)
    return lowest, highest


def label_sums(
    table: Any, labels: NDArray[np.int64], n_labels: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Sum of the rows of each label.

    Parameters
    ----------
    table : (n, d), dense or CSR
    labels : (n,) int64
    n_labels : int
    weights : (n,), optional
        Factors of the rows.

    Returns
    -------
    (n_labels, d)

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.row_tables import label_sums
    >>> label_sums(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0, 1, 0]), 2)
    array([[6., 8.],
           [3., 4.]])
    """
    n_rows = len(labels)
    factors = np.ones(n_rows) if weights is None else weights
    # One column per row: column pointers 0, 1, ..., n are all it takes.
    chooser = csr_matrix((factors, labels, np.arange(n_rows + 1)), shape=(n_rows, n_labels)).T
    sums = chooser @ table
    return sums.toarray() if issparse(sums) else np.asarray(sums)


@kernel
def _dots(
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    table: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> NDArray[np.float64]:
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
def _dense_dots(
    table: NDArray[np.float64], vectors: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Product of each row with the vector of its label."""
    result = np.empty(len(labels))
    for row in range(len(labels)):
        total = 0.0
        for m in range(table.shape[1]):
            total += table[row, m] * vectors[labels[row], m]
        result[row] = total
    return result


def dot_by_label(table: Any, vectors: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Product of each row with the vector of its label.

    Parameters
    ----------
    table : (n, d), dense or CSR
    vectors : (K, d)
    labels : (n,) int64

    Returns
    -------
    (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.row_tables import dot_by_label
    >>> dot_by_label(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 0]))
    array([2., 3.])
    """
    if issparse(table):
        return _dots(table.data, table.indices, table.indptr, np.ascontiguousarray(vectors), labels)
    return _dense_dots(table, np.ascontiguousarray(vectors), labels)


def weighted_squares(table: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """sum_m weights_m x_im^2 of every row.

    Parameters
    ----------
    table : (n, d), dense or CSR
    weights : (d,)

    Returns
    -------
    (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.row_tables import weighted_squares
    >>> weighted_squares(np.array([[1.0, 2.0]]), np.array([1.0, 0.5]))
    array([3.])
    """
    return np.asarray(row_products(table, table) @ weights)


def row_products(first: Any, second: Any) -> Any:
    """Entry by entry product of two tables of the same kind and shape.

    Parameters
    ----------
    first, second : (n, d), both dense or both CSR

    Returns
    -------
    (n, d) of the same kind

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.row_tables import row_products
    >>> row_products(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[3., 8.]])
    """
    return first.multiply(second).tocsr() if issparse(first) else first * second
