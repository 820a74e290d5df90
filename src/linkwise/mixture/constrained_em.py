"""Gaussian mixtures with equivalence constraints (Shental et al. 2003)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.constraints import Constraints
from linkwise.mixture.linked import LinkedGaussianMixture
from linkwise.mixture.links.noise import LinkNoise
from linkwise.mixture.links.rows import LinkedRows, select_linked_rows


class ConstrainedEM(LinkedGaussianMixture):
    """Gaussian mixture with hard must-links (chunklets) and cannot-links.

    Points joined by hard must-links form chunklets, which are labelled as one. How chunklets were drawn
    matters for the mixing weights: under assumption 1 whole chunklets are drawn from the mixture, under
    assumption 2 points are drawn and chunklets chosen afterwards (which is hard PPC).

    Parameters
    ----------
    n_components, n_clusters : int, optional
        Number of clusters, by either name; 1 by default.
    sampling : {"chunklets", "points"}, default="chunklets"
        Assumption 1, where a chunklet brings its weight pi_k once, or assumption 2, where each of its points
        does. ``chunklets`` needs hard must-links: soft ones form no chunklets.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    inference : str or engine, default="auto"
        ``exact`` is the junction tree of the paper, ``tree`` its spanning tree, which warns of the links it
        drops.
    inference_options : dict, optional
        As in :class:`PPC`.
    mixing : {"exact", "disjoint", "ignore", "fixed", "grid"}, default="exact"
        As in :class:`PPC`. With must-links alone and ``sampling="chunklets"``, Omega is 1 and the update is
        closed.
    tol, reg_covar, shrinkage, linked_weight, max_iter, n_init, init_params : optional
        As in :class:`PPC`.
    weights_init, means_init, precisions_init : array_like, optional
        As in :class:`PPC`.
    decode, warm_start, random_state, n_jobs, verbose : optional
        As in :class:`PPC`.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_cholesky_ : ndarray
        As in :class:`PPC`.
    labels_, responsibilities_, violations_, violation_probability_ : ndarray
        As in :class:`PPC`.
    lower_bound_, lower_bounds_, objective_, objectives_, n_iter_, converged_, n_decreases_, inference_,
    linked_weight_, shrinkage_, n_occupied_, classes_, cluster_names_, contingency_, split_classes_,
    shared_clusters_, n_features_in_
        As in :class:`PPC`.

    See Also
    --------
    PPC : soft, hard and noisy links.

    References
    ----------
    N. Shental, A. Bar-Hillel, T. Hertz and D. Weinshall, Computing Gaussian mixture models with EM using
    equivalence constraints, NIPS 16, 2003. The printed gradient of Z lacks a delta; see the page of errata.

    Examples
    --------
    >>> from linkwise import ConstrainedEM, Constraints
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Constraints.from_teachers(y, n_teachers=4, subset_size=10, random_state=0)
    >>> model = ConstrainedEM(3, random_state=0).fit(X, constraints=links)
    >>> links.satisfaction(model.labels_)
    1.0
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_clusters: int | None = None,
        sampling: str = "chunklets",
        covariance_type: str = "full",
        inference: str | Callable[..., Any] = "auto",
        inference_options: dict[str, Any] | None = None,
        mixing: str = "exact",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        shrinkage: float | str = "auto",
        linked_weight: float | str = "auto",
        max_iter: int = 200,
        n_init: int = 2,
        init_params: str = "constraints",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        decode: str = "marginal",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.sampling = sampling
        self.covariance_type = covariance_type
        self.inference = inference
        self.inference_options = inference_options
        self.mixing = mixing
        self.tol = tol
        self.reg_covar = reg_covar
        self.shrinkage = shrinkage
        self.linked_weight = linked_weight
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.decode = decode
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self, n_samples: int) -> None:
        super()._check_parameters(n_samples)
        if self.sampling not in ("chunklets", "points"):
            raise ValueError(f"sampling must be chunklets or points; got {self.sampling!r}: pass one of them")

    def _linked_rows(self, constraints: Constraints, noise: LinkNoise | None = None) -> LinkedRows:
        soft = np.flatnonzero((constraints.weights > 0) & np.isfinite(constraints.weights))
        if self.sampling == "chunklets" and soft.size:
            i, j = constraints.pairs[soft[0]].tolist()
            raise ValueError(
                f"the must-link ({i}, {j}) is soft, but chunklets are made of hard must-links; "
                'use sampling="points", or PPC'
            )
        return select_linked_rows(constraints, self._cluster_of, chunklets_once=self.sampling == "chunklets")
