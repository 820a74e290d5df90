"""HMRF-KMeans and its settings, fitted to rows that are read chunk by chunk."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs

from linkwise._arrays import Bools, Ints
from linkwise._validation import as_generator, check_constraints
from linkwise.constraints import Constraints
from linkwise.dask.checkpoint import Journal, JournalRunner, fit_identity
from linkwise.dask.collections import Table, read_table
from linkwise.dask.estimator import ScoredDaskEstimator, along_rows, extended
from linkwise.dask.kmeans_rows import (
    RESULTS,
    ClusterLabels,
    DaskDescent,
    DaskEuclidean,
    DaskEuclideanRows,
    KnownLabels,
)
from linkwise.dask.passes import Runner, lazy_rows
from linkwise.kmeans import hmrf_kmeans, variants
from linkwise.kmeans.assignment import weighted_links
from linkwise.kmeans.distortions import chosen_metric, chosen_penalty


class _DaskKMeans(ScoredDaskEstimator):
    """HMRF-KMeans whose rows are those of a Dask collection."""

    more = ("client", "checkpoint")
    checkpoint: Any

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows of a Dask collection (n_samples, n_features) under links between them.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, xarray.DataArray, zarr.Array or path
            A path is that of a folder of Parquet files, or of a Zarr array.
        y : ignored
        constraints : Constraints, optional

        Returns
        -------
        self
        """
        own: Any = self
        must_weight, cannot_weight = own._check_parameters()
        self._check_distortion()
        table, constraints = read_table(X, constraints, self.client)
        self._check_table(table)
        if table.n_samples < own.n_clusters:
            raise ValueError(
                f"n_samples={table.n_samples} should be >= n_clusters={own.n_clusters}; ask for fewer "
                "clusters"
            )
        constraints = check_constraints(constraints, table.n_samples, y)
        links, kept = None, np.empty(0, dtype=np.int64)
        if constraints is not None:
            constraints.check(own.n_clusters)
            if constraints.n_pairs:
                links = weighted_links(constraints, must_weight, cannot_weight)
                kept = links.rows
            if constraints.row_classes is not None:
                kept = np.union1d(kept, np.flatnonzero(constraints.row_classes >= 0))
        rng = as_generator(own.random_state)
        runner = self._runner(table, constraints)
        rows = DaskEuclideanRows(runner, kept, self._sample_seed())
        distortion = DaskEuclidean(
            chosen_metric(own.metric, own.distortion), own.n_clusters, metric_weight=float(own.metric_weight),
            shrinkage=float(own.shrinkage), penalty_bound=own.penalty_bound,
        )  # fmt: skip
        descent = DaskDescent(
            distortion, rows, links, chosen_penalty(own.penalty, own.distortion), own.inference,
            options=own.inference_options, n_threads=effective_n_jobs(own.n_jobs), want_bound=own.compute_gap,
        )  # fmt: skip
        descent.watch = self._watch
        some = constraints
        if constraints is not None and len(rows.rows) < len(rows):
            some = constraints[rows.rows]
        starts = own._starts(distortion.in_memory(), rows.held, rows.origin, some, rng)
        best = own._best_run(descent, starts)
        self._fitted = (table, rows, distortion)
        try:
            own._store(best, rows.origin, constraints, 0 if links is None else len(links.rows))
        finally:
            for name in ("_fitted", "_known"):
                self.__dict__.pop(name, None)
        if isinstance(runner, JournalRunner):
            runner.journal.remove()
        return self

    def _runner(self, table: Table, constraints: Constraints | None) -> Runner:
        """What computes passes; with a checkpoint their results are stored in its folder."""
        if self.checkpoint is None:
            return Runner(table, self.client)
        own: Any = self
        identity = fit_identity(own.get_params(deep=False), table.n_samples, table.n_features, constraints)
        return JournalRunner(table, self.client, Journal(self.checkpoint, identity, RESULTS))

    def _check_distortion(self) -> None:
        """Refuse what needs all rows at once."""
        own: Any = self
        if own.distortion != "euclidean":
            raise ValueError(
                f"distortion={own.distortion!r} is not there for Dask; use 'euclidean', or "
                "linkwise.HMRFKMeans in memory"
            )
        if own.penalty_bound != "box":
            raise ValueError(
                f"penalty_bound={own.penalty_bound!r} compares all pairs of rows; use 'box' with Dask"
            )
        own._make_distortion()

    def _sample_seed(self) -> int:
        state = self.random_state  # type: ignore[attr-defined]
        return int(state) if isinstance(state, int | np.integer) else 0

    def _store_labels(self, run: Any) -> None:
        own: Any = self
        table, rows, distortion = self._fitted
        known: KnownLabels = run.labels.known
        given, values = known.given()
        job = ClusterLabels(
            np.dtype(np.float64), distortion.in_memory(), rows.origin, known.centres, known.metric
        )
        own.labels_ = lazy_rows(table, job, given, values, dtype=np.int64)
        self._known = known

    def _violations(self, run: Any, constraints: Constraints) -> Bools:
        ends = run.labels[constraints.pairs]
        return np.asarray((ends[:, 0] == ends[:, 1]) != (constraints.weights > 0))

    def _labels_at(self, rows: Ints) -> Ints:
        """Labels of rows with links or labels, which are held in memory."""
        _, held, distortion = self._fitted
        known = self._known
        found = distortion.in_memory().assign(held.take(rows), known.centres, known.metric, None, 1).labels
        given, values = known.given()
        place = np.searchsorted(given, rows)
        place[place == len(given)] = 0
        is_given = given[place] == rows if len(given) else np.zeros(len(rows), dtype=bool)
        return np.where(is_given, values[place] if len(given) else 0, found)

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row, lazy (n,); of rows in memory an array."""
        return self._lazily(X, "predict", np.int64)

    def transform(self, X: Any) -> Any:
        """Return the cost of each row in each cluster, lazy (n, K); of rows in memory an array."""
        own: Any = self
        return self._lazily(X, "transform", np.float64, own.n_clusters)

    def _lazy_score(self, X: Any, sample_weight: Any) -> float:
        own: Any = self
        cost = along_rows(self.transform(X), np.min) + own._make_distortion().normaliser(own.metric_)
        return -float(self._computed((cost if sample_weight is None else cost * sample_weight).sum()))


@extended
class HMRFKMeans(_DaskKMeans, hmrf_kmeans.HMRFKMeans, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.HMRFKMeans` for data beyond memory: the same descent, chunk by chunk.

    All rows are read once in every iteration, by the workers, which send back sums. How starts are made and
    what is lazy is said at :class:`linkwise.dask.PPC`. The distortion must be "euclidean" and
    ``penalty_bound`` "box". A full metric needs some more passes in every iteration.

    Parameters
    ----------
    n_clusters, distortion, metric, penalty, weight, inference, inference_options, init, n_init :
        As in :class:`linkwise.HMRFKMeans`, and so are all further parameters.
    client, checkpoint : optional
        As in :class:`linkwise.dask.PPC`; the folder holds what the passes over the rows returned.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy labels of the training rows, using the links.
    cluster_centers_, metric_, objective_, violations_ : ndarray
        These and all further attributes are those of :class:`linkwise.HMRFKMeans`.
    """

    local_class = hmrf_kmeans.HMRFKMeans


@extended
class PCKMeans(_DaskKMeans, variants.PCKMeans, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.PCKMeans` for data beyond memory: the same descent, chunk by chunk.

    Parameters
    ----------
    n_clusters, weight, inference, inference_options, init, n_init, max_iter, tol, compute_gap :
        As in :class:`linkwise.PCKMeans`, and so are all further parameters.
    client, checkpoint : optional
        As in :class:`linkwise.dask.PPC`; the folder holds what the passes over the rows returned.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy labels of the training rows, using the links.
    cluster_centers_, objective_, violations_ : ndarray
        These and all further attributes are those of :class:`linkwise.PCKMeans`.
    """

    local_class = variants.PCKMeans


@extended
class MPCKMeans(_DaskKMeans, variants.MPCKMeans, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.MPCKMeans` for data beyond memory: the same descent, chunk by chunk.

    Parameters
    ----------
    n_clusters, metric, weight, inference, inference_options, init, n_init, max_iter, tol, compute_gap :
        As in :class:`linkwise.MPCKMeans`, and so are all further parameters.
    client, checkpoint : optional
        As in :class:`linkwise.dask.PPC`; the folder holds what the passes over the rows returned.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy labels of the training rows, using the links.
    cluster_centers_, metric_, objective_, violations_ : ndarray
        These and all further attributes are those of :class:`linkwise.MPCKMeans`.
    """

    local_class = variants.MPCKMeans
