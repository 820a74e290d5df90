"""What spectral estimators share: checks of parameters and data, labels from an embedding, prediction."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._row_tables import refuse_vanishing
from linkwise._transformers import LinkedTransformerMixin
from linkwise._validation import (
    align_rows,
    as_generator,
    check_choice,
    check_constraints,
    check_number,
    check_whole_number,
    refuse_dask,
    validate_rows,
)
from linkwise.constraints import Constraints
from linkwise.constraints.naming import NamedClustersMixin
from linkwise.kmeans.hard import HardLinks, hard_part
from linkwise.spectral.kernels import check_kernel
from linkwise.spectral.out_of_sample import Extension, extension_of
from linkwise.spectral.rounding import (
    ASSIGNMENTS,
    assign_labels,
    cluster_centers,
    labels_keeping,
    leading_rows,
)
from linkwise.spectral.solvers import GRAPH_AFFINITIES, AffinitySettings

AFFINITIES = (*GRAPH_AFFINITIES, "rbf", "precomputed")


class SpectralClusterer(NamedClustersMixin, LinkedTransformerMixin, ClusterMixin, BaseEstimator):
    """A spectral clustering of rows that may carry links; subclasses supply ``fit``."""

    _extension: Extension

    def predict(self, X: Any) -> Ints:
        """Cluster (n,) of new rows: the one whose mean is nearest in the embedding, see :meth:`transform`."""
        return np.asarray(np.nanargmin(self._distances(X), axis=1), dtype=np.int64)

    def score(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, constraints: Constraints | None = None
    ) -> float:
        """Minus the summed squared distance of rows to their nearest cluster mean in the embedding.

        It means the same as ``score`` of K-means, here of the embedding. It compares rows, not settings:
        another number of clusters, affinity or set of links makes another embedding. To choose among those
        take :data:`linkwise.metrics.links_scorer`. ``sample_weight`` (n,) weights the rows; ``constraints``
        is accepted so that cross-validation may pass it on, and not used.
        """
        check_constraints(constraints, None, y)
        nearest = np.nanmin(self._distances(X), axis=1)
        weights = np.ones(len(nearest)) if sample_weight is None else np.asarray(sample_weight, float)
        return -float(weights @ nearest)

    def _distances(self, X: Any) -> Floats:
        """Squared distances (n, K) of rows to the cluster means in the embedding."""
        rows = self._embedded(X)
        return np.asarray(((rows[:, np.newaxis, :] - self.embedding_centers_) ** 2).sum(axis=2))

    def transform(self, X: Any) -> Floats:
        """Embedding (n, m) of new rows, by as many eigenvectors as ``embedding_`` has.

        A Gaussian or precomputed kernel extends the eigenvectors by their own equation, links included. For
        ``affinity="precomputed"`` X is the kernel between these and the training rows, (n, n_samples). The
        heat kernel of a graph has no values at new rows: they take the mean embedding of their nearest
        training rows, weighted by inverse distance. Training rows get their row of ``embedding_`` back, up to
        the accuracy of the eigenvectors; where rows coincide, the mean of theirs. Linked rows of
        ``SpectralLearning`` are taken as new ones, without the entries that their links replaced.
        """
        return self._embedded(X)

    def _embedded(self, X: Any) -> Floats:
        check_is_fitted(self)
        refuse_dask(X)
        data = validate_rows(self, X, dtype=np.float64, accept_sparse=self._accepts_sparse(), reset=False)
        return leading_rows(self._extension.rows(data), self._n_features_out)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_centers_.shape[1])

    def _prediction_state(self) -> dict[str, Any]:
        return self._extension.state()

    def _restore_prediction(self, state: dict[str, Any]) -> None:
        self._extension = extension_of(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = self.affinity != "precomputed"
        return tags

    def _accepts_sparse(self) -> Any:
        return False if self.affinity == "precomputed" else "csr"

    def _checked_data(
        self, X: Any, y: Any, constraints: Constraints | None
    ) -> tuple[Any, Ints, Floats, Constraints | None]:
        """The data, and the links as arrays."""
        self._check_parameters()
        X, constraints = align_rows(X, constraints)
        data = validate_rows(
            self, X, dtype=np.float64, accept_sparse=self._accepts_sparse(), ensure_min_samples=2
        )
        n_samples = data.shape[0]
        if self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} clusters cannot be made of n_samples={n_samples}; "
                "use at most as many clusters as rows"
            )
        if self.affinity == "precomputed":
            check_kernel(data)
        else:
            refuse_vanishing(data)
        return (data, *self._checked_links(constraints, n_samples, y))

    @staticmethod
    def _checked_links(
        constraints: Constraints | None, n_samples: int, y: Any = None
    ) -> tuple[Ints, Floats, Constraints | None]:
        constraints = check_constraints(constraints, n_samples, y)
        if constraints is None:
            return np.empty((0, 2), dtype=np.int64), np.empty(0), None
        return constraints.pairs, constraints.weights, constraints

    def _affinity_settings(self, diffusion_time: float) -> AffinitySettings:
        sigma = None if isinstance(self.sigma, str) else float(self.sigma)
        return AffinitySettings(self.affinity, int(self.n_neighbors), diffusion_time, sigma)

    def _check_parameters(self) -> None:
        for name, least in self._whole_numbers().items():
            check_whole_number(getattr(self, name), name, least)
        for name, positive in self._real_numbers().items():
            check_number(getattr(self, name), name, positive=positive)
        for name, allowed in self._choices().items():
            check_choice(getattr(self, name), name, allowed)
        if not isinstance(self.keep_hard_links, bool | np.bool_):
            raise ValueError(
                f"keep_hard_links must be True or False, got {self.keep_hard_links!r}; pass one of these"
            )
        if self.sigma != "auto" and not (is_number(self.sigma) and self.sigma > 0):
            raise ValueError(f'sigma must be "auto" or a number > 0, got {self.sigma!r}; pass one of these')

    def _whole_numbers(self) -> dict[str, int]:
        return {"n_clusters": 1, "n_neighbors": 1, "n_init": 1}

    def _real_numbers(self) -> dict[str, bool]:
        return {"diffusion_time": True, "eigen_tol": True}

    def _choices(self) -> dict[str, tuple[str, ...]]:
        return {"affinity": AFFINITIES, "assign_labels": ASSIGNMENTS}

    def _new_seed(self) -> int:
        return int(as_generator(self.random_state).integers(2**31))

    def _hard_links(self, constraints: Constraints | None) -> HardLinks | None:
        """The hard links that labels must keep; None if there are none. Refused if no labels keep them."""
        return hard_part(constraints, int(self.n_clusters)) if self.keep_hard_links else None

    def _new_labels(
        self, rows: Floats, seed: int, hard: HardLinks | None = None, free: Ints | None = None
    ) -> Ints:
        """Labels of rows of an embedding, which keep hard links; ``free`` need not keep them, if known."""
        rng = np.random.default_rng(seed)
        if hard is not None and self.assign_labels == "kmeans":
            other = None if free is None else self._centres(rows, free, np.random.default_rng(seed))
            return labels_keeping(rows, hard, n_init=self.n_init, rng=rng, other=other)
        labels = assign_labels(rows, self.n_clusters, self.assign_labels, n_init=self.n_init, rng=rng)
        if hard is None:
            return labels
        return labels_keeping(rows, hard, n_init=1, rng=rng, start=self._centres(rows, labels, rng))

    def _centres(self, rows: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Means (K, m) of clusters; those without rows have none, so any row may stand for them."""
        centres = cluster_centers(rows, labels, self.n_clusters)
        empty = np.isnan(centres[:, 0])
        centres[empty] = rows[rng.choice(len(rows), int(empty.sum()), replace=False)]
        return centres

    def _store_labels(
        self, rows: Floats, labels: Ints, history: Floats, constraints: Constraints | None
    ) -> None:
        """Store ``embedding_``, ``labels_`` and what depends on them; ``history`` (r, k) are eigenvalues."""
        self.embedding_ = rows
        self.labels_ = labels
        self.embedding_centers_ = cluster_centers(rows, self.labels_, self.n_clusters)
        self.objectives_ = history[:, : rows.shape[1]].sum(axis=1)
        self.objective_ = float(self.objectives_[-1])
        no_links = np.empty(0, dtype=np.bool_)
        self.violations_ = no_links if constraints is None else constraints.violations(labels)
        self.violation_rate_ = 0.0 if constraints is None else 1.0 - constraints.satisfaction(self.labels_)
        self._store_cluster_names(constraints, self.n_clusters)


def is_number(value: Any) -> bool:
    """Whether a parameter is a finite real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(float(value))
