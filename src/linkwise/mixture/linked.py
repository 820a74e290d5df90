"""LinkedGaussianMixture, the base of PPC and ConstrainedEM: checks, starts, EM and its results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from linkwise._arrays import AnyFloats, Bools, Floats, Ints
from linkwise._compat import CallbackSupportMixin, fit_task, with_callbacks
from linkwise._threads import Workers
from linkwise._transformers import LinkedTransformerMixin
from linkwise._validation import (
    align_rows,
    check_choice,
    check_constraints,
    check_number,
    check_whole_number,
    validate_rows,
)
from linkwise.constraints import Constraints
from linkwise.constraints.naming import NamedClustersMixin
from linkwise.exceptions import ApproximationWarning
from linkwise.graph import group_labels
from linkwise.inference import PottsField, best_labels
from linkwise.inference.engines import find_marginals_engine
from linkwise.mixture.em import (
    EMRun,
    MixtureParameters,
    attempt,
    best_run,
    run_em,
    warn_unless_converged,
)
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    check_shrinkage,
    correlations_count,
    most_unlabelled_rows,
    prior_of_moments,
    pseudo_rows,
)
from linkwise.mixture.gaussian.source import RowsInMemory, Source
from linkwise.mixture.links.em_step import MIXING_METHODS, LinkedStep, automatic_weight
from linkwise.mixture.links.noise import LinkNoise
from linkwise.mixture.links.occupancy import loss_reason, occupied_clusters
from linkwise.mixture.links.rows import (
    LinkedPosterior,
    LinkedRows,
    pair_places,
    select_linked_rows,
    sum_components,
)
from linkwise.mixture.links.starts import (
    INIT_METHODS,
    GivenParts,
    are_factors,
    assigned_start,
    component_start_labels,
    given_start,
    links_lead,
    restart_labels,
)
from linkwise.mixture.links.weights import GRID_LARGEST
from linkwise.mixture.prediction import FittedMixture

#: Nats by which the run with heavier linked rows must predict the links better to be kept: odds of 20. It was
#: fitted to these links, so it always predicts them a little better; on iris, whose classes are Gaussian, the
#: ARI falls from .93 to .90 if it is kept in any case (30 pairs of certainty .9, eight draws).
_LEAST_GAIN = 3.0


class RunKeeper(Protocol):
    """Stores runs of EM, by the number of their start, so that an interrupted fit can go on."""

    def load(self, number: int, step: LinkedStep) -> EMRun | None:
        """Return a stored run and restore its step; None if there is none."""

    def save(self, number: int, step: LinkedStep, run: EMRun) -> None:
        """Store a run after an iteration."""

    def remove(self) -> None:
        """Forget all runs: the fit is done."""


class LinkedGaussianMixture(NamedClustersMixin, LinkedTransformerMixin, CallbackSupportMixin, FittedMixture):
    """A Gaussian mixture fitted by EM to data whose rows may carry links.

    Subclasses supply the constructor, and may say how links enter: ``_linked_rows``, ``_link_noise``.
    """

    #: Work that inference may take under hard links, see ``LinkedStep``; None for its own limit.
    _max_work: float | None = None

    def _linked_rows(self, constraints: Constraints, noise: LinkNoise | None = None) -> LinkedRows:
        judged = None if noise is None else noise.pairs
        return select_linked_rows(constraints, self._cluster_of, judged=judged)

    def _link_noise(self, constraints: Constraints | None) -> LinkNoise | None:
        """Return the answers whose error rates are learned; None learns nothing."""
        return None

    def _store_noise(self, noise: LinkNoise | None, coupling: Floats, agreement: Floats) -> None:
        """Store what was learned of the answers: their couplings (J,), and P(same) of each link (m,)."""

    # Fitting

    def fit(self, X: ArrayLike, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Fit the mixture to X (n_samples, n_features) and links between its rows; y is ignored."""
        self.fit_predict(X, y, constraints=constraints)
        return self

    @with_callbacks
    def fit_predict(self, X: ArrayLike, y: Any = None, *, constraints: Constraints | None = None) -> Ints:
        """Fit the mixture and return ``labels_`` of the training rows, which use the links.

        Without constraints this is the same as ``predict(X)``.
        """
        X, constraints = align_rows(X, constraints)
        data: AnyFloats = validate_rows(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        self._check_parameters(len(data))
        constraints = check_constraints(constraints, len(data), y)
        names = getattr(self, "feature_names_in_", None)
        return self._fit_source(lambda rows: RowsInMemory(data, self.reg_covar, names), constraints)

    def _fit_source(self, make_source: Callable[[Ints], Source], constraints: Constraints | None) -> Ints:
        """Fit to rows wherever they are; ``make_source`` is told which of them carry links or labels."""
        labelled = constraints
        if constraints is not None:
            constraints.check(self._n_clusters)
        noise = self._link_noise(constraints)
        if constraints is not None and constraints.n_pairs == 0 and (noise is None or not len(noise.pairs)):
            constraints = None
        random_state = check_random_state(self.random_state)
        linked = None if constraints is None else self._linked_rows(constraints, noise)
        coupling = np.empty(0) if linked is None else linked.coupling
        if noise is not None:
            coupling = noise.coupling
        source = make_source(_known_rows(linked, labelled))
        seed = int(random_state.randint(2**31))
        n_jobs = effective_n_jobs(self.n_jobs)
        prior = self._covariance_prior(source)
        starts, from_data = self._starts(source, constraints, coupling, prior, random_state)
        # Few linked rows make no covariance of their own, so what they lead to is shrunk in any case.
        lead_prior = prior
        if linked is not None and prior is None:
            lead_prior = self._prior(source, "auto")
        weight = 1.0 if isinstance(self.linked_weight, str) else float(self.linked_weight)
        heavier = self._heavier_weight(linked, source) if noise is None else 1.0
        task = fit_task(self, len(starts) + (heavier > 1.0))
        # Threads go to the restarts if there are several, otherwise to the blocks of rows.
        source.workers = Workers(n_jobs if len(starts) == 1 else 1)
        step = LinkedStep(
            source, linked, self.covariance_type, self.reg_covar, self.inference, self.mixing,
            noise, seed, len(starts), self.inference_options, prior, weight, self._max_work,
        )  # fmt: skip
        ended: list[tuple[EMRun, LinkedStep]] = []
        keeper = self._keeper(source, constraints)

        def run(numbered: tuple[int, MixtureParameters]) -> EMRun:
            number, start = numbered
            restart = task.subtask("restart", number, self.max_iter)
            again = number == len(starts)
            own = step.weighted(heavier) if again else step.fresh()
            resumed = None if keeper is None else keeper.load(number, own)
            if from_data and resumed is None and not again:
                if links_lead(self.init_params, number, constraints):
                    start = own.from_links(start, lead_prior)
                start = self._given_start(start, source.n_features, coupling)
            if keeper is not None and resumed is None:
                keeper.save(number, own, EMRun(start, [], False, 0, start=start))
            found = run_em(
                own,
                start,
                tol=self.tol,
                max_iter=self.max_iter,
                settle=linked is not None,
                verbose=self.verbose,
                task=restart,
                resume=resumed,
                after=None if keeper is None else partial(keeper.save, number, own),
            )
            if not np.isfinite(found.lower_bounds[-1]):
                # Gibbs, and engines of the user, may have no partition function to compare runs by.
                found.judged = own.judge(found.parameters)
            # Where error rates are learned, runs differ in them, and the objective already weighs the links:
            # with the evidence, rates learned on iris erred by .054 on average, without it by .027.
            if (len(starts) > 1 or heavier > 1.0) and noise is None:
                found.link_evidence = own.link_evidence(found.parameters)
            restart.end(found.parameters.fitted_attributes)
            ended.append((found, own))
            return found

        best = best_run(
            run, list(enumerate(starts)), tol=self.tol, max_iter=self.max_iter,
            n_jobs=n_jobs if len(starts) > 1 else None, verbose=self.verbose, warn=False,
        )  # fmt: skip
        if heavier > 1.0 and not best.stopped:
            assert best.start is not None
            other = attempt(run, (len(starts), best.start))
            if isinstance(other, EMRun) and other.link_evidence > best.link_evidence + _LEAST_GAIN:
                best, weight = other, heavier
        self.linked_weight_ = weight
        warn_unless_converged(best, self.tol, self.max_iter)
        self._store(best)
        # What is left of the work of the best run, so that its last step infers as the others did.
        final = next(own for found, own in ended if found is best)
        if "posterior" not in final.limited:
            # An iterative engine starts from the data once more: what EM passed through does not matter.
            final.start = None
        posterior = None if linked is None else final.e_step(best.parameters)
        limited = final.limited
        agreement = np.empty(0) if posterior is None else posterior.marginals.agreement
        self._store_noise(noise, best.parameters.coupling, agreement)
        if linked is not None and noise is not None:
            linked = linked._replace(coupling=noise.of_links(best.parameters.coupling))
        self._store_training_rows(source, constraints, linked, posterior, limited)
        if linked is not None:
            self.inference_["details"] = {
                "objective": self.inference_["method"] if best.judged is None else "auto",
                "prior_exact": final.prior_is_exact(best.parameters.log_weights),
                "reason": f"work limit: {', '.join(limited)}" if limited else None,
            }
            self._warn_of_lost_clusters(source, linked, noise is not None, best)
        self._store_cluster_names(labelled, self._n_clusters)
        task.end(best.parameters.fitted_attributes)
        if keeper is not None:
            keeper.remove()
        return self.labels_

    def _keeper(self, source: Source, constraints: Constraints | None) -> RunKeeper | None:
        """Return what stores the runs of EM while they are under way; None stores nothing."""
        return None

    def _check_parameters(self, n_samples: int) -> None:
        self._wanted_clusters()
        for name in ("max_iter", "n_init"):
            check_whole_number(getattr(self, name), name)
        for name in ("tol", "reg_covar"):
            check_number(getattr(self, name), name)
        if self.linked_weight != "auto":
            check_number(self.linked_weight, "linked_weight", positive=True)
        check_shrinkage(self.shrinkage)
        for name, allowed in (
            ("covariance_type", COVARIANCE_TYPES),
            ("mixing", MIXING_METHODS),
            ("init_params", INIT_METHODS),
            ("decode", ("marginal", "map")),
        ):
            check_choice(getattr(self, name), name, allowed)
        find_marginals_engine(self.inference, self.inference_options)
        if self.mixing == "grid" and self._n_gaussians > GRID_LARGEST:
            raise ValueError(
                f'mixing="grid" would try millions of weights for {self._n_gaussians} components; '
                f'it is limited to {GRID_LARGEST}. Use mixing="exact".'
            )
        if n_samples < self._n_gaussians:
            raise ValueError(
                f"{self._n_gaussians} components cannot be fitted to n_samples={n_samples}; "
                "use at most as many components as rows"
            )

    def _covariance_prior(self, source: Source) -> CovariancePrior | None:
        """Return the pseudo-rows of every covariance, stored as ``shrinkage_``; None without shrinkage."""
        self.shrinkage_ = self._pseudo_rows(source, self.shrinkage)
        return self._prior(source, self.shrinkage) if self.shrinkage_ > 0.0 else None

    def _pseudo_rows(self, source: Source, shrinkage: float | str) -> float:
        """The number of pseudo-rows that ``shrinkage`` stands for with these data."""
        most = most_unlabelled_rows(source.n_features, self._correlated(source, shrinkage))
        return pseudo_rows(shrinkage, source.n_features, most)

    def _prior(self, source: Source, shrinkage: float | str) -> CovariancePrior:
        """The prior that ``shrinkage``, not 0, stands for; one pass over the data."""
        moments = source.column_moments("full" if self._correlated(source, shrinkage) else "diag")
        return prior_of_moments(
            moments, source.n_samples, self._pseudo_rows(source, shrinkage), self.reg_covar
        )

    def _correlated(self, source: Source, shrinkage: float | str) -> bool:
        """Whether pseudo-rows that are spread like the data have its correlations: only those of "auto"."""
        return isinstance(shrinkage, str) and correlations_count(
            source.n_samples, source.n_features, self.covariance_type
        )

    def _heavier_weight(self, linked: LinkedRows | None, source: Source) -> float:
        """What a linked row counts in the run that ``linked_weight="auto"`` adds; 1 adds none."""
        if linked is None or len(linked.rows) == source.n_samples or not isinstance(self.linked_weight, str):
            return 1.0
        return automatic_weight(len(linked.rows), self._n_gaussians, source.n_features)

    def _starts(
        self,
        source: Source,
        constraints: Constraints | None,
        coupling: Floats,
        prior: CovariancePrior | None,
        random_state: np.random.RandomState,
    ) -> tuple[list[MixtureParameters], bool]:
        """Return the parameters that EM starts from, one for each restart, and whether they are from data."""
        if self.warm_start and hasattr(self, "means_") and self._last_fit_serves(source.n_features):
            with np.errstate(divide="ignore"):
                log_weights = np.log(self.weights_)
            return [MixtureParameters(log_weights, self._gaussians, self.covariances_, coupling)], False
        if not any(part is None for part in (self.weights_init, self.means_init, self.precisions_init)):
            return [self._given_start(None, source.n_features, coupling)], False
        X, points, rows = source.sample()
        if constraints is not None and rows is not None:
            constraints = constraints[rows]
        starts = [
            self._data_start(X, points, constraints, coupling, prior, random_state, number)
            for number in range(self.n_init)
        ]
        return starts, True

    def _last_fit_serves(self, n_features: int) -> bool:
        """Return whether EM can start from the last fit; if not, warn of what differs."""
        reason = None
        clusters = getattr(self, "_last_n_clusters", self._n_clusters)
        if self.means_.shape[1] != n_features:
            reason = f"it has {self.means_.shape[1]} features and the data {n_features}"
        elif len(self.means_) != self._n_gaussians or clusters != self._n_clusters:
            reason = (
                f"it has {len(self.means_)} components in {clusters} clusters, but {self._n_gaussians} in "
                f"{self._n_clusters} are asked for"
            )
        elif not are_factors(self.precisions_cholesky_, self.covariance_type, *self.means_.shape):
            reason = f"its covariances are not of the type {self.covariance_type!r}"
        if reason is None:
            return True
        warnings.warn(
            f"warm_start=True, but the last fit is no start for this one: {reason}. EM starts afresh; set "
            "warm_start=False, or the parameters as they were.",
            UserWarning,
            stacklevel=6,
        )
        return False

    def _data_start(
        self,
        X: AnyFloats,
        points: Points,
        constraints: Constraints | None,
        coupling: Floats,
        prior: CovariancePrior | None,
        random_state: np.random.RandomState,
        number: int,
    ) -> MixtureParameters:
        """Compute parameters from a hard assignment of the rows, another kind for every restart."""
        n_gaussians = self._n_gaussians
        per_cluster = n_gaussians // self._n_clusters
        arguments = (self.init_params, constraints, random_state)
        if per_cluster == 1:
            labels = restart_labels(X, n_gaussians, *arguments, number)
        else:
            labels = component_start_labels(X, self._n_clusters, per_cluster, *arguments)
        return assigned_start(
            points, labels, n_gaussians, self.covariance_type, self.reg_covar, coupling, prior
        )

    def _given_start(
        self, start: MixtureParameters | None, n_features: int, coupling: Floats
    ) -> MixtureParameters:
        """Replace parts of a start by what the user gave."""
        given = GivenParts(self.weights_init, self.means_init, self.precisions_init)
        shape = (self._n_gaussians, n_features)
        return given_start(given, start, self.covariance_type, shape, coupling, fixed=self.mixing == "fixed")

    # Results of fitting

    def _store(self, run: EMRun) -> None:
        for name, value in run.parameters.fitted_attributes().items():
            setattr(self, name, value)
        self._last_n_clusters = self._n_clusters
        self.lower_bounds_ = run.lower_bounds
        self.lower_bound_ = run.lower_bounds[-1] if run.judged is None else run.judged
        self.n_iter_ = len(run.lower_bounds)
        self.converged_ = run.converged
        self.n_decreases_ = run.n_decreases

    def _store_training_rows(
        self,
        source: Source,
        constraints: Constraints | None,
        linked: LinkedRows | None,
        posterior: LinkedPosterior | None,
        limited: tuple[str, ...],
    ) -> None:
        """Store labels and responsibilities of the training rows; forget those of an earlier fit."""
        for name in ("responsibilities_", "violation_probability_"):
            self.__dict__.pop(name, None)
        if linked is None or posterior is None or constraints is None:
            self._store_labels(source, None, None, None)
            self.violations_ = np.empty(0, dtype=np.bool_)
            self.inference_: dict[str, Any] = {
                "method": "independent", "exact": True, "converged": True, "n_iter": 0,
                "parts": {"independent": source.n_samples}, "details": {},
            }  # fmt: skip
            self.n_occupied_ = int(self._occupied().sum())
            return
        found = posterior.marginals
        if limited:
            warnings.warn(
                f"the cannot-links among {len(linked.rows)} rows are too dense for accurate inference "
                f"in the work allowed to a fit ({' and '.join(limited)} approximated further, see "
                'inference_["details"]). labels_ keep the hard links. Use fewer cannot-links or softer ones '
                "(certainty < 1), inference='belief_propagation', which has no limit, or COPKMeans.",
                ApproximationWarning,
                stacklevel=5,
            )
        elif not found.converged:
            warnings.warn(
                f"the last E-step did not converge ({found.method}, {found.n_iter} iterations); "
                "its responsibilities are rough. Try another inference, or fewer or weaker links.",
                ConvergenceWarning,
                stacklevel=5,
            )
        n_free = source.n_samples - len(linked.rows)
        parts = {**found.parts, "independent": found.parts.get("independent", 0) + n_free}
        self.inference_ = {
            "method": found.method,
            "exact": bool(found.exact),
            "converged": bool(found.converged),
            "n_iter": int(found.n_iter),
            "parts": {engine: count for engine, count in parts.items() if count},
            "details": {},
        }
        same = found.agreement
        if len(same) > constraints.n_pairs:
            # Pairs whose answers cancel are inferred, but are no links.
            same = same[pair_places(linked.rows[linked.pairs], constraints.pairs)]
        self.violation_probability_ = np.where(constraints.weights > 0, 1.0 - same, same)
        labels = self._decode(source, linked, found.prob)
        self._store_labels(source, linked.rows, found.prob, labels)
        ends = labels[np.searchsorted(linked.rows, constraints.pairs)]
        self.violations_ = (ends[:, 0] == ends[:, 1]) != (constraints.weights > 0)
        self.n_occupied_ = int(self._occupied().sum())

    def _store_labels(
        self, source: Source, linked_rows: Ints | None, prob: Floats | None, labels: Ints | None
    ) -> None:
        """Store labels of all rows and, with links, probabilities: those of the linked rows are given."""
        assert isinstance(source, RowsInMemory)
        points, workers = source.points, source.workers
        if linked_rows is None:
            self.labels_ = self._labels_of(self._posterior(points, labels=True, workers=workers))
            return
        free = self._posterior(points, probabilities=True, workers=workers)
        assert free.probabilities is not None
        assert labels is not None
        self.responsibilities_ = self._sum_clusters(free.probabilities.astype(np.float64, copy=False))
        self.responsibilities_[linked_rows] = prob
        self.labels_ = self.responsibilities_.argmax(axis=1).astype(np.int64)
        self.labels_[linked_rows] = labels

    def _cluster_sizes(self) -> Ints:
        """Number of rows (K,) with each of ``labels_``."""
        return np.bincount(self.labels_, minlength=self._n_clusters)

    def _occupied(self) -> Bools:
        return occupied_clusters(self._cluster_sizes(), self.weights_, self._cluster_of)

    def _warn_of_lost_clusters(
        self, source: Source, linked: LinkedRows, learns_noise: bool, run: EMRun
    ) -> None:
        """Warn of clusters of the start that have no rows; say whether the links or Omega are the cause."""
        if self.n_occupied_ == self._n_clusters or run.start is None:
            return
        weights = run.start.log_weights
        counts = source.label_counts(run.start.gaussians, weights, linked.rows)
        first, first_linked = (
            np.bincount(self._cluster_of, of_components).astype(np.int64) for of_components in counts
        )
        lost = occupied_clusters(first, np.exp(weights), self._cluster_of) & ~self._occupied()
        if lost.any():
            reason = loss_reason(
                linked, source.n_samples, int(first[lost].sum()), int(first_linked[lost].sum()),
                mixing=self.mixing, learns_noise=learns_noise,
                prior_exact=bool(self.inference_["details"]["prior_exact"]),
            )  # fmt: skip
            warnings.warn(
                f"{lost.sum()} of {self._n_clusters} clusters lost all their rows (n_occupied_ is "
                f"{self.n_occupied_}). {reason}",
                UserWarning,
                stacklevel=5,
            )

    def _decode(self, source: Source, linked: LinkedRows, prob: Floats) -> Ints:
        """Label the linked rows: the most probable label of each row, or the most probable labelling of all.

        The most probable labels one by one may break a hard cannot-link. Then the most probable joint
        labelling is used, so that hard links hold whatever ``decode`` says.
        """
        labels = prob.argmax(axis=1).astype(np.int64)
        first, second = labels[linked.pairs[:, 0]], labels[linked.pairs[:, 1]]
        broken = np.isinf(linked.coupling) & ((first == second) != (linked.coupling > 0))
        if self.decode == "marginal" and not broken.any():
            return labels
        joint = source.log_density(self._gaussians, linked.rows)
        joint += linked.prior_power[:, np.newaxis] * np.log(self.weights_)
        per_cluster = sum_components(joint, self._cluster_of)
        field = PottsField(per_cluster, linked.pairs, linked.coupling)
        together = best_labels(field, random_state=0).labels
        if self.decode == "map":
            return together
        # Only the components of links with a broken hard link are decoded together.
        component, n_components = group_labels(len(labels), linked.pairs)
        affected = np.zeros(n_components, dtype=bool)
        affected[component[linked.pairs[broken, 0]]] = True
        return np.where(affected[component], together, labels)


def _known_rows(linked: LinkedRows | None, constraints: Constraints | None) -> Ints:
    """Rows that carry links or labels, ascending."""
    rows = np.empty(0, dtype=np.int64) if linked is None else linked.rows
    if constraints is not None and constraints.row_classes is not None:
        rows = np.union1d(rows, np.flatnonzero(constraints.row_classes >= 0))
    return rows
