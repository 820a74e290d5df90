"""Labels flipped at random: which rows the library calls mislabelled, and which a user would find by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from experiments.framework.data_files import load_table
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.mixture.classes.mislabelled import LIKELY, label_errors

__all__ = ["EXPERIMENTS", "flip_labels", "mislabelled"]

_TABLES = {
    "satimage": "satimage",
    "forest types": "forest_type_mapping",
    "Mato Grosso": "modis_matogrosso",
    "pendigits": "pendigits",
}
_N_FEATURES = 10
#: Probabilities whose bins are checked: of the rows in each, how many are really wrong?
_BINS = ((0.5, 0.7), (0.7, 0.9), (0.9, 1.01))


def _classifiers(draw: int) -> dict[str, ClassifierMixin]:
    """What a user would do by hand: cross-validate a classifier and doubt the rows it contradicts."""
    return {
        "random forest": RandomForestClassifier(100, random_state=draw),
        "shrunk LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "10 neighbours": KNeighborsClassifier(10),
    }


def _load(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Ten principal components of the standardised features of all rows, and class numbers."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_table(_TABLES[name])
    X = StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])
    if X.shape[1] > _N_FEATURES:
        X = PCA(_N_FEATURES, random_state=0).fit_transform(X)
    return X, np.unique(y, return_inverse=True)[1].astype(np.int64)


def flip_labels(
    y: NDArray[np.int64], rate: float, draw: int, flips: str = "any class"
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Give a share of the rows another class at random.

    Parameters
    ----------
    y : (n,) int64
        0, ..., L - 1.
    rate : float
        Share of the rows.
    draw : int
        Seed.
    flips : {"any class", "next class"}
        Whether the wrong label is any other one, or always that of the next class.

    Returns
    -------
    labels : (n,) int64
    wrong : (n,) bool

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.mislabelled import flip_labels
    >>> y = np.arange(100) % 3
    >>> labels, wrong = flip_labels(y, 0.1, 0)
    >>> int(wrong.sum()), bool(((labels != y) == wrong).all())
    (10, True)
    """
    rng = np.random.default_rng(draw)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.permutation(len(y))[: round(rate * len(y))]] = True
    n_classes = int(y.max()) + 1
    steps = rng.integers(1, n_classes, len(y)) if flips == "any class" else 1
    return np.where(wrong, (y + steps) % n_classes, y), wrong


def mislabelled(draw: int, data: str, flips: str, rate: float) -> list[Row]:
    """Which of the rows with a flipped label are found.

    Ten principal components of standardised features, all rows, full covariances. A draw is a choice of rows
    and of their wrong labels.

    Parameters
    ----------
    draw : int
    data : str
        "digits" or the name of a table.
    flips : str
        As in :func:`flip_labels`.
    rate : float
        Share of the labels that are flipped.

    Returns
    -------
    list of dict
        For each method the share of the rows it flags, "flagged", how many of these are wrong, "precision"
        (NaN if none is flagged), and how many of the wrong ones are flagged, "recall" (NaN if none is
        wrong). For linkwise also how often the class it tells is the true one, "told", the rate of errors it
        learns, "learned_rate", and the share of wrong labels among rows with a probability of .5 to .7, .7
        to .9 and above, "at_50", "at_70", "at_90".

    Examples
    --------
    The first row of ``mislabelled(0, "digits", "any class", 0.1)``, that of linkwise, has a precision and a
    recall above .8; it takes some seconds.
    """
    X, truth = _load(data)
    labels, wrong = flip_labels(truth, rate, draw, flips)
    found = label_errors(X, labels)
    flagged = found.probability > LIKELY
    right = found.told == truth
    row = {"method": "linkwise", **_scores(flagged, wrong), "told": _share(right, flagged & wrong)}
    row["learned_rate"] = found.error_rate
    for low, high in _BINS:
        among = (found.probability >= low) & (found.probability < high)
        row[f"at_{100 * low:.0f}"] = _share(wrong, among)
    rows: list[Row] = [row]
    folds = StratifiedKFold(5, shuffle=True, random_state=draw)
    for name, classifier in _classifiers(draw).items():
        predicted = cross_val_predict(classifier, X, labels, cv=folds)
        told = {"told": _share(predicted == truth, (predicted != labels) & wrong)}
        nothing = dict.fromkeys(_MEASURES[4:], float("nan"))
        rows.append({"method": name, **_scores(predicted != labels, wrong), **told, **nothing})
    return rows


def _scores(flagged: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    return {
        "flagged": float(flagged.mean()),
        "precision": _share(wrong, flagged),
        "recall": _share(flagged, wrong),
    }


def _share(which: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    return float(which[among].mean()) if among.any() else float("nan")


_MEASURES = ("flagged", "precision", "recall", "told", "learned_rate", "at_50", "at_70", "at_90")
_RATES = (0.0, 0.02, 0.05, 0.1, 0.2)


def _settings(data: str, flips: str, *rates: float) -> list[dict[str, Any]]:
    return [{"data": data, "flips": flips, "rate": rate} for rate in rates]


_FULL = [
    *_settings("digits", "any class", *_RATES),
    *_settings("satimage", "any class", *_RATES),
    *_settings("forest types", "any class", 0.0, 0.1),
    *_settings("Mato Grosso", "any class", 0.0, 0.1),
    *(
        setting
        for data in ("digits", "satimage", "forest types", "Mato Grosso")
        for setting in _settings(data, "next class", 0.1)
    ),
    *_settings("pendigits", "any class", 0.1),
]

EXPERIMENTS = (
    Experiment(
        "mislabelled",
        "Labels flipped at random: rows flagged as mislabelled, against cross-validated classifiers",
        "beyond the papers: CPPC where some labels are wrong",
        mislabelled,
        quick=Size(
            [*_settings("digits", "any class", 0.0, 0.1), *_settings("satimage", "any class", 0.1)], 1
        ),
        full=Size(_FULL, 2),
        measures=_MEASURES,
        reference="random forest",
    ),
)
