"""Where rows are measured from: far from zero, squared distances and means would lose their digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SMALLEST_RANGE", "exact_origin", "refuse_overflow"]

# Sums of squares of numbers between these stay far from both ends of float64.
_LARGEST = 1e140
#: A feature that varies by less is constant: its squares vanish.
SMALLEST_RANGE = 1e-140


def exact_origin(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """A point amid the rows whose differences from them are exact in floating point.

    The middle of each feature, rounded to a multiple of a power of two that is at least its range. The
    difference of two such numbers needs no more digits than the rows have. Features around zero have the
    origin 0, so that ordinary data are left as they are.

    Parameters
    ----------
    X : (n, d) float64

    Returns
    -------
    (d,) float64

    Raises
    ------
    ValueError
        If squares of all differences vanish although the rows differ; naming the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.origin import exact_origin
    >>> exact_origin(np.array([[-1.0, 1e9 + 0.3], [2.0, 1e9 + 1.1]]))
    array([0.e+00, 1.e+09])
    """
    lowest, highest = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        spread = highest - lowest
    widest = int(spread.argmax())
    if 0.0 < spread[widest] < SMALLEST_RANGE:
        raise ValueError(
            f"column {widest} of X varies most, by {spread[widest]:.3g}: squares of such numbers vanish; "
            f"multiply X by a constant, e.g. {1.0 / spread[widest]:.0e}"
        )
    middle = 0.5 * lowest + 0.5 * highest
    # Beyond the range of floats ``refuse_overflow`` has its say.
    step = np.exp2(np.ceil(np.log2(np.clip(spread, np.spacing(np.abs(middle)), np.finfo(float).max))))
    return np.where(spread == 0.0, lowest, np.round(middle / step) * step)


def refuse_overflow(X: NDArray[np.float64]) -> None:
    """Refuse rows, measured from their origin, whose squared distances overflow; naming the feature.

    Parameters
    ----------
    X : (n, d) float64
    """
    size = np.maximum(X.max(axis=0), -X.min(axis=0))
    column = int(size.argmax())
    if size[column] > _LARGEST:
        raise ValueError(
            f"column {column} of X holds {size[column]:.3g}: squared distances of such numbers overflow; "
            f"divide X by a constant, e.g. {size[column]:.0e}"
        )
