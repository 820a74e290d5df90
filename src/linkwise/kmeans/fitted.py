"""What the K-means estimators share: starts, what is stored after a fit, and prediction without links."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Bools, Floats, Ints
from linkwise._transformers import LinkedTransformerMixin
from linkwise._validation import check_constraints, refuse_dask, validate_rows
from linkwise.constraints import Constraints
from linkwise.constraints.naming import NamedClustersMixin
from linkwise.kmeans.descent import Run
from linkwise.kmeans.distortions import make_distortion
from linkwise.kmeans.distortions.base import AssignmentPass, Distortion
from linkwise.kmeans.starts import start_centres

#: Kinds of starts that take turns, by the value of ``init``; without links all are k-means++.
_INIT = {
    "auto": ("k-means++", "constraints"),
    "constraints": ("constraints",),
    "k-means++": ("k-means++",),
}


class FittedKMeans(NamedClustersMixin, LinkedTransformerMixin, ClusterMixin, BaseEstimator):
    """Prediction by ``cluster_centers_`` and ``metric_`` alone; subclasses supply ``fit``."""

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
        refuse_dask(X)
        accepted = "csr" if distortion.accepts_sparse else False
        return validate_rows(self, X, accept_sparse=accepted, dtype=np.float64, order="C", reset=reset)

    def _rows_to_fit(self, X: ArrayLike, distortion: Distortion) -> tuple[Any, Floats]:
        """Checked rows, and the origin (d,) that they are measured from."""
        data = self._validated(X, distortion, reset=True)
        if data.shape[0] < self.n_clusters:
            raise ValueError(
                f"n_samples={data.shape[0]} should be >= n_clusters={self.n_clusters}; ask for fewer clusters"
            )
        origin = distortion.origin(data)
        rows = distortion.rows(data, origin)
        distortion.refuse_unresolved(rows)
        return rows, origin

    def _check_init(self) -> None:
        if isinstance(self.init, str) and self.init not in _INIT:
            raise ValueError(
                f"init must be 'auto', 'constraints', 'k-means++' or an array, got {self.init!r}; "
                "pass one of them"
            )

    def _starts(
        self,
        distortion: Distortion,
        rows: Any,
        origin: Floats,
        constraints: Constraints | None,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Floats, np.random.Generator]]:
        """First centres (K, d) of every start, and its generator, the same whatever other kinds there are."""
        if not isinstance(self.init, str):
            yield self._given_start(distortion, origin), rng
            return
        has_links = constraints is not None and constraints.n_pairs > 0
        kinds = _INIT[self.init] if has_links else ("k-means++",)
        first, seeds = copy.deepcopy(rng), rng.integers(2**63, size=(self.n_init,))
        for number in range(self.n_init):
            round_, kind = number // len(kinds), kinds[number % len(kinds)]
            own = np.random.default_rng(seeds[round_]) if round_ else copy.deepcopy(first)
            must_link = cannot_link = np.empty((0, 2), dtype=np.int64)
            if constraints is not None and kind == "constraints":
                must_link, cannot_link = constraints.must_link, constraints.cannot_link
            centres = start_centres(
                distortion,
                rows,
                self.n_clusters,
                must_link,
                own,
                cannot_link=cannot_link,
                largest_first=round_ == 0,
            )
            if self.verbose:
                print(f"start {number + 1} of {self.n_init}, from {kind}", flush=True)
            yield centres, own

    def _given_start(self, distortion: Distortion, origin: Floats) -> Floats:
        """The centres (K, d) that ``init`` is."""
        centres, shape = np.asarray(self.init, dtype=np.float64), (self.n_clusters, len(origin))
        if centres.shape != shape or not np.isfinite(centres).all():
            raise ValueError(
                f"init must hold finite centres of shape {shape}, got {centres.shape}"
                "; pass one row for each cluster"
            )
        given = distortion.rows(centres, origin)
        return distortion.group_centres(given, np.arange(self.n_clusters), self.n_clusters)

    def _store_run(self, run: Run, origin: Floats, constraints: Constraints | None) -> None:
        self.cluster_centers_ = run.centres + origin
        no_links = np.empty(0, dtype=np.bool_)
        self._store_labels(run)
        self.violations_ = no_links if constraints is None else self._violations(run, constraints)
        self.objectives_ = np.array(run.history)
        self.objective_ = run.history[-1]
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged
        self.n_reseeds_ = run.n_reseeds
        self._store_cluster_names(constraints, self.n_clusters)
        n_empty = int((run.counts == 0).sum())
        if n_empty:
            warnings.warn(
                f"{n_empty} of {self.n_clusters} clusters have no rows: the data have too few distinct rows, "
                "or the links hold the others together; ask for fewer clusters",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _store_labels(self, run: Run) -> None:
        self.labels_ = run.labels

    def _violations(self, run: Run, constraints: Constraints) -> Bools:
        """Which links the labels of a run break."""
        return constraints.violations(run.labels)

    def _store_inference(
        self, last: Any, n_linked: int, exact: bool, details: dict[str, Any] | None = None
    ) -> None:
        """Store how the last assignment step found the labels; rows without links are independent."""
        parts: Mapping[str, int] = {} if last is None else last.parts
        n_free = len(self.labels_) - n_linked
        counts = {**parts, "independent": parts.get("independent", 0) + n_free}
        self.inference_ = {
            "method": "independent" if last is None else last.method,
            "exact": exact,
            "converged": last is None or bool(last.converged),
            "n_iter": 0 if last is None else int(last.n_iter),
            "parts": {engine: count for engine, count in counts.items() if count},
            "details": details or {},
        }

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

    def predict(self, X: ArrayLike) -> Ints:
        """Cluster (n,) of each row by the fitted centres and metric alone."""
        return self._nearest(X)[1].labels

    def transform(self, X: ArrayLike) -> Floats:
        """Cost of each row in each cluster, (n, n_clusters): ``predict`` gives the cheapest.

        That is its distortion, with - log det A_k for ``per_cluster``.
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
        distortion, found = self._nearest(X)
        cost = found.cost + distortion.normaliser(self.metric_)
        weights = np.ones(len(cost)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(weights @ cost)
