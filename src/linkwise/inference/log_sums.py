"""log sum exp of short rows, without the 100 microseconds that a general routine spends on its arguments."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel

__all__ = ["log_sum_exp", "log_sum_exp_rows"]


@kernel
def log_sum_exp(values: NDArray[np.float64]) -> float:
    """Log sum_k exp(values_k), -inf if all values are.

    Parameters
    ----------
    values : (K,) float64
        Finite or -inf.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.log_sums import log_sum_exp
    >>> round(log_sum_exp(np.log([0.25, 0.5])), 9) == round(float(np.log(0.75)), 9)
    True
    """
    top = -np.inf
    for k in range(values.shape[0]):
        top = max(top, values[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(values.shape[0]):
        total += math.exp(values[k] - top)
    return top + math.log(total)


@kernel
def log_sum_exp_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log sum_k exp(table_ik) of each row.

    Parameters
    ----------
    table : (n, K) float64
        Finite or -inf.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.inference.log_sums import log_sum_exp_rows
    >>> log_sum_exp_rows(np.array([[1000.0, -np.inf], [-np.inf, -np.inf]]))
    array([1000.,  -inf])
    """
    sums = np.empty(table.shape[0])
    for i in range(table.shape[0]):
        sums[i] = log_sum_exp(table[i])
    return sums
