"""Few labels: the classes of five rows each are known, and classifiers are what else one would use."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import SETS, load_set
from experiments.leaderboard.leaderboard import N_ROWS, Clustered, cluster
from experiments.leaderboard.methods import METHODS, Method
from linkwise.constraints import Constraints
from linkwise.mixture.ppc import PPC

__all__ = ["CLASSIFIERS", "EXPERIMENTS", "few_labels_trial", "labels_of_few"]

#: Rows of each class whose label is known.
N_LABELS = 5

#: What scikit-learn has for few labels; all but the last learn from labelled rows alone.
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "shrunk LDA": lambda seed: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "random forest": lambda seed: RandomForestClassifier(300, random_state=seed),
    "support vectors": lambda seed: SVC(random_state=seed),
    "LabelSpreading": lambda seed: LabelSpreading(kernel="knn", n_neighbors=7, max_iter=100),
}

#: Ours beside LinkedClustering: labels become hard links.
_LINKED = {
    "PPC": METHODS["PPC"],
    "PPC tied": Method(lambda k, seed: PPC(k, covariance_type="tied", random_state=seed), "hard"),
    "ConstrainedSpectralClustering": METHODS["ConstrainedSpectralClustering"],
    "COPKMeans": METHODS["COPKMeans"],
}


def labels_of_few(y: NDArray[np.int64], n_labels: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Classes (n,) of so many rows of each class, at most half of it, and -1 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.leaderboard.few_labels import labels_of_few
    >>> known = labels_of_few(np.repeat([0, 1], [20, 4]), 5, np.random.default_rng(0))
    >>> np.bincount(known[known >= 0]).tolist()
    [5, 2]
    """
    known = np.full(len(y), -1, dtype=np.int64)
    for one in np.unique(y):
        rows = np.flatnonzero(y == one)
        known[rng.choice(rows, min(n_labels, max(1, len(rows) // 2)), replace=False)] = one
    return known


def few_labels_trial(draw: int, set: str) -> list[Row]:
    """The classes of five rows of each class are known.

    400 rows of a set with at most ten features (principal components). Scores are adjusted Rand indices of
    the rows without a label. `LinkedClustering` gets the labels, other estimators of ours hard links made of
    them, and scikit-learn's classifiers learn them.

    Parameters
    ----------
    draw : int
        Fixes the labelled rows and the starts.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.

    Returns
    -------
    list of dict
        "ari" and "seconds"; or "problem".

    Examples
    --------
    >>> from experiments.leaderboard.few_labels import few_labels_trial
    >>> found = {row["method"]: row["ari"] for row in few_labels_trial(0, "iris")}
    >>> found["shrunk LDA"] > 0.5
    True
    """
    X, y = load_set(set, N_ROWS)
    k = len(np.unique(y))
    known = labels_of_few(y, N_LABELS, np.random.default_rng(zlib.crc32(f"{set} labels {draw}".encode())))
    links = Constraints.from_labels(known)
    found = {
        "LinkedClustering": cluster(METHODS["LinkedClustering"], X, k, draw, None, labels=known),
        **{name: cluster(method, X, k, draw, links) for name, method in _LINKED.items()},
        **{name: _classify(build(draw), X, known) for name, build in CLASSIFIERS.items()},
    }
    free = known < 0
    return [
        {"method": name, "problem": one.problem}
        if one.labels is None
        else {
            "method": name,
            "ari": float(adjusted_rand_score(y[free], one.labels[free])),
            "seconds": one.seconds,
        }
        for name, one in found.items()
    ]


def _classify(classifier: Any, X: NDArray[np.float64], known: NDArray[np.int64]) -> Clustered:
    """Classes that a classifier predicts; one that takes unlabelled rows is given all."""
    start = time.process_time()
    rows = np.ones(len(X), dtype=bool) if isinstance(classifier, LabelSpreading) else known >= 0
    try:
        labels = classifier.fit(X[rows], known[rows]).predict(X)
    except Exception as error:
        return Clustered(None, 0.0, f"{type(error).__name__}: {str(error)[:200]}")
    return Clustered(labels, time.process_time() - start)


EXPERIMENTS = (
    Experiment(
        "few_labels",
        "Five labels of each class, against classifiers that learn them",
        "beyond the papers",
        few_labels_trial,
        quick=Size([{"set": name} for name in ("iris", "wine", "moons")], 1),
        full=Size([{"set": name} for name in SETS], 3),
        measures=("ari", "seconds"),
        texts=("problem",),
    ),
)
