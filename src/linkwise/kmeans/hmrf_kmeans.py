"""HMRF-KMeans (Basu, Bilenko & Mooney 2004; Bilenko & Basu 2004)."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from linkwise._arrays import Floats
from linkwise._threads import blas_threads
from linkwise._validation import (
    align_rows,
    as_generator,
    check_choice,
    check_constraints,
    check_number,
    check_whole_number,
)
from linkwise.constraints import Constraints
from linkwise.inference.engines import find_labels_engine
from linkwise.kmeans.assignment import weighted_links
from linkwise.kmeans.descent import Descent, Run, ended_lower
from linkwise.kmeans.distortions import PENALTIES, chosen_penalty
from linkwise.kmeans.fitted import FittedKMeans


class HMRFKMeans(FittedKMeans):
    r"""K-means in which broken must-links and cannot-links have a cost, with a learned metric.

    The objective is (Bilenko & Basu 2004, Eq. 6, each pair once)

    .. math:: J = \sum_i D(x_i, \mu_{l_i})
              + \sum_{\mathrm{must-links}\ \mathrm{broken}} w_{ij} \varphi(x_i, x_j)
              + \sum_{\mathrm{cannot-links}\ \mathrm{broken}} w_{ij} (\varphi_{\max} - \varphi(x_i, x_j))
              + R

    with any of four distortions D and, for each, a pair penalty phi. R keeps a learned metric from vanishing.
    Labels, centres and metric are improved in turn; no step raises J. The labels of linked rows are
    inferred together, as those of a Markov random field.

    Parameters
    ----------
    n_clusters : int, default=8
    distortion : {"euclidean", "cosine", "kl", "i_divergence"}, default="euclidean"
        ``euclidean``: squared distance. ``cosine``: 1 - cosine, for directions. ``kl``, ``i_divergence``:
        divergences of counts from the mean of their cluster, rows normalised or not. All but ``euclidean``
        take sparse (CSR) data.
    metric : {"auto", None, "diag", "full", "per_cluster"}, default="auto"
        Metric to learn: none, one weight per feature, a full matrix, or weights of each cluster. The last two
        for ``euclidean`` only. ``auto``: ``diag`` for ``euclidean``, none for the others, whose rows have
        more features than a metric can be learned for.
    penalty : {"auto", "distance", "constant"}, default="auto"
        What a violated link costs: its weight times phi (must-link) or phi_max - phi (cannot-link), or its
        weight alone. ``auto``: ``constant`` for ``cosine`` and ``kl``, where texts are nearly all as far
        apart as any, so that a broken cannot-link would cost almost nothing; ``distance`` for the others,
        whose distances have a unit.
    weight : float or (float, float), default=1.0
        Factor of the weights in the constraints, one for all or one for must-links and one for cannot-links.
        Links of weight 1 with ``weight=1.0`` have the unit costs of the papers. Hard links stay hard.
    inference : {"auto", "icm", "belief_propagation", "lp", "exact"} or engine, default="auto"
        How labels of linked rows are found: a method of :func:`linkwise.inference.best_labels`.
    inference_options : dict or None, default=None
        Options of that method, e.g. ``{"max_iter": 50}``.
    init : {"auto", "k-means++", "constraints"} or (n_clusters, n_features) array_like, default="auto"
        First centres. ``k-means++``: rows far apart. ``constraints``: means of must-linked groups that are
        large, far apart and kept apart by cannot-links; too few are completed by single rows with
        cannot-links and by k-means++. ``auto``: both in turn, beginning with k-means++. Or these centres.
    n_init : int, default=10
        Number of starts; the one with the lowest objective is kept.
    max_iter : int, default=100
    tol : float, default=1e-6
        Stop when an iteration lowers the objective by less than this share of sum_i D.
    penalty_bound : {"box", "diameter"}, default="box"
        For ``euclidean``: the squared diagonal of the box around the data (with ``metric="full"`` the squared
        diameter of the ball around them), or the largest squared distance itself, which may take n^2 / 2
        distances in many dimensions.
    metric_weight : float, default=1.0
        Weight of the term that keeps the metric from vanishing: - log det A per row for ``euclidean``, a
        Rayleigh prior on the weights otherwise.
    shrinkage : float, default=1.0
        For ``per_cluster``: rows that a prior adds to every cluster, which keeps the metric of small
        clusters from degenerating.
    smoothing : float, default=0.1
        For ``kl`` and ``i_divergence``: share of a uniform row that is mixed into every row, so that a zero
        does not forbid a cluster.
    compute_gap : bool, default=False
        Bound, by a linear program if need be, how far every assignment step is from the best one.
    random_state : int, RandomState, Generator or None
    n_jobs : int or None
        Threads. Results do not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
        For ``cosine`` directions, for ``kl`` and ``i_divergence`` means of the smoothed rows.
    labels_ : (n_samples,) int64
        Labels of the training rows, using the links.
    metric_ : None, (n_features,), (n_features, n_features) or (n_clusters, n_features)
        The learned metric.
    objective_ : float
        J at the end.
    objectives_ : ndarray of 3 n_iter + 1 values
        J after every assignment, move of the centres and move of the metric. It never rises.
    n_iter_ : int
    converged_ : bool
    violations_ : (n_pairs,) bool
        Which links ``labels_`` violate, in the order of ``constraints.pairs``.
    inference_ : dict
        How the last assignment was found: ``method``; ``exact``, whether it is proven optimal for its centres
        and metric; ``converged``; ``n_iter``; ``parts``, the number of rows of each engine; ``details``, with
        ``compute_gap`` the ``gaps`` (n_iter + 1,) of all assignment steps: how much each costs above a lower
        bound of the best.
    n_reseeds_ : int
        Clusters that lost all rows and were given one.
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If the links were built from labels: the classes, a name of each cluster after its labelled rows, and
        their counts; also ``split_classes_`` and ``shared_clusters_``, as in :class:`PPC`.
    n_features_in_ : int

    See Also
    --------
    PCKMeans, MPCKMeans : the known algorithms, as settings of this one.

    Notes
    -----
    ``predict`` uses centres and metric alone; on the training rows it may differ from ``labels_``. A cluster
    without rows stays empty only if moving a row into it would not lower J.

    The papers minimise over the metric with a constant normaliser, which A = 0 would minimise; with
    - log det A per row the problem is well-posed. See the page of errata.

    References
    ----------
    S. Basu, M. Bilenko and R. J. Mooney, A probabilistic framework for semi-supervised clustering, KDD 2004.
    M. Bilenko and S. Basu, A comparison of inference techniques for semi-supervised clustering with hidden
    Markov random fields, SRL workshop of ICML 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from linkwise import Constraints, HMRFKMeans
    >>> from linkwise.metrics import pairwise_f1
    >>> X, y = load_wine(return_X_y=True)
    >>> hard = Constraints.sample(y, 40, random_state=0)
    >>> links = Constraints(len(y), hard.must_link, hard.cannot_link, weight=1.0)
    >>> model = HMRFKMeans(3, random_state=0).fit(scale(X), constraints=links)
    >>> int(model.violations_.sum()), model.inference_["exact"]
    (0, True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        distortion: str = "euclidean",
        metric: str | None = "auto",
        penalty: str = "auto",
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
        smoothing: float = 0.1,
        compute_gap: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.distortion = distortion
        self.metric = metric
        self.penalty = penalty
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
        self.smoothing = smoothing
        self.compute_gap = compute_gap
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows of X (n_samples, n_features), dense or CSR, under links between them."""
        must_weight, cannot_weight = self._check_parameters()
        distortion = self._make_distortion()
        X, constraints = align_rows(X, constraints)
        rows, origin = self._rows_to_fit(X, distortion)
        constraints = check_constraints(constraints, len(rows), y)
        links = None
        if constraints is not None:
            constraints.check(self.n_clusters)
            if constraints.n_pairs:
                links = weighted_links(constraints, must_weight, cannot_weight)
        n_threads = effective_n_jobs(self.n_jobs)
        descent = Descent(
            distortion,
            rows,
            links,
            chosen_penalty(self.penalty, self.distortion),
            self.inference,
            options=self.inference_options,
            n_threads=n_threads,
            want_bound=self.compute_gap,
        )
        starts = self._starts(distortion, rows, origin, constraints, as_generator(self.random_state))
        best = self._best_run(descent, starts)
        self._store(best, origin, constraints, 0 if links is None else len(links.rows))
        return self

    def _best_run(self, descent: Descent, starts: Iterator[tuple[Floats, np.random.Generator]]) -> Run:
        """Descend from every start, and return the run that ended lowest."""
        best: Run | None = None
        # More threads than asked for make the many small matrix products of a fit slower, not faster.
        with blas_threads(descent.n_threads):
            for start, rng in starts:
                run = descent.run(start, rng, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose)
                if ended_lower(run, best):
                    best = run
        assert best is not None
        return best

    def _check_parameters(self) -> tuple[float, float]:
        """Check what the constructor was given; returns the weights of must-links and cannot-links."""
        for name in ("n_clusters", "max_iter", "n_init"):
            check_whole_number(getattr(self, name), name)
        for name in ("tol", "shrinkage"):
            check_number(getattr(self, name), name)
        check_number(self.metric_weight, "metric_weight", positive=True)
        if not isinstance(self.smoothing, numbers.Real) or not 0.0 <= float(self.smoothing) < 1.0:
            raise ValueError(
                f"smoothing must lie in [0, 1), got {self.smoothing!r}; pass for example smoothing=0.1"
            )
        check_choice(self.penalty, "penalty", PENALTIES)
        check_choice(self.penalty_bound, "penalty_bound", ("box", "diameter"))
        self._check_init()
        find_labels_engine(self.inference, self.inference_options)
        pair = self.weight if isinstance(self.weight, (tuple, list)) else (self.weight, self.weight)
        if len(pair) != 2 or not all(isinstance(w, numbers.Real) and 0.0 <= w < np.inf for w in pair):
            raise ValueError(
                "weight must be a finite number >= 0, or two of them for must-links and cannot-links; "
                f"got {self.weight!r}; pass for example weight=1.0"
            )
        return float(pair[0]), float(pair[1])

    def _store(self, run: Run, origin: Floats, constraints: Constraints | None, n_linked: int) -> None:
        self.metric_ = run.metric
        self._store_run(run, origin, constraints)
        last = run.assignments[-1] if run.assignments else None
        details = {}
        if self.compute_gap:
            gaps = [answer.gap for answer in run.assignments] or [0.0] * (run.n_iter + 1)
            details["gaps"] = np.array(gaps)
        self._store_inference(last, n_linked, last is None or last.optimal, details)
        if not run.converged:
            warnings.warn(
                f"the objective was still falling after max_iter={self.max_iter} iterations; raise max_iter "
                "or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
