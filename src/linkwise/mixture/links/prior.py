"""Omega(pi): the normaliser of the prior over the labels of linked rows, and its gradient.

Omega(pi) = sum_Z prod_i pi_{z_i} g(Z), in penalty form, is the partition function of the field of the links
with log pi in place of the data, and dlog Omega / dlog pi_k = E_prior[n_k] comes from the same inference
pass.

The prior sees only how groups of rows are joined, not which rows they are, so alike components are computed
once: a thousand disjoint must-links cost as much as one. Single groups and pairs of groups have closed forms.

A group is what hard must-links join. It is labelled as one and brings pi_k^a, a the sum of the powers of its
rows: 1 where chunklets are drawn as a whole, its size where points are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise.graph import group_labels
from linkwise.inference import PottsField, marginals
from linkwise.inference.engines import find_marginals_engine
from linkwise.inference.problem import Problem, induced, reduce_field
from linkwise.mixture.links.rows import LinkedRows, link_field, sum_components

#: Kinds of pairs taken at once, so that many kinds need little memory.
_KINDS_AT_ONCE = 4096
#: Share of the groups that must be in larger components if one field is to serve posterior and prior. The
#: others then go through inference with them instead of closed forms.
_MOST = 0.9


class _GroupPrior:
    """log Omega and expected counts as a function of log pi: single groups, pairs, and a rest.

    ``_singles`` are the different powers of single groups and ``_n_singles`` how many groups have each;
    ``_pairs`` the different rows (power, power, coupling) of pairs and ``_n_pairs`` how many are alike.
    """

    _singles: Floats
    _n_singles: Ints
    _pairs: Floats
    _n_pairs: Ints

    def _set_groups(self, linked: LinkedRows) -> tuple[Problem, Floats]:
        """The links between groups, and the power of pi that each group brings."""
        self._cluster_of = linked.cluster_of
        links = link_field(linked.pairs, linked.coupling, len(linked.rows))
        problem, groups, _, self._constant, _ = reduce_field(links, keep_zero_in_component=False)
        power = np.bincount(groups, linked.prior_power, len(problem.unary)).astype(np.float64)
        return problem, power

    def __call__(self, log_weights: Floats) -> tuple[float, Floats]:
        """Log Omega and its gradient E_prior[n_k], (K,), at log weights that need not be normalised."""
        per_cluster = sum_components(log_weights[np.newaxis], self._cluster_of)[0]
        log_omega, counts = self._of_rest(per_cluster)
        log_omega += self._constant
        for part in (
            singles(self._singles, self._n_singles, per_cluster),
            pairs(self._pairs, self._n_pairs, per_cluster),
        ):
            log_omega += part[0]
            counts += part[1]
        within = np.exp(log_weights - per_cluster[self._cluster_of])
        return log_omega, counts[self._cluster_of] * within

    def _of_rest(self, log_weights: Floats) -> tuple[float, Floats]:
        return 0.0, np.zeros(len(log_weights))

    def _set_pairs(self, problem: Problem, power: Floats, chosen: Bools) -> None:
        """Count the different kinds of the chosen links."""
        ends = np.sort(power[problem.pairs[chosen]], axis=1)
        kinds = np.column_stack([ends, problem.coupling[chosen]])
        self._pairs, self._n_pairs = np.unique(kinds, axis=0, return_counts=True)


class LabelPrior(_GroupPrior):
    """log Omega and expected counts as a function of log pi.

    Components of more than two groups are left to the engine ``method``; engines that return no partition
    function to differentiate (mean field, Gibbs, engines of the user) leave them to ``auto``. ``max_work``
    limits the table and message entries of all calls of ``auto`` (see ``sweep_work`` of messages). Once
    they are used up (``limited``), the larger components count as if their rows were independent: log Omega
    keeps the value it had, and the weights follow the responsibilities. ``exact`` says whether everything
    so far was. ``links`` is the field of the posterior: where nearly all groups are in larger components it
    serves for the prior as well, and what inference works out from the links is kept once.
    """

    def __init__(
        self,
        linked: LinkedRows,
        method: str | Callable[..., Any],
        random_state: int,
        max_work: float | None = None,
        options: Mapping[str, Any] | None = None,
        links: PottsField | None = None,
    ) -> None:
        engine = find_marginals_engine(method, options)
        self._method = method if engine.differentiable else "auto"
        self._options = engine.options if engine.differentiable else {}
        self._random_state = random_state
        self.exact = True
        self.limited = False
        self._work_left = max_work if self._method == "auto" else None
        self._last = 0.0
        problem, power = self._set_groups(linked)
        component, n_components = group_labels(len(power), problem.pairs)
        n_groups = np.bincount(component, minlength=n_components)[component]
        self._singles, self._n_singles = np.unique(power[n_groups == 1], return_counts=True)
        self._set_pairs(problem, power, n_groups[problem.pairs[:, 0]] == 2)
        rest = np.flatnonzero(n_groups > 2)
        if links is not None and max_work is None and len(rest) > _MOST * len(power):
            self._singles, self._n_singles = np.empty(0), np.empty(0, dtype=np.int64)
            self._set_pairs(problem, power, np.zeros(len(problem.pairs), dtype=bool))
            self._constant, self._rest_power, self._rest = 0.0, linked.prior_power, links
            return
        self._rest_power = power[rest]
        inside, _ = induced(problem, rest)
        self._rest = link_field(inside.pairs, inside.coupling, len(rest))

    def state(self) -> dict[str, Any]:
        """What earlier calls left behind."""
        return {
            "exact": self.exact, "limited": self.limited, "work_left": self._work_left, "last": self._last
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self.exact, self.limited = state["exact"], state["limited"]
        self._work_left, self._last = state["work_left"], state["last"]

    def _of_rest(self, log_weights: Floats) -> tuple[float, Floats]:
        """Larger components, by inference."""
        if not self._rest_power.size:
            return 0.0, np.zeros(len(log_weights))
        total, log_total = self._rest_power.sum(), np.logaddexp.reduce(log_weights)
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


class DisjointPrior(_GroupPrior):
    """log Omega and its gradient as if every link between groups had its two groups for itself.

    Groups are drawn independently, P(g in k) = pi_k^a / p_a with p_a = sum_k pi_k^a, and each link
    multiplies Omega by its own mean factor:

        Omega = prod_g p_{a_g} * prod_{links gh} E[exp(-cost of z_g, z_h)].

    With chunklets drawn as a whole (a = 1) must-links bring no factor, and a hard cannot-link brings 1 -
    sum_k pi_k^2: Eq. 12 of Shental et al. (2003), which calls it a pseudo-likelihood (it is not Besag's).
    With points drawn one by one, disjoint pairs give the closed form of Lu & Leen (2007, section 3.1, with
    the exponents of links and do-not-links the right way round, erratum E1). Several links between the same
    two groups are one link of the summed weight, and links inside a group a constant.

    Exact where no group has two links. Elsewhere log Omega need not be convex in log pi, and an entry of
    its gradient may be negative, which no expected count is.
    """

    def __init__(self, linked: LinkedRows) -> None:
        problem, power = self._set_groups(linked)
        self._set_pairs(problem, power, np.ones(len(problem.pairs), dtype=bool))
        # A pair brings along both of its groups: d links of one group leave 1 - d of its own factors.
        degree = np.bincount(problem.pairs.ravel(), minlength=len(power))
        self._singles, kind = np.unique(power, return_inverse=True)
        self._n_singles = np.bincount(kind) - np.bincount(kind, degree).astype(np.int64)


def singles(powers: Floats, n_alike: Ints, log_weights: Floats) -> tuple[float, Floats]:
    """Groups linked to nothing: the sum of log sum_k pi_k^a, and their expected counts (K,)."""
    if not len(powers):
        return 0.0, np.zeros(len(log_weights))
    share, log_total = _shares(powers, log_weights)
    return float(n_alike @ log_total), (n_alike * powers) @ share


def pairs(kinds: Floats, n_alike: Ints, log_weights: Floats) -> tuple[float, Floats]:
    """Two groups joined by a link: log sum_kl pi_k^a pi_l^b exp(-cost of k, l), and expected counts (K,).

    ``kinds`` (p, 3) has the rows a, b, coupling.
    """
    log_omega, counts = 0.0, np.zeros(len(log_weights))
    for start in range(0, len(kinds), _KINDS_AT_ONCE):
        a, b, coupling = kinds[start : start + _KINDS_AT_ONCE].T
        number = n_alike[start : start + _KINDS_AT_ONCE]
        first, log_first = _shares(a, log_weights)
        alike = np.array_equal(a, b)
        second, log_second = (first, log_first) if alike else _shares(b, log_weights)
        agree = np.exp(np.minimum(coupling, 0.0))[:, np.newaxis]
        differ = np.exp(-np.maximum(coupling, 0.0))[:, np.newaxis]
        joint = first * (agree * second + differ * _sum_of_others(second))
        omega = joint.sum(axis=1)
        log_omega += float(number @ (np.log(omega) + log_first + log_second))
        if alike:
            counts += (number * (a + b) / omega) @ joint
            continue
        counts += (number * a / omega) @ joint
        counts += (number * b / omega) @ (second * (agree * first + differ * _sum_of_others(first)))
    return log_omega, counts


def _shares(powers: Floats, log_weights: Floats) -> tuple[Floats, Floats]:
    """pi_k^a / sum_l pi_l^a for each power a, (p, K), and the logarithms of the sums, (p,)."""
    scores = powers[:, np.newaxis] * log_weights
    log_total = np.logaddexp.reduce(scores, axis=1)
    return np.exp(scores - log_total[:, np.newaxis]), log_total


def _sum_of_others(share: Floats) -> Floats:
    """sum_{l != k} q_l, added up from both ends: 1 - q_k would cancel."""
    others = np.zeros_like(share)
    others[:, 1:] = np.cumsum(share[:, :-1], axis=1)
    others[:, :-1] += np.cumsum(share[:, :0:-1], axis=1)[:, ::-1]
    return others
