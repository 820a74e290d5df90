"""LinkedClustering beyond memory: links choose on a sample, and the winner is fitted to all rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._validation import check_constraints, validate_rows
from linkwise.auto import estimator as auto
from linkwise.auto.candidates import CANDIDATES, Candidate
from linkwise.auto.choice import doubted_links
from linkwise.auto.search import fit_members
from linkwise.constraints import Constraints
from linkwise.dask import kmeans, mixture
from linkwise.dask.collections import lazy_array, read_table
from linkwise.dask.estimator import DaskEstimator, check_columns, extended
from linkwise.dask.passes import Runner
from linkwise.dask.source import first_look

#: Candidates that can be fitted chunk by chunk.
_SCALABLE = (
    "mixture",
    "mixture, tied",
    "mixture, diagonal",
    "k-means, no links",
    "mixture, no links",
    "mixture, tied, no links",
)
#: Rows without links that the choice may look at.
_SAMPLE_ROWS = 20_000
_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        mixture.PPC, mixture.ConstrainedEM, kmeans.HMRFKMeans, kmeans.PCKMeans, kmeans.MPCKMeans
    )
}  # fmt: skip


class _Chooser(auto.LinkedClustering):
    """The choice in memory, with one vote: that of the best candidate."""

    winner_: Candidate

    def _fit_chosen(self, *arguments: Any) -> None:
        base: Any = super()
        base._fit_chosen(*arguments[:-1], 1)

    def _store_result(
        self,
        data: NDArray[np.floating],
        links: Constraints | None,
        members: list[Candidate],
        weights: Floats,
        seed: int,
        others: Any = None,
        plain: Any = None,
    ) -> dict[str, float]:
        """Keep the first candidate; nothing of its fit to the sample is used but that it works."""
        kept, fitted, _ = fit_members(members[:1], weights[:1], data, links, self.n_clusters_, seed)
        self.winner_, self.best_estimator_, self.seed_ = kept[0], fitted[0], seed
        self.converged_ = True
        return {kept[0].name: 1.0}


@extended
class LinkedClustering(DaskEstimator, auto.LinkedClustering):
    """:class:`linkwise.LinkedClustering` for data beyond memory.

    The links choose among candidates that can be fitted chunk by chunk, mixtures and k-means, on a sample
    that has all linked rows. The best one is then fitted to all rows by the estimators of ``linkwise.dask``.
    Candidates do not vote together, as they do in memory. Hard links are never broken: a chosen candidate
    that does not use links is fitted with the hard ones.

    Parameters
    ----------
    n_clusters, cv, effort, random_state, n_jobs, verbose :
        As in :class:`linkwise.LinkedClustering`.
    candidates : "auto" or list, default="auto"
        Names of candidates, or estimators of ``linkwise`` that ``linkwise.dask`` has, too.
    client, checkpoint : optional
        As in :class:`linkwise.dask.PPC`; the checkpoint is that of the chosen candidate. A choice that was
        interrupted is made again.

    Attributes
    ----------
    labels_ : dask.array.Array, (n_samples,) int64
        Lazy labels of the training rows.
    best_estimator_ : estimator of ``linkwise.dask``
        The chosen candidate, fitted to all rows.
    selection_, gain_, n_clusters_, n_rows_compared_, converged_ :
    violations_, violation_probability_, share_without_links_, noise_ :
        As in :class:`linkwise.LinkedClustering`; what was compared was the sample.
    """

    local_class = auto.LinkedClustering
    more = ("client", "checkpoint")
    checkpoint: Any

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        constraints: Constraints | None = None,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Choose a clustering on a sample, and fit it to all rows of a Dask collection.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, xarray.DataArray, zarr.Array or path
            A path is that of a folder of Parquet files, or of a Zarr array.
        y : ignored
        constraints : Constraints, optional
        labels : (n_samples,) array_like, optional
            Classes of some rows, with -1, NaN or None for unknown ones. They become hard links.

        Returns
        -------
        self
        """
        self._check_parameters()
        table, constraints = read_table(X, constraints, self.client)
        self._check_table(table)
        links = auto._joined(
            check_constraints(constraints, table.n_samples, y), labels, None, table.n_samples
        )
        # Links that contradict each other are refused by their places in X, not by those in a sample.
        self._counts(table.n_samples, links)
        links = None if links is None else links.with_index(None)
        chooser = _Chooser(
            self.n_clusters, candidates=self._scalable(), cv=self.cv, effort=self.effort,
            random_state=self.random_state, n_jobs=self.n_jobs,
        )  # fmt: skip
        rows = _rows_to_see(table.n_samples, links, self.random_state)
        sample = first_look(Runner(table, self.client), rows).taken
        chooser.fit(sample, constraints=None if links is None else links[rows])
        winner = chooser.winner_
        for name in ("n_clusters_", "selection_", "gain_", "n_rows_compared_", "violation_probability_"):
            setattr(self, name, getattr(chooser, name))
        self.share_without_links_ = 0.0  # the winner has all the votes
        model = self._counterpart(winner.build(self.n_clusters_, chooser.seed_))
        seen = None
        if links is not None and winner.uses_links:
            seen = doubted_links(links, -logit(self.violation_probability_))
        elif links is not None:
            hard = np.isinf(links.weights)
            seen = Constraints._from_signed(links.n_samples, links.pairs[hard], links.weights[hard])
        self.best_estimator_ = model.fit(table.array, constraints=seen)
        self._store_all_rows(links)
        if self.verbose:
            print(self.table())
        return self

    def _store_all_rows(self, links: Constraints | None) -> None:
        """Store what all rows tell."""
        best = self.best_estimator_
        self.labels_, self.converged_ = best.labels_, bool(best.converged_)
        self.violations_, self.noise_ = np.empty(0, dtype=bool), np.nan
        if links is not None and links.n_pairs:
            rows, places = np.unique(links.pairs, return_inverse=True)
            ends = self._labels_at(rows)[places.reshape(-1, 2)]
            self.violations_ = (ends[:, 0] == ends[:, 1]) != (links.weights > 0)
            soft = np.isfinite(links.weights)
            self.noise_ = float(self.violations_[soft].mean()) if soft.any() else np.nan
        self._store_cluster_names(links, self.n_clusters_)

    def _labels_at(self, rows: Ints) -> Ints:
        labels: Any = self.labels_
        return np.asarray(self._computed(labels[rows]))

    def _scalable(self) -> list[Any]:
        """Candidates that have a namesake for Dask; others are refused."""
        if isinstance(self.candidates, str):
            return list(_SCALABLE)
        for one in self.candidates:
            name = one if isinstance(one, str) else type(one[1] if isinstance(one, tuple) else one).__name__
            known = name in _SCALABLE if isinstance(one, str) else name in _CLASSES
            if not known and (not isinstance(one, str) or one in CANDIDATES):
                names = ", ".join(map(repr, _SCALABLE))
                raise ValueError(
                    f"candidate {one!r} cannot be fitted chunk by chunk; use {names}, or estimators: "
                    f"{', '.join(_CLASSES)}"
                )
        return list(self.candidates)

    def _counterpart(self, model: Any) -> Any:
        """The estimator for Dask with the parameters of one in memory."""
        found = _CLASSES[type(model).__name__](
            **model.get_params(deep=False), client=self.client, checkpoint=self.checkpoint
        )
        found._watch = self._watch
        return found

    def to_local(self, *, labels: bool = True) -> Any:
        """Return the estimator of ``linkwise``, as in :class:`linkwise.dask.PPC`."""
        local = super().to_local(labels=labels)
        local.best_estimator_ = self.best_estimator_.to_local(labels=labels)
        return local

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row, lazy (n,); of rows in memory an array."""
        check_is_fitted(self)
        return self.best_estimator_.predict(self._columns_of(X))

    @available_if(
        lambda self: not hasattr(self, "best_estimator_") or hasattr(self.best_estimator_, "predict_proba")
    )
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each cluster, lazy (n, K), if the winner is a mixture."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(self._columns_of(X))

    def _columns_of(self, X: Any) -> Any:
        """Data without the names of their columns, which are compared with those of the fit."""
        if not self._is_lazy(X):
            return validate_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        array, names = lazy_array(X)
        check_columns(self, int(array.shape[1]), names, reset=False)
        return array


def _rows_to_see(n_samples: int, links: Constraints | None, random_state: Any) -> Ints:
    """Rows, ascending, that the choice sees: all that carry links or labels, and some more."""
    if n_samples <= _SAMPLE_ROWS:
        return np.arange(n_samples)
    seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
    rows = np.random.default_rng(seed).choice(n_samples, size=_SAMPLE_ROWS, replace=False, shuffle=False)
    if links is not None:
        rows = np.union1d(rows, links.pairs)
        if links.row_classes is not None:
            rows = np.union1d(rows, np.flatnonzero(links.row_classes >= 0))
    return np.unique(rows)
