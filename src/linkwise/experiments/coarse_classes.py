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

from linkwise.beliefs import ClassBeliefs
from linkwise.mixture.cppc import CPPC

__all__ = ["coarse_digits", "doubled_wine"]

#: Three coarse classes of the ten digits.
COARSE = {
    "0-3 | 4-7 | 8-9": lambda digit: digit // 4,
    "0-2 | 3-5 | 6-9": lambda digit: np.minimum(digit // 3, 2),
    "modulo 3": lambda digit: digit % 3,
}


def coarse_digits(
    n_components: Iterable[int] = range(3, 21), n_init: int = 1, random_state: int = 0
) -> tuple[list[str], list[list[Any]]]:
    """How well CPPC finds the digits inside three coarse classes that it was told may fall apart.

    15 principal components, full covariances, beliefs .1 on the diagonal and -1 elsewhere.

    Parameters
    ----------
    n_components : iterable of int
    n_init : int
    random_state : int

    Returns
    -------
    head, rows
        Coarse classes, criterion, the K it chooses, adjusted Rand index to the ten digits there, and the
        highest over all K.

    Examples
    --------
    >>> from linkwise.experiments import coarse_digits
    >>> head, rows = coarse_digits(n_components=[3])
    >>> len(rows)
    9
    """
    X, digits = load_digits(return_X_y=True)
    X = PCA(15, random_state=0).fit_transform(X)
    rows = []
    for name, coarse in COARSE.items():
        beliefs = ClassBeliefs.keep([0, 1, 2]).keep_whole(0, 1, 2, strength=0.1)
        model = CPPC(beliefs=beliefs, n_init=n_init, random_state=random_state)
        rows += _chosen(name, model, X, coarse(digits), digits, n_components)
    return ["classes", "criterion", "K", "ARI", "best ARI"], rows


def doubled_wine(
    n_components: Iterable[int] = range(2, 7), random_state: int = 0
) -> tuple[list[str], list[list[Any]]]:
    """Whether CPPC merges a class of wine that was given two names at random.

    Five principal components of standardised features, full covariances; the two names are believed to be
    one with the strength in the first column.

    Parameters
    ----------
    n_components : iterable of int
    random_state : int

    Returns
    -------
    head, rows
        As in :func:`coarse_digits`; the truth has three classes.

    Examples
    --------
    >>> from linkwise.experiments import doubled_wine
    >>> head, rows = doubled_wine(n_components=[3])
    >>> all(row[3] > 0.9 for row in rows)
    True
    """
    X, y = load_wine(return_X_y=True)
    X = PCA(5, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    second = np.random.default_rng(random_state).random(len(y)) < 0.5
    named = np.where((y == 1) & second, 3, y)
    rows = []
    for strength in (0.5, 1.0):
        beliefs = ClassBeliefs.keep([0, 1, 2, 3]).merge(1, 3, strength)
        model = CPPC(beliefs=beliefs, random_state=random_state)
        rows += _chosen(f"belief {strength:g}", model, X, named, y, n_components)
    return ["classes", "criterion", "K", "ARI", "best ARI"], rows


def _chosen(
    name: str,
    model: CPPC,
    X: NDArray[np.float64],
    y: NDArray[Any],
    truth: NDArray[Any],
    n_components: Iterable[int],
) -> list[list[Any]]:
    """A row for each criterion."""
    fits = []
    for k in n_components:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # empty clusters and K at the edge show in the table
            fitted = model.set_params(n_components=k).fit(X, y)
        score = adjusted_rand_score(truth, fitted.labels_)
        fits.append((k, float(score), dict(fitted.criteria_)))
    highest = max(score for _, score, _ in fits)
    rows: list[list[Any]] = []
    for criterion in ("cbic", "bic", "icl"):
        k, score, _ = min(fits, key=lambda fit: fit[2][criterion])
        rows.append([name, criterion, k, score, highest])
    return rows
