"""Classifiers trained on rows whose group hard links tell: labelled rows, or groups all linked apart."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier

from linkwise._validation import check_choice, check_whole_number
from linkwise.constraints import Constraints

__all__ = ["METHODS", "GroupClassifier", "mutual_groups"]

#: Classifiers that learn groups.
METHODS = ("discriminant", "forest")
_TREES = 100

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

    scikit-learn trains it. What it learned is kept as arrays, so that it can be stored without pickle.

    Parameters
    ----------
    n_clusters : int
    method : {"discriminant", "forest"}
        A linear discriminant with a shrunk covariance, or extremely randomised trees.
    random_state : int or None

    Attributes
    ----------
    labels_ : (n_samples,) int64
    n_features_in_ : int
    coefficients_, intercepts_ : (G, D) and (G,) float64
        Of a discriminant: a row is of the group with the largest coefficients @ row + intercept.
    roots_ : (n_trees,) int64
        Of a forest, as all that follows: the first node of each tree.
    children_ : (n_nodes, 2) int64
        The next node of a row by whether its feature is above the threshold; -1 in a leaf.
    features_, thresholds_ : (n_nodes,) int64 and float64
    shares_ : (n_nodes, G) float64
        Share of each group in the rows of a node. The mean over the leaves of a row decides.
    """

    def __init__(
        self, n_clusters: int = 2, method: str = "discriminant", *, random_state: int | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Train on rows of known groups and label all rows (n, d)."""
        self._check_parameters()
        group = mutual_groups(constraints, self.n_clusters)
        known = np.flatnonzero(group >= 0)
        if len(np.unique(group[known])) < 2:
            raise ValueError("hard links tell no two groups apart; give labels, or links between more rows")
        self.n_features_in_ = X.shape[1]
        if self.method == "discriminant":
            with warnings.catch_warnings():
                # All groups share a covariance, to which a group of one row adds nothing.
                warnings.filterwarnings("ignore", "Only one sample available")
                self._store_discriminant(_discriminant().fit(X[known], group[known]))
        else:
            self._store_forest(_forest(self.random_state).fit(X[known], group[known]))
        self.labels_ = self.predict(X)
        self.labels_[known] = group[known]
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Groups (n,) of new rows."""
        if self.method == "discriminant":
            scores = X @ self.coefficients_.T + self.intercepts_
        else:
            scores = self._mean_shares(np.asarray(X))
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def _check_parameters(self) -> None:
        """Refuse parameters that no data would make right."""
        check_whole_number(self.n_clusters, "n_clusters")
        check_choice(self.method, "method", METHODS)

    def _store_discriminant(self, trained: LinearDiscriminantAnalysis) -> None:
        """Keep the scores of the groups; of two, scikit-learn has only the difference."""
        one = len(trained.coef_) == 1
        self.coefficients_ = np.vstack([0.0 * trained.coef_, trained.coef_]) if one else trained.coef_
        self.intercepts_ = np.append(0.0, trained.intercept_) if one else trained.intercept_

    def _store_forest(self, trained: ExtraTreesClassifier) -> None:
        """Keep the trees, one after the other."""
        trees = [one.tree_ for one in trained.estimators_]
        sizes = [tree.node_count for tree in trees]
        self.roots_ = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        start = np.repeat(self.roots_, sizes)[:, None]
        children = np.concatenate(
            [np.stack([tree.children_left, tree.children_right], axis=1) for tree in trees]
        )
        inner = children[:, :1] >= 0
        self.children_ = np.where(inner, children + start, -1).astype(np.int64)
        features = np.concatenate([tree.feature for tree in trees])
        self.features_ = np.where(inner[:, 0], features, 0).astype(np.int64)
        self.thresholds_ = np.where(inner[:, 0], np.concatenate([tree.threshold for tree in trees]), 0.0)
        counts = np.concatenate([tree.value[:, 0] for tree in trees])
        self.shares_ = counts / counts.sum(axis=1, keepdims=True)

    def _mean_shares(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Mean shares (n, G) of the groups in the leaves that rows (n, d) fall into."""
        # Thresholds of scikit-learn are for numbers of single precision.
        X = X.astype(np.float32).astype(np.float64)
        total = np.zeros((len(X), self.shares_.shape[1]))
        for root in self.roots_:
            node = np.full(len(X), root)
            moving = np.flatnonzero(self.children_[node, 0] >= 0)
            while len(moving):
                here = node[moving]
                above = X[moving, self.features_[here]] > self.thresholds_[here]
                node[moving] = self.children_[here, above.astype(np.int64)]
                moving = moving[self.children_[node[moving], 0] >= 0]
            total += self.shares_[node]
        return total / len(self.roots_)


def _discriminant() -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _forest(seed: int | None) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(_TREES, random_state=seed)
