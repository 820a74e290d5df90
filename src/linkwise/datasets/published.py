"""Published sets: CPPC's eleven Gaussians, Breiman's waveforms, and those that come with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._validation import as_generator
from linkwise.datasets.points import GaussianPart, Points, check_count, draw_parts

_NAMES = ("breast_cancer", "digits", "iris", "wine")

# (class, mean) in the order of the paper's four situations.
_ELEVEN: list[tuple[int, tuple[float, float]]] = [
    (1, (-5.0, 3.0)),
    (1, (-2.0, 3.0)),
    (2, (5.0, 3.0)),
    (3, (2.0, 3.0)),
    (4, (-5.0, -3.0)),
    (4, (-2.0, -3.0)),
    (5, (4.0, -2.0)),
    (6, (4.0, -4.0)),
    (7, (6.0, -4.0)),
    (8, (2.0, -4.0)),
    (9, (4.0, -6.0)),
]
# Groups of classes and the belief within the group; between groups it is -1.
_BELIEF_GROUPS: list[tuple[tuple[int, ...], float]] = [
    ((1,), 0.1),
    ((2, 3), 0.5),
    ((4,), 1.0),
    ((5, 6, 7, 8, 9), 0.9),
]


def make_eleven_gaussians(
    n_per_gaussian: int = 200, *, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Nine classes from eleven Gaussians, with an expert's beliefs: the synthetic set of CPPC.

    Preston et al. 2010, section 4.1: eleven Gaussians in the plane with identity covariance, 200 samples
    each, in four groups that stand for four situations. Class 1 has two modes and the
    expert holds it together weakly (0.1); classes 2 and 3 may be one (0.5); class 4 has two modes but
    shall stay whole (1.0); classes 5 to 9 are thought to be confusable (0.9). Everything else
    shall be apart (-1).

    The paper prints the means, the covariance, the sizes and the matrix C (Table 1). It does not say
    which mean within a group belongs to which class: here they are taken in the order in which the
    text lists them, so that class 2 is at (5, 3), class 3 at (2, 3) and class 6 in the middle of the
    last group. Within a group C is constant, so another order would only change names.

    Parameters
    ----------
    n_per_gaussian : int, default=200
        Classes 1 and 4 get twice as many.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (11 * n_per_gaussian, 2)
    y : ndarray of shape (11 * n_per_gaussian,)
        The classes, 1 to 9 as in the paper.
    beliefs : ndarray of shape (9, 9)
        The matrix C, in the order of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_eleven_gaussians
    >>> X, y, beliefs = make_eleven_gaussians(random_state=0)
    >>> np.bincount(y)[1:]
    array([400, 200, 200, 400, 200, 200, 200, 200, 200])
    >>> beliefs[:4, :4]
    array([[ 0.1, -1. , -1. , -1. ],
           [-1. ,  0.5,  0.5, -1. ],
           [-1. ,  0.5,  0.5, -1. ],
           [-1. , -1. , -1. ,  1. ]])
    """
    n_per_gaussian = check_count("n_per_gaussian", n_per_gaussian, 1)
    parts = [GaussianPart(label, n_per_gaussian, mean, 1.0) for label, mean in _ELEVEN]
    X, y = draw_parts(parts, as_generator(random_state))
    beliefs = np.full((9, 9), -1.0)
    for group, belief in _BELIEF_GROUPS:
        members = np.array(group) - 1
        beliefs[np.ix_(members, members)] = belief
    return X, y, beliefs


def make_waveform(n_samples: int = 5000, *, random_state: Any = None) -> Points:
    """Waveforms of Breiman, Friedman, Olshen and Stone 1984: three classes, 21 features.

    With the triangles h1(t) = max(6 - abs(t - 7), 0), h2(t) = h1(t - 8) and h3(t) = h1(t - 4) at
    t = 1 .. 21, a row is u ha + (1 - u) hb + e, where u is uniform in [0, 1], the 21 values of e are
    standard normal, and (ha, hb) is (h1, h2), (h1, h3) or (h2, h3) for class 0, 1 or 2. The three
    classes are equally likely. This is the law of the UCI set "waveform" (version 1, 5000 rows).

    Parameters
    ----------
    n_samples : int, default=5000
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 21)
    y : ndarray of shape (n_samples,)
        0, 1 or 2.

    Examples
    --------
    >>> from linkwise.datasets import make_waveform
    >>> X, y = make_waveform(300, random_state=0)
    >>> X.shape
    (300, 21)
    """
    n_samples = check_count("n_samples", n_samples, 1)
    rng = as_generator(random_state)
    t = np.arange(1, 22)
    waves = np.maximum(6.0 - np.abs(t - np.array([[7], [15], [11]])), 0.0)
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    y = rng.integers(0, 3, n_samples)
    share = rng.uniform(0.0, 1.0, (n_samples, 1))
    X = share * waves[first[y]] + (1.0 - share) * waves[second[y]] + rng.normal(size=(n_samples, 21))
    return X, y


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
