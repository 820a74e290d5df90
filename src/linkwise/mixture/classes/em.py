"""The EM step of CPPC, and how its EM leaves saddles.

EM is slow near saddles of the class-level objective: two clusters that share a class evenly can stand still
for hundreds of iterations before one of them takes it all. So EM stops only when the objective has gained
less than ``tol`` over ten iterations *and* disturbed copies, run until they stand still as well, end no
higher. Otherwise it goes on from the copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise._arrays import Floats
from linkwise.mixture.classes.e_step import Sweep
from linkwise.mixture.classes.omega import MixingStep, sampled_mixing
from linkwise.mixture.classes.tables import ClassTables
from linkwise.mixture.em import EMRun, MixtureParameters, run_em
from linkwise.mixture.gaussian.gaussians import Gaussians, m_step, precision_factors
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    log_prior,
    mean_covariance,
    pooled_covariance,
    shrink,
)

#: Iterations over which the objective must stand still.
PATIENCE = 10
#: Sweeps of one E-step; more do not pay before the next M-step.
_SWEEPS = 5
_SETTLED = 1e-3
#: Sweeps of the last E-step, whose table is a result.
_LAST_SWEEPS = 500
_LAST_SETTLED = 1e-5
#: Standard deviations of noise on the log-share of each class in each cluster, and on the means in units of
#: the cluster's own spread. On the eleven Gaussians 0.1 missed saddles that 0.3 leaves; 1 leaves shallow
#: optima as well.
_DISTURBANCES = (0.3, 1.0)
#: A cluster with fewer rows than this keeps its mean and covariance, which fewer would not determine.
_VANISHED = 1e-6


@dataclass
class ClassRun(EMRun):
    """A run of EM with what its last E-step gave."""

    prob: Any = None
    """Probabilities, as ``ClassTables.result`` gives them; None once another run was better."""
    settled: bool = True
    """Whether the probabilities of the last E-step stand still."""
    mixing_steps: list[MixingStep] = field(default_factory=list)


class ClassStep:
    """The EM step of CPPC on ``tables`` of scores and probabilities, with pair weights A (L, L).

    ``seed`` of the draws for Omega is the same in every step, so that EM sees one objective.
    """

    def __init__(
        self,
        tables: ClassTables,
        weights: Floats,
        covariance_type: str,
        reg_covar: float,
        sequential: bool,
        mixing: str,
        seed: int,
        prior: CovariancePrior | None = None,
    ) -> None:
        self.tables = tables
        self.weights = weights
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.prior = prior
        self.sequential = sequential
        self.mixing = mixing
        self.seed = seed
        self.mixing_steps: list[MixingStep] = []

    def start_parameters(self) -> MixtureParameters:
        """Compute the moments of the assignment that the step was made with."""
        about = np.tile(self.tables.offset, (self.tables.n_components, 1))
        rough = self.tables.statistics(about, self.covariance_type)
        # Moments about the means, found first, keep their digits for clusters far apart.
        about += rough.first / np.maximum(rough.counts, 1.0)[:, np.newaxis]
        statistics = self.tables.statistics(about, self.covariance_type)
        means, covariances = m_step(statistics, self.covariance_type, self.reg_covar)
        if self.prior is not None:
            pooled = mean_covariance(covariances, statistics.counts, self.covariance_type)
            covariances = shrink(covariances, statistics.counts, pooled, self.prior, self.covariance_type)
        return self._parameters(_log_shares(statistics.counts), means, covariances)

    def __call__(self, parameters: MixtureParameters) -> tuple[MixtureParameters, float]:
        """Return new parameters, and the objective per sample at the old ones after the sweeps."""
        objective = self.e_step(parameters, _SWEEPS, _SETTLED).objective
        statistics = self.tables.statistics(parameters.gaussians.means, self.covariance_type)
        log_weights = _log_shares(statistics.counts)
        if self.mixing == "sampled":
            mixing_step = self._mix(statistics.counts, parameters)
            log_weights = mixing_step.log_weights
            objective -= mixing_step.log_omega
        means, covariances = m_step(statistics, self.covariance_type, self.reg_covar)
        if self.prior is not None:
            pooled = pooled_covariance(parameters.gaussians)
            covariances = shrink(covariances, statistics.counts, pooled, self.prior, self.covariance_type)
        if self.covariance_type != "tied":
            vanished = statistics.counts < _VANISHED
            means[vanished] = parameters.gaussians.means[vanished]
            covariances[vanished] = parameters.covariances[vanished]
        return self._parameters(log_weights, means, covariances), objective / self.tables.n_samples

    def e_step(self, parameters: MixtureParameters, max_sweeps: int, tol: float) -> Sweep:
        """Sweep until no probability changes by more than ``tol``; F plus the log prior of covariances."""
        top = self.tables.score(parameters)
        for _ in range(max_sweeps):
            sweep = self.tables.sweep(self.weights, self.sequential)
            if sweep.change < tol or not self.weights.any():
                break
        prior = 0.0 if self.prior is None else log_prior(parameters.gaussians, self.prior)
        return Sweep(sweep.objective + top + prior, sweep.change)

    def settle(self, parameters: MixtureParameters) -> tuple[float, bool]:
        """Do the last E-step; return the objective per sample, and whether the probabilities stand still."""
        objective, change = self.e_step(parameters, _LAST_SWEEPS, _LAST_SETTLED)
        if self.mixing == "sampled":
            objective -= self._mix(self.tables.counts(), parameters).log_omega
        return objective / self.tables.n_samples, change < _LAST_SETTLED or not self.weights.any()

    def disturb(
        self, parameters: MixtureParameters, size: float, rng: np.random.Generator
    ) -> MixtureParameters:
        """Disturb what EM moves slowly: shares of classes in clusters, and means; not single rows."""
        n_classes, width = self.tables.sums.shape
        self.tables.disturb(np.exp(size * rng.standard_normal((n_classes + 1, width))))
        means, factors, covariance_type = parameters.gaussians
        noise = size * rng.standard_normal(means.shape)
        moved = means + noise * _spreads(parameters.covariances, covariance_type)
        return parameters._replace(gaussians=Gaussians(moved, factors, covariance_type))

    def _mix(self, counts: Floats, parameters: MixtureParameters) -> MixingStep:
        """Update the mixing weights with sampled Omega, from the same random numbers each time."""
        rng = np.random.default_rng(self.seed)
        step = sampled_mixing(counts, parameters.log_weights, self.tables.sizes, self.weights, rng)
        self.mixing_steps.append(step)
        return step

    def _parameters(self, log_weights: Floats, means: Floats, covariances: Floats) -> MixtureParameters:
        factors = precision_factors(covariances, self.covariance_type)
        gaussians = Gaussians(means, factors, self.covariance_type)
        return MixtureParameters(log_weights, gaussians, covariances, np.empty(0))


class _Disturbances:
    """Remember where EM stood highest, and disturb EM from there each time that it stands still."""

    def __init__(self, step: ClassStep, tol: float, rng: np.random.Generator, verbose: int) -> None:
        self.step, self.tol, self.rng, self.verbose = step, tol, rng, verbose
        self.parameters: MixtureParameters | None = None
        self.prob: Any = None
        self.objective = -np.inf
        self.n_rejected = 0

    def __call__(self, parameters: MixtureParameters, objective: float) -> MixtureParameters | None:
        """Return disturbed parameters to go on from, or None if disturbances of every size led no higher."""
        if self.parameters is None or objective >= self.objective + self.tol:
            # The parameters that belong to the table are those before the M-step.
            self.parameters, self.objective, self.n_rejected = parameters, objective, 0
            self.prob = self.step.tables.kept()
        else:
            self.n_rejected += 1
            parameters = self.go_back()
        if self.n_rejected == len(_DISTURBANCES):
            return None
        size = _DISTURBANCES[self.n_rejected]
        if self.verbose:
            print(f"  standing still: disturbed by {size:g}", flush=True)
        return self.step.disturb(parameters, size, self.rng)

    def go_back(self) -> MixtureParameters:
        """Restore the table where EM stood highest and return its parameters."""
        assert self.parameters is not None
        self.step.tables.restore(self.prob)
        return self.parameters


def run_class_em(
    step: ClassStep, *, tol: float, max_iter: int, rng: np.random.Generator, verbose: int = 0
) -> ClassRun:
    """Run EM until it stands still and no disturbance helps, or ``max_iter``; do the last E-step.

    ``lower_bounds`` fall where a disturbance was tried, and where it did not help and EM went back.
    """
    highest = _Disturbances(step, tol, rng, verbose)
    run = run_em(
        step, step.start_parameters(), tol=tol, max_iter=max_iter, patience=PATIENCE, escape=highest,
        verbose=verbose,
    )  # fmt: skip
    parameters, bounds = run.parameters, run.lower_bounds
    if highest.parameters is not None and (run.converged or bounds[-1] <= highest.objective):
        parameters = highest.go_back()
    objective, settled = step.settle(parameters)
    return ClassRun(
        parameters, [*bounds, objective], run.converged, run.n_decreases,
        prob=step.tables.result(), settled=settled, mixing_steps=step.mixing_steps,
    )  # fmt: skip


def _log_shares(counts: Floats) -> Floats:
    """Logarithms of mixing weights, finite for empty clusters; ``links/em_step`` rounds as scikit-learn."""
    return np.log(np.maximum(counts, np.finfo(np.float64).tiny)) - np.log(counts.sum())


def _spreads(covariances: Floats, covariance_type: str) -> Floats:
    """Return standard deviations that broadcast against means (K, D)."""
    if covariance_type == "full":
        return np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    if covariance_type == "tied":
        return np.sqrt(np.diagonal(covariances))
    return np.sqrt(covariances if covariance_type == "diag" else covariances[:, np.newaxis])
