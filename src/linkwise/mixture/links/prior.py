"""Omega(pi) of single groups and of pairs of groups, and its gradient, as loops over their kinds.

Omega(pi): the normaliser of the prior over the labels of linked rows, and its gradient.

Omega(pi) = sum_Z prod_i pi_{z_i} g(Z), in penalty form, is the partition function of the field of the links
with log pi in place of the data, and dlog Omega / dlog pi_k = E_prior[n_k] comes from the same inference
pass.

The prior sees only how groups of rows are joined, not which rows they are, so alike components are computed
once: a thousand disjoint must-links cost as much as one.

A group is what hard must-links join. It is labelled as one and brings pi_k^a, a the sum of the shares of its
rows: 1 where chunklets are drawn as a whole, its size where points are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise._kernels.math import log_sum_exp
from linkwise.graph import group_labels
from linkwise.inference import PottsField, marginals
from linkwise.inference.engines import find_marginals_engine
from linkwise.inference.problem import Problem, induced, reduce_field
from linkwise.mixture.links.rows import LinkedRows, link_field, sum_components

__all__ = ["DisjointPrior", "LabelPrior", "add_pairs", "add_singles"]


@kernel
def add_singles(
    powers: NDArray[np.float64],
    n_alike: NDArray[np.int64],
    log_weights: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> float:
    """Groups linked to nothing: log sum_k pi_k^a; adds the expected counts to ``counts``."""
    n_labels = log_weights.shape[0]
    scores = np.empty(n_labels)
    log_omega = 0.0
    for kind in range(powers.shape[0]):
        for k in range(n_labels):
            scores[k] = powers[kind] * log_weights[k]
        log_total = log_sum_exp(scores)
        log_omega += n_alike[kind] * log_total
        for k in range(n_labels):
            counts[k] += n_alike[kind] * powers[kind] * math.exp(scores[k] - log_total)
    return log_omega


@kernel
def _share(power: float, log_weights: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Write pi_k^a / sum_l pi_l^a; return the logarithm of the sum."""
    for k in range(share.shape[0]):
        share[k] = power * log_weights[k]
    log_total = log_sum_exp(share)
    for k in range(share.shape[0]):
        share[k] = math.exp(share[k] - log_total)
    return log_total


@kernel
def _joint(
    own: NDArray[np.float64],
    other: NDArray[np.float64],
    agree: float,
    differ: float,
    joint: NDArray[np.float64],
) -> float:
    """Write p_k (agree q_k + differ sum_{l != k} q_l) and return its sum.

    The sum over other labels is added up from both ends, not 1 - q_k, which would cancel.
    """
    n_labels = own.shape[0]
    before = 0.0
    for k in range(n_labels):
        joint[k] = before
        before += other[k]
    after = 0.0
    total = 0.0
    for k in range(n_labels - 1, -1, -1):
        joint[k] = own[k] * (agree * other[k] + differ * (joint[k] + after))
        after += other[k]
        total += joint[k]
    return total


@kernel
def add_pairs(
    kinds: NDArray[np.float64],
    n_alike: NDArray[np.int64],
    log_weights: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> float:
    """Two groups joined by a link: log sum_kl pi_k^a pi_l^b exp(-cost of k, l); rows a, b, coupling."""
    n_labels = log_weights.shape[0]
    first, second, joint = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    log_omega = 0.0
    for kind in range(kinds.shape[0]):
        log_first = _share(kinds[kind, 0], log_weights, first)
        log_second = _share(kinds[kind, 1], log_weights, second)
        agree = math.exp(min(kinds[kind, 2], 0.0))
        differ = math.exp(-max(kinds[kind, 2], 0.0))
        omega = _joint(first, second, agree, differ, joint)
        log_omega += n_alike[kind] * (math.log(omega) + log_first + log_second)
        for k in range(n_labels):
            counts[k] += n_alike[kind] * kinds[kind, 0] * joint[k] / omega
        _joint(second, first, agree, differ, joint)
        for k in range(n_labels):
            counts[k] += n_alike[kind] * kinds[kind, 1] * joint[k] / omega
    return log_omega


class LabelPrior:
    """log Omega and expected counts as a function of log pi.

    Parameters
    ----------
    linked : LinkedRows
    method : str or engine
        For components of more than two groups. Engines that return no partition function to differentiate
        (mean field, Gibbs, engines of the user) leave them to ``auto``.
    random_state : int
    max_work : float or None
        Table and message entries of all calls of ``auto`` (see :mod:`linkwise.inference.work`). Once they are
        used up, the larger components count as if their rows were independent: log Omega keeps the value it
        had, and the weights follow the responsibilities.
    options : mapping or None
        Options of ``method``, used where it is.

    Attributes
    ----------
    exact : bool
        Whether everything asked so far was exact.
    limited : bool
        Whether the work was used up.
    """

    def __init__(
        self,
        linked: LinkedRows,
        method: str | Callable[..., Any],
        random_state: int,
        max_work: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._cluster_of = linked.cluster_of
        engine = find_marginals_engine(method, options)
        self._method = method if engine.differentiable else "auto"
        self._options = engine.options if engine.differentiable else {}
        self._random_state = random_state
        self.exact = True
        self.limited = False
        self._work_left = max_work if self._method == "auto" else None
        self._last = 0.0
        problem, power, self._constant = _groups(linked)
        component, n_components = group_labels(len(power), problem.pairs)
        n_groups = np.bincount(component, minlength=n_components)[component]
        self._singles, self._n_singles = np.unique(power[n_groups == 1], return_counts=True)
        self._pairs, self._n_pairs = _kinds_of_pairs(problem, power, n_groups[problem.pairs[:, 0]] == 2)
        rest = np.flatnonzero(n_groups > 2)
        self._rest_power = power[rest]
        inside, _ = induced(problem, rest)
        self._rest = link_field(inside.pairs, inside.coupling, len(rest))

    def __call__(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Log Omega and E_prior[n_k], every row counted by its share, at these log weights.

        Parameters
        ----------
        log_weights : (K,)
            Need not be normalised.

        Returns
        -------
        log_omega : float
        counts : (K,)
        """
        per_cluster = sum_components(log_weights[np.newaxis], self._cluster_of)[0]
        log_omega, counts = self._of_rest(per_cluster)
        log_omega += self._constant
        log_omega += add_singles(self._singles, self._n_singles, per_cluster, counts)
        log_omega += add_pairs(self._pairs, self._n_pairs, per_cluster, counts)
        within = np.exp(log_weights - per_cluster[self._cluster_of])
        return log_omega, counts[self._cluster_of] * within

    def _of_rest(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Larger components, by inference."""
        if not self._rest_power.size:
            return 0.0, np.zeros(len(log_weights))
        total, log_total = self._rest_power.sum(), log_sum_exp(log_weights)
        if not self.limited:
            options = dict(self._options)
            if self._work_left is not None:
                options["max_work"] = self._work_left
            field = self._rest.with_unary(self._rest_power[:, np.newaxis] * log_weights)
            found = marginals(field, self._method, self._random_state, overwrite_unary=True, **options)
            self.exact = self.exact and found.exact
            if self._work_left is not None:
                self._work_left -= found.details["work"]
                self.limited = found.details.get("limited", False) or self._work_left <= 0
            if not found.details.get("limited", False):
                self._last = found.log_partition - total * log_total
                return found.log_partition, self._rest_power @ found.prob
        self.exact = False
        return self._last + total * log_total, total * np.exp(log_weights - log_total)


class DisjointPrior:
    """log Omega and its gradient as if every link between groups had its two groups for itself.

    Groups are drawn independently, P(g in k) = pi_k^a / p_a with p_a = sum_k pi_k^a, and each link multiplies
    Omega by its own mean factor:

        Omega = prod_g p_{a_g} * prod_{links gh} E[exp(-cost of z_g, z_h)].

    With chunklets drawn as a whole (a = 1) must-links bring no factor, and a hard cannot-link brings
    1 - sum_k pi_k^2: Eq. 12 of Shental et al. (2003), which calls it a pseudo-likelihood (it is not
    Besag's). With points drawn one by one, disjoint pairs give the closed form of Lu & Leen (2007, section
    3.1, with the exponents of links and do-not-links the right way round, erratum E1). Several links between
    the same two groups are one link of the summed weight, and links inside a group a constant.

    Exact where no group has two links. Elsewhere log Omega need not be convex in log pi, and an entry of its
    gradient may be negative, which no expected count is.

    Parameters
    ----------
    linked : LinkedRows
    """

    def __init__(self, linked: LinkedRows) -> None:
        self._cluster_of = linked.cluster_of
        problem, power, self._constant = _groups(linked)
        every = np.ones(len(problem.pairs), dtype=bool)
        self._pairs, self._n_pairs = _kinds_of_pairs(problem, power, every)
        # A pair brings along both of its groups: d links of one group leave 1 - d of its own factors.
        degree = np.bincount(problem.pairs.ravel(), minlength=len(power))
        self._singles, kind = np.unique(power, return_inverse=True)
        self._n_singles = np.bincount(kind) - np.bincount(kind, degree).astype(np.int64)

    def __call__(self, log_weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Log Omega and its gradient in log pi.

        Parameters
        ----------
        log_weights : (K,)
            Need not be normalised.

        Returns
        -------
        log_omega : float
        counts : (K,)
        """
        per_cluster = sum_components(log_weights[np.newaxis], self._cluster_of)[0]
        counts = np.zeros(len(per_cluster))
        log_omega = self._constant
        log_omega += add_singles(self._singles, self._n_singles, per_cluster, counts)
        log_omega += add_pairs(self._pairs, self._n_pairs, per_cluster, counts)
        within = np.exp(log_weights - per_cluster[self._cluster_of])
        return log_omega, counts[self._cluster_of] * within


def _groups(linked: LinkedRows) -> tuple[Problem, NDArray[np.float64], float]:
    """The links between groups, the power of pi that each group brings, and what links inside them cost."""
    flat = np.zeros((len(linked.rows), linked.n_clusters))
    field = PottsField(flat, linked.pairs, linked.coupling)
    problem, groups, _, constant = reduce_field(field, keep_zero_in_component=False)
    power = np.asarray(np.bincount(groups, linked.share, len(problem.unary)), dtype=np.float64)
    return problem, power, constant


def _kinds_of_pairs(
    problem: Problem, power: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Different rows (power, power, coupling) of the chosen links, and how many links are alike."""
    ends = np.sort(power[problem.pairs[chosen]], axis=1)
    kinds = np.column_stack([ends, problem.coupling[chosen]])
    return np.unique(kinds, axis=0, return_counts=True)
