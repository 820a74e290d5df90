"""The number of clusters is not known: what links and the shape of the data make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import LINKS, SETS, certainty_of, draw_links, load_set
from experiments.leaderboard.leaderboard import N_ROWS
from linkwise.auto.estimator import LinkedClustering
from linkwise.constraints import Constraints

__all__ = ["EXPERIMENTS", "unknown_number_trial"]

_MOST = 10
_NO_LINKS = "none"


def unknown_number_trial(draw: int, set: str, links: str) -> list[Row]:
    """Clusterings that find the number of clusters, and one that is told.

    400 rows of a set with at most ten features (principal components). `LinkedClustering` gets right links
    or none, and is quick. K-means with the highest silhouette and a Gaussian mixture with the lowest BIC of 1
    to 10 clusters get none: they are what one would do by hand.

    Parameters
    ----------
    draw : int
        Fixes the links and the starts.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    links : str
        A name in :data:`experiments.leaderboard.data.LINKS`, or "none".

    Returns
    -------
    list of dict
        "ari", the adjusted Rand index of rows without links, and "off", by how many clusters the number is
        wrong.
    """
    X, y = load_set(set, N_ROWS)
    k = len(np.unique(y))
    known, free = None, np.ones(len(y), dtype=bool)
    if links != _NO_LINKS:
        kind = LINKS[links]
        must, cannot, linked = draw_links(y, kind.share, 0.0, draw, disjoint=kind.disjoint)
        known, free = Constraints(len(y), must, cannot, certainty=certainty_of(0.0)), ~linked

    def linked_labels(number: Any) -> NDArray[np.int64]:
        return LinkedClustering(number, effort="quick", random_state=draw).fit(X, constraints=known).labels_

    found = {
        "LinkedClustering": linked_labels("auto"),
        "LinkedClustering, true number": linked_labels(k),
        "K-means, highest silhouette": _by_silhouette(X, draw),
        "GaussianMixture, lowest BIC": _by_bic(X, draw),
    }
    return [
        {
            "method": name,
            "ari": float(adjusted_rand_score(y[free], labels[free])),
            "off": float(abs(len(np.unique(labels)) - k)),
        }
        for name, labels in found.items()
    ]


def _by_silhouette(X: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """K-means of the number of clusters, from 2 on, with the highest silhouette."""
    tried = [KMeans(k, n_init=10, random_state=seed).fit(X).labels_ for k in range(2, _MOST + 1)]
    return np.asarray(max(tried, key=lambda labels: silhouette_score(X, labels)))


def _by_bic(X: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """The full Gaussian mixture with the lowest BIC."""
    tried = [GaussianMixture(k, n_init=3, random_state=seed).fit(X) for k in range(1, _MOST + 1)]
    return np.asarray(min(tried, key=lambda model: model.bic(X)).predict(X))


EXPERIMENTS = (
    Experiment(
        "unknown_number",
        "The number of clusters is not known",
        "beyond the papers",
        unknown_number_trial,
        quick=Size([{"set": name, "links": "10 %"} for name in ("iris", "wine", "moons")], 1),
        full=Size(
            [{"set": name, "links": links} for links in (_NO_LINKS, "10 %", "30 %") for name in SETS], 2
        ),
        measures=("ari", "off"),
    ),
)
