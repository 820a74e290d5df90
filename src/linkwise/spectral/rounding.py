"""Labels from the rows of an embedding; links decide how many eigenvectors are used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans

from linkwise._arrays import Bools, Floats, Ints
from linkwise.kmeans.distortions.euclidean import SquaredEuclidean
from linkwise.kmeans.hard import HardLinks
from linkwise.kmeans.hard.descent import run_hard_descent, time_is_over
from linkwise.kmeans.starts import start_centres
from linkwise.spectral.normalised_cut import row_normalised

#: Ways to turn the rows of an embedding into labels.
ASSIGNMENTS = ("kmeans", "discretize", "cluster_qr")

Labeller = Callable[[Ints, Floats], Ints]

#: Distances up to which k-means runs all its starts side by side. With 400 rows, ten starts and 2, 3 and 10
#: clusters that takes .4, .4 and .5 of the time of scikit-learn, which is as fast with 1000 rows and 10.
_AT_ONCE = 10**5
#: Starts of ``discretise``, and the rotations of each.
_STARTS, _ROTATIONS = 5, 30

#: Most moves of the centres, and seconds of search for labels of linked rows, of :func:`labels_keeping`.
_MOST_MOVES, _TIME_LIMIT = 300, 30.0
#: Starts of :func:`labels_keeping` that end where the best one did before it stops: so many, or this share.
_FEWEST_ALIKE, _SHARE_ALIKE = 3, 0.3

#: Share of the links in each subset of :func:`link_reliability`.
_SUBSET_SHARE = 0.6

#: A link that most clusterings without it break keeps this share of its weight.
_SUSPECT_SHARE = 0.05


def assign_labels(rows: Floats, k: int, method: str, *, n_init: int, rng: np.random.Generator) -> Ints:
    """Labels (N,) from row-normalised eigenvectors (N, m)."""
    if k == 1:
        return np.zeros(len(rows), dtype=np.int64)
    if method == "kmeans":
        seed = int(rng.integers(2**31))
        if len(rows) * n_init * k <= _AT_ONCE:
            return kmeans_labels(rows, k, n_init=n_init, rng=np.random.default_rng(seed))
        return KMeans(k, n_init=n_init, random_state=seed).fit_predict(rows).astype(np.int64)
    if method == "discretize":
        return discretise(rows, rng=rng)
    return cluster_qr(rows)


def kmeans_labels(rows: Floats, k: int, *, n_init: int, rng: np.random.Generator) -> Ints:
    """Labels (N,) of the best of n_init k-means from k-means++ starts, all of which run side by side."""
    norms = np.einsum("nm,nm->n", rows, rows)
    centres = _spread_centres(rows, norms, k, n_init, rng)
    labels = np.empty((n_init, len(rows)), dtype=np.int64)
    inertia = np.full(n_init, np.inf)
    moving = np.arange(n_init)
    for _ in range(_MOST_MOVES):
        table = np.einsum("skm,skm->sk", centres, centres)[:, :, np.newaxis] - 2.0 * (centres @ rows.T)
        found, least = table.argmin(axis=1), table.min(axis=1) + norms
        repeated = (found == labels[moving]).all(axis=1) & np.isfinite(inertia[moving])
        labels[moving], inertia[moving] = found, least.sum(axis=1)
        moving, found, least = moving[~repeated], found[~repeated], least[~repeated]
        if not len(moving):
            break
        members = (found[:, np.newaxis] == np.arange(k)[:, np.newaxis]).astype(np.float64)
        counts = members.sum(axis=2)
        centres = (members @ rows) / np.maximum(counts, 1.0)[:, :, np.newaxis]
        for start, cluster in np.argwhere(counts == 0.0):
            # The row farthest from its centre founds an empty cluster, another one the next.
            far = int(least[start].argmax())
            centres[start, cluster], least[start, far] = rows[far], 0.0
    return labels[inertia.argmin()]


def _spread_centres(rows: Floats, norms: Floats, k: int, n_starts: int, rng: np.random.Generator) -> Floats:
    """Centres (n_starts, k, m) by k-means++, each the best of a few rows drawn by their squared distance."""
    n, every = len(rows), np.arange(n_starts)
    centres = np.empty((n_starts, k, rows.shape[1]))
    first = rng.integers(n, size=n_starts)
    centres[:, 0] = rows[first]
    nearest = np.full((n_starts, n), np.inf)
    nearest = _closer(rows, norms, first[:, np.newaxis], nearest)[:, 0]
    for place in range(1, k):
        total = np.cumsum(nearest, axis=1)
        aims = rng.random((n_starts, 2 + int(np.log(k)))) * total[:, -1:]
        drawn = np.minimum((total[:, np.newaxis] <= aims[:, :, np.newaxis]).sum(axis=2), n - 1)
        left = _closer(rows, norms, drawn, nearest)
        best = left.sum(axis=2).argmin(axis=1)
        centres[:, place], nearest = rows[drawn[every, best]], left[every, best]
    return centres


def _closer(rows: Floats, norms: Floats, drawn: Ints, nearest: Floats) -> Floats:
    """Squared distances (s, t, N) to the nearest centre if row drawn[s, t] were one more."""
    distances = norms[drawn][:, :, np.newaxis] + norms - 2.0 * rows[drawn] @ rows.T
    return np.minimum(np.maximum(distances, 0.0), nearest[:, np.newaxis])


def labels_keeping(
    rows: Floats,
    links: HardLinks,
    *,
    n_init: int,
    rng: np.random.Generator,
    start: Floats | None = None,
    other: Floats | None = None,
) -> Ints:
    """Labels (N,) by k-means on rows (N, m), from ``start`` or n_init starts, that break no hard link.

    No more starts are made after some, ``_FEWEST_ALIKE`` at least, ended with the least inertia so far. Where
    links are so dense that labels cannot be proven best, every start is dear (half a second, 400 rows in 780
    links): from then on the ``other`` one is made alone, or if that is None ``_FEWEST_ALIKE - 1``.
    """
    k = links.n_clusters
    distortion = SquaredEuclidean(None, k)
    table = distortion.rows(np.ascontiguousarray(rows))
    no_links = np.empty((0, 2), dtype=np.int64)
    tol = 1e-4 * float(rows.var(axis=0).mean())
    best, least, n_alike, search_seconds = np.empty(0, dtype=np.int64), np.inf, 0, 0.0
    enough = max(_FEWEST_ALIKE, _SHARE_ALIKE * n_init)
    hopeless = np.zeros(len(links.sizes), dtype=bool)
    n_left, dear = n_init if start is None else 1, False
    while n_left and not (len(best) and (n_alike >= enough or time_is_over(search_seconds, _TIME_LIMIT))):
        centres = start_centres(distortion, table, k, no_links, rng) if start is None else start
        run = run_hard_descent(
            distortion, table, links, centres, tol=tol, max_iter=_MOST_MOVES, time_limit=_TIME_LIMIT,
            search_seconds=search_seconds, hopeless=hopeless,
        )  # fmt: skip
        n_left -= 1
        if not dear and not all(answer.optimal for answer in run.assignments):
            dear, start = True, other
            n_left = min(n_left, _FEWEST_ALIKE - 1 if other is None else 1)
        search_seconds += sum(answer.search_seconds for answer in run.assignments)
        inertia = run.history[-1]
        if np.isclose(inertia, least, rtol=1e-9, atol=0.0):
            n_alike += 1
        elif inertia < least:
            best, least, n_alike = run.labels, inertia, 1
    return best


def discretise(rows: Floats, *, rng: np.random.Generator) -> Ints:
    """Rotate the embedding (N, k) so that its rows come close to unit vectors (Yu & Shi 2003)."""
    best_labels, best_fit = np.zeros(len(rows), dtype=np.int64), -np.inf
    for _ in range(_STARTS):
        rotation = _spread_rows(rows, int(rng.integers(len(rows))))
        labels, fit = best_labels, -np.inf
        for _iteration in range(_ROTATIONS):
            labels = (rows @ rotation).argmax(axis=1)
            sums = np.zeros((rows.shape[1], rows.shape[1]))
            np.add.at(sums, labels, rows)
            left, singular, right = svd(sums)
            rotation = (left @ right).T
            improved = singular.sum() > fit * (1.0 + 1e-12) + 1e-12
            fit = float(singular.sum())
            if not improved:
                break
        if fit > best_fit:
            best_labels, best_fit = labels, fit
    return best_labels.astype(np.int64)


def _spread_rows(rows: Floats, first: int) -> Floats:
    """Choose k rows, as columns: one given, each further one the least parallel to those before."""
    chosen = [rows[first]]
    overlap = np.zeros(len(rows))
    for _ in range(rows.shape[1] - 1):
        overlap += np.abs(rows @ chosen[-1])
        chosen.append(rows[int(overlap.argmin())])
    return np.column_stack(chosen)


def cluster_qr(rows: Floats) -> Ints:
    """Labels from a pivoted QR decomposition: no start, no iteration (Damle, Minden & Ying 2019).

    The k rows that QR picks first, one in each cluster, give the rotation that turns clusters onto the axes.
    """
    pivots = qr(rows.T, mode="r", pivoting=True)[1][: rows.shape[1]]
    left, _, right = svd(rows[pivots].T, full_matrices=False)
    return np.abs(rows @ (left @ right)).argmax(axis=1).astype(np.int64)


def cluster_centers(rows: Floats, labels: Ints, k: int) -> Floats:
    """Mean row of each cluster (k, m); a cluster without rows gets NaN, so that nothing is nearest to it."""
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    counts[counts == 0] = np.nan
    return np.asarray(sums / counts[:, np.newaxis])


def kept_links(labels: Ints, pairs: Ints, weights: Floats) -> Bools:
    """Which links hold, (L,)."""
    together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return np.asarray(together == (weights > 0))


def leading_rows(rows: Floats, n_columns: int) -> Floats:
    """Rows of length one of the first eigenvectors, from those of more."""
    return rows if n_columns == rows.shape[1] else row_normalised(rows[:, :n_columns])


def labels_by_vote(
    rows: Floats, n_clusters: int, pairs: Ints, weights: Floats, *, n_init: int, seed: int
) -> tuple[Ints, int]:
    """Labels by k-means on as many eigenvectors as keep most links, and the number of eigenvectors.

    Links often cut a small group off, which takes one of the first n_clusters eigenvectors from a true
    cluster; one or two more bring it back. Links count by weight, hard ones as 1; of equals the fewest win.
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
    label: Labeller, pairs: Ints, weights: Floats, n_subsets: int, rng: np.random.Generator
) -> Floats:
    """How often a link holds in clusterings by 60 % of the links that lack it, (L,); NaN if none does."""
    kept, asked = np.zeros(len(weights)), np.zeros(len(weights))
    for _ in range(n_subsets):
        seen = rng.random(len(weights)) < _SUBSET_SHARE
        labels = label(pairs[seen], weights[seen])
        kept[~seen] += kept_links(labels, pairs[~seen], weights[~seen])
        asked += ~seen
    return np.asarray(np.divide(kept, asked, out=np.full(len(weights), np.nan), where=asked > 0))


def trusted_weights(weights: Floats, reliability: Floats) -> Floats:
    """Weights in which links that held in less than half of their clusterings count a twentieth."""
    finite = np.where(np.isinf(weights), np.sign(weights), weights)
    return np.where(reliability < 0.5, _SUSPECT_SHARE * finite, weights)
