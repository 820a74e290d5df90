"""Several clusterings made one: rows that most of them put together share a cluster.

The weighted co-membership of rows i and j is S_ij = sum_m w_m [labels_m(i) = labels_m(j)] = (H H^T)_ij, where
H holds sqrt(w_m) in the column of each cluster of clustering m. The normalised cut of S is found from H:
the left singular vectors of D^(-1/2) H come from a matrix of the size of all clusters together, so that no
table of rows by rows is made (Fern & Brodley 2004 cut the same graph).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans

from linkwise.constraints import Constraints
from linkwise.kmeans.hard import hard_part
from linkwise.spectral.rounding import labels_keeping

__all__ = ["Consensus", "consensus_labels", "consensus_rows", "membership_table"]

_STARTS = 10
#: Singular values below this share of the largest are rounding.
_RANK = 1e-7


def membership_table(memberships: Sequence[NDArray[np.integer]], weights: NDArray[np.float64]) -> Any:
    """H (n, clusters of all) as a sparse matrix: sqrt(w_m) in the column of the cluster of each row."""
    columns, start = [], 0
    for labels in memberships:
        columns.append(labels + start)
        start += int(labels.max()) + 1
    n, m = len(memberships[0]), len(memberships)
    values = np.tile(np.sqrt(weights), n)
    table = sparse.csr_array(
        (values, np.stack(columns, axis=1).ravel(), np.arange(0, n * m + 1, m)), (n, start)
    )
    return table[:, np.flatnonzero(table.sum(axis=0))]


def consensus_rows(table: Any, k: int) -> NDArray[np.float64]:
    """Rows (n, k) of length one: the first k eigenvectors of the normalised co-membership H H^T."""
    degree = table @ np.asarray(table.sum(axis=0)).ravel()
    scaled = sparse.diags_array(1.0 / np.sqrt(degree)) @ table
    values, vectors = np.linalg.eigh((scaled.T @ scaled).toarray())
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    real = values > _RANK * values[0]
    rows = scaled @ (vectors[:, real] / np.sqrt(values[real]))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def consensus_labels(
    memberships: Sequence[NDArray[np.integer]],
    weights: NDArray[np.float64],
    k: int,
    links: Constraints | None,
    seed: int,
) -> NDArray[np.int64]:
    """Labels (n,) of the weighted clusterings together, which keep every hard link."""
    rows = consensus_rows(membership_table(memberships, weights), k)
    hard = hard_part(links, k)
    if hard is not None:
        return labels_keeping(rows, hard, n_init=_STARTS, rng=np.random.default_rng(seed))
    distinct = len(np.unique(rows.round(9), axis=0))
    return KMeans(min(k, distinct), n_init=_STARTS, random_state=seed).fit_predict(rows).astype(np.int64)


class Plain(NamedTuple):
    """The clustering (n,) without links, and its share of the votes."""

    labels: NDArray[np.int64]
    share: float


def with_plain(
    memberships: Sequence[NDArray[np.int64]], weights: NDArray[np.float64], plain: Plain | None
) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
    """Clusterings and their votes, with the one without links among them."""
    if plain is None:
        return list(memberships), weights
    return [*memberships, plain.labels], np.append((1.0 - plain.share) * weights, plain.share)


class Consensus:
    """Fitted clusterings that vote, and the clusters they agree on.

    ``others`` has for each clustering the labels (n_samples,) of its fits to the same rows with part of the
    links: all fits of a clustering share its vote about ``labels_``. ``plain`` is the clustering (n_samples,)
    without links and its share of the votes about ``labels_``. Votes for new rows are those of the given
    estimators.

    Attributes
    ----------
    names : tuple of str
    estimators : tuple
        Fitted clusterings.
    weights : (m,) float64
        Their votes, which sum to one.
    labels_ : (n_samples,) int64
        Labels of the training rows, which keep every hard link.
    n_clusters : int
    """

    def __init__(
        self,
        names: Sequence[str],
        estimators: Sequence[Any],
        weights: NDArray[np.float64],
        n_clusters: int,
        links: Constraints | None,
        seed: int,
        others: Sequence[Sequence[NDArray[np.int64]]] | None = None,
        plain: Plain | None = None,
    ) -> None:
        self.names, self.estimators, self.weights = tuple(names), tuple(estimators), weights
        self.n_clusters = n_clusters
        memberships = [np.asarray(model.labels_, dtype=np.int64) for model in estimators]
        more = others or [()] * len(memberships)
        fits = [[labels, *given] for labels, given in zip(memberships, more, strict=True)]
        sizes = [len(own) for own in fits]
        votes = [labels for own in fits for labels in own]
        self.labels_ = consensus_labels(
            *with_plain(votes, np.repeat(weights / sizes, sizes), plain), n_clusters, links, seed
        )
        self.shares = tuple(_shares(labels, self.labels_, n_clusters) for labels in memberships)

    @property
    def responsibilities_(self) -> NDArray[np.float64]:
        """Votes (n, K) for the training rows; the members were fitted with their links."""
        return self._votes([np.asarray(model.labels_) for model in self.estimators])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Votes (n, K) for new rows: shares of the clusters in those of the members that a row falls into."""
        return self._votes([np.asarray(model.predict(X)) for model in self.estimators])

    def _votes(self, memberships: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
        """Votes (n, K) for rows in these clusters (n,) of the members."""
        return np.asarray(
            sum(
                weight * share[labels]
                for weight, share, labels in zip(self.weights, self.shares, memberships, strict=True)
            )
        )

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster (n,) with most votes."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)


def _shares(member: NDArray[np.int64], labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Share (K_m, K) of each cluster in the rows of a member's clusters; even for one without rows."""
    counts = np.zeros((max(int(member.max()) + 1, k), k))
    np.add.at(counts, (member, labels), 1.0)
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1.0), 1.0 / k))
