"""Gaussian mixtures with links, fitted to rows that are read chunk by chunk."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._compat import with_callbacks
from linkwise._validation import check_constraints
from linkwise.constraints import Constraints
from linkwise.dask.checkpoint import Checkpoint, fit_identity
from linkwise.dask.collections import read_table
from linkwise.dask.estimator import ScoredDaskEstimator, along_rows, extended
from linkwise.dask.jobs import ClusterSizes, Probabilities, RowLabels
from linkwise.dask.passes import Runner, lazy_rows
from linkwise.dask.source import DaskRows
from linkwise.mixture import constrained_em, ppc
from linkwise.mixture.gaussian.source import Source

_NO_ROWS = np.empty(0, dtype=np.int64)


class DaskPrediction(ScoredDaskEstimator):
    """Lazy prediction by a fitted mixture."""

    def predict(self, X: Any) -> Any:
        """Return the most probable cluster of each row, lazy (n,); of rows in memory an array."""
        return self._lazily(X, "predict", np.int64)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each cluster, a lazy Dask array (n, K); of rows in memory an array."""
        check_is_fitted(self)
        own: Any = self
        return self._lazily(X, "predict_proba", None, own._n_clusters)

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row, a lazy Dask array (n,); of rows in memory an array."""
        return self._lazily(X, "score_samples", np.float64)

    def icl(self, X: Any) -> float:
        """Compute the integrated classification likelihood on these rows, as in memory."""
        own: Any = self
        base: Any = super()
        if not self._is_lazy(X):
            return float(base.icl(X))
        certain = along_rows(self.predict_proba(X), np.max)
        return float(own.bic(X)) - 2.0 * float(self._computed(np.log(certain).sum()))

    def _lazy_score(self, X: Any, sample_weight: Any) -> float:
        values = self.score_samples(X)
        if sample_weight is None:
            return float(self._computed(values.mean()))
        return float(self._computed((values * sample_weight).sum() / sample_weight.sum()))


class _DaskMixture(DaskPrediction):
    """A linked mixture whose rows are those of a Dask collection."""

    more = ("client", "checkpoint")
    checkpoint: Any

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Fit the mixture to a Dask collection (n_samples, n_features) and links between its rows.

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
        self.fit_predict(X, y, constraints=constraints)
        return self

    @with_callbacks
    def fit_predict(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Fit the mixture and return ``labels_`` of the training rows, a lazy Dask array."""
        own: Any = self
        table, constraints = read_table(X, constraints, self.client)
        self._check_table(table)
        own._check_parameters(table.n_samples)
        constraints = check_constraints(constraints, table.n_samples, y)
        runner = Runner(table, self.client)
        # A copy, so that starts draw the same numbers as in memory.
        seed = int(copy.deepcopy(check_random_state(own.random_state)).randint(2**31))
        return own._fit_source(lambda rows: DaskRows(runner, rows, own.reg_covar, seed), constraints)

    def _keeper(self, source: Source, constraints: Constraints | None) -> Checkpoint | None:
        """Return the checkpoint in the folder of that name; None without one."""
        if self.checkpoint is None:
            return None
        own: Any = self
        parameters = own.get_params(deep=False)
        identity = fit_identity(parameters, source.n_samples, source.n_features, constraints)
        assert isinstance(source, DaskRows)
        return Checkpoint(self.checkpoint, {**identity, "values of X": source.identity}, self._watch)

    def _store_labels(
        self, source: Source, linked_rows: Ints | None, prob: Floats | None, labels: Ints | None
    ) -> None:
        """Store lazy labels and, with links, probabilities; count the rows of each cluster."""
        assert isinstance(source, DaskRows)
        own: Any = self
        table = source.runner.table
        model = self.to_local(labels=False)
        linked = linked_rows is not None
        job = RowLabels(source.dtype, source.offset, model, linked)
        rows = _NO_ROWS if linked_rows is None else linked_rows
        given = _NO_ROWS if labels is None else labels
        own.labels_ = lazy_rows(table, job, rows, given, dtype=np.int64)
        if prob is not None:
            own.responsibilities_ = lazy_rows(
                table, Probabilities(source.dtype, source.offset, model), rows, prob,
                dtype=np.float64, n_columns=own._n_clusters,
            )  # fmt: skip
        sizes = ClusterSizes(source.dtype, job, own._n_clusters)
        self._sizes = source.runner.sum(sizes, source.of_groups(rows))
        self._sizes += np.bincount(given, minlength=own._n_clusters)
        self._source, self._decoded = source, (rows, given)

    def _fit_source(self, make_source: Any, constraints: Constraints | None) -> Any:
        base: Any = super()
        try:
            return base._fit_source(make_source, constraints)
        finally:
            for name in ("_source", "_decoded", "_sizes"):
                self.__dict__.pop(name, None)

    def _cluster_sizes(self) -> Ints:
        return self._sizes

    def _labels_at(self, rows: Ints) -> Ints:
        """Labels of rows with links or labels, which are held in memory."""
        linked, given = self._decoded
        model = self.to_local(labels=False)
        labels = RowLabels(self._source.dtype, self._source.offset, model, bool(len(linked)))(
            self._source.held(rows), _NO_ROWS
        )
        place = np.searchsorted(rows, linked)
        known = (place < len(rows)) & (rows[np.minimum(place, len(rows) - 1)] == linked)
        labels[place[known]] = given[known]
        return labels


@extended
class PPC(_DaskMixture, ppc.PPC, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.PPC` for data beyond memory: the same model, fitted chunk by chunk.

    All rows are read once in every EM iteration, by the workers, which send back sums of K D^2 numbers. Rows
    that carry links are gathered once, and their part of the E-step is done in this process. Starts are made
    from a sample of the rows; up to 131,072 rows are taken whole and give the results of the estimator in
    memory, up to rounding, however the rows are cut into chunks.

    Parameters
    ----------
    n_components, n_clusters, covariance_type, inference, inference_options, mixing, tol, reg_covar :
        As in :class:`linkwise.PPC`, and so are all further parameters.
    client : distributed.Client, optional
        Where to compute. None: the client that is in use, or else threads of this process.
    checkpoint : path, optional
        A folder in which parameters are stored after every iteration. A fit that was interrupted, also by
        the end of the process, goes on from there when it is started again with the same data, links and
        parameters, and ends at the same parameters if ``random_state`` is a number. The files are removed
        when the fit is done.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy labels of the training rows, using the links.
    responsibilities_ : dask.array.Array, (n_samples, n_components)
        Lazy constrained posterior of the training rows; only stored when links were given.
    weights_, means_, covariances_ : ndarray
        These and all further attributes are those of :class:`linkwise.PPC`.

    See Also
    --------
    linkwise.PPC : the estimator in memory, with all parameters and attributes.

    Examples
    --------
    >>> import dask.array as da
    >>> from linkwise import Constraints
    >>> from linkwise.dask import PPC
    >>> X = da.random.default_rng(0).normal(size=(2000, 2), chunks=(500, 2))
    >>> links = Constraints(2000, must_link=[(0, 1500)], cannot_link=[(0, 700)])
    >>> model = PPC(2, random_state=0, max_iter=2, tol=1.0).fit(X, constraints=links)
    >>> model.labels_
    dask.array<linkwise-rowlabels, shape=(2000,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    >>> model.to_local().violations_.tolist()
    [False, False]
    """

    local_class = ppc.PPC

    def _in_order_of(self, X: Any, constraints: Constraints) -> Constraints:
        aligned: Constraints = read_table(X, constraints, self.client)[1]
        return aligned


@extended
class ConstrainedEM(_DaskMixture, constrained_em.ConstrainedEM, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """:class:`linkwise.ConstrainedEM` for data beyond memory: the same model, fitted chunk by chunk.

    How it is computed, and what is lazy, is said at :class:`linkwise.dask.PPC`.

    Parameters
    ----------
    n_components, n_clusters, sampling, covariance_type, inference, inference_options, mixing, tol :
        As in :class:`linkwise.ConstrainedEM`, and so are all further parameters.
    client, checkpoint : optional
        As in :class:`linkwise.dask.PPC`.

    Attributes
    ----------
    labels_, responsibilities_ : dask.array.Array
        Lazy, as in :class:`linkwise.dask.PPC`.
    weights_, means_, covariances_ : ndarray
        These and all further attributes are those of :class:`linkwise.ConstrainedEM`.
    """

    local_class = constrained_em.ConstrainedEM
