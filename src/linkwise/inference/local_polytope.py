"""The linear relaxation of the best labelling: pseudo-probabilities instead of labels.

With y_ia the share of label a at node i and q the joint shares of a link's two ends, the relaxation over the
local polytope (row and column sums of q are y_i and y_j) is, for a Potts link of rewards r_a,

    maximise  sum_ia unary_ia y_ia + sum_links sum_a r_a q_aa.

Only the diagonal d_a = q_aa matters. A table with these margins and this diagonal exists exactly if

    0 <= d_a <= min(y_ia, y_ja)   and   y_ia + y_ja - 1 <= d_a - sum_{b != a} d_b,

for what is left, the margins y - d, must fit into a table with an empty diagonal, and that needs
(y_ia - d_a) + (y_ja - d_a) <= 1 - sum_b d_b for every a (Hall). So K variables per link give the bound of all
K * K, and mostly simpler ones do:

* r >= 0 throughout: the best d_a is min(y_ia, y_ja) = y_ia - s_a with s_a >= y_ia - y_ja, s_a >= 0, and the
  second condition holds by itself. With equal r this is the cost r/2 sum_a abs(y_ia - y_ja) of a must-link.
* r <= 0 throughout: the best d_a is max(0, y_ia + y_ja - 1), and the second condition holds by itself.
  A hard cannot-link has d_a = 0, that is y_ia + y_ja <= 1.
* signs mixed: both conditions are written out, the second one for every a. Without it the program would
  still be an upper bound, but a weaker one.

These are Eqs. 8-15 of Bilenko & Basu 2004 with the constraints corrected; see the errata.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from linkwise._arrays import Bools, Floats, Ints
from linkwise._running import run_interruptibly
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import problem_score

_OPTIMAL, _INFEASIBLE = 0, 2
# Rounding of the bound, per unit of the sum of absolute values of its terms.
_ROUNDING = 2e-15


class Relaxation(NamedTuple):
    """Shares y (n, K), a score that no labelling exceeds, and "solved", "infeasible" or "stopped"."""

    status: str
    shares: Floats | None
    upper_bound: float | None
    n_iter: int


class Program(NamedTuple):
    """Maximise constant + objective @ x: matrix @ x <= limit, one_label @ x == 1, 0 <= x <= upper."""

    objective: Floats
    constant: float
    matrix: csr_array
    limit: Floats
    upper: Floats
    one_label: csr_array


class _Rows:
    """Inequalities, collected as triplets."""

    def __init__(self) -> None:
        self.limits: list[Floats] = []
        self.entries: list[tuple[Ints, Ints, Floats]] = []
        self._n_rows = 0

    def add(self, limit: Floats) -> Ints:
        """New rows with these right-hand sides; their numbers."""
        self.limits.append(limit)
        self._n_rows += len(limit)
        return np.arange(self._n_rows - len(limit), self._n_rows)

    def put(self, rows: Ints, variables: Ints, coefficient: Any) -> None:
        """Add coefficient * variable to each row."""
        self.entries.append((rows, variables, np.broadcast_to(np.float64(coefficient), rows.shape)))

    def matrix(self, n_variables: int) -> csr_array:
        """All coefficients; those on one place add up."""
        rows, variables, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return csr_array((values, (rows, variables)), shape=(self._n_rows, n_variables))


def label_program(problem: Problem) -> Program:
    """The relaxation; with y 0 or 1 the best labelling. Variables: y (n * K), links by label, mixed links."""
    n_nodes, n_labels = problem.unary.shape
    penalty_form = problem.coupling.ndim == 1
    rewards = problem.coupling
    if penalty_form:
        rewards = np.broadcast_to(rewards[:, None], (len(rewards), n_labels))
    signs_mixed = np.asarray((rewards > 0).any(axis=1) & (rewards < 0).any(axis=1))
    link, label = np.nonzero((rewards != 0) | signs_mixed[:, None])
    reward = rewards[link, label]
    first = problem.pairs[link, 0] * n_labels + label
    second = problem.pairs[link, 1] * n_labels + label
    n_shares = n_nodes * n_labels
    own = n_shares + np.arange(len(link))
    mixed = signs_mixed[link]
    slack = (reward > 0) & ~mixed
    hard = reward == -np.inf
    n_totals = int(signs_mixed.sum())
    total = n_shares + len(link) + np.arange(n_totals)

    highest = problem.unary.max(axis=1)
    upper = np.ones(n_shares + len(link) + n_totals)
    upper[:n_shares] = _possible(problem, rewards).ravel()
    upper[own[hard]] = 0.0
    objective = np.zeros(len(upper))
    objective[:n_shares] = np.where(upper[:n_shares] > 0, (problem.unary - highest[:, None]).ravel(), 0.0)
    objective[own] = np.where(hard, 0.0, np.where(slack, -reward, reward))
    if not penalty_form:
        # Agreement gives r (y - s). In penalty form r y adds up to what differing costs in the constant.
        np.add.at(objective, first[slack], reward[slack])

    rows = _Rows()
    apart = rows.add(np.where(slack, 0.0, 1.0)[~mixed])
    rows.put(apart, first[~mixed], 1.0)
    rows.put(apart, second[~mixed], np.where(slack, -1.0, 1.0)[~mixed])
    rows.put(apart, own[~mixed], -1.0)
    for end in (first, second):
        below = mixed & (reward > 0)
        rows_below = rows.add(np.zeros(int(below.sum())))
        rows.put(rows_below, own[below], 1.0)
        rows.put(rows_below, end[below], -1.0)
    # The sum of d is a variable, so that 2 d_a - total >= y_ia + y_ja - 1 has four entries instead of K + 2.
    index = (np.cumsum(signs_mixed) - 1)[link[mixed]]
    sums = rows.add(np.zeros(n_totals))
    rows.put(sums, total, -1.0)
    rows.put(sums[index], own[mixed], 1.0)
    fits = rows.add(np.ones(int(mixed.sum())))
    rows.put(fits, first[mixed], 1.0)
    rows.put(fits, second[mixed], 1.0)
    rows.put(fits, own[mixed], -2.0)
    rows.put(fits, total[index], 1.0)
    one_label = csr_array(
        (np.ones(n_shares), np.arange(n_shares), np.arange(0, n_shares + 1, n_labels)),
        shape=(n_nodes, len(upper)),
    )
    return Program(
        objective,
        float(highest.sum()),
        rows.matrix(len(upper)),
        np.concatenate(rows.limits),
        upper,
        one_label,
    )


def _possible(problem: Problem, rewards: Floats) -> Bools:
    """Labels that some optimum may use (n, K).

    Moving a share from label a to b changes links by at most sum (abs(r_a) + abs(r_b)) of it. Where the unary
    score gains more, no optimum uses a, and scores of very different size stay out of the program.
    """
    strength = np.abs(rewards)
    into, out_of = np.zeros((2, *problem.unary.shape))
    for side in (0, 1):
        np.add.at(into, problem.pairs[:, side], strength)
        np.add.at(out_of, problem.pairs[:, side], np.where(np.isinf(strength), 0.0, strength))
    certain = (problem.unary - into).max(axis=1, keepdims=True)
    return (problem.unary > -np.inf) & (problem.unary + out_of >= certain)


def _dual_bound(program: Program, multipliers: Floats, n_nodes: int, n_labels: int) -> float:
    """Upper bound by weak duality from any multipliers >= 0; the tolerances of the solver do not count."""
    left = program.objective - program.matrix.T @ multipliers
    n_shares = n_nodes * n_labels
    shares = np.where(program.upper[:n_shares] > 0, left[:n_shares], -np.inf).reshape(n_nodes, n_labels)
    value = (
        program.limit @ multipliers
        + shares.max(axis=1).sum()
        + (np.maximum(left, 0.0) * program.upper)[n_shares:].sum()
    )
    size = (
        np.abs(program.objective).sum()
        + (abs(program.matrix).sum(axis=1) + np.abs(program.limit)) @ multipliers
        + abs(program.constant)
    )
    return float(program.constant + value + _ROUNDING * size)


def solve_relaxation(problem: Problem, time_limit: float | None = None) -> Relaxation:
    """Solve the relaxation with HiGHS within some seconds; the problem has at least one link."""
    n_nodes, n_labels = problem.unary.shape
    n_shares = n_nodes * n_labels
    program = label_program(problem)
    sizes = np.abs(program.objective[program.objective != 0])
    # HiGHS works to absolute tolerances of 1e-7.
    unit = float(np.median(sizes)) if sizes.size else 1.0
    answer = run_interruptibly(
        lambda: linprog(
            -program.objective / unit,
            A_ub=program.matrix,
            b_ub=program.limit,
            A_eq=program.one_label,
            b_eq=np.ones(n_nodes),
            bounds=np.column_stack([np.zeros_like(program.upper), program.upper]),
            # Dual simplex was 6 times faster than interior points with crossover on 1e4 to 2e5 variables.
            method="highs-ds",
            options={} if time_limit is None else {"time_limit": time_limit},
        )
    )
    if answer.status == _INFEASIBLE:
        return Relaxation("infeasible", None, None, int(answer.nit))
    if answer.status != _OPTIMAL:
        return Relaxation("stopped", None, None, int(answer.nit))
    multipliers = np.maximum(-answer.ineqlin.marginals * unit, 0.0)
    bound = _dual_bound(program, multipliers, n_nodes, n_labels)
    shares = np.clip(answer.x[:n_shares].reshape(n_nodes, n_labels), 0.0, 1.0)
    return Relaxation("solved", shares, bound, int(answer.nit))


#: Gap, relative to max(1, abs(score)), up to which a labelling counts as optimal.
TOLERANCE = 1e-6
#: HiGHS closes gaps to 1e-6; with its objective scaled to this size it resolves 1e-9 of the largest score.
_OBJECTIVE_SIZE = 1e3


class MilpLabels(NamedTuple):
    """Labels (n,) or None, an upper bound of every score, and whether best or infeasible is proven."""

    labels: Ints | None
    upper_bound: float
    optimal: bool


def milp_labels(problem: Problem, time_limit: float) -> MilpLabels:
    """Solve the integer program of a problem within a time limit in seconds."""
    program = label_program(problem)
    largest = float(np.abs(program.objective).max(initial=0.0))
    scale = _OBJECTIVE_SIZE / largest if largest > 0 else 1.0
    solved = run_interruptibly(
        lambda: milp(
            -scale * program.objective,
            integrality=np.arange(program.objective.size) < problem.unary.size,
            bounds=Bounds(0.0, program.upper),
            constraints=[
                LinearConstraint(program.one_label, 1.0, 1.0),
                LinearConstraint(program.matrix, -np.inf, program.limit),
            ],
            options={"time_limit": time_limit, "mip_rel_gap": 0.0},
        )
    )
    if solved.status == _INFEASIBLE:
        return MilpLabels(None, -np.inf, optimal=True)
    dual = solved.get("mip_dual_bound")
    bound = np.inf if dual is None or not np.isfinite(dual) else program.constant - dual / scale
    if solved.x is None:
        return MilpLabels(None, bound, optimal=False)
    labels = solved.x[: problem.unary.size].reshape(problem.unary.shape).argmax(axis=1)
    # The score of the labels counts: the other variables of an incumbent need not be tight.
    score = problem_score(problem, labels)
    bound = max(bound, score)
    unresolved = max(bound - score, 1e-9 * largest)
    return MilpLabels(labels, bound, bool(unresolved <= TOLERANCE * max(1.0, abs(score))))
