"""Correct hard pairs: experiment 1 of Lu & Leen (2007)."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.framework.experiment import Experiment, Size
from experiments.framework.starts import (
    CONVERGED,
    N_STARTS,
    best_fit,
    kmeans_starts,
    mixture_starts,
    random_centres,
)
from experiments.framework.summary import Row
from experiments.ppc.data import SETS, load_ppc_set
from experiments.ppc.greedy_cop import GreedyCOPKMeans
from linkwise.constraints import Constraints
from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.metrics import match_clusters
from linkwise.mixture.constrained_em import ConstrainedEM
from linkwise.mixture.ppc import PPC

__all__ = ["EXPERIMENTS", "ppc_hard_links"]


def ppc_hard_links(draw: int, data: str, pairs: int) -> list[Row]:
    """Accuracy on training and test rows with disjoint pairs whose relation is true.

    Protocol of section 5.1.3: 90 % of the rows train, 10 % test; pairs are drawn without replacement among
    the training rows, a must-link if the classes agree and a cannot-link otherwise, all hard; as many
    clusters as classes. Constrained EM is that of sampling assumption 1, with the links and the starts of
    PPC; the paper reports the difference of the two, which is the paired difference here. COP k-means
    sends a test row to the nearest centre. "GMM" is PPC without links, which is scikit-learn's mixture.

    The paper leaves open how many starts there were and which. Here every method has ten, from the same
    random rows, and keeps the best by its own objective; mixtures begin with the covariance of all
    training rows (see :func:`experiments.framework.starts.mixture_starts`), and full covariances
    get a ridge of a thousandth of the mean variance, and no other prior. EM runs to the maximum
    (:data:`experiments.framework.starts.CONVERGED`). "COP k-means" is the greedy algorithm of the paper's
    reference, "COPKMeans" ours, which assigns the rows of a link together. Clusters are matched to classes
    on the training rows. The paper has 100 draws and larger sets
    (see :func:`experiments.ppc.data.load_ppc_set`).

    Parameters
    ----------
    draw : int
        Split, pairs and starts.
    data : str
        One of :data:`experiments.ppc.data.SETS`.
    pairs : int

    Returns
    -------
    list of dict
        For each method "train" and "test" accuracy.

    Examples
    --------
    >>> from experiments.ppc.hard import ppc_hard_links
    >>> rows = {row["method"]: row for row in ppc_hard_links(0, "artificial 1", pairs=100)}
    >>> rows["PPC"]["train"] > 0.95 > 0.7 > rows["COP k-means"]["train"]
    True
    """
    X, y = load_ppc_set(data, draw)
    rng = np.random.default_rng([draw, SETS.index(data), pairs])
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=draw)
    links = Constraints.sample(y_train, pairs, random_state=rng)
    n_clusters = int(y.max()) + 1
    centres = random_centres(X_train, n_clusters, N_STARTS, rng)
    broad, narrow = mixture_starts(X_train, centres), kmeans_starts(centres)
    fitted = {
        "constrained EM": best_fit(ConstrainedEM(n_clusters, **CONVERGED), X_train, links, broad, _bound),
        "PPC": best_fit(PPC(n_clusters, **CONVERGED), X_train, links, broad, _bound),
        "GMM": best_fit(PPC(n_clusters, **CONVERGED), X_train, None, broad, _bound),
        "COP k-means": best_fit(GreedyCOPKMeans(n_clusters), X_train, links, narrow, _compactness),
        "COPKMeans": best_fit(COPKMeans(n_clusters), X_train, links, narrow, _compactness),
    }
    rows = []
    for method, model in fitted.items():
        matching = match_clusters(y_train, model.labels_)
        test = matching.score(y_test, model.predict(X_test))
        rows.append({"method": method, "train": matching.accuracy, "test": test})
    return rows


def _bound(fitted: PPC | ConstrainedEM) -> float:
    return float(fitted.lower_bound_)


def _compactness(fitted: COPKMeans | GreedyCOPKMeans) -> float:
    return -float(fitted.inertia_)


_ARTIFICIAL = (0, 20, 40, 70, 100, 150)
_PAIRS = {
    "artificial 1": _ARTIFICIAL,
    "artificial 2": _ARTIFICIAL,
    "artificial 3": _ARTIFICIAL,
    "iris": (0, 10, 20, 40, 60),
    "waveform": (0, 100, 400),
    "pendigits": (0, 100, 300),
}
_FEW = {**dict.fromkeys(SETS[:3], (0, 70, 150)), "iris": (0, 60), "waveform": (0, 400), "pendigits": (0, 300)}

EXPERIMENTS = (
    Experiment(
        "ppc_hard_links",
        "Train and test accuracy with correct, disjoint, hard pairs",
        "PPC, experiment 1, figures 6 to 9",
        ppc_hard_links,
        quick=Size([{"data": d, "pairs": n} for d, counts in _FEW.items() for n in counts], 2),
        full=Size([{"data": d, "pairs": n} for d, counts in _PAIRS.items() for n in counts], 15),
        measures=("train", "test"),
        reference="constrained EM",
        axis="pairs",
    ),
)
