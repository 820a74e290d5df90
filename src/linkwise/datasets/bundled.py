"""The real data sets that come with scikit-learn, under one name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["load_bundled"]

_NAMES = ("breast_cancer", "digits", "iris", "wine")


def load_bundled(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Load one of scikit-learn's bundled data sets; nothing is downloaded.

    Parameters
    ----------
    name : {"breast_cancer", "digits", "iris", "wine"}

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        The class names: strings, or the digits 0 to 9 as integers.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import load_bundled
    >>> X, y = load_bundled("iris")
    >>> X.shape
    (150, 4)
    >>> [str(name) for name in np.unique(y)]
    ['setosa', 'versicolor', 'virginica']
    """
    if name not in _NAMES:
        raise ValueError(f"there is no bundled set {name!r}; pass one of {', '.join(map(repr, _NAMES))}")
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    return bunch.data, bunch.target_names[bunch.target]
