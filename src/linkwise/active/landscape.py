"""The rows as seen without any answer: landmarks, their similarities, and a first clustering.

Questions concern landmarks. Up to ``N_LANDMARKS`` rows all are landmarks; of more rows a sample is taken, to
which rows that were asked about are added, and the other rows follow the landmarks near them.

Seven kernels with values 0..1 on the diagonal and off it say how alike two landmarks are. No one of them is
right for all data, so the answers choose among them (``predictors``):

- three Gaussian kernels, whose widths are a quarter, a half and the whole of the median distance;
- three kernels (I - a S)^-1 of the graph of nearest neighbours with its normalised matrix S: the sum over
  all walks, of which a step counts a times the one before;
- the share of clusterings, coarse and fine, of features and of the graph, that put two landmarks together.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin

from linkwise._arrays import Floats, Ints

if TYPE_CHECKING:
    from linkwise.active.posterior import Remembered
    from linkwise.constraints import Constraints


#: More rows than this are represented by as many of them.
N_LANDMARKS = 1000
_WIDTHS = (0.25, 0.5, 1.0)
_STEPS = (0.8, 0.95, 0.99)
_N_NEIGHBOURS = 10
#: The neighbour whose distance is the scale of a row's similarities.
_SCALE_NEIGHBOUR = 7
#: Numbers of clusters of the clusterings in the last kernel.
_GRAINS = (4, 8, 12, 20, 30)
#: Features that a matrix of distances is replaced by.
_N_COORDINATES = 10
#: Numbers of clusters that are tried before anybody was asked, from two on.
_MOST_CLUSTERS = 10
#: Share of the links that a clustering with them must keep more than one without.
_MUCH_BETTER = 0.05


@dataclass(frozen=True, eq=False)
class Landscape:
    """What is known about the rows before anybody was asked."""

    X: Any  # (n, d) all rows; with metric="precomputed" their distances, (n, n)
    rows: Ints  # (l,) the landmarks, in increasing order
    # (l, d) standardised features of the landmarks, or coordinates that stand for their distances
    features: Floats
    distances: Floats  # (l, l)
    kernels: Floats  # (7, l, l)
    n_clusters: int | None  # of the first clustering; None: not known
    metric: Any
    seed: int
    links: Constraints | None = None  # links among the landmarks that were given at first
    # what fewer answers said, by these answers: kept by ``posterior.infer``, which would find it again
    earlier: dict[bytes, Remembered] = field(default_factory=dict)

    @property
    def together(self) -> Floats:
        """Share of the clusterings that put two landmarks together, (l, l)."""
        return self.kernels[-1]

    @cached_property
    def nearness(self) -> Floats:
        """Chance that both of two clusterings put two landmarks together, (l, l): coarse ones count less."""
        return np.asarray(self.together**2, dtype=np.float64)

    @cached_property
    def place(self) -> Ints:
        """Number of a row among the landmarks, (n,); -1 for other rows."""
        place = np.full(self.X.shape[0], -1, dtype=np.int64)
        place[self.rows] = np.arange(len(self.rows))
        return place

    @cached_property
    def points(self) -> Floats:
        """Features (l, d) whose unit does not matter: mixtures add a constant to variances."""
        points = self.features - self.features.mean(axis=0)
        spread, largest = float(points.std()), float(np.abs(self.features).max())
        return points / spread if spread > 1e-12 * largest else self.features

    @cached_property
    def start(self) -> Ints:
        """Labels of the landmarks by the best clustering without answers, with the links given, (l,)."""
        from linkwise.auto.estimator import LinkedClustering

        if len(self.rows) < 4:
            return np.zeros(len(self.rows), dtype=np.int64)
        # Who answers questions expects two clusters at least.
        several = list(range(2, min(_MOST_CLUSTERS, len(self.rows)) + 1))
        labels = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about candidates that play no part
            for links in (None,) if self.links is None else (None, self.links):
                n_clusters = self.n_clusters or (several if links is None else "auto")
                model = LinkedClustering(n_clusters, effort="quick", random_state=self.seed)
                model._cautious = False
                labels.append(np.asarray(model.fit(self.points, constraints=links).labels_, dtype=np.int64))
        if self.links is None:
            return labels[0]
        # Few links say little about the number of clusters: they lead only where they are kept much better.
        kept = [self.links.satisfaction(one) for one in labels]
        return labels[int(kept[1] > kept[0] + _MUCH_BETTER)]

    @cached_property
    def centre(self) -> int:
        """The landmark in the midst of the largest cluster of the start: the first to be asked about."""
        members = np.flatnonzero(self.start == np.bincount(self.start).argmax())
        return int(members[self.together[np.ix_(members, members)].sum(axis=1).argmax()])

    @cached_property
    def nearest(self) -> Ints:
        """Number of the landmark nearest to each row, (n,)."""
        if len(self.rows) == self.X.shape[0]:
            return np.arange(len(self.rows))
        if isinstance(self.metric, str) and self.metric == "precomputed":
            found = np.asarray(self.X[:, self.rows].argmin(axis=1), dtype=np.int64)
        else:
            found = np.asarray(
                pairwise_distances_argmin(self.X, self.X[self.rows], metric=self.metric), dtype=np.int64
            )
        found[self.rows] = np.arange(len(self.rows))
        return found


def survey(
    X: Any,
    *,
    asked: Ints | tuple[int, ...] = (),
    n_clusters: int | None = None,
    metric: Any = "euclidean",
    seed: int = 0,
    n_landmarks: int = N_LANDMARKS,
    known: Landscape | None = None,
    links: Constraints | None = None,
) -> Landscape:
    """Landmarks of the rows X, the rows in ``asked`` among them, and how alike they are.

    A landscape of the same rows with other landmarks, ``known``, hands on what it remembers.
    ``links`` among all rows help to cluster them before anybody was asked.
    """
    rows = landmarks(X.shape[0], asked, n_landmarks=n_landmarks, seed=seed)
    rng = np.random.default_rng([seed, X.shape[0]])
    is_euclidean = isinstance(metric, str) and metric == "euclidean"
    if isinstance(metric, str) and metric == "precomputed":
        distances = np.asarray(X[np.ix_(rows, rows)], dtype=np.float64)
    else:
        features = np.asarray(X[rows], dtype=np.float64)
        distances = np.asarray(pairwise_distances(features, metric=metric), dtype=np.float64)
    if not is_euclidean:
        distances = (distances + distances.T) / 2.0
        if not np.isfinite(distances).all():
            i, j = rows[np.argwhere(~np.isfinite(distances))[0]]
            raise ValueError(f"rows {i} and {j} have no finite distance; correct the metric or leave one out")
        np.fill_diagonal(distances, 0.0)
        features = _coordinates(distances)
    gaussian = _gaussian_kernels(distances)
    if not is_euclidean:
        gaussian = [_semidefinite(kernel) for kernel in gaussian]
    kernels = np.stack([*gaussian, *_graph_and_clusterings(distances, features, rng)])
    earlier = {} if known is None else known.earlier
    near = None if links is None or not links.n_pairs else links[rows]
    return Landscape(X, rows, features, distances, kernels, n_clusters, metric, seed, near, earlier)


def landmarks(
    n: int, asked: Ints | tuple[int, ...] = (), *, n_landmarks: int = N_LANDMARKS, seed: int = 0
) -> Ints:
    """Numbers of the landmarks, increasing: rows in ``asked``, and of the others a fixed random sample.

    A row of the sample that is asked about changes nothing, and another one takes the place of a row of it.
    """
    if n <= n_landmarks:
        return np.arange(n)
    asked = np.unique(np.asarray(asked, dtype=np.int64))
    sample = np.random.default_rng([seed, n]).choice(n, n_landmarks, replace=False)
    others = sample[~np.isin(sample, asked)]
    return np.union1d(asked, others[: max(0, n_landmarks - len(asked))])


def _coordinates(distances: Floats) -> Floats:
    """Points whose distances are near the given ones (classical scaling)."""
    n = len(distances)
    squared = distances**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    kept = np.argsort(-values)[: min(_N_COORDINATES, max(1, n - 1))]
    points = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    spread = points.std(axis=0)
    # One column is left where all rows are equal.
    return np.asarray(points[:, spread >= 1e-9 * spread.max()], dtype=np.float64)


def _gaussian_kernels(distances: Floats) -> list[Floats]:
    """exp(-(d / width)^2 / 2) for widths that are shares of the median distance."""
    positive = distances[distances > 0.0]
    median = float(np.median(positive)) if len(positive) else 1.0
    return [np.exp(-0.5 * (distances / (width * median)) ** 2) for width in _WIDTHS]


def _semidefinite(kernel: Floats) -> Floats:
    """A kernel without negative eigenvalues, by a larger diagonal that is then made 1 again.

    Distances that no points in space have, such as those of warped time series, give negative eigenvalues,
    with which ridge regression is not defined.
    """
    lowest = float(eigvalsh(kernel, subset_by_index=[0, 0])[0])
    if lowest >= 0.0:
        return kernel
    kernel = kernel / (1.0 - lowest)
    np.fill_diagonal(kernel, 1.0)
    return kernel


def _graph_and_clusterings(distances: Floats, features: Floats, rng: np.random.Generator) -> list[Floats]:
    """The kernels of the graph of neighbours, and the one of clusterings."""
    values, vectors = np.linalg.eigh(_normalised_graph(distances))
    found = []
    for step in _STEPS:
        kernel = (vectors / (1.0 - step * np.minimum(values, 1.0))) @ vectors.T
        scale = np.sqrt(np.diag(kernel))
        found.append(np.clip(kernel / scale[:, None] / scale, 0.0, 1.0))
    n, n_clusterings = len(distances), 0
    together = np.zeros((n, n))
    for grain in [grain for grain in _GRAINS if grain <= n // 2]:
        embedding = vectors[:, -grain:]
        embedding = embedding / np.maximum(np.linalg.norm(embedding, axis=1), 1e-9)[:, None]
        for points in (features, features, embedding):
            labels = _k_means(points, grain, rng)
            together += labels[:, None] == labels
            n_clusterings += 1
    found.append(together / n_clusterings if n_clusterings else np.eye(n))
    return found


def _k_means(points: Floats, grain: int, rng: np.random.Generator) -> Ints:
    """Labels by one start of K-means."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters
        model = KMeans(grain, n_init=1, random_state=int(rng.integers(2**31)))
        return np.asarray(model.fit_predict(points), dtype=np.int64)


def _normalised_graph(distances: Floats) -> Floats:
    """D^-1/2 W D^-1/2 of the graph of nearest neighbours; each row has a scale of its own (self-tuning)."""
    n = len(distances)
    k = min(_N_NEIGHBOURS, n - 1)
    apart = distances + np.diag(np.full(n, np.inf))
    order = np.argsort(apart, axis=1, kind="stable")[:, :k]
    scale = np.take_along_axis(apart, order[:, min(_SCALE_NEIGHBOUR, k) - 1 :][:, :1], axis=1)[:, 0]
    scale = np.maximum(scale, 1e-9 * (float(distances.max()) or 1.0))
    row, column = np.repeat(np.arange(n), k), order.ravel()
    weights = np.zeros((n, n))
    near = distances[row, column]
    weights[row, column] = np.exp(-(near / scale[row]) * (near / scale[column]))
    weights = np.maximum(weights, weights.T)
    degree = np.maximum(weights.sum(axis=1), 1e-12)
    return np.asarray(weights / np.sqrt(degree[:, None] * degree), dtype=np.float64)
