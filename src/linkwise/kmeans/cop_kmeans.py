"""K-means that keeps every link (Wagstaff et al. 2001), with an assignment step that finds what exists."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from linkwise._arrays import Floats
from linkwise._validation import align_rows, as_generator, check_constraints, check_number, check_whole_number
from linkwise.constraints import Constraints
from linkwise.exceptions import ApproximationWarning
from linkwise.kmeans.descent import Run, ended_lower
from linkwise.kmeans.distortions.euclidean import SquaredEuclidean
from linkwise.kmeans.fitted import FittedKMeans
from linkwise.kmeans.hard import HardLinks, hard_links
from linkwise.kmeans.hard.descent import run_hard_descent, time_is_over


class COPKMeans(FittedKMeans):
    """K-means under hard must-links and cannot-links, none of which is ever broken.

    Minimises the inertia ``sum_i |x_i - mu_{l_i}|^2`` over the labels that keep all links. The algorithm of
    Wagstaff et al. assigns rows one by one and fails when one of them has no cluster left, although earlier
    choices could have left one. Here rows joined by must-links are assigned together, and conflicts about
    cannot-links are resolved by exact search: the labels of each step are the cheapest of all that keep the
    links, and the inertia never rises. If no labels keep the links, the error contains the proof.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"auto", "k-means++", "constraints"} or (n_clusters, n_features) array_like, default="auto"
        First centres. ``k-means++``: rows far apart. ``constraints``: means of must-linked groups that are
        large, far apart and kept apart by cannot-links; too few are completed by single rows with
        cannot-links and by k-means++. ``auto``: both in turn, beginning with k-means++. Or these centres.
    n_init : int, default=10
        Number of starts; the one with the lowest inertia is kept.
    max_iter : int, default=300
    tol : float, default=1e-4
        Stop when the squared moves of all centres add up to less than this share of the mean variance of the
        features.
    node_budget : int, default=200000
        Nodes of the search that decides whether any labels keep the links. The question is NP-hard for three
        or more clusters, but hardly ever difficult.
    time_limit : float, default=30.0
        Seconds for the whole fit, all starts and iterations together, that the labels of linked rows may
        take. A twentieth of them is the most that one step spends on a proof that its labels are the best;
        after four fifths of them, good labels that keep the links are taken without a proof; when they are
        over, the fit ends within about a second, converged or not. The passes over the rows are those of
        plain K-means and do not count.
    random_state : int, RandomState, Generator or None
    n_jobs : int or None
        Threads. Results do not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
    labels_ : (n_samples,) int64
        Labels of the training rows. They keep every link.
    inertia_, objective_ : float
        Sum of squared distances of the rows to the centres of their clusters.
    objectives_ : ndarray of 2 n_iter + 1 values
        Inertia after every assignment and every move of the centres. It never rises.
    n_iter_ : int
        How often the centres were moved.
    converged_ : bool
    violations_ : (n_pairs,) bool
        False throughout.
    inference_ : dict
        How labels of linked rows were found: ``method``, the engines of rows in conflict in the last
        assignment; ``exact``, whether every assignment step is proven optimal for its centres; ``converged``;
        ``n_iter``; ``parts``, the number of rows of each engine in the last step; ``details`` with
        ``n_unproven``, the assignment steps that are not proven optimal.
    n_reseeds_ : int
        Clusters that lost all rows and were given a row or a must-linked group.
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If the links were built from labels: the classes, a name of each cluster after its labelled rows, and
        their counts; also ``split_classes_`` and ``shared_clusters_``, as in :class:`PPC`.
    n_features_in_ : int

    See Also
    --------
    PCKMeans : for soft links, which may be broken at a cost.

    Notes
    -----
    ``predict`` takes the nearest centre and uses no links. On the training rows it may differ from
    ``labels_``.

    All links must be hard. Soft links are refused, because this algorithm could only change their meaning.

    References
    ----------
    K. Wagstaff, C. Cardie, S. Rogers and S. Schroedl, Constrained k-means clustering with background
    knowledge, ICML 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import Constraints, COPKMeans
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Constraints.sample(y, 150, overlap=True, random_state=0)
    >>> model = COPKMeans(3, random_state=0).fit(X, constraints=links)
    >>> links.satisfaction(model.labels_), model.inference_["exact"]
    (1.0, True)
    """

    distortion = "euclidean"
    metric = None
    metric_ = None
    metric_weight = 1.0
    shrinkage = 1.0
    smoothing = 0.0
    penalty_bound = "box"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        node_budget: int = 200_000,
        time_limit: float = 30.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.node_budget = node_budget
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows of X (n_samples, n_features) under hard links between them.

        Raises
        ------
        InfeasibleConstraints
            If no labels keep the links; ``witness`` has a few of them that contradict each other.
        InferenceBudgetExceeded
            If neither labels that keep the links nor a proof that there are none was found.
        ValueError
            If a link is soft.

        Warns
        -----
        ApproximationWarning
            If an assignment step is not proven optimal. Its labels keep the links nevertheless.
        ConvergenceWarning
            If the centres were still moving after ``max_iter`` iterations or ``time_limit`` seconds, if the
            time did not suffice for all starts, or if a cluster has no rows.
        """
        self._check_parameters()
        distortion = SquaredEuclidean(None, self.n_clusters)
        X, constraints = align_rows(X, constraints)
        rows, origin = self._rows_to_fit(X, distortion)
        constraints = check_constraints(constraints, len(rows), y)
        links = self._hard_links(constraints)
        rng = as_generator(self.random_state)
        best: Run | None = None
        n_starts, search_seconds = 0, 0.0
        hopeless = None if links is None else np.zeros(len(links.sizes), dtype=bool)
        for start, _ in self._starts(distortion, rows, origin, constraints, rng):
            if best is not None and time_is_over(search_seconds, self.time_limit):
                break
            n_starts += 1
            run = run_hard_descent(
                distortion,
                rows,
                links,
                start,
                tol=self.tol * float(rows.X.var(axis=0).mean()),
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                search_seconds=search_seconds,
                hopeless=hopeless,
                n_threads=effective_n_jobs(self.n_jobs),
                verbose=self.verbose,
            )
            search_seconds += sum(answer.search_seconds for answer in run.assignments)
            if ended_lower(run, best):
                best = run
        assert best is not None
        self._store(best, origin, constraints, n_starts)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter", "n_init", "node_budget"):
            check_whole_number(getattr(self, name), name)
        for name in ("tol", "time_limit"):
            check_number(getattr(self, name), name)
        self._check_init()

    def _hard_links(self, constraints: Constraints | None) -> HardLinks | None:
        """The links, contracted; None if there are none."""
        if constraints is None or constraints.n_pairs == 0:
            return None
        soft = np.flatnonzero(np.isfinite(constraints.weights))
        if soft.size:
            i, j = constraints.pairs[soft[0]].tolist()
            weight = float(constraints.weights[soft[0]])
            raise ValueError(
                f"COPKMeans keeps hard links only, but {soft.size} of {constraints.n_pairs} links are soft, "
                f"e.g. ({i}, {j}) with weight {weight:.3g}; use PCKMeans, which weighs soft links, or make "
                "them hard with Constraints(n, links.must_link, links.cannot_link)"
            )
        return hard_links(constraints, self.n_clusters, node_budget=self.node_budget)

    def _store(self, run: Run, origin: Floats, constraints: Constraints | None, n_starts: int) -> None:
        self._store_run(run, origin, constraints)
        self.inertia_ = self.objective_
        last = run.assignments[-1] if run.assignments else None
        n_unproven = sum(not answer.optimal for answer in run.assignments)
        n_linked = 0 if last is None or constraints is None else len(np.unique(constraints.pairs))
        self._store_inference(last, n_linked, n_unproven == 0, {"n_unproven": n_unproven})
        if n_unproven:
            warnings.warn(
                f"{n_unproven} of {len(run.assignments)} assignment steps could not be proven "
                f"optimal within time_limit={self.time_limit} seconds; all links are kept, but labels of "
                "lower inertia may exist; raise time_limit",
                ApproximationWarning,
                stacklevel=3,
            )
        if not run.converged:
            if run.n_iter == self.max_iter:
                reason = f"after max_iter={self.max_iter} iterations; raise max_iter or tol"
            else:
                reason = f"when time_limit={self.time_limit} seconds were over; raise time_limit"
            warnings.warn(f"the centres were still moving {reason}", ConvergenceWarning, stacklevel=3)
        if isinstance(self.init, str) and n_starts < self.n_init:
            warnings.warn(
                f"time_limit={self.time_limit} seconds sufficed for {n_starts} of n_init={self.n_init} "
                "starts; raise time_limit or lower n_init",
                ConvergenceWarning,
                stacklevel=3,
            )
