"""One EM step of a Gaussian mixture whose rows may carry links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np

from linkwise._arrays import Floats
from linkwise._kernels.math import log_sum_exp_rows
from linkwise.inference.engines import find_marginals_engine
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, m_step, precision_factors
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    log_prior,
    mean_covariance,
    pooled_covariance,
    shrink,
)
from linkwise.mixture.gaussian.source import Source
from linkwise.mixture.links.noise import LinkNoise
from linkwise.mixture.links.prior import DisjointPrior, LabelPrior
from linkwise.mixture.links.rows import LinkedPosterior, LinkedRows, link_field, linked_posterior
from linkwise.mixture.links.weights import (
    MAX_PASSES,
    PASSES_PER_COMPONENT,
    PASSES_UNDER_HARD_LINKS,
    LastValue,
    Prior,
    grid_mixing,
    newton_mixing,
)

MIXING_METHODS = ("exact", "disjoint", "grid", "ignore", "fixed")
#: Table and message entries for the posteriors of a fit with hard cannot-links, and for its priors as well
#: (see ``sweep_work`` of messages): four to eight seconds. Large data has this many per entry of the
#: responsibilities. On the faces of ``experiments`` a limit of 1e8 lowered pairwise F from .625 and .856 to
#: .602 and .811; this one does not (.626, .862).
_MAX_WORK = 4e8
_WORK_PER_ENTRY = 400.0
#: Nats that a violated cannot-link costs from which on many of them are as hard to infer with as hard ones: a
#: certainty of .95. 400 rows, 3000 links of certainty .99, K = 10: 12 s without a limit.
_NEARLY_HARD = float(np.log(19.0))
#: Powers of the densities in the steps in which the links lead, and what a free row counts there. Mean ARI of
#: 19 sets with 10 and 30 % of the rows in right links, and 30 % with 15 % wrong, from one k-means: .54, .59
#: and .52. With power 1 in all six steps .42, .49, .42; with power .05 .45, .58, .49.
_LEADING_POWERS = (0.1, 0.2, 0.5, 1.0, 1.0, 1.0)
_FREE_WEIGHT = 0.1
#: A cluster left with a smaller share of its weight was not led, but emptied: must-links that hang together
#: join everything.
_LEAST_SHARE = 0.1


#: What a linked row counts at most in the added run. Half A of 19 sets, right links among 10 and 30 % of the
#: rows and 30 % with 15 % wrong, three draws, gain of the ARI over weight 1 if the weight is always used:
#: 2 n / (K (D + 1)) up to 10 +.02, +.05 and +.04, up to 5 +.02, +.03 and +.03; half of it, up to 10, +.01,
#: +.05 and +.03; a weight of 3 in all cases +.02, +.01 and +.04, and digits, which have ten linked rows for
#: each cluster of 65 parameters, lose .04.
_MOST_WEIGHT = 10.0


def automatic_weight(n_linked: int, n_gaussians: int, n_features: int) -> float:
    """What a linked row counts by ``linked_weight="auto"``: 2 n / (K (D + 1)), at least 1 and at most 10."""
    return float(np.clip(2.0 * n_linked / (n_gaussians * (n_features + 1)), 1.0, _MOST_WEIGHT))


class LinkedStep:
    """The EM step: free rows in one fused pass over the ``source``, linked rows through inference.

    ``noise`` has the answers whose error rates are learned; ``coupling`` of the parameters is then one for
    each answer. None learns nothing. ``random_state`` seeds the engines, the same in every step, so that EM
    sees one deterministic objective. ``n_starts`` runs of EM share the limit of work of a fit, ``max_work``
    if that is given and the data are not large; one among ``inference_options`` holds for each call instead.
    ``start`` has the marginals of the last step if an iterative engine is to start from them. A linked row
    counts ``linked_weight`` free ones, and all rows together count as many as there are.
    """

    def __init__(
        self,
        source: Source,
        linked: LinkedRows | None,
        covariance_type: str,
        reg_covar: float,
        inference: str | Callable[..., Any],
        mixing: str,
        noise: LinkNoise | None,
        random_state: int,
        n_starts: int = 1,
        inference_options: Mapping[str, Any] | None = None,
        prior: CovariancePrior | None = None,
        linked_weight: float = 1.0,
        max_work: float | None = None,
    ) -> None:
        self.source = source
        self._set_row_weights(linked, linked_weight)
        self.prior = prior
        self.linked = linked
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        engine = find_marginals_engine(inference, inference_options)
        self.inference = inference
        self.inference_options = engine.options
        self._uses_initial = engine.uses_initial
        self.mixing = mixing
        self.noise = noise
        self.random_state = random_state
        self.start: Floats | None = None
        self._links = None if linked is None else link_field(linked.pairs, linked.coupling, len(linked.rows))
        self._max_work = None
        if linked is not None and "max_work" not in engine.options:
            self._max_work = _work_limit(linked, n_starts, max_work)
        self._work_left = self._max_work
        self._limited = False
        self._prior: Prior = _no_prior
        if linked is not None and mixing == "disjoint":
            self._prior = DisjointPrior(linked)
        elif linked is not None and mixing != "ignore":
            self._prior = LabelPrior(
                linked, inference, random_state, self._max_work, engine.options, self._links
            )
        self._log_omega = LastValue(self._prior)

    def _set_row_weights(self, linked: LinkedRows | None, linked_weight: float) -> None:
        """What a free row and a linked row count; the sum over all rows is their number."""
        n_linked = 0 if linked is None else len(linked.rows)
        n_samples = self.source.n_samples
        self._linked_weight = linked_weight
        self._of_free = n_samples / (n_samples - n_linked + linked_weight * n_linked)
        self._of_linked = linked_weight * self._of_free

    def fresh(self) -> LinkedStep:
        """The same step for another run of EM; what is known of the links is shared."""
        step = copy(self)
        step.start = None
        step._prior = copy(self._prior)
        step._log_omega = LastValue(step._prior)
        return step

    def weighted(self, linked_weight: float) -> LinkedStep:
        """The same step for another run of EM in which a linked row counts ``linked_weight`` free ones."""
        step = self.fresh()
        step._set_row_weights(self.linked, linked_weight)
        return step

    def state(self) -> dict[str, Any]:
        """What earlier steps left behind for the next one: numbers, truth values, and an array or None."""
        state = {"start": self.start, "work_left": self._work_left, "limited": self._limited}
        if isinstance(self._prior, LabelPrior):
            state |= {f"prior_{name}": value for name, value in self._prior.state().items()}
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self.start, self._work_left, self._limited = state["start"], state["work_left"], state["limited"]
        if isinstance(self._prior, LabelPrior):
            of_prior = {name: state[f"prior_{name}"] for name in self._prior.state()}
            self._prior.restore(of_prior)

    @property
    def limited(self) -> tuple[str, ...]:
        """What had to be approximated to stay within the limit of work: the posterior, the prior."""
        prior_limited = isinstance(self._prior, LabelPrior) and self._prior.limited
        return ("posterior",) * self._limited + ("prior",) * prior_limited

    def __call__(self, parameters: MixtureParameters) -> tuple[MixtureParameters, float]:
        """New parameters, and the penalised log-likelihood per sample at the old ones."""
        excluded = None if self.linked is None else self.linked.rows
        statistics = self.source.em_statistics(parameters.gaussians, parameters.log_weights, excluded)
        objective = statistics.log_likelihood
        log_weights, coupling = parameters.log_weights, parameters.coupling
        if self.linked is None:
            if self.mixing != "fixed":
                log_weights = _log_shares(statistics.counts)
        else:
            objective *= self._of_free
            # Relative to linked rows, because those bring log Omega.
            free_counts = statistics.counts / self._linked_weight
            responsibilities, found = self.e_step(parameters)
            counts = free_counts + self.linked.prior_power @ responsibilities
            statistics = statistics.weighted(self._of_free)
            statistics += self._linked_statistics(parameters, responsibilities).weighted(self._of_linked)
            log_partition = found.log_partition
            if self.noise is not None:
                coupling = self.noise.learned(coupling, found.agreement)
            # The prior is a field of the same size: it has the memory of the posterior.
            del responsibilities, found
            log_weights, penalty = self._mixing_step(counts, float(free_counts.sum()), log_weights)
            objective += self._of_linked * self._of_links(log_partition, penalty, parameters.coupling)
        pooled = None
        if self.prior is not None:
            pooled = pooled_covariance(parameters.gaussians)
            objective += log_prior(parameters.gaussians, self.prior, pooled)
        new = new_parameters(
            statistics, self.covariance_type, self.reg_covar, log_weights, coupling, self.prior, pooled
        )
        return new, objective / self.source.n_samples

    def _of_links(self, log_partition: float, penalty: float, coupling: Floats) -> float:
        """The part of the objective that the linked rows bring."""
        part = log_partition - penalty
        if self.noise is not None:
            # Links as observations: a right one has probability gamma, a wrong one 1 - gamma.
            part += self.noise.log_likelihood(coupling)
        return part

    def judge(self, parameters: MixtureParameters) -> float:
        """The objective per sample with the partition function of ``auto``, for engines that have none.

        ``auto`` is exact where links leave it narrow components, and Bethe's approximation elsewhere.
        """
        excluded = None if self.linked is None else self.linked.rows
        value = self.source.em_statistics(
            parameters.gaussians, parameters.log_weights, excluded
        ).log_likelihood
        if self.linked is not None:
            step = self.fresh()
            step.inference, step.inference_options = "auto", {}
            log_partition = step.e_step(parameters).marginals.log_partition
            penalty = 0.0 if self._leaves_out_omega else self._log_omega(parameters.log_weights)[0]
            of_links = self._of_links(log_partition, penalty, parameters.coupling)
            value = self._of_free * value + self._of_linked * of_links
        if self.prior is not None:
            value += log_prior(parameters.gaussians, self.prior)
        return value / self.source.n_samples

    @property
    def _leaves_out_omega(self) -> bool:
        """Whether links count as observations."""
        return self.mixing == "ignore" or self.noise is not None

    def prior_is_exact(self, log_weights: Floats) -> bool:
        """Whether log Omega at these weights is exact, or none enters."""
        if not isinstance(self._prior, LabelPrior) or self.noise is not None:
            return True
        self._log_omega(log_weights)
        return self._prior.exact

    def from_links(self, parameters: MixtureParameters, prior: CovariancePrior | None) -> MixtureParameters:
        """Parameters that the links lead to, from a start that knows nothing of them.

        A few EM steps in which the densities of linked rows count with a power that grows to 1: at first
        the links label these rows, and the data only where links leave it open. Free rows count with a
        small weight, so that no component is left to a handful of linked rows. ``prior`` is that of the
        covariances found here. The start is returned as it was if the links empty a cluster.
        """
        if self.linked is None:
            return parameters
        found = parameters
        for power in _LEADING_POWERS:
            statistics = self.source.em_statistics(found.gaussians, found.log_weights, self.linked.rows)
            responsibilities = self.e_step(found, power).responsibilities
            statistics = statistics.weighted(_FREE_WEIGHT)
            statistics += self._linked_statistics(found, responsibilities)
            found = new_parameters(
                statistics, self.covariance_type, self.reg_covar, _log_shares(statistics.counts),
                found.coupling, prior, pooled_covariance(found.gaussians),
            )  # fmt: skip
        self.start = None
        before, after = (
            np.bincount(self.linked.cluster_of, np.exp(one.log_weights)) for one in (parameters, found)
        )
        return found if (after > _LEAST_SHARE * before).all() else parameters

    def link_evidence(self, parameters: MixtureParameters) -> float:
        """How well the mixture predicts the links: log P(links | X) / P(links), given the parameters.

        It is the log partition function of the linked rows with links, less that without and less log Omega
        unless links count as observations. Without log Omega it would be best to have one cluster where all
        links are must-links. With it, runs with a cluster of few rows may win where ten labels are all that
        is known: on iris clusters of 50, 98 and 2 rows.
        """
        if self.linked is None:
            return 0.0
        log_density = self.source.log_density(parameters.gaussians, self.linked.rows)
        for k, log_weight in enumerate(parameters.log_weights):
            log_density[:, k] += self.linked.prior_power * log_weight
        without_links = float(log_sum_exp_rows(log_density).sum())
        del log_density
        found = self.e_step(parameters).marginals
        if not np.isfinite(found.log_partition):
            # Gibbs, and engines of the user, may have no partition function.
            step = self.fresh()
            step.inference, step.inference_options = "auto", {}
            found = step.e_step(parameters).marginals
        penalty = 0.0 if self._leaves_out_omega else self._log_omega(parameters.log_weights)[0]
        return float(found.log_partition) - without_links - penalty

    def e_step(self, parameters: MixtureParameters, power: float = 1.0) -> LinkedPosterior:
        """Constrained posterior of the linked rows; engines that iterate start from that of the last step."""
        assert self.linked is not None
        assert self._links is not None
        links = self._links
        if self.noise is not None:
            coupling = self.noise.of_links(parameters.coupling)
            links = link_field(self.linked.pairs, coupling, len(self.linked.rows))
        initial, self.start = self.start, None
        log_density = self.source.log_density(parameters.gaussians, self.linked.rows)
        if power != 1.0:
            log_density *= power
        options = dict(self.inference_options)
        limited = self.inference == "auto" and self._work_left is not None
        if limited:
            assert self._work_left is not None
            # Once belief propagation is too dear it stays so: EM is to see one objective.
            options["max_work"] = 1.0 if self._limited else max(self._work_left, 1.0)
        posterior = linked_posterior(
            self.linked,
            links,
            log_density,
            parameters.log_weights,
            self.inference,
            self.random_state,
            initial,
            **options,
        )
        if limited:
            assert self._work_left is not None
            details = posterior.marginals.details
            self._work_left -= details["work"]
            self._limited = self._limited or details.get("limited", False)
        if self._limited or self._uses_initial:
            self.start = posterior.marginals.prob
        return posterior

    def _linked_statistics(self, parameters: MixtureParameters, responsibilities: Floats) -> Statistics:
        assert self.linked is not None
        return self.source.statistics(
            parameters.gaussians.means, responsibilities, self.covariance_type, self.linked.rows
        )

    def _mixing_step(self, counts: Floats, n_free: float, log_weights: Floats) -> tuple[Floats, float]:
        """New log weights, and log Omega at the old ones (0 when links count as observations)."""
        if self._leaves_out_omega:
            return (log_weights if self.mixing == "fixed" else _log_shares(counts)), 0.0

        penalty = self._log_omega(log_weights)[0]
        if self.mixing == "fixed":
            return log_weights, penalty
        if self.mixing == "grid":
            return grid_mixing(counts, self._log_omega).log_weights, penalty
        exact = not isinstance(self._prior, LabelPrior) or self._prior.exact
        max_passes = MAX_PASSES if exact else PASSES_PER_COMPONENT * len(counts)
        if not exact and self._max_work is not None:
            max_passes = PASSES_UNDER_HARD_LINKS
        step = newton_mixing(
            counts, n_free, log_weights, self._log_omega, max_passes=max_passes,
            concave=not isinstance(self._prior, DisjointPrior),
        )  # fmt: skip
        return step.log_weights, penalty


def _work_limit(linked: LinkedRows, n_starts: int, max_work: float | None) -> float | None:
    """Work that the posteriors of a run of EM may take, and its priors as well; None for no limit.

    Most soft links converge in a few sweeps and scale with the data. With many hard or nearly hard
    cannot-links messages often circle for ever, and every step of EM would wait for their last sweep.
    """
    dense = (linked.coupling < -_NEARLY_HARD).sum() > 2 * len(linked.rows)
    if not dense and not (linked.coupling == -np.inf).any():
        return None
    most = _MAX_WORK if max_work is None else max_work
    return max(most, _WORK_PER_ENTRY * len(linked.rows) * linked.n_clusters) / n_starts


def _no_prior(log_weights: Floats) -> tuple[float, Floats]:
    """Without links Omega is 1."""
    return 0.0, np.zeros_like(log_weights)


def new_parameters(
    statistics: Statistics,
    covariance_type: str,
    reg_covar: float,
    log_weights: Floats,
    coupling: Floats,
    prior: CovariancePrior | None = None,
    pooled: Floats | None = None,
) -> MixtureParameters:
    """M-step of means and covariances from the statistics, with weights and couplings already found.

    ``pooled`` is the covariance of all components together that ``prior`` draws them to; a start has none
    yet and takes the mean of its covariances.
    """
    means, covariances = m_step(statistics, covariance_type, reg_covar)
    if prior is not None:
        if pooled is None:
            pooled = mean_covariance(covariances, statistics.counts, covariance_type)
        covariances = shrink(covariances, statistics.counts, pooled, prior, covariance_type)
    factors = precision_factors(covariances, covariance_type)
    return MixtureParameters(log_weights, Gaussians(means, factors, covariance_type), covariances, coupling)


def _log_shares(counts: Floats) -> Floats:
    """log(n_k / N), as scikit-learn rounds it: 10 eps keep an empty component off log 0."""
    padded = counts + 10.0 * np.finfo(np.float64).eps
    return np.asarray(np.log(padded / padded.sum()))
