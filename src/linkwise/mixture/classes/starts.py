"""Where CPPC starts: the classes themselves, some of them split in two or merged (Preston et al. 2010, 2.4).

Splitting looks at variances and merging at Euclidean distances, so both depend on the scale of the features:
standardise them, or take principal components, before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

__all__ = ["class_start", "half_start"]

#: Rows in each half of a split: a Gaussian of a single row has no spread.
_SMALLEST_HALF = 2
_SPLIT_ATTEMPTS = 5


def class_start(
    X: NDArray[np.floating],
    codes: NDArray[np.integer],
    n_components: int,
    random_state: np.random.RandomState,
) -> NDArray[np.int64]:
    """Assign every labelled row to one of K clusters.

    With as many clusters as classes, a cluster is a class. For more, the cluster with the largest variance
    (averaged over the features) is split by 2-means again and again; for fewer, the two clusters with the
    nearest means are merged. Only the splits are random.

    Parameters
    ----------
    X : (n, d)
    codes : (n,) int
        Class 0, ..., L - 1 of each row, -1 where unlabelled.
    n_components : int
        K.
    random_state : RandomState
        For the seeds of 2-means.

    Returns
    -------
    (n,) int64
        Cluster of each row, -1 where unlabelled.

    Raises
    ------
    ValueError
        If no cluster is left that can be split.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.classes.starts import class_start
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [20.0], [20.1], [7.0]])
    >>> codes = np.array([0, 0, 0, 0, 1, 1, -1])
    >>> random_state = np.random.RandomState(0)
    >>> class_start(X, codes, 2, random_state)
    array([ 0,  0,  0,  0,  1,  1, -1])
    >>> labels = class_start(X, codes, 3, random_state)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    >>> class_start(X, codes, 1, random_state)
    array([ 0,  0,  0,  0,  0,  0, -1])
    """
    n_classes = int(codes.max()) + 1
    members = [np.flatnonzero(codes == label) for label in range(n_classes)]
    if n_components > n_classes:
        members = _split(X, members, n_components, random_state)
    elif n_components < n_classes:
        members = _merge(X, members, n_components)
    labels = np.full(len(X), -1, dtype=np.int64)
    for cluster, rows in enumerate(members):
        labels[rows] = cluster
    return labels


def half_start(
    X: NDArray[np.floating], labels: NDArray[np.int64], random_state: np.random.RandomState
) -> NDArray[np.int64]:
    """Another start near a given one: clusters of a random half of their rows.

    Classes, unlike random centres, are a start worth staying close to; their halves are different enough for
    EM to find other optima, and cluster k still stands for class k.

    Parameters
    ----------
    X : (n, d)
    labels : (n,) int64
        A start, -1 for rows that do not take part in it.
    random_state : RandomState

    Returns
    -------
    (n,) int64
        The same labels, -1 for the rows left out. Clusters keep d + 1 rows or more, if they have them: fewer
        would make covariances singular.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.classes.starts import half_start
    >>> labels = np.repeat([0, 1, -1], [10, 2, 3])
    >>> half = half_start(np.zeros((15, 1)), labels, np.random.RandomState(0))
    >>> np.bincount(half[half >= 0])
    array([5, 2])
    """
    half = np.full_like(labels, -1)
    for cluster in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == cluster)
        size = min(len(rows), max((len(rows) + 1) // 2, X.shape[1] + 1))
        half[random_state.choice(rows, size=size, replace=False)] = cluster
    return half


def _split(
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
    """Variance averaged over the features, -1 where a split is impossible."""
    if len(rows) < 2 * _SMALLEST_HALF or not np.ptp(rows, axis=0).any():
        return -1.0
    return float(rows.var(axis=0, dtype=np.float64).mean())


def _halves(
    X: NDArray[np.floating], rows: NDArray[np.int64], random_state: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Two clusters of k-means, each with two rows or more; None if several seeds do not find them."""
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
