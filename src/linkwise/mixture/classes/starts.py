"""The starts of CPPC: the classes themselves, some of them split in two or merged (Preston et al. 2010, 2.4).

Splitting looks at variances and merging at Euclidean distances, so both depend on the scale of the features:
standardise them, or take principal components, before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

__all__ = ["class_start", "half_start", "split_widest"]

#: Rows in each half of a split: a Gaussian of a single row has no spread.
_SMALLEST_HALF = 2
_SPLIT_ATTEMPTS = 5


def class_start(
    X: NDArray[np.floating],
    codes: NDArray[np.integer],
    n_components: int,
    random_state: np.random.RandomState,
) -> NDArray[np.int64]:
    """Assign every labelled row to one of K clusters; -1 where unlabelled.

    With as many clusters as classes, a cluster is a class. For more, the cluster with the largest variance
    (averaged over the features) is split by 2-means again and again; for fewer, the two clusters with the
    nearest means are merged. Only the splits are random.
    """
    n_classes = int(codes.max()) + 1
    members = [np.flatnonzero(codes == label) for label in range(n_classes)]
    if n_components > n_classes:
        members = split_widest(X, members, n_components, random_state)
    elif n_components < n_classes:
        members = _merge(X, members, n_components)
    labels = np.full(len(X), -1, dtype=np.int64)
    for cluster, rows in enumerate(members):
        labels[rows] = cluster
    return labels


def half_start(
    X: NDArray[np.floating], labels: NDArray[np.int64], random_state: np.random.RandomState
) -> NDArray[np.int64]:
    """Make another start near a given one: clusters of a random half of their rows, the others -1.

    Halves of classes are different enough for EM to find other optima, and cluster k still stands for class
    k. Clusters keep d + 1 rows or more, if they have them: fewer would make covariances singular.
    """
    half = np.full_like(labels, -1)
    for cluster in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == cluster)
        size = min(len(rows), max((len(rows) + 1) // 2, X.shape[1] + 1))
        half[random_state.choice(rows, size=size, replace=False)] = cluster
    return half


def split_widest(
    X: NDArray[np.floating],
    members: list[NDArray[np.int64]],
    n_components: int,
    random_state: np.random.RandomState,
) -> list[NDArray[np.int64]]:
    """Split the widest cluster until there are enough; a half keeps the number of the whole."""
    widths = [_width(X[rows]) for rows in members]
    while len(members) < n_components:
        widest = int(np.argmax(widths))
        if widths[widest] < 0.0:
            raise ValueError(
                f"n_components={n_components} is too many: no more than {len(members)} clusters can be made, "
                "because all are smaller than four rows or hold equal rows. Use fewer components."
            )
        halves = _halves(X, members[widest], random_state)
        if halves is None:
            widths[widest] = -1.0
            continue
        members[widest] = halves[0]
        members.append(halves[1])
        widths[widest] = _width(X[halves[0]])
        widths.append(_width(X[halves[1]]))
    return members


def _width(rows: NDArray[np.floating]) -> float:
    """Compute the variance averaged over the features, -1 where a split is impossible."""
    if len(rows) < 2 * _SMALLEST_HALF or not np.ptp(rows, axis=0).any():
        return -1.0
    return float(rows.var(axis=0, dtype=np.float64).mean())


def _halves(
    X: NDArray[np.floating], rows: NDArray[np.int64], random_state: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Find two clusters of k-means with two rows or more each; None if several seeds do not find them."""
    for _ in range(_SPLIT_ATTEMPTS):
        second = KMeans(2, n_init=1, random_state=random_state).fit(X[rows]).labels_ == 1
        if min(second.sum(), (~second).sum()) >= _SMALLEST_HALF:
            return rows[~second], rows[second]
    return None


def _merge(
    X: NDArray[np.floating], members: list[NDArray[np.int64]], n_components: int
) -> list[NDArray[np.int64]]:
    """Merge the two clusters with the nearest means until there are few enough."""
    means = np.array([X[rows].mean(axis=0, dtype=np.float64) for rows in members])
    counts = np.array([len(rows) for rows in members], dtype=np.float64)
    while len(members) > n_components:
        gaps = ((means[:, np.newaxis] - means) ** 2).sum(axis=2)
        gaps[np.tril_indices(len(gaps))] = np.inf
        first, second = (int(place) for place in np.unravel_index(gaps.argmin(), gaps.shape))
        share = counts[[first, second]] / counts[[first, second]].sum()
        means[first] = share @ means[[first, second]]
        counts[first] += counts[second]
        members[first] = np.concatenate([members[first], members.pop(second)])
        means, counts = np.delete(means, second, axis=0), np.delete(counts, second)
    return members
