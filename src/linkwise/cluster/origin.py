"""Where rows are measured from: far from zero, squared distances and means would lose their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from linkwise.cluster.row_tables import column_extremes

__all__ = ["SMALLEST_RANGE", "exact_origin", "from_origin", "refuse_vanishing"]

# Sums of squares of numbers between these stay far from both ends of float64.
_LARGEST = 1e140
#: A feature that varies by less is constant: its squares vanish.
SMALLEST_RANGE = 1e-140


def exact_origin(X: Any) -> NDArray[np.float64]:
    """A point amid the rows whose differences from them are exact in floating point.

    The middle of each feature, rounded to a multiple of a power of two that is at least its range. The
    difference of a row from it needs no more digits than the row has. Features around zero have the origin 0,
    so that ordinary data are left as they are; so have sparse data, which could not stay sparse.

    Parameters
    ----------
    X : (n, d) array or sparse matrix

    Returns
    -------
    (d,) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.origin import exact_origin
    >>> exact_origin(np.array([[-1.0, 1e9 + 0.3], [2.0, 1e9 + 1.1]]))
    array([0.e+00, 1.e+09])
    """
    if issparse(X):
        return np.zeros(X.shape[1])
    lowest, spread = _spread(X)
    # Features that are too wide stay where they are, for ``from_origin`` to refuse them.
    wide = spread > _LARGEST
    middle = np.where(wide, 0.0, lowest + 0.5 * np.where(wide, 0.0, spread))
    step = np.exp2(np.ceil(np.log2(np.clip(spread, np.spacing(np.abs(middle)), _LARGEST))))
    return np.where(spread == 0.0, lowest, np.round(middle / step) * step)


def from_origin(X: Any, origin: NDArray[np.float64]) -> Any:
    """Rows measured from an origin; refused, naming the feature, if their squared distances overflow.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    origin : (d,)

    Returns
    -------
    (n, d)
        X itself where the origin is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.origin import from_origin
    >>> from_origin(np.array([[7.0, 1e200]]), np.array([5.0, 0.0]))
    Traceback (most recent call last):
    ...
    ValueError: column 1 of X holds 1e+200: squared distances of such numbers overflow; divide X by 1e+200
    """
    measured = X - origin if origin.any() else X
    lowest, highest = column_extremes(measured)
    size = np.maximum(highest, -lowest)
    column = int(size.argmax())
    if size[column] > _LARGEST:
        raise ValueError(
            f"column {column} of X holds {size[column]:.3g}: squared distances of such numbers overflow; "
            f"divide X by {size[column]:.0e}"
        )
    return measured


def refuse_vanishing(X: Any) -> None:
    """Refuse rows that differ, but by numbers whose squares vanish; naming the feature.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    """
    spread = _spread(X)[1]
    widest = int(spread.argmax())
    if 0.0 < spread[widest] < SMALLEST_RANGE:
        raise ValueError(
            f"column {widest} of X varies most, by {spread[widest]:.3g}: squares of such numbers vanish; "
            f"divide X by {spread[widest]:.0e}"
        )


def _spread(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest entry and range of each feature."""
    lowest, highest = column_extremes(X)
    with np.errstate(over="ignore"):
        return lowest, highest - lowest
