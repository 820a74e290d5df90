"""Where EM starts: labels from links, from k-means, or at random, then parameters, or those of the user.

If clusters have several Gaussians each, which of them belong together matters most: they may lie anywhere,
and the likelihood does not tell how to group them; only links do. EM rarely regroups them, so a start that
groups neighbours, or those that links join, decides the fit.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise.constraints import Constraints
from linkwise.constraints.groups import choose_far_apart, neighbourhoods
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, precision_factors_of_precisions
from linkwise.mixture.gaussian.passes import statistics_pass
from linkwise.mixture.gaussian.shrinkage import CovariancePrior
from linkwise.mixture.links.em_step import new_parameters

INIT_METHODS = ("constraints", "kmeans", "random")

#: What every fourth start from links is made of, and whether the links then lead (``LinkedStep.from_links``).
#: Mean ARI of rows without links, 19 sets, 30 % of the rows linked, all links right (15 % wrong), one draw:
#: four starts that no links lead .49 (.45), one k-means that they lead .60 (.51), the first two of these .61
#: (.53), all four .62 (.53); with 4 (D + 2) pseudo-rows.
_CYCLE = (("kmeans", True), ("discriminating", True), ("kmeans", False), ("centres", True))

#: Soft must-links for each cannot-link beyond which links do not lead: those of neighbours in an image or a
#: chain would join everything.
_MOST_MUST_LINKS = 20
_ROWS_AT_ONCE = 8192


def links_lead(method: str, number: int, constraints: Constraints | None) -> bool:
    """Whether start ``number`` goes on with EM in which the links count first."""
    if method != "constraints" or constraints is None:
        return False
    soft = int(((constraints.weights > 0) & np.isfinite(constraints.weights)).sum())
    return _CYCLE[number % len(_CYCLE)][1] and soft <= _MOST_MUST_LINKS * len(constraints.cannot_link)


def restart_labels(
    X: AnyFloats,
    n_components: int,
    method: str,
    constraints: Constraints | None,
    random_state: np.random.RandomState,
    number: int,
) -> Ints:
    """The hard assignment (n,) that start ``number`` = 0, 1, ... begins with.

    With links, ``constraints`` alternates between k-means, ``discriminating_labels`` and
    ``neighbourhood_centres``, so that restarts really differ.
    """
    if method == "constraints" and constraints is not None:
        kind = _CYCLE[number % len(_CYCLE)][0]
        if kind == "discriminating":
            return discriminating_labels(X, n_components, constraints, random_state)
        if kind == "kmeans":
            method = kind
    return start_labels(X, n_components, method, constraints, random_state)


def start_labels(
    X: AnyFloats,
    n_components: int,
    method: str,
    constraints: Constraints | None,
    random_state: np.random.RandomState,
) -> Ints:
    """A hard assignment (n,) of every row to one of K components to start EM from.

    ``constraints``: the nearest of the centres that the must-links give, see ``neighbourhood_centres``; the
    same as ``kmeans`` without must-links. ``random``: each component starts at one random row. K-means from
    these centres would mend those of unlucky pairs (Iris, 14 pairs, one start: accuracy .978 for .904), but
    forgets the links where they contradict the shape of the data (two tall columns: .59 for .77).
    """
    if method == "random":
        rows = random_state.choice(len(X), size=n_components, replace=False)
        return euclidean_distances(X, X[rows], squared=True).argmin(axis=1)
    if method == "kmeans" or constraints is None or not len(constraints.must_link):
        return KMeans(n_components, n_init=1, random_state=random_state).fit(X).labels_.astype(np.int64)
    centres = neighbourhood_centres(X, constraints, n_components, random_state)
    centres = add_distant_centres(X, centres, n_components - len(centres), random_state)
    return euclidean_distances(X, centres, squared=True).argmin(axis=1)


#: More features than this make the eigenvectors of ``discriminating_labels`` too dear.
_MOST_FEATURES = 500
#: Of the variance of a column: keeps the scatter invertible where columns repeat each other.
_RIDGE = 1e-6


def discriminating_labels(
    X: AnyFloats, n_components: int, constraints: Constraints, random_state: np.random.RandomState
) -> Ints:
    """K-means (n,) in the directions in which cannot-linked rows differ more than must-linked ones.

    With W and B the scatters of the differences of must-linked and of cannot-linked rows, each with D + 2
    differences that are spread like the data, the directions solve B v = lambda W v, v' W v = 1, and are
    scaled by sqrt(lambda - 1); those with lambda <= 1 are left out. Soft links count 2 g - 1 for a certainty
    g. Units of the features do not matter.
    """
    n_features = X.shape[1]
    spread = X.std(axis=0, dtype=np.float64)
    if not spread.any() or n_features > _MOST_FEATURES:
        centred = X
    else:
        centred = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        total = centred.T @ centred / len(X) + _RIDGE * np.eye(n_features)
        ends = constraints.pairs
        differences = centred[ends[:, 0]] - centred[ends[:, 1]]
        weight = np.tanh(np.abs(constraints.weights))
        must, cannot = (
            ((differences * (weight * kind)[:, np.newaxis]).T @ differences + 2.0 * (n_features + 2) * total)
            / (n_features + 2 + weight[kind].sum())
            for kind in (constraints.weights > 0, constraints.weights < 0)
        )
        ratios, directions = scipy.linalg.eigh(cannot, must)
        kept = ratios > 1.0
        if kept.any():
            centred = centred @ (directions[:, kept] * np.sqrt(ratios[kept] - 1.0))
    return KMeans(n_components, n_init=1, random_state=random_state).fit(centred).labels_.astype(np.int64)


def neighbourhood_centres(
    X: AnyFloats, constraints: Constraints, n_components: int, random_state: np.random.RandomState
) -> Floats:
    """Means (c, d) of up to K neighbourhoods (groups joined by must-links), large and far apart.

    The first neighbourhood is drawn with probability proportional to its size; each next one maximises the
    distance to the nearest chosen one times the square root of the two sizes (weighted farthest-first).
    """
    members, groups, n_groups = neighbourhoods(constraints.must_link)
    sums = np.zeros((n_groups, X.shape[1]))
    np.add.at(sums, groups, X[members])
    sizes = np.bincount(groups, minlength=n_groups).astype(float)
    means = sums / sizes[:, np.newaxis]
    chosen = choose_far_apart(
        lambda group: np.linalg.norm(means - means[group], axis=1),
        sizes,
        min(n_components, n_groups),
        int(random_state.choice(n_groups, p=sizes / sizes.sum())),
        distinct=True,
    )
    return means[chosen]


def add_distant_centres(
    X: AnyFloats, centres: Floats, n_missing: int, random_state: np.random.RandomState
) -> Floats:
    """More centres by k-means++: rows drawn with probability proportional to their squared distance."""
    nearest = euclidean_distances(X, centres, squared=True).min(axis=1)
    for _ in range(n_missing):
        total = nearest.sum()
        probability = nearest / total if total > 0 else None
        row = int(random_state.choice(len(X), p=probability))
        centres = np.vstack([centres, X[row]])
        nearest = np.minimum(nearest, euclidean_distances(X, X[row : row + 1], squared=True)[:, 0])
    return centres


#: What a hard link counts when pieces are grouped, in nats: a piece may hold a few rows of another cluster.
_HARD_LINK = 5.0
#: Rows looked at for each part when counting those that differ.
_SOME = 16


def component_start_labels(
    X: AnyFloats,
    n_clusters: int,
    per_cluster: int,
    method: str,
    constraints: Constraints | None,
    random_state: np.random.RandomState,
) -> Ints:
    """A hard assignment (n,) of every row to one of ``n_clusters * per_cluster`` components for a start.

    Components ``k * per_cluster, ..., (k + 1) * per_cluster - 1`` are those of cluster k. ``constraints``:
    k-means finds as many pieces as there are components, links tell which of them make up a cluster, and
    every cluster is cut anew. The others, and ``constraints`` without links: clusters as for one component
    each (``start_labels``), cut by k-means.

    Accuracy with three components per cluster and 70 disjoint links, one start, 4 draws: Iris .978, wine
    .966, 500 digits .826, two moons 1.00, six lumps in three clusters of opposite ones .997; with clusters
    of one k-means, cut, .950, .975, .756, .914, .500; with components of one k-means in the order in which
    they come .635, .673, .449, .886, .696.
    """
    if method == "constraints" and constraints is not None and constraints.n_pairs:
        pieces = _k_means(X, n_clusters * per_cluster, random_state)
        clusters = group_pieces(X, pieces, n_clusters, constraints)[pieces]
    else:
        clusters = start_labels(X, n_clusters, method, constraints, random_state)
    labels = clusters * per_cluster
    for cluster in range(n_clusters):
        rows = np.flatnonzero(clusters == cluster)
        if rows.size:
            labels[rows] += _k_means(X[rows], per_cluster, random_state)
    return labels


def group_pieces(X: AnyFloats, pieces: Ints, n_clusters: int, constraints: Constraints) -> Ints:
    """Join pieces to clusters: those first that links join most, then the nearest, last those held apart.

    Of the groups with the largest sum of link weights between them (must-links count > 0, cannot-links < 0)
    the two are merged whose union adds least to the sum of squares (Ward), until K are left. Returns the
    cluster of each piece.
    """
    n_pieces = int(pieces.max()) + 1
    cluster = np.arange(n_pieces)
    sizes = np.bincount(pieces, minlength=n_pieces).astype(np.float64)
    means = np.column_stack([np.bincount(pieces, column, n_pieces) for column in X.T]) / sizes[:, np.newaxis]
    evidence = np.zeros((n_pieces, n_pieces))
    first, second = pieces[constraints.pairs].T
    np.add.at(evidence, (first, second), np.clip(2.0 * constraints.weights, -_HARD_LINK, _HARD_LINK))
    evidence += evidence.T
    for n_groups in range(n_pieces, n_clusters, -1):
        squared = ((means[:, np.newaxis] - means) ** 2).sum(axis=2)
        growth = squared * np.outer(sizes, sizes) / (sizes[:, np.newaxis] + sizes)
        upper = np.triu_indices(n_groups, 1)
        best = np.lexsort((growth[upper], -evidence[upper]))[0]
        kept, gone = int(upper[0][best]), int(upper[1][best])
        means[kept] = (sizes[[kept, gone]] @ means[[kept, gone]]) / sizes[[kept, gone]].sum()
        sizes[kept] += sizes[gone]
        evidence[kept] += evidence[gone]
        evidence[:, kept] += evidence[:, gone]
        means, sizes = np.delete(means, gone, axis=0), np.delete(sizes, gone)
        evidence = np.delete(np.delete(evidence, gone, axis=0), gone, axis=1)
        cluster[cluster == gone] = kept
        cluster[cluster > gone] -= 1
    return cluster


def _k_means(X: AnyFloats, n_parts: int, random_state: np.random.RandomState) -> Ints:
    """Parts found by k-means from one start; fewer than asked for if fewer rows differ."""
    # Nearly always the first rows hold enough different ones; sorting all takes seconds for a million.
    if len(np.unique(X[: _SOME * n_parts], axis=0)) < n_parts:
        n_parts = min(n_parts, len(np.unique(X, axis=0)))
    return KMeans(n_parts, n_init=1, random_state=random_state).fit(X).labels_.astype(np.int64)


def assigned_start(
    points: Points,
    labels: Ints,
    n_gaussians: int,
    covariance_type: str,
    reg_covar: float,
    coupling: Floats,
    prior: CovariancePrior | None,
) -> MixtureParameters:
    """Parameters of a hard assignment of the rows, labels (n,)."""
    # Moments about the means of the assignment, found first, keep their digits for clusters far apart.
    about = np.tile(points.offset, (n_gaussians, 1))
    rough = _assigned_statistics(points, labels, about, covariance_type)
    about += rough.first / np.maximum(rough.counts, 1.0)[:, np.newaxis]
    statistics = _assigned_statistics(points, labels, about, covariance_type)
    counts = statistics.counts + 10 * np.finfo(np.float64).eps
    log_weights = np.log(counts / counts.sum())
    return new_parameters(statistics, covariance_type, reg_covar, log_weights, coupling, prior)


def _assigned_statistics(points: Points, labels: Ints, about: Floats, covariance_type: str) -> Statistics:
    """Sum statistics of a hard assignment, a few rows at a time so that no (n, K) table is needed."""
    parts = []
    for start in range(0, points.n_samples, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, points.n_samples))
        one_hot = (labels[rows, np.newaxis] == np.arange(len(about))).astype(np.float64)
        parts.append(statistics_pass(points, about, one_hot, covariance_type, rows=rows))
    return reduce(add, parts)


class GivenParts(NamedTuple):
    """Parts of a start that the user gave: weights (G,), means (G, D), precisions by covariance type."""

    weights: ArrayLike | None
    means: ArrayLike | None
    precisions: ArrayLike | None


def given_start(
    given: GivenParts,
    start: MixtureParameters | None,
    covariance_type: str,
    shape: tuple[int, int],
    coupling: Floats,
    *,
    fixed: bool,
) -> MixtureParameters:
    """Replace parts of a start of ``shape`` (G, D) by what the user gave; ``fixed`` weights are equal."""
    n_gaussians = shape[0]
    log_weights = None if start is None else start.log_weights
    means = None if start is None else start.gaussians.means
    factors = None if start is None else start.gaussians.factors
    if given.weights is not None:
        weights = _checked(given.weights, (n_gaussians,), "weights_init")
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(
                f"weights_init must be >= 0 and sum to 1, its sum is {weights.sum():.6g}"
                "; pass weights / weights.sum()"
            )
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
    elif fixed:
        log_weights = np.full(n_gaussians, -np.log(n_gaussians))
    if given.means is not None:
        means = _checked(given.means, shape, "means_init")
    if given.precisions is not None:
        wanted = _shape_of_factors(covariance_type, *shape)
        precisions = _checked(given.precisions, wanted, "precisions_init")
        factors = precision_factors_of_precisions(precisions, covariance_type)
    assert log_weights is not None
    assert means is not None
    assert factors is not None
    gaussians = Gaussians(means, factors, covariance_type)
    return MixtureParameters(log_weights, gaussians, _covariances(gaussians), coupling)


def are_factors(factors: Floats, covariance_type: str, n_gaussians: int, n_features: int) -> bool:
    """Return whether an array may hold the factors of precisions of this type."""
    if factors.shape != _shape_of_factors(covariance_type, n_gaussians, n_features):
        return False
    if not (n_gaussians == n_features > 1 and factors.ndim == 2):
        return True
    # As many features as components: variances of "diag" have no zeros, the factor of "tied" does.
    return bool(np.tril(factors, -1).any()) == (covariance_type == "diag")


def _shape_of_factors(covariance_type: str, n_gaussians: int, n_features: int) -> tuple[int, ...]:
    """Return the shape of covariances, precisions and their factors."""
    return {
        "full": (n_gaussians, n_features, n_features),
        "tied": (n_features, n_features),
        "diag": (n_gaussians, n_features),
        "spherical": (n_gaussians,),
    }[covariance_type]


def _checked(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; pass that shape")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; correct them, or pass None")
    return array


def _covariances(gaussians: Gaussians) -> Floats:
    """Compute covariances from precision factors, in the shape of the covariance type."""
    _, factors, covariance_type = gaussians
    if covariance_type in ("diag", "spherical"):
        return 1.0 / factors**2
    inverse = np.linalg.inv(factors)
    return np.swapaxes(inverse, -1, -2) @ inverse
