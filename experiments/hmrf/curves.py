"""Learning curves of HMRF-KMeans under several ways of inference (Bilenko & Basu 2004, section 4)."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from experiments.framework.data_files import load_table
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.datasets import load_bundled
from linkwise.exceptions import ApproximationWarning
from linkwise.kmeans.hmrf_kmeans import HMRFKMeans
from linkwise.metrics import pairwise_f1

__all__ = ["EXPERIMENTS", "Fold", "draw_fold", "fit_labels", "hmrf_curves"]

#: Ways of inference: the paper's three, and the default of the library.
ENGINES = ("icm", "belief_propagation", "lp", "auto")
DATA = ("iris", "protein116", "letters_ijl", "wine")
_BUNDLED = ("iris", "wine")


class Fold(NamedTuple):
    """Rows, of which one half may carry links and the other is scored.

    Attributes
    ----------
    X : (n, d) float64
    y : (n,) ndarray
    linkable, held_out : (n / 2,) int64
    links : Constraints
        Of weight 1.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    linkable: NDArray[np.int64]
    held_out: NDArray[np.int64]
    links: Constraints


def draw_fold(draw: int, data: str, links: int, flip: float = 0.0) -> Fold:
    """One half of a set, with random links inside it.

    Draws 2 r and 2 r + 1 are the two folds of run r. Only the features of wine, whose units differ, are
    standardised.

    Parameters
    ----------
    draw : int
    data : {"iris", "protein116", "letters_ijl", "wine"}
        Protein and letters from the folder named by LINKWISE_DATA; of the letters a tenth, as in the paper.
    links : int
        Pairs drawn uniformly from all pairs of the half, of unit cost.
    flip : float
        Share of links that are reported wrongly.

    Returns
    -------
    Fold

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.hmrf.curves import draw_fold
    >>> first, second = draw_fold(0, "iris", 20), draw_fold(1, "iris", 20)
    >>> np.array_equal(first.linkable, second.held_out), np.isin(first.links.pairs, first.linkable).all()
    (True, np.True_)
    """
    if data in _BUNDLED:
        X, y = load_bundled(data)
        X = StandardScaler().fit_transform(X) if data == "wine" else X
    else:
        X, y = load_table(data, marked="sample10" if data == "letters_ijl" else None)
    order = np.random.default_rng(draw // 2).permutation(len(y))
    halves = [order[: len(y) // 2], order[len(y) // 2 :]]
    linkable, held_out = halves if draw % 2 == 0 else halves[::-1]
    # Hard links that are partly wrong could contradict each other, so the weight is set at once.
    drawn = Constraints.sample(
        y[linkable], links, overlap=True, flip=flip, certainty=0.9,
        random_state=np.random.default_rng([draw, links]),
    )  # fmt: skip
    unit = Constraints(len(y), linkable[drawn.must_link], linkable[drawn.cannot_link], weight=1.0)
    return Fold(X, y, linkable, held_out, unit)


def fit_labels(fold: Fold, engine: Any, seed: int) -> NDArray[np.int64]:
    """Labels of all rows by HMRF-KMeans with the paper's settings: learned diagonal metric, one start.

    Parameters
    ----------
    fold : Fold
    engine : str or engine
        Value of ``inference``.
    seed : int

    Returns
    -------
    (n,) int64
    """
    model = HMRFKMeans(
        len(np.unique(fold.y)),
        metric="diag",
        inference=engine,
        penalty_bound="diameter",
        init="constraints",
        n_init=1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ApproximationWarning)
        return model.fit(fold.X, constraints=fold.links).labels_


def hmrf_curves(draw: int, data: str, links: int) -> list[Row]:
    """Pairwise F on rows without links of one fold, for several ways of inference.

    Links between random rows of one half, all rows clustered, F counted on the other half; unit costs,
    centres from the links' neighbourhoods, diagonal metric learned. Halves, links and starts are the same for
    every method. "k-means" has neither links nor metric, and the same seed. The paper does not say how many
    links it drew, nor how features were scaled, nor which tenth of the letters it took (here a fixed one);
    phi_max is the largest distance in the data. The paper has ten runs of two folds.

    Parameters
    ----------
    draw : int
        Draws 2 r and 2 r + 1 are the two folds of run r.
    data : {"iris", "protein116", "letters_ijl", "wine"}
        The paper has no wine.
    links : int

    Returns
    -------
    list of dict
        "f" of each method.

    Examples
    --------
    Without links all ways of inference are the same.

    >>> from experiments.hmrf.curves import hmrf_curves
    >>> scores = {row["method"]: row["f"] for row in hmrf_curves(0, "iris", links=0)}
    >>> scores["icm"] == scores["belief_propagation"] == scores["lp"]
    True
    """
    fold = draw_fold(draw, data, links)
    plain = HMRFKMeans(len(np.unique(fold.y)), metric=None, init="constraints", n_init=1, random_state=draw)
    found = {"k-means": plain.fit_predict(fold.X)}
    for engine in ENGINES:
        found[engine] = fit_labels(fold, engine, draw)
    return [
        {"method": method, "f": pairwise_f1(fold.y[fold.held_out], labels[fold.held_out])}
        for method, labels in found.items()
    ]


def _settings(links: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"data": data, "links": count} for data, count in product(DATA, links)]


EXPERIMENTS = (
    Experiment(
        "hmrf_curves",
        "Pairwise F of HMRF-KMeans on rows without links, three ways of inference",
        "Bilenko & Basu 2004, figures 4-6; wine added",
        hmrf_curves,
        quick=Size(_settings((0, 50, 200)), 4),
        full=Size(_settings((0, 10, 20, 50, 100, 200, 400)), 40),
        measures=("f",),
        reference="icm",
        axis="links",
    ),
)
