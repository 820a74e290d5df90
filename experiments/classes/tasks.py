"""Tasks whose answer is known: real classes given common names, two names, or drawn anew from Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from experiments.framework.data_files import data_path, load_table

__all__ = [
    "SETS",
    "coarse_names",
    "doubled_names",
    "half_of",
    "load_set",
    "may_fall_apart",
    "single_gaussians",
]

#: Sets in alphabetical order; those that are not bundled need LINKWISE_DATA.
SETS = (
    "digits", "forest_types", "indian_pines", "letters", "mato_grosso", "pendigits", "satimage", "wine",
)  # fmt: skip
_FILES = {"forest_types": "forest_type_mapping", "mato_grosso": "modis_matogrosso"}
_N_FEATURES = 10
_MOST_CLASSES = 10
#: Classes with fewer rows are left out.
_FEWEST_ROWS = 40
#: Seed of the rows and classes that are used.
_SEED = 7


def half_of(name: str) -> str:
    """Half of the sets that a set belongs to; the limit of stability in CPPC was chosen on half A.

    Parameters
    ----------
    name : str

    Returns
    -------
    {"A", "B"}

    Examples
    --------
    >>> from experiments.classes.tasks import SETS, half_of
    >>> [name for name in SETS if half_of(name) == "A"]
    ['digits', 'indian_pines', 'mato_grosso', 'satimage']
    """
    return "AB"[SETS.index(name) % 2]


def load_set(name: str, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of at most ten classes of at least 40 rows, in ten principal components of standardised features.

    Parameters
    ----------
    name : str
        One of ``SETS``.
    n_rows : int
        Most rows.

    Returns
    -------
    X : (n, d) float64
        Divided by one number, so that the variance of all values is 1.
    y : (n,) int64

    Raises
    ------
    DataMissing
        If the set is neither bundled nor in the folder named by LINKWISE_DATA.

    Examples
    --------
    >>> from experiments.classes.tasks import load_set
    >>> X, y = load_set("wine", 100)
    >>> X.shape, round(float(X.std()), 6), sorted(set(y.tolist()))
    ((100, 10), 1.0, [0, 1, 2])
    """
    X, names = _read(name)
    y = np.unique(names, return_inverse=True)[1]
    rng = np.random.default_rng(_SEED)
    large = np.flatnonzero(np.bincount(y) >= _FEWEST_ROWS)
    if len(large) > _MOST_CLASSES:
        large = np.sort(rng.permutation(large)[:_MOST_CLASSES])
    rows = np.flatnonzero(np.isin(y, large))
    rows = np.sort(rng.permutation(rows)[:n_rows])
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    X = StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0.0])
    if X.shape[1] > _N_FEATURES:
        X = PCA(_N_FEATURES, random_state=0).fit_transform(X)
    return np.asarray(X / X.std(), dtype=np.float64), y.astype(np.int64)


def _read(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "wine":
        return load_wine(return_X_y=True)
    if name == "indian_pines":
        with np.load(data_path("indian_pines.npz"), allow_pickle=False) as stored:
            labelled = stored["gt"] > 0
            return stored["X"][labelled].astype(np.float64), stored["gt"][labelled]
    return load_table(_FILES.get(name, name))


def coarse_names(y: NDArray[np.int64], draw: int) -> NDArray[np.int64]:
    """One name for each two classes, paired at random; of three classes, two get one name.

    Parameters
    ----------
    y : (n,) int64
        Classes 0, 1, ...
    draw : int

    Returns
    -------
    (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.tasks import coarse_names
    >>> coarse_names(np.arange(3), 1), np.bincount(coarse_names(np.arange(5), 0))
    (array([0, 1, 0]), array([2, 2, 1]))
    """
    n_classes = int(y.max()) + 1
    name_of = np.zeros(n_classes, dtype=np.int64)
    if n_classes <= 3:
        name_of[draw % n_classes] = 1
    else:
        name_of[np.random.default_rng(draw).permutation(n_classes)] = np.arange(n_classes) // 2
    return name_of[y]


def doubled_names(y: NDArray[np.int64], draw: int) -> tuple[NDArray[np.int64], int]:
    """A random half of one class gets the name L, the first that is free.

    Parameters
    ----------
    y : (n,) int64
        Classes 0, ..., L - 1.
    draw : int

    Returns
    -------
    names : (n,) int64
    doubled : int
        The class, drawn at random, too.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.tasks import doubled_names
    >>> names, doubled = doubled_names(np.repeat([0, 1], 10), 0)
    >>> np.bincount(names).tolist(), doubled
    ([10, 5, 5], 1)
    """
    rng = np.random.default_rng(draw)
    n_classes = int(y.max()) + 1
    doubled = int(rng.integers(n_classes))
    rows = np.flatnonzero(y == doubled)
    names = y.copy()
    names[rng.permutation(rows)[: len(rows) // 2]] = n_classes
    return names, doubled


def single_gaussians(X: NDArray[np.float64], y: NDArray[np.int64], draw: int) -> NDArray[np.float64]:
    """Rows in place of X, each class drawn from one Gaussian with its mean and covariance.

    Parameters
    ----------
    X : (n, d) float64
    y : (n,) int64
    draw : int

    Returns
    -------
    (n, d) float64

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.tasks import single_gaussians
    >>> y = np.repeat([0, 1], 5000)
    >>> drawn = single_gaussians(np.random.default_rng(0).uniform(size=(10000, 1)) + 9 * y[:, None], y, 0)
    >>> [round(float(drawn[y == name].mean()), 1) for name in (0, 1)], bool(drawn[y == 0].min() < 0)
    ([0.5, 9.5], True)
    """
    rng = np.random.default_rng(draw)
    drawn = np.empty_like(X)
    for name in np.unique(y):
        rows = y == name
        covariance = np.atleast_2d(np.cov(X[rows].T))
        drawn[rows] = rng.multivariate_normal(X[rows].mean(axis=0), covariance, size=int(rows.sum()))
    return drawn


def may_fall_apart(n_classes: int) -> NDArray[np.float64]:
    """Beliefs that the classes are apart (-1) and may each be several (.1).

    Parameters
    ----------
    n_classes : int

    Returns
    -------
    (L, L) float64
    """
    beliefs = np.full((n_classes, n_classes), -1.0)
    np.fill_diagonal(beliefs, 0.1)
    return beliefs
