"""COP k-means as first published: rows are assigned one by one, and the algorithm may fail."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics.pairwise import euclidean_distances, pairwise_distances_argmin

from linkwise.constraints import Constraints

__all__ = ["GreedyCOPKMeans", "greedy_cop_labels"]


def greedy_cop_labels(
    X: NDArray[np.float64], links: Constraints, centres: NDArray[np.float64], max_iter: int = 100
) -> NDArray[np.int64] | None:
    """Labels by the assignment of Wagstaff et al. (2001), or None where a row has no cluster left.

    Rows are taken in their order. The first row of a group that must-links join takes the nearest
    centre that no row linked apart from the group has taken; the others follow it. Nothing is ever taken
    back, so that the algorithm fails although labels that keep all links exist. What the papers report of
    "COP k-means" is this algorithm; :class:`linkwise.COPKMeans` searches and does not fail.

    Parameters
    ----------
    X : (n, d)
    links : Constraints
        Hard, and with labels that keep them.
    centres : (K, d)
        Start.
    max_iter : int

    Returns
    -------
    (n,) int64 or None

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints
    >>> from experiments.ppc.greedy_cop import greedy_cop_labels
    >>> X, centres = np.array([[0.0], [1.0], [0.1]]), np.array([[0.0], [1.0]])
    >>> greedy_cop_labels(X, Constraints(3, cannot_link=[(0, 2)]), centres)
    array([0, 1, 1])
    >>> greedy_cop_labels(X, Constraints(3, cannot_link=[(0, 2), (1, 2)]), centres) is None
    True
    """
    group = links.chunklets()
    n_groups = int(group.max()) + 1
    apart: list[list[int]] = [[] for _ in range(n_groups)]
    for first, second in group[links.cannot_link]:
        apart[first].append(int(second))
        apart[second].append(int(first))
    labels = np.full(len(X), -1, dtype=np.int64)
    for _ in range(max_iter):
        preferred = euclidean_distances(X, centres, squared=True).argsort(axis=1, kind="stable")
        taken = np.full(n_groups, -1, dtype=np.int64)
        for row, own in enumerate(group):
            if taken[own] >= 0:
                continue
            forbidden = {int(taken[other]) for other in apart[own]}
            allowed = [cluster for cluster in preferred[row].tolist() if cluster not in forbidden]
            if not allowed:
                return None
            taken[own] = allowed[0]
        if np.array_equal(labels, taken[group]):
            break
        labels = taken[group]
        centres = _means(X, labels, centres)
    return labels


def _means(
    X: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Means of the clusters; an empty one stays where it was."""
    return np.array(
        [X[labels == k].mean(axis=0) if (labels == k).any() else centres[k] for k in range(len(centres))]
    )


class GreedyCOPKMeans(ClusterMixin, BaseEstimator):
    """COP k-means as first published, with the methods of an estimator.

    Parameters
    ----------
    n_clusters : int
    init : (K, d)
        Start.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints
    >>> from experiments.ppc.greedy_cop import GreedyCOPKMeans
    >>> X = np.array([[0.0], [1.0], [0.1]])
    >>> model = GreedyCOPKMeans(2, init=np.array([[0.0], [1.0]]))
    >>> model.fit(X, constraints=Constraints(3, cannot_link=[(0, 2)])).labels_
    array([0, 1, 1])
    """

    def __init__(self, n_clusters: int = 8, init: NDArray[np.float64] | None = None) -> None:
        self.n_clusters = n_clusters
        self.init = init

    def fit(self, X: NDArray[np.float64], y: None = None, *, constraints: Constraints) -> GreedyCOPKMeans:
        """Assign greedily until nothing changes.

        Parameters
        ----------
        X : (n, d)
        y : None
        constraints : Constraints

        Returns
        -------
        self

        Raises
        ------
        RuntimeError
            Where a row has no cluster left.
        """
        start = np.asarray(self.init)
        labels = greedy_cop_labels(X, constraints, start)
        if labels is None:
            raise RuntimeError("a row has no cluster left that its links allow")
        self.labels_ = labels
        self.cluster_centers_ = _means(X, labels, start)
        self.inertia_ = float(((X - self.cluster_centers_[labels]) ** 2).sum())
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        """The nearest centre of each row."""
        return pairwise_distances_argmin(X, self.cluster_centers_)
