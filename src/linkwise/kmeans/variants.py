"""PCKMeans and MPCKMeans: known algorithms that are settings of HMRF-KMeans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from linkwise.kmeans.hmrf_kmeans import HMRFKMeans


class PCKMeans(HMRFKMeans):
    """K-means with a constant cost for each broken link (Basu, Banerjee & Mooney 2004).

    The same as ``HMRFKMeans(distortion="euclidean", metric=None, penalty="constant")``: minimises
    ``sum_i |x_i - mu_{l_i}|^2`` plus w_ij for every violated link. Costs are in squared units of X.

    Parameters
    ----------
    n_clusters : int, default=8
    weight : float or (float, float), default=1.0
        Factor of the weights in the constraints. The paper halves the squared distances: its w is half of
        ours.
    inference : str or engine, default="auto"
        ``"icm"`` is the greedy assignment of the paper.
    inference_options, init, n_init, max_iter, tol, compute_gap, random_state, n_jobs, verbose
        As in :class:`HMRFKMeans`.

    Attributes
    ----------
    cluster_centers_, labels_, objective_, objectives_, violations_, n_iter_, converged_ : ndarray
        As in :class:`HMRFKMeans`, with all the others.

    References
    ----------
    S. Basu, A. Banerjee and R. J. Mooney, Active semi-supervision for pairwise constrained clustering,
    SDM 2004.

    Examples
    --------
    >>> from linkwise import Constraints, PCKMeans
    >>> X = [[0.0], [1.0], [2.0], [5.0], [6.0]]
    >>> links = Constraints(5, must_link=[(2, 3)], weight=1.0)
    >>> PCKMeans(2, random_state=0).fit(X, constraints=links).violations_
    array([ True])
    >>> PCKMeans(2, weight=20.0, random_state=0).fit(X, constraints=links).violations_
    array([False])
    """

    distortion = "euclidean"
    metric = None
    penalty = "constant"
    penalty_bound = "box"
    metric_weight = 1.0
    shrinkage = 1.0
    smoothing = 0.0

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weight: float | tuple[float, float] = 1.0,
        inference: str | Callable[..., Any] = "auto",
        inference_options: Mapping[str, Any] | None = None,
        init: str | ArrayLike = "auto",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-6,
        compute_gap: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.inference = inference
        self.inference_options = inference_options
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.compute_gap = compute_gap
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class MPCKMeans(HMRFKMeans):
    """K-means that learns a metric and weights links by distance (Bilenko, Basu & Mooney 2004).

    The same as ``HMRFKMeans(distortion="euclidean", penalty="distance")``: a broken must-link costs the
    squared distance of its rows under the metric, a broken cannot-link the largest squared distance less that
    of its rows.

    Parameters
    ----------
    n_clusters : int, default=8
    metric : {"diag", "full", "per_cluster"}, default="diag"
        The paper also has one metric for each cluster, ``"per_cluster"``.
    weight : float or (float, float), default=1.0
        Factor of the weights in the constraints.
    inference : str or engine, default="auto"
        ``"icm"`` is the greedy assignment of the paper.
    inference_options, penalty_bound, metric_weight, shrinkage, init, n_init, max_iter, tol, compute_gap
        As in :class:`HMRFKMeans`.
    random_state, n_jobs, verbose
        As in :class:`HMRFKMeans`.

    Attributes
    ----------
    cluster_centers_, metric_, labels_, objective_, objectives_, violations_ : ndarray
        As in :class:`HMRFKMeans`, with all the others.

    References
    ----------
    M. Bilenko, S. Basu and R. J. Mooney, Integrating constraints and metric learning in semi-supervised
    clustering, ICML 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, MPCKMeans
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.column_stack([y + 0.1 * rng.normal(size=100), rng.normal(size=100)])  # the second says nothing
    >>> links = Constraints(100, must_link=[(0, 1), (60, 70)], cannot_link=[(0, 60), (2, 75)], weight=1.0)
    >>> model = MPCKMeans(2, random_state=0).fit(X, constraints=links)
    >>> bool(model.metric_[0] > 50 * model.metric_[1])
    True
    """

    distortion = "euclidean"
    penalty = "distance"
    smoothing = 0.0

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str = "diag",
        weight: float | tuple[float, float] = 1.0,
        inference: str | Callable[..., Any] = "auto",
        inference_options: Mapping[str, Any] | None = None,
        init: str | ArrayLike = "auto",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-6,
        penalty_bound: str = "box",
        metric_weight: float = 1.0,
        shrinkage: float = 1.0,
        compute_gap: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.weight = weight
        self.inference = inference
        self.inference_options = inference_options
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.penalty_bound = penalty_bound
        self.metric_weight = metric_weight
        self.shrinkage = shrinkage
        self.compute_gap = compute_gap
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
