"""What links say about a clustering, and clusterings about links: a vote on eigenvectors, a vote on links."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.spectral.normalised_cut import assign_labels, row_normalised

__all__ = ["kept_links", "labels_by_vote", "leading_rows", "link_reliability", "trusted_weights"]

Labeller = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.int64]]

#: Share of the links in each subset of :func:`link_reliability`.
_SUBSET_SHARE = 0.6

#: A link that most clusterings without it break keeps this share of its weight.
_SUSPECT_SHARE = 0.05


def kept_links(
    labels: NDArray[np.int64], pairs: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which links hold.

    Parameters
    ----------
    labels : (N,) int64
    pairs : (L, 2) int64
    weights : (L,) float64
        Positive for must-links, negative for cannot-links.

    Returns
    -------
    (L,) bool

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.choose_eigenvectors import kept_links
    >>> kept_links(np.array([0, 0, 1]), np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 1.0, -np.inf]))
    array([ True, False,  True])
    """
    together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return np.asarray(together == (weights > 0))


def leading_rows(rows: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    """Rows of length one of fewer eigenvectors, from those of more.

    Parameters
    ----------
    rows : (N, m) float64
        Rows of eigenvectors, each divided by its length.
    n_columns : int
        At most m.

    Returns
    -------
    (N, n_columns) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.choose_eigenvectors import leading_rows
    >>> leading_rows(np.array([[0.6, 0.0, 0.8]]), 2)
    array([[1., 0.]])
    """
    return rows if n_columns == rows.shape[1] else row_normalised(rows[:, :n_columns])


def labels_by_vote(
    rows: NDArray[np.float64],
    n_clusters: int,
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    n_init: int,
    seed: int,
) -> tuple[NDArray[np.int64], int]:
    """Labels by k-means on n_clusters or more eigenvectors, of which those that keep most links win.

    Links often cut a small group off, which then takes one of the first n_clusters eigenvectors from a true
    cluster. One or two eigenvectors more bring that cluster back, and the links tell when.

    Parameters
    ----------
    rows : (N, m) float64
        Rows of m >= n_clusters eigenvectors, each divided by its length.
    n_clusters : int
    pairs : (L, 2) int64
    weights : (L,) float64
        A link counts with its weight, a hard one as 1.
    n_init : int
        Starts of k-means.
    seed : int

    Returns
    -------
    labels : (N,) int64
    n_columns : int
        Eigenvectors used; the fewest among equals.

    Examples
    --------
    Two eigenvectors see a group of one and cannot tell the others apart; the third can.

    >>> import numpy as np
    >>> from linkwise.spectral.choose_eigenvectors import labels_by_vote
    >>> rows = np.array([[1, 0, 1], [1, 0.1, 1], [1, 0, -1], [1, 0.1, -1], [1, 1.0, -1]])
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> link = np.array([[0, 2]]), np.array([-1.0])
    >>> labels, n_columns = labels_by_vote(rows, 2, *link, n_init=10, seed=0)
    >>> n_columns, bool(labels[0] == labels[1] != labels[2] == labels[3])
    (3, True)
    """
    strength = np.where(np.isinf(weights), 1.0, np.abs(weights))
    best, labels, chosen = -1.0, np.empty(0, dtype=np.int64), n_clusters
    for n_columns in range(n_clusters, rows.shape[1] + 1):
        found = assign_labels(
            leading_rows(rows, n_columns), n_clusters, "kmeans", n_init=n_init,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        kept = float(strength[kept_links(found, pairs, weights)].sum())
        if kept > best:
            best, labels, chosen = kept, found, n_columns
        if kept >= strength.sum():
            break
    return labels, chosen


def link_reliability(
    label: Labeller,
    pairs: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_subsets: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """How often a link holds in clusterings that did not see it.

    Each clustering uses a random 60 % of the links; the others are checked on it.

    Parameters
    ----------
    label : callable (pairs, weights) -> (N,) labels
    pairs : (L, 2) int64
    weights : (L,) float64
    n_subsets : int
    rng : numpy.random.Generator

    Returns
    -------
    (L,) float64
        NaN for links that were in every subset.

    Examples
    --------
    A clustering that no link can move keeps the first link and breaks the second.

    >>> import numpy as np
    >>> from linkwise.spectral.choose_eigenvectors import link_reliability
    >>> pairs, weights = np.array([[0, 1], [0, 2]]), np.array([1.0, 1.0])
    >>> link_reliability(lambda *_: np.array([0, 0, 1]), pairs, weights, 9, np.random.default_rng(0))
    array([1., 0.])
    """
    kept, asked = np.zeros(len(weights)), np.zeros(len(weights))
    for _ in range(n_subsets):
        seen = rng.random(len(weights)) < _SUBSET_SHARE
        labels = label(pairs[seen], weights[seen])
        kept[~seen] += kept_links(labels, pairs[~seen], weights[~seen])
        asked += ~seen
    return np.asarray(np.divide(kept, asked, out=np.full(len(weights), np.nan), where=asked > 0))


def trusted_weights(weights: NDArray[np.float64], reliability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights in which links that seldom held count little; a hard link then counts as one of weight 1 would.

    Parameters
    ----------
    weights : (L,) float64
    reliability : (L,) float64
        Of :func:`link_reliability`; NaN leaves a link alone.

    Returns
    -------
    (L,) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.spectral.choose_eigenvectors import trusted_weights
    >>> trusted_weights(np.array([2.0, -np.inf, -1.0]), np.array([0.8, 0.2, np.nan]))
    array([ 2.  , -0.05, -1.  ])
    """
    finite = np.where(np.isinf(weights), np.sign(weights), weights)
    return np.where(reliability < 0.5, _SUSPECT_SHARE * finite, weights)
