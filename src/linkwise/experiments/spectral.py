"""Rand index against the number of links for spectral clustering (Lu & Carreira-Perpinan 2008, section 5)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from linkwise.cluster.kernels import local_scale
from linkwise.cluster.spectral import ConstrainedSpectralClustering
from linkwise.cluster.spectral_learning import SpectralLearning
from linkwise.constraints import Constraints
from linkwise.datasets import load_bundled, make_rings, make_spirals, make_two_moons
from linkwise.experiments.data_files import even_sample, load_newsgroups, load_table
from linkwise.metrics import rand_score

__all__ = ["spectral_newsgroups", "spectral_two_class", "spectral_uci"]

Table = tuple[list[str], list[list[Any]]]

_TWO_CLASS = {"moons": make_two_moons, "spirals": make_spirals, "rings": make_rings}

#: Digits of the sets cut out of the 8 x 8 digits, and how many rows are kept.
_DIGITS = {"digits389": ((3, 8, 9), 400), "digits2567": ((2, 5, 6, 7), None)}

#: Tables whose features have different units.
_STANDARDISED = ("wine", "breast_cancer_wdbc", "forest_type_mapping")

#: Rows kept of large tables.
_ROWS = {"letters_ijl": 600, "satimage": 800}

#: Certainty of a link of weight 1, as strong as a hard link for the spectral methods. Hard links that are
#: partly wrong would contradict each other.
_CERTAINTY = 0.5 + 0.5 * math.tanh(1.0)


class Method(NamedTuple):
    """A column of a table: estimator, settings, and Gaussian width in units of the local scale."""

    estimator: type[ConstrainedSpectralClustering] | type[SpectralLearning]
    settings: dict[str, Any]
    width: float | None = None


#: Links as in the paper: hard, and only as many eigenvectors as clusters.
_PAPER = {"affinity": "rbf", "softness": 1e-5, "n_extra_eigenvectors": 0}

#: The paper's heat kernel with softened links, the setting before links voted on eigenvectors.
_SOFT = {"softness": 0.1, "n_extra_eigenvectors": 0}

_HEAT = {
    "softer": Method(ConstrainedSpectralClustering, {"softness": 0.3}),
    "A": Method(ConstrainedSpectralClustering, {"algorithm": "A", **_SOFT}),
    "B": Method(ConstrainedSpectralClustering, {"algorithm": "B", **_SOFT}),
}

_TWO_CLASS_METHODS = {
    **_HEAT,
    "A paper": Method(ConstrainedSpectralClustering, {"algorithm": "A", **_PAPER}, 2.0),
    "B paper": Method(ConstrainedSpectralClustering, {"algorithm": "B", **_PAPER}, 2.0),
    "Kamvar x2": Method(SpectralLearning, {}, 2.0),
    "Kamvar x0.5": Method(SpectralLearning, {}, 0.5),
}

_UCI_METHODS = {
    **_HEAT,
    "reliability": Method(ConstrainedSpectralClustering, {"softness": 0.3, "reliability_subsets": 5}),
    "B paper": Method(ConstrainedSpectralClustering, {"algorithm": "B", **_PAPER}, 1.0),
    "Kamvar x1": Method(SpectralLearning, {}, 1.0),
    "Kamvar x0.5": Method(SpectralLearning, {}, 0.5),
}


#: For documents the paper takes the heat kernel.
_TEXT_METHODS = {
    **{name: method for name, method in _UCI_METHODS.items() if name != "B paper"},
    "paper": Method(ConstrainedSpectralClustering, {**_PAPER, "affinity": "heat"}),
}


def spectral_two_class(
    data: str = "moons",
    n_links: tuple[int, ...] = (0, 5, 10, 20, 40, 80),
    n_runs: int = 10,
    random_state: int = 0,
) -> Table:
    """Rand index on two classes that are no blobs, against the number of links.

    Parameters
    ----------
    data : {"moons", "spirals", "rings"}
        200 points of each class; data and links are drawn anew in each run.
    n_links : tuple of int
        Random pairs, labelled by the truth.
    n_runs : int
    random_state : int

    Returns
    -------
    head, rows
        Number of links; mean Rand index with softness 0.3; of algorithms A and B with the heat kernel,
        softness 0.1 and no extra eigenvectors; of A and B as in the paper (softness 1e-5, Gaussian of twice
        the local scale); and of Kamvar's method with that width and with a quarter of it.

    Examples
    --------
    >>> from linkwise.experiments.spectral import spectral_two_class
    >>> head, rows = spectral_two_class("rings", n_links=(40,), n_runs=1)
    >>> scores = dict(zip(head, rows[0]))
    >>> scores["softer"] > 0.8 > scores["Kamvar x2"]
    True
    """
    problems = [
        _TWO_CLASS[data](200, random_state=np.random.default_rng([random_state, run]))
        for run in range(n_runs)
    ]
    rows = [[count, *_mean_rand(problems, _TWO_CLASS_METHODS, count, 0.0, random_state)] for count in n_links]
    return ["links", *_TWO_CLASS_METHODS], rows


def spectral_uci(
    data: str = "iris",
    n_links: tuple[int, ...] = (0, 20, 50, 100, 200),
    flip: float = 0.0,
    n_runs: int = 10,
    random_state: int = 0,
) -> Table:
    """Rand index on real data against the number of links.

    Parameters
    ----------
    data : str
        "iris", "wine", "digits389" or "digits2567", which need no files; else a table of the folder named by
        LINKWISE_DATA. Features with units are standardised; at most 800 rows are used.
    n_links : tuple of int
        Random pairs, labelled by the truth.
    flip : float
        Share of links that are reported wrongly.
    n_runs : int
        Draws of the links.
    random_state : int

    Returns
    -------
    head, rows
        Number of links; mean Rand index with softness 0.3; of algorithms A and B with the heat kernel,
        softness 0.1 and no extra eigenvectors; of softness 0.3 with ``reliability_subsets=5``; of B as in the
        paper (softness 1e-5, Gaussian of the local scale); and of Kamvar's method with that width and half
        of it.

    Examples
    --------
    >>> from linkwise.experiments.spectral import spectral_uci
    >>> head, rows = spectral_uci(n_links=(0, 100), n_runs=2)
    >>> column = head.index("softer")
    >>> rows[1][column] > rows[0][column]
    True
    """
    problems = [_real_data(data)] * n_runs
    rows = [[count, *_mean_rand(problems, _UCI_METHODS, count, flip, random_state)] for count in n_links]
    return ["links", *_UCI_METHODS], rows


def spectral_newsgroups(
    task: str = "easy",
    n_links: tuple[int, ...] = (0, 50, 100, 200, 400),
    n_documents: int = 1000,
    n_runs: int = 5,
    random_state: int = 0,
) -> Table:
    """Rand index on newsgroups against the number of links.

    TF-IDF with logarithmic term frequencies, without stop words, rows of length one.

    Parameters
    ----------
    task : {"easy", "medium", "difficult"}
        Atheism, baseball, space; Windows, Macintosh; politics: misc, guns, Middle East.
    n_links : tuple of int
        Random pairs, labelled by the truth.
    n_documents : int
        Drawn evenly from the groups, anew in each run.
    n_runs : int
    random_state : int

    Returns
    -------
    head, rows
        As in :func:`spectral_uci`; the last column is the paper's algorithm (A for two groups, else B) with
        the heat kernel and softness 1e-5.
    """
    counts, labels = load_newsgroups(task)
    problems = []
    for run in range(n_runs):
        chosen = even_sample(labels, n_documents, np.random.default_rng([random_state, run]))
        problems.append((TfidfTransformer(sublinear_tf=True).fit_transform(counts[chosen]), labels[chosen]))
    rows = [[count, *_mean_rand(problems, _TEXT_METHODS, count, 0.0, random_state)] for count in n_links]
    return ["links", *_TEXT_METHODS], rows


def _mean_rand(
    problems: Iterable[tuple[Any, NDArray[Any]]],
    methods: dict[str, Method],
    n_links: int,
    flip: float,
    random_state: int,
) -> list[float]:
    """Mean over problems, each with links of its own."""
    scores = []
    for run, (X, y) in enumerate(problems):
        links = Constraints.sample(
            y, n_links, overlap=True, flip=flip, certainty=_CERTAINTY if flip else None,
            random_state=np.random.default_rng([random_state, run, n_links]),
        )  # fmt: skip
        scale = local_scale(NearestNeighbors().fit(X))
        scores.append([_rand(method, X, y, links, scale) for method in methods.values()])
    return [float(score) for score in np.mean(scores, axis=0)]


def _rand(method: Method, X: Any, y: NDArray[Any], links: Constraints, scale: float) -> float:
    settings = dict(method.settings)
    if method.width is not None:
        settings["sigma"] = method.width * scale
    model = method.estimator(len(np.unique(y)), random_state=0, **settings)
    with warnings.catch_warnings():
        # Hard links and narrow widths are compared because the papers use them; the warnings say why not to.
        warnings.simplefilter("ignore", UserWarning)
        labels = model.fit_predict(X, constraints=links if links.n_pairs else None)
    return rand_score(y, labels)


def _real_data(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name in _DIGITS:
        X, y = load_digits(return_X_y=True)
        kept, n_rows = _DIGITS[name]
        rows = np.flatnonzero(np.isin(y, kept))
        rows = np.random.default_rng(0).permutation(rows)[:n_rows]
        return X[rows], y[rows]
    X, y = load_bundled(name) if name in ("iris", "wine") else load_table(name)
    if name in _STANDARDISED:
        X = StandardScaler().fit_transform(X)
    if name in _ROWS:
        rows = np.random.default_rng(0).permutation(len(y))[: _ROWS[name]]
        X, y = X[rows], y[rows]
    return X, y
