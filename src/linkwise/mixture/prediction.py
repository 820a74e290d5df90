"""A fitted mixture predicts labels and probabilities, scores and draws rows, without links."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._validation import check_constraints, check_whole_number, refuse_dask, validate_rows
from linkwise.constraints import Constraints
from linkwise.mixture.gaussian.data import Points, new_points
from linkwise.mixture.gaussian.gaussians import Gaussians, n_free_parameters
from linkwise.mixture.gaussian.passes import Posterior, posterior_pass

_ROWS_AT_ONCE = 8192
#: Two names of one parameter.
_SAME = {"n_components": "n_clusters", "n_clusters": "n_components"}


class FittedMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """A mixture that predicts by ``weights_``, ``means_`` and ``precisions_cholesky_`` alone."""

    # Pipeline.score passes sample_weight on whether or not it was given (scikit-learn 1.9).
    __metadata_request__score: ClassVar[dict[str, bool]] = {"constraints": True, "sample_weight": True}

    @property
    def objective_(self) -> float:
        """``lower_bound_``, by the name that all estimators share."""
        return float(self.lower_bound_)

    @property
    def objectives_(self) -> Floats:
        """``lower_bounds_`` as an array, by the name that all estimators share."""
        return np.asarray(self.lower_bounds_, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a new ``n_components`` or ``n_clusters`` takes the place of the other."""
        super().set_params(**params)
        if params.keys() >= _SAME.keys():  # both as given
            self.__dict__.update({name: params[name] for name in _SAME})
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a number of clusters that changes takes the place of that by the other name."""
        if name in _SAME and name in self.__dict__ and value is not None:
            self.__dict__[_SAME[name]] = None
        super().__setattr__(name, value)

    def _wanted_clusters(self) -> int | None:
        """Return the number of clusters by either of its names; None if neither is given."""
        wanted = None
        for name in _SAME:
            value = getattr(self, name)
            if value is None:
                continue
            if check_whole_number(value, name) != wanted and wanted is not None:
                raise ValueError(
                    f"n_components={wanted} and n_clusters={value} are two names of one number, but differ; "
                    "pass one of them"
                )
            wanted = int(value)
        return wanted

    @property
    def _n_clusters(self) -> int:
        return self._wanted_clusters() or 1

    @property
    def _n_features_out(self) -> int:
        return self._n_clusters

    @property
    def _n_gaussians(self) -> int:
        return self._n_clusters

    @property
    def _cluster_of(self) -> Ints:
        """Cluster of each Gaussian."""
        return np.repeat(np.arange(self._n_clusters), self._n_gaussians // self._n_clusters)

    @property
    def _gaussians(self) -> Gaussians:
        return Gaussians(self.means_, self.precisions_cholesky_, self.covariance_type)

    def _posterior(self, points: Points, **wanted: Any) -> Posterior:
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_)
        several = self._n_gaussians > self._n_clusters
        if several and wanted.get("labels"):
            wanted = {**wanted, "labels": False, "probabilities": True}
        return posterior_pass(points, self._gaussians, log_weights, **wanted)

    def _labels_of(self, posterior: Posterior) -> Ints:
        if posterior.labels is not None:
            return posterior.labels
        assert posterior.probabilities is not None
        return self._sum_clusters(posterior.probabilities).argmax(axis=1).astype(np.int64)

    def _sum_clusters(self, probabilities: NDArray[np.floating]) -> NDArray[np.floating]:
        """Add up the probabilities of the Gaussians of each cluster."""
        if probabilities.shape[1] == self._n_clusters:
            return probabilities
        return probabilities.reshape(len(probabilities), self._n_clusters, -1).sum(axis=2)

    def _points(self, X: ArrayLike) -> Points:
        check_is_fitted(self)
        refuse_dask(X)
        data = validate_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return new_points(data, self._gaussians, getattr(self, "feature_names_in_", None))

    def predict(self, X: ArrayLike) -> Ints:
        """Return the most probable cluster of each row (n,), by the fitted mixture alone."""
        return self._labels_of(self._posterior(self._points(X), labels=True))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the probability of each cluster for each row (n, K), by the fitted mixture alone."""
        posterior = self._posterior(self._points(X), probabilities=True)
        assert posterior.probabilities is not None
        return self._sum_clusters(posterior.probabilities)

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the probability of each cluster for each row (n, K): the same as :meth:`predict_proba`.

        Links are not used, also by ``fit_transform``; ``responsibilities_`` of the training rows use them.
        """
        return self.predict_proba(X)

    def score_samples(self, X: ArrayLike) -> Floats:
        """Return the log-likelihood of each row (n,) under the fitted mixture."""
        posterior = self._posterior(self._points(X), log_likelihood=True)
        assert posterior.log_likelihood is not None
        return posterior.log_likelihood

    def score(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        constraints: Constraints | None = None,
    ) -> float:
        """Return the mean log-likelihood of the rows, weighted by ``sample_weight`` (n,).

        ``constraints`` is accepted so that cross-validation may pass it on; new rows are scored without
        links.
        """
        check_constraints(constraints, None, y)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.score_samples(X), weights=weights))

    def sample(self, n_samples: float = 1) -> tuple[Floats, Ints]:
        """Draw rows (n_samples, n_features) from the fitted mixture, and their clusters (n_samples,).

        Rows come sorted by component. No other table of this size is made.
        """
        check_is_fitted(self)
        if isinstance(n_samples, float) and n_samples.is_integer():
            n_samples = int(n_samples)  # 1e6 is how people write a million
        n_samples = check_whole_number(n_samples, "n_samples")
        rng = check_random_state(self.random_state)
        counts = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        rows = rng.standard_normal((n_samples, self.means_.shape[1]))
        ends = np.cumsum(counts)
        for k, (first, last) in enumerate(zip(ends - counts, ends, strict=True)):
            root = _root(self.covariances_, self.covariance_type, k)
            for start in range(first, last, _ROWS_AT_ONCE):
                block = rows[start : min(start + _ROWS_AT_ONCE, last)]
                block[:] = block @ root.T if root.ndim == 2 else block * root
                block += self.means_[k]
        return rows, np.repeat(self._cluster_of, counts)

    def aic(self, X: ArrayLike) -> float:
        """Compute Akaike's criterion of the fitted mixture on these rows; lower is better."""
        return -2.0 * float(self.score_samples(X).sum()) + 2.0 * self._n_parameters()

    def bic(self, X: ArrayLike) -> float:
        """Compute the Bayesian (Schwarz) criterion of the fitted mixture on these rows; lower is better."""
        log_likelihood = self.score_samples(X)
        return -2.0 * float(log_likelihood.sum()) + self._n_parameters() * float(np.log(len(log_likelihood)))

    def icl(self, X: ArrayLike) -> float:
        """Compute the integrated classification likelihood on these rows, BIC plus a penalty for overlap.

        BIC - 2 sum_i log max_k P(k | x_i) (Biernacki, Celeux & Govaert 2000); lower is better.
        """
        certain = self.predict_proba(X).max(axis=1).astype(np.float64)
        return self.bic(X) - 2.0 * float(np.log(certain).sum())

    def _n_parameters(self) -> int:
        return n_free_parameters(self._n_gaussians, self.means_.shape[1], self.covariance_type)


def _root(covariances: Floats, covariance_type: str, k: int) -> Floats:
    """Return what turns unit noise into that of component k: a triangular matrix, or standard deviations."""
    own = covariances if covariance_type == "tied" else covariances[k]
    root = np.linalg.cholesky(own) if covariance_type in ("full", "tied") else np.sqrt(own)
    return np.asarray(root, dtype=np.float64)
