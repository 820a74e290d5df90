"""Fitted centres and metric at work on rows old and new, without links."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._validation import check_constraints
from linkwise.constraints import Constraints
from linkwise.kmeans.distortions.base import AssignmentPass, Distortion
from linkwise.kmeans.distortions.registry import make_distortion

__all__ = ["FittedKMeans"]


class FittedKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Prediction by ``cluster_centers_`` and ``metric_`` alone."""

    # Pipeline.score passes sample_weight on whether or not it was given (scikit-learn 1.9).
    __metadata_request__score: ClassVar[dict[str, bool]] = {"constraints": True, "sample_weight": True}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.distortion != "euclidean"
        tags.input_tags.positive_only = self.distortion in ("kl", "i_divergence")
        return tags

    def _make_distortion(self) -> Distortion:
        return make_distortion(
            self.distortion,
            self.metric,
            self.n_clusters,
            metric_weight=float(self.metric_weight),
            shrinkage=float(self.shrinkage),
            smoothing=float(self.smoothing),
            penalty_bound=self.penalty_bound,
        )

    def _validated(self, X: ArrayLike, distortion: Distortion, *, reset: bool) -> Any:
        accepted = "csr" if distortion.accepts_sparse else False
        return validate_data(self, X, accept_sparse=accepted, dtype=np.float64, order="C", reset=reset)

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def _rows(self, X: ArrayLike) -> tuple[Distortion, Any]:
        check_is_fitted(self)
        distortion = self._make_distortion()
        return distortion, distortion.rows(self._validated(X, distortion, reset=False))

    def _nearest(self, X: ArrayLike) -> tuple[Distortion, AssignmentPass]:
        distortion, rows = self._rows(X)
        n_threads = effective_n_jobs(self.n_jobs)
        return distortion, distortion.assign(rows, self.cluster_centers_, self.metric_, None, n_threads)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Cluster of each row by the fitted centres and metric alone.

        Parameters
        ----------
        X : (n, n_features) array_like or CSR matrix

        Returns
        -------
        (n,) int64
        """
        return self._nearest(X)[1].labels

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """What each row would pay for each cluster: its distortion, with - log det A_k for ``per_cluster``.

        Parameters
        ----------
        X : (n, n_features) array_like or CSR matrix

        Returns
        -------
        (n, n_clusters)
            The column of the smallest entry is what ``predict`` gives.
        """
        distortion, rows = self._rows(X)
        return distortion.distances(rows, self.cluster_centers_, self.metric_)

    def score(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        constraints: Constraints | None = None,
    ) -> float:
        """Minus the distortion of the rows to their nearest centres, with the normaliser of a learned metric.

        For ``euclidean`` with a learned metric this is, up to constants, twice the log-likelihood of hard
        Gaussian clusters, so that different metrics can be compared.

        Parameters
        ----------
        X : (n, n_features) array_like or CSR matrix
        y : ignored
        sample_weight : (n,) array_like, optional
        constraints : Constraints, optional
            Accepted so that cross-validation may pass it on; new rows are scored without links.

        Returns
        -------
        float
        """
        check_constraints(constraints, None, y)
        distortion, rows = self._rows(X)
        found = distortion.assign(
            rows, self.cluster_centers_, self.metric_, None, effective_n_jobs(self.n_jobs)
        )
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(weights @ (found.cost + distortion.normaliser(self.metric_)))
