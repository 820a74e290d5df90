"""CPPC on labels that are too coarse or too fine: digits in three classes, wine with a class named twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.beliefs import ClassBeliefs
from linkwise.mixture.cppc import CPPC

__all__ = ["COARSE", "CRITERIA", "EXPERIMENTS", "coarse_digits", "doubled_wine"]

#: Three coarse classes of the ten digits: the class of each digit.
COARSE = {
    "0-3 | 4-7 | 8-9": (0, 0, 0, 0, 1, 1, 1, 1, 2, 2),
    "0-2 | 3-5 | 6-9": (0, 0, 0, 1, 1, 1, 2, 2, 2, 2),
    "modulo 3": (0, 1, 2, 0, 1, 2, 0, 1, 2, 0),
}
CRITERIA = ("cbic", "bic", "icl", "cbic_paper")


def coarse_digits(draw: int, classes: str, fewest: int = 3, most: int = 15) -> list[Row]:
    """How well CPPC finds the digits inside three coarse classes that it was told may fall apart.

    15 principal components, full covariances, beliefs .1 on the diagonal and -1 elsewhere. A draw is a start.

    Parameters
    ----------
    draw : int
    classes : str
        A key of ``COARSE``.
    fewest, most : int
        Range of K.

    Returns
    -------
    list of dict
        For each criterion the K it chooses, "k", the adjusted Rand index to the ten digits there, "ari", and
        the highest over all K, "best_ari".

    Examples
    --------
    >>> from experiments.classes.coarse import coarse_digits
    >>> [row["k"] for row in coarse_digits(0, "modulo 3", fewest=3, most=3)]
    [3, 3, 3, 3]
    """
    X, digits = load_digits(return_X_y=True)
    X = PCA(15, random_state=0).fit_transform(X)
    beliefs = ClassBeliefs.keep([0, 1, 2]).keep_whole(0, 1, 2, strength=0.1)
    model = CPPC(beliefs=beliefs, random_state=draw)
    return _chosen(model, X, np.array(COARSE[classes])[digits], digits, range(fewest, most + 1))


def doubled_wine(draw: int, strength: float, fewest: int = 2, most: int = 6) -> list[Row]:
    """Whether CPPC merges a class of wine that was given two names at random.

    Five principal components of standardised features, full covariances. A draw is the choice of the rows
    that get the second name, and a start.

    Parameters
    ----------
    draw : int
    strength : float
        Belief that the two names are one.
    fewest, most : int
        Range of K.

    Returns
    -------
    list of dict
        As in :func:`coarse_digits`; the truth has three classes.

    Examples
    --------
    >>> from experiments.classes.coarse import doubled_wine
    >>> all(row["ari"] > 0.9 for row in doubled_wine(0, 1.0, fewest=3, most=3))
    True
    """
    X, y = load_wine(return_X_y=True)
    X = PCA(5, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    second = np.random.default_rng(draw).random(len(y)) < 0.5
    beliefs = ClassBeliefs.keep([0, 1, 2, 3]).merge(1, 3, strength)
    model = CPPC(beliefs=beliefs, random_state=draw)
    return _chosen(model, X, np.where((y == 1) & second, 3, y), y, range(fewest, most + 1))


def _chosen(
    model: CPPC,
    X: NDArray[np.float64],
    y: NDArray[Any],
    truth: NDArray[Any],
    n_components: Iterable[int],
) -> list[Row]:
    """A row for each criterion."""
    fits = []
    for k in n_components:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # empty clusters and K at the edge show in the table
            fitted = model.set_params(n_components=k).fit(X, y)
        score = adjusted_rand_score(truth, fitted.labels_)
        fits.append((k, float(score), dict(fitted.criteria_)))
    highest = max(score for _, score, _ in fits)
    rows = []
    for criterion in CRITERIA:
        k, score, _ = min(fits, key=lambda fit: fit[2][criterion])
        rows.append({"method": criterion, "k": k, "ari": score, "best_ari": highest})
    return rows


def _digits_settings(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"classes": name} for name in names]


_WINE = [{"strength": strength} for strength in (0.25, 0.5, 1.0)]
_MEASURES = ("ari", "k", "best_ari")

EXPERIMENTS = (
    Experiment(
        "cppc_coarse_digits",
        "The ten digits found inside three coarse classes, at the K that each criterion chooses",
        "beyond the papers: CPPC where the truth is known, classes too coarse",
        coarse_digits,
        quick=Size(_digits_settings(("0-3 | 4-7 | 8-9", "modulo 3")), 2),
        full=Size(_digits_settings(COARSE), 6),
        measures=_MEASURES,
        reference="bic",
    ),
    Experiment(
        "cppc_doubled_wine",
        "A class of wine with two names merged again, at the K that each criterion chooses",
        "beyond the papers: CPPC where the truth is known, classes too fine",
        doubled_wine,
        quick=Size(_WINE, 5),
        full=Size(_WINE, 30),
        measures=_MEASURES,
        reference="bic",
        axis="strength",
    ),
)
