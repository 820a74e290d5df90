"""Spectral clustering whose affinities are changed by links (Lu & Carreira-Perpinan 2008)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._shared_work import SharedWork
from linkwise.constraints import Constraints
from linkwise.constraints.evidence import base_rate, truth_weights
from linkwise.graph import check_feasibility, group_labels
from linkwise.graph.parity import link_parity
from linkwise.spectral.base import SpectralClusterer, is_number
from linkwise.spectral.normalised_cut import ACTIVE, UNREACHED, CutSettings
from linkwise.spectral.rounding import labels_by_vote, leading_rows, link_reliability, trusted_weights
from linkwise.spectral.solvers import (
    GRAPH_AFFINITIES,
    BasisSolver,
    DenseSolver,
    LandmarkSolver,
    SignedLaplacianSolver,
    Solution,
    Solver,
    choose_solver,
)

SOLVERS = ("auto", "dense", "landmark", "signed_laplacian", "basis")

#: Solvers that do algorithm A with signed affinities on the neighbour graph.
_GRAPH_SOLVERS = ("signed_laplacian", "basis")

#: Diffusion time without links and with doubtful ones, and with sure ones; between them it rises with the
#: share of links that are expected to be wrong. On half A of the leaderboard's sets (400 rows, two draws) the
#: mean adjusted Rand index of rows without links at times 5, 10 and 20 was .643, .635, .632 with right links
#: and .574, .584, .603 with 15 % wrong.
_LONGEST, _SHORTEST, _RISE = 20.0, 5.0, 100.0

#: Softness below which a link is as hard as it gets.
_HARDEST = 1e-5


class ConstrainedSpectralClustering(SpectralClusterer):
    r"""Spectral clustering in which a link changes all affinities near its two ends.

    The kernel K is the covariance of a Gaussian process f whose sign is the label. A must-link observes
    f_i = f_j, a cannot-link f_i = -f_j, both up to the softness. The posterior covariance is the new affinity

    .. math:: \bar{K} = K - K V (E + V^T K V)^{-1} V^T K

    where V has a column for each link and E holds the squared softness. So a link also brings the neighbours
    of its two ends together, or apart. Soft links may be broken: ``violation_rate_`` is the share of them
    that the labels break. Hard links hold.

    Parameters
    ----------
    n_clusters : int, default=8
    affinity : {"self_tuning", "heat", "rbf", "precomputed"}, default="self_tuning"
        ``heat``: heat diffusion exp(-t Lap) on the graph of nearest neighbours, scaled to unit diagonal.
        ``self_tuning``: the same, with edges that weigh exp(-d² / (s_i s_j)), s_i being the distance of i to
        its 7th neighbour; ``heat`` lets all edges weigh the same, which suits the regular places of pixels.
        ``rbf``: Gaussian of width ``sigma``. ``precomputed``: X is the kernel, positive semi-definite. A link
        reaches as far as the kernel does.
    algorithm : {"auto", "A", "B"}, default="auto"
        ``A`` uses all links at once, right for two clusters. ``B`` uses cannot-links one at a time and keeps
        the smallest affinity, for more clusters. ``auto``: A for two clusters, else B.
    softness : float, default=1.0
        Standard deviation of a link relative to sqrt(mean diagonal of K). A link of weight w has softness /
        sqrt(w); a hard link counts as w = 1. With small values a few wrong links do much harm. The paper uses
        1e-5.
    base_rates : "auto", float or None, default="auto"
        What a soft answer means before its certainty is used. A certainty is P(answer | truth); affinities
        need P(truth | answer), which depends on how often pairs like this are the same: of ten equal classes
        only one pair in ten is, so most answers "same, 80 % sure" about pairs drawn at random are wrong. A
        number is that share; "auto" estimates it from the answers, starting from 1 / n_clusters; None takes a
        certainty for P(truth | answer). Hard links are not changed.
    negative_affinities : {"clip", "signed"}, default="clip"
        What to do with negative affinities: set them to 0 (the paper), or keep them and count them without
        sign in the degrees. The solvers "signed_laplacian" and "basis" cannot clip and always keep them.
    solver : {"auto", "dense", "landmark", "signed_laplacian", "basis"}, default="auto"
        ``dense`` stores N x N matrices. ``landmark`` does so for ``n_landmarks`` points and all ends of
        links, and extends. ``basis`` works in the span of ``n_basis`` eigenvectors of the graph, and answers
        a changed set of links fastest; ``signed_laplacian`` makes links edges of the graph. Both are for
        algorithm A and a graph of neighbours. ``auto``: dense up to 3000 rows, landmark beyond.
    n_neighbors : int, default=10
        Of the graph, and of the mean that extends it to new rows.
    diffusion_time : "auto" or float, default="auto"
        t of the heat kernel. Certain links need not reach far to be useful; doubtful ones should, so that
        many neighbours can outweigh a wrong one: "auto" is 5 for hard links, 5 + 100 (1 - g) for links of
        mean certainty g up to 20, and 20 without links or for the solvers "basis" and "signed_laplacian".
    sigma : "auto" or float, default="auto"
        Width of the Gaussian; "auto" is the median distance to the 7th nearest neighbour.
    degree_regularisation : float, default=0.0
        Adds this share of the mean degree, spread evenly, to the affinities. It helped algorithm B with a
        Gaussian kernel and many links, and made images much worse; solvers dense and landmark only.
    n_extra_eigenvectors : int, default=2
        With links and k-means, labels are made of n_clusters eigenvectors and of up to this many more, and
        those that keep most links are used. Links often cut off a small group, which then takes the place of
        a cluster; this avoids it. 0 is the paper's method.
    reliability_subsets : int, default=0
        Learn which links to trust: this many clusterings, each with 60 % of the links drawn at random, are
        checked on the links they did not use, and a link that most of them break counts a twentieth. Five are
        enough. For links of which some are wrong; each costs one fit.
    n_landmarks : int, default=1000
    n_basis : int, default=40
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
    n_init : int, default=10
        Starts of k-means.
    keep_hard_links : bool, default=True
        Whether labels keep every hard link: rows of the embedding are then clustered by k-means under hard
        links, as in COPKMeans. Other ``assign_labels`` give its first centres. False is the paper's method,
        for which a hard link is evidence that the labels may break.
    eigen_tol : float, default=1e-4
        Residual of the eigenvectors.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : (n_samples,) int64
    affinity_matrix_ : (n_samples, n_samples) float64
        max(0, Kbar), or Kbar for ``negative_affinities="signed"``; only with the dense solver.
    embedding_ : (n_samples, m) float64
        Eigenvectors of the normalised affinity, rows of length one. m is n_clusters, or more if the links
        chose ``n_extra_eigenvectors``.
    embedding_centers_ : (n_clusters, m) float64
        Mean row of each cluster.
    eigenvalues_ : (m,) float64
        Of the normalised affinity, largest first; for "signed_laplacian" those of that matrix, smallest
        first.
    violations_ : (n_pairs,) bool
        Which links ``labels_`` break, in the order of ``constraints.pairs``.
    violation_rate_ : float
        Share of the links that ``labels_`` break; 0 without links.
    objective_ : float
        The sum of ``eigenvalues_``, which the embedding maximises (minimises for "signed_laplacian"). With
        n_clusters eigenvectors, n_clusters minus it is the least normalised cut that any clustering of this
        affinity could have.
    objectives_ : (r,) float64
        The same whenever the eigensolver improved its vectors; one value for a complete decomposition.
    diffusion_time_ : float
        t of the heat kernel.
    base_rate_ : float
        Share of the pairs asked about that are the same, as used for soft links; NaN for ``base_rates=None``.
    n_redundant_ : int
        Links implied by others (with algorithm B: must-links implied by must-links).
    unbalanced_components_ : list of (.,) int64 arrays
        Groups of linked points whose links cannot all hold with two clusters; empty for algorithm B.
    trace_ratio_ : float
        Variance that the links leave, trace(Kbar) / trace(K); of the landmarks for that solver, NaN for
        "signed_laplacian".
    ineffective_links_ : (n_pairs,) bool
        Links that have no effect on points other than their own two, in the order of ``constraints.pairs``
        (solvers dense and landmark): must-links between points the kernel cannot tell apart, and links the
        kernel does not spread.
    link_reliability_ : (n_pairs,) float64
        Share of the clusterings without the link in which it holds; NaN for links that every clustering used.
        Only with ``reliability_subsets``.
    algorithm_, solver_ : str
        What ``auto`` chose.
    converged_ : bool
        Whether the eigenvectors reached ``eigen_tol``.
    n_iter_ : int
        Products of the eigensolver with a block of vectors; 0 for a complete decomposition of a small matrix.
    classes_, cluster_names_, contingency_ : (L,), (K,) and (L, K) ndarrays
        If the links were built from labels: the classes, a name of each cluster after its labelled rows, and
        their counts; also ``split_classes_`` and ``shared_clusters_``, as in :class:`PPC`.
    n_features_in_ : int

    See Also
    --------
    SpectralLearning : the baseline that changes only the linked entries.

    Notes
    -----
    In the affinities, hard links are only as strong as links of weight 1. The labels keep them. ``predict``
    uses no links: for linked training rows it may differ from ``labels_``.

    References
    ----------
    Z. Lu and M. A. Carreira-Perpinan, Constrained spectral clustering through affinity propagation, CVPR
    2008. Several printed equations are wrong; see the page of errata.

    Examples
    --------
    >>> from linkwise import ConstrainedSpectralClustering, Constraints
    >>> from linkwise.datasets import make_rings
    >>> from linkwise.metrics import rand_score
    >>> X, y = make_rings(200, random_state=0)
    >>> model = ConstrainedSpectralClustering(2, random_state=0).fit(X)
    >>> round(rand_score(y, model.labels_), 2)
    0.5
    >>> model = model.update(Constraints.sample(y, 60, overlap=True, random_state=0))
    >>> rand_score(y, model.labels_) > 0.85
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: str = "self_tuning",
        algorithm: str = "auto",
        softness: float = 1.0,
        base_rates: str | float | None = "auto",
        negative_affinities: str = "clip",
        solver: str = "auto",
        n_neighbors: int = 10,
        diffusion_time: str | float = "auto",
        sigma: str | float = "auto",
        degree_regularisation: float = 0.0,
        n_extra_eigenvectors: int = 2,
        reliability_subsets: int = 0,
        n_landmarks: int = 1000,
        n_basis: int = 40,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        keep_hard_links: bool = True,
        eigen_tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.algorithm = algorithm
        self.softness = softness
        self.base_rates = base_rates
        self.negative_affinities = negative_affinities
        self.solver = solver
        self.n_neighbors = n_neighbors
        self.diffusion_time = diffusion_time
        self.sigma = sigma
        self.degree_regularisation = degree_regularisation
        self.n_extra_eigenvectors = n_extra_eigenvectors
        self.reliability_subsets = reliability_subsets
        self.n_landmarks = n_landmarks
        self.n_basis = n_basis
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.keep_hard_links = keep_hard_links
        self.eigen_tol = eigen_tol
        self.random_state = random_state

    def _whole_numbers(self) -> dict[str, int]:
        return {
            **super()._whole_numbers(),
            "n_extra_eigenvectors": 0,
            "reliability_subsets": 0,
            "n_landmarks": 2,
            "n_basis": 2,
        }

    def _real_numbers(self) -> dict[str, bool]:
        known = {**super()._real_numbers(), "softness": False, "degree_regularisation": False}
        if isinstance(self.diffusion_time, str) and self.diffusion_time == "auto":
            del known["diffusion_time"]
        return known

    def _choices(self) -> dict[str, tuple[str, ...]]:
        return {
            **super()._choices(),
            "algorithm": ("auto", "A", "B"),
            "negative_affinities": ("clip", "signed"),
            "solver": SOLVERS,
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        rates = self.base_rates
        if rates is None or (isinstance(rates, str) and rates == "auto"):
            return
        if not (is_number(rates) and 0.0 < float(rates) < 1.0):
            raise ValueError(
                f'base_rates must be "auto", None or a share in (0, 1), got {rates!r}; pass one of these'
            )

    def fit(self, X: Any, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows of X (n_samples, n_features), dense or sparse, under links between them.

        For ``affinity="precomputed"`` X is the kernel, (n_samples, n_samples).

        Raises
        ------
        InfeasibleConstraints
            If no labels keep the hard links; ``witness`` has a few of them that contradict each other.
        """
        self._solve(*self._take(X, y, constraints))
        return self

    def _fit_sharing(self, work: SharedWork, X: Any, constraints: Constraints | None) -> Self:
        """``fit`` that shares its kernel with other fits to the same rows."""
        self._solve(*self._take(X, None, constraints), work)
        return self

    def _take(
        self, X: Any, y: Any, constraints: Constraints | None
    ) -> tuple[Ints, Floats, Constraints | None]:
        """Check data and links, and forget those of an earlier fit."""
        data, pairs, weights, constraints = self._checked_data(X, y, constraints)
        self.algorithm_ = self.algorithm
        if self.algorithm == "auto":
            self.algorithm_ = "A" if self.n_clusters <= 2 else "B"
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = choose_solver(data.shape[0], self.affinity)
        self._check_solver()
        if self.softness < _HARDEST:
            warnings.warn(
                f"softness={self.softness:g} is treated as {_HARDEST:g}, the hardest a link can be",
                UserWarning,
                stacklevel=3,
            )
        self._seed = self._new_seed()
        self._data = data
        self.__dict__.pop("_solver", None)  # of an earlier fit
        return pairs, weights, constraints

    def update(self, constraints: Constraints | None) -> Self:
        """Cluster the same rows under other links, without building the kernel or the graph again.

        The result is that of ``fit`` with these links and the same random state. With
        ``diffusion_time="auto"`` links of another mean certainty may need another kernel, which is built.

        Parameters
        ----------
        constraints : Constraints or None
            All links now in force, the earlier ones included: ``links + Constraints(n, must_link=[(i, j)])``.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if not hasattr(self, "_solver"):
            raise ValueError("this model was loaded from disk, without its graph; call fit to change links")
        pairs, weights, constraints = self._checked_links(constraints, len(self.labels_))
        self._solve(pairs, weights, constraints)
        return self

    def _check_solver(self) -> None:
        if self.solver_ not in _GRAPH_SOLVERS:
            return
        if self.affinity not in GRAPH_AFFINITIES:
            raise ValueError(
                f"solver={self.solver_!r} works on the neighbour graph and needs affinity='heat' or "
                f"'self_tuning', got {self.affinity!r}; use solver='landmark'"
            )
        if self.algorithm_ == "B":
            raise ValueError(
                f"solver={self.solver_!r} does algorithm A only, and algorithm={self.algorithm!r} with "
                f"n_clusters={self.n_clusters} means B; use solver='landmark' or algorithm='A'"
            )
        if self.degree_regularisation:
            raise ValueError(
                f"degree_regularisation needs solver='dense' or 'landmark', got {self.solver_!r}"
                "; pass one of these, or degree_regularisation=0"
            )
        if self.solver_ == "basis" and self.n_basis < self.n_clusters:
            raise ValueError(
                f"n_basis={self.n_basis} eigenvectors cannot separate n_clusters={self.n_clusters}; "
                "use a larger basis"
            )

    def _prepare(self, weights: Floats, work: SharedWork | None) -> None:
        """Build the solver for the diffusion time that suits the links, if there is none yet."""
        time = self._time_for(weights)
        if not hasattr(self, "_solver") or time != getattr(self, "diffusion_time_", None):
            self.diffusion_time_ = time
            self._solver = self._new_solver(self._data, work)

    def _time_for(self, weights: Floats) -> float:
        """Diffusion time, see ``diffusion_time``; in whole numbers, so that like links share a kernel."""
        if not isinstance(self.diffusion_time, str):
            return float(self.diffusion_time)
        fixed = self.affinity not in GRAPH_AFFINITIES or self.solver_ in _GRAPH_SOLVERS
        if fixed or not len(weights):
            return _LONGEST
        wrong = float(expit(-2.0 * np.abs(weights)).mean())
        return min(float(round(_SHORTEST + _RISE * wrong)), _LONGEST)

    def _new_solver(self, data: Any, work: SharedWork | None) -> Solver:
        settings = CutSettings(
            self._n_eigenvectors(data.shape[0]), self.algorithm_, self.negative_affinities,
            float(self.softness), float(self.degree_regularisation), float(self.eigen_tol),
        )  # fmt: skip
        affinity = self._affinity_settings(self.diffusion_time_)
        if self.solver_ == "dense":
            return DenseSolver(data, affinity, settings, self._seed, work)
        if self.solver_ == "landmark":
            return LandmarkSolver(data, affinity, settings, self._seed, int(self.n_landmarks))
        if self.solver_ == "basis":
            return BasisSolver(data, affinity, settings, self._seed, int(self.n_basis))
        return SignedLaplacianSolver(data, affinity, settings, self._seed)

    def _n_eigenvectors(self, n_samples: int) -> int:
        """How many to compute: some more than clusters, for links to choose from."""
        chooses = self.assign_labels == "kmeans" and self.n_clusters > 1
        extra = int(self.n_extra_eigenvectors) if chooses else 0
        most = min(n_samples, int(self.n_basis)) if self.solver_ == "basis" else n_samples
        return min(int(self.n_clusters) + extra, most)

    def _solve(
        self, pairs: Ints, weights: Floats, constraints: Constraints | None, work: SharedWork | None = None
    ) -> None:
        hard = self._hard_links(constraints)
        self._prepare(weights, work)
        self.__dict__.pop("link_reliability_", None)  # of an earlier fit
        trusted = self._corrected(weights)
        if self.reliability_subsets:
            self.link_reliability_ = link_reliability(
                lambda *subset: self._labels(self._solver.solve(*subset), *subset)[0],
                pairs, trusted, int(self.reliability_subsets), np.random.default_rng(self._seed),
            )  # fmt: skip
            trusted = trusted_weights(trusted, self.link_reliability_)
        solution = self._solver.solve(pairs, trusted)
        self._extension = solution.extension
        self.trace_ratio_ = solution.trace_ratio
        self.ineffective_links_ = solution.effects != ACTIVE
        self.converged_ = solution.converged
        self.n_iter_ = solution.n_iter
        if solution.affinity is not None:
            self.affinity_matrix_ = solution.affinity
        else:
            self.__dict__.pop("affinity_matrix_", None)  # of an earlier fit
        n_samples = len(solution.rows)
        if self.algorithm_ == "B":
            # Must-links alone cannot contradict each other: those beyond a spanning forest are redundant.
            must_link = pairs[weights > 0]
            self.n_redundant_ = len(must_link) - (n_samples - group_labels(n_samples, must_link)[1])
            self.unbalanced_components_ = []
        else:
            parity = link_parity(n_samples, pairs, weights)
            self.n_redundant_ = int(len(parity.independent) - parity.independent.sum())
            self.unbalanced_components_ = parity.unbalanced
        labels, n_columns = self._labels(solution, pairs, trusted)
        if hard is not None:
            labels = self._new_labels(leading_rows(solution.rows, n_columns), self._seed, hard, labels)
        self.eigenvalues_ = solution.eigenvalues[:n_columns]
        self._store_labels(leading_rows(solution.rows, n_columns), labels, solution.history, constraints)
        self._warn(solution, pairs, weights)

    def _corrected(self, weights: Floats) -> Floats:
        """Weights of P(truth | answer), see ``base_rates``."""
        if self.base_rates is None:
            self.base_rate_ = float("nan")
            return weights
        estimated = isinstance(self.base_rates, str)
        self.base_rate_ = base_rate(weights, int(self.n_clusters)) if estimated else float(self.base_rates)
        return truth_weights(weights, self.base_rate_)

    def _labels(self, solution: Solution, pairs: Ints, weights: Floats) -> tuple[Ints, int]:
        """Labels and the number of eigenvectors they were made of."""
        n_columns = int(self.n_clusters)
        if len(pairs) and solution.rows.shape[1] > n_columns:
            return labels_by_vote(
                solution.rows, n_columns, pairs, weights, n_init=self.n_init, seed=self._seed
            )
        return self._new_labels(leading_rows(solution.rows, n_columns), self._seed), n_columns

    def _warn(self, solution: Solution, pairs: Ints, weights: Floats) -> None:
        """Say what the caller should know about this solution."""
        if not solution.converged:
            warnings.warn(
                f"the eigenvectors did not reach eigen_tol={self.eigen_tol:g} in {solution.n_iter} products; "
                "raise eigen_tol, or check the affinity for scales that are too narrow",
                ConvergenceWarning,
                stacklevel=4,
            )
        for note in self._notes(solution, pairs, weights):
            warnings.warn(note, UserWarning, stacklevel=4)

    def _notes(self, solution: Solution, pairs: Ints, weights: Floats) -> Iterator[str]:
        if self.algorithm_ == "A" and self.n_clusters > 2 and (weights < 0).sum() > 1:
            yield (
                "algorithm A takes the enemy of an enemy for a friend, which is wrong for n_clusters="
                f"{self.n_clusters}; use algorithm='B' (or 'auto')"
            )
        if self.unbalanced_components_:
            witness = check_feasibility(len(solution.rows), pairs, weights, 2).witness
            if witness is not None:
                yield f"the hard links cannot all hold with two sides: {witness.message}"
        if solution.n_wiped:
            yield (
                f"the links leave {solution.n_wiped} points without variance (trace ratio "
                f"{solution.trace_ratio:.2g}), so that their affinities are near rounding; raise softness "
                f"(now {self.softness:g}) or use fewer links"
            )
        unreached = solution.effects == UNREACHED
        if unreached.any():
            first = tuple(pairs[np.argmax(unreached)].tolist())
            yield (
                f"{unreached.sum()} of {len(weights)} links, e.g. {first}, have no effect on other points: "
                "the kernel is too narrow there to reach a neighbour; raise sigma or diffusion_time"
            )
        if solution.n_parts > self.n_clusters:
            yield (
                f"the neighbour graph falls into {solution.n_parts} parts that no must-link joins, but "
                f"n_clusters={self.n_clusters}: which parts share a cluster is arbitrary; raise n_neighbors"
            )
