"""Data sets of the leaderboard, prepared alike for every method, and their two halves."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from experiments.framework.data_files import load_table
from linkwise.constraints import Constraints
from linkwise.datasets import load_bundled, make_ppc_artificial, make_rings, make_two_moons

__all__ = [
    "LINKS",
    "SETS",
    "WRONG",
    "LinkKind",
    "certainty_of",
    "draw_links",
    "half_of",
    "load_set",
    "some_rows",
]

Loaded = tuple[NDArray[np.float64], NDArray[Any]]

#: More features than this are replaced by as many principal components.
MAX_FEATURES = 10


def _pendigits() -> Loaded:
    X, y = load_table("pendigits")
    kept = np.isin(y, [0, 6, 8, 9])
    return X[kept], y[kept]


def _wisconsin() -> Loaded:
    X, y = load_table("breast_cancer_wisconsin")
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


#: Name and loader; those that call load_table need LINKWISE_DATA.
SETS: dict[str, Callable[[], Loaded]] = {
    "artificial1": lambda: make_ppc_artificial(1, random_state=0),
    "balance_scale": lambda: load_table("balance_scale"),
    "breast_cancer": lambda: load_bundled("breast_cancer"),
    "bupa": lambda: load_table("bupa"),
    "digits": lambda: load_bundled("digits"),
    "forest_type": lambda: load_table("forest_type_mapping"),
    "ionosphere": lambda: load_table("ionosphere"),
    "iris": lambda: load_bundled("iris"),
    "letters_ijl": lambda: load_table("letters_ijl"),
    "matogrosso": lambda: load_table("modis_matogrosso"),
    "moons": lambda: make_two_moons(random_state=0),
    "pendigits0689": _pendigits,
    "pima": lambda: load_table("pima_diabetes"),
    "protein116": lambda: load_table("protein116"),
    "rings": lambda: make_rings(random_state=0),
    "satimage": lambda: load_table("satimage"),
    "waveform": lambda: load_table("waveform"),
    "wine": lambda: load_bundled("wine"),
    "wisconsin": _wisconsin,
}


def half_of(name: str) -> str:
    """Half that a set belongs to: by alphabet, the first, third, ... are half A, the others half B.

    Parameters
    ----------
    name : str

    Returns
    -------
    {"A", "B"}

    Examples
    --------
    >>> from experiments.leaderboard.data import SETS, half_of
    >>> [name for name in SETS if half_of(name) == "A"][:3]
    ['artificial1', 'breast_cancer', 'digits']
    """
    return "AB"[sorted(SETS).index(name) % 2]


def load_set(name: str, n_rows: int = 200) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Standardised features and classes of a set, cut to some rows.

    Rows are drawn once, with a seed made of the name. Constant columns are dropped, the others standardised;
    more than ten are replaced by ten principal components, so that full covariances can be estimated.

    Parameters
    ----------
    name : str
    n_rows : int

    Returns
    -------
    X : (n, d) float64
    y : (n,) int64
        Classes, numbered.

    Examples
    --------
    >>> from experiments.leaderboard.data import load_set
    >>> X, y = load_set("wine", n_rows=100)
    >>> X.shape, int(y.max())
    ((100, 10), 2)
    """
    X, y = some_rows(name, SETS[name](), n_rows)
    return (PCA(MAX_FEATURES, svd_solver="full").fit_transform(X) if X.shape[1] > MAX_FEATURES else X), y


def some_rows(name: str, loaded: Loaded, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Some rows of a set, always the same for its name: columns that vary, standardised, and classes (n,)."""
    X, classes = loaded
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = np.sort(rng.permutation(len(X))[:n_rows])
    X = X[rows]
    X = StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])
    return X, np.unique(classes[rows], return_inverse=True)[1].astype(np.int64)


class LinkKind(NamedTuple):
    """Share of the rows that may carry links, and whether a row is in one link at most."""

    share: float
    disjoint: bool


#: How links are drawn, by name.
LINKS = {
    "10 %": LinkKind(0.1, False),
    "30 %": LinkKind(0.3, False),
    "disjoint": LinkKind(0.3, True),
}

#: Share of the links that are wrong where some are.
WRONG = 0.15

#: Certainty of links that are all right; the true one would make them hard.
_SURE = 0.99


def certainty_of(flip: float) -> float:
    """Certainty that methods are told: the true one, but for links that are all right 0.99."""
    return min(_SURE, 1.0 - flip)


def draw_links(
    y: NDArray[np.int64], share: float, flip: float, seed: int, *, disjoint: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Links among a share of the rows, some of them wrong.

    There are as many links as chosen rows, drawn uniformly among these, so that such a row is in two links on
    average; disjoint links put each chosen row into one. The same seed draws the same pairs for every flip
    rate.

    Parameters
    ----------
    y : (n,) int64
    share : float
        Share of the rows that may carry links.
    flip : float
        Share of wrong links, rounded to a whole number of them.
    seed : int
    disjoint : bool

    Returns
    -------
    must_link, cannot_link : (., 2) int64
    linked : (n,) bool
        Rows in any link.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.leaderboard.data import draw_links
    >>> y = np.repeat([0, 1], 50)
    >>> must_link, cannot_link, linked = draw_links(y, share=0.2, flip=0.1, seed=0)
    >>> len(must_link) + len(cannot_link), bool(linked.sum() <= 20)
    (20, True)
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(y))[: max(3, round(share * len(y)))])
    n_links = len(chosen) // 2 if disjoint else len(chosen)
    sampled = Constraints.sample(y[chosen], n_links, overlap=not disjoint, random_state=rng)
    pairs = chosen[sampled.pairs]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    wrong = rng.permutation(len(pairs))[: round(flip * len(pairs))]
    same[wrong] = ~same[wrong]
    linked = np.zeros(len(y), dtype=bool)
    linked[pairs] = True
    return pairs[same], pairs[~same], linked
