"""Classifiers trained on rows whose group hard links tell: labelled rows, or groups all linked apart."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, clone

from linkwise.constraints import Constraints

__all__ = ["GroupClassifier", "mutual_groups"]

#: Groups that are looked at, the largest first.
_MOST_GROUPS = 500


def mutual_groups(links: Constraints | None, n_clusters: int) -> NDArray[np.int64]:
    """Group (n,) of rows in up to K chunklets that are all linked apart, the largest first; -1 for others.

    Two rows of different groups surely belong to different clusters, two of the same to the same. The groups
    are found one after the other: each is the largest that is linked apart from all before.
    """
    if links is None:
        return np.empty(0, dtype=np.int64)
    found = np.full(links.n_samples, -1, dtype=np.int64)
    apart = links.pairs[np.isneginf(links.weights)]
    if not len(apart):
        return found
    chunklet = links.chunklets()
    sizes = np.bincount(chunklet)
    ends = chunklet[apart]
    possible = np.unique(ends)
    possible = possible[np.argsort(-sizes[possible], kind="stable")][:_MOST_GROUPS]
    enemies: dict[int, set[int]] = {int(one): set() for one in possible}
    for i, j in ends.tolist():
        if i in enemies and j in enemies:
            enemies[i].add(j)
            enemies[j].add(i)
    chosen: list[int] = []
    for one in possible.tolist():
        if len(chosen) < n_clusters and all(one in enemies[other] for other in chosen):
            found[chunklet == one] = len(chosen)
            chosen.append(one)
    return found


class GroupClassifier(ClusterMixin, BaseEstimator):
    """Clusters found by a classifier that learns the groups which hard links tell apart.

    Parameters
    ----------
    n_clusters : int
    classifier : ClassifierMixin
        Trained on the rows of :func:`mutual_groups`.
    """

    def __init__(self, n_clusters: int, classifier: ClassifierMixin) -> None:
        self.n_clusters = n_clusters
        self.classifier = classifier

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Train on rows of known groups and label all rows (n, d)."""
        group = mutual_groups(constraints, self.n_clusters)
        known = np.flatnonzero(group >= 0)
        if len(np.unique(group[known])) < 2:
            raise ValueError("hard links tell no two groups apart; give labels, or links between more rows")
        self.classifier_ = clone(self.classifier).fit(X[known], group[known])
        self.labels_ = self.predict(X)
        self.labels_[known] = group[known]
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Groups (n,) of new rows."""
        return np.asarray(self.classifier_.predict(X), dtype=np.int64)
