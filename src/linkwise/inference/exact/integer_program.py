"""The best labelling as a mixed-integer linear program, solved by HiGHS.

    maximise    sum_ik unary_ik y_ik + sum_ek r_ek z_ek
    subject to  sum_k y_ik = 1,  y binary,  0 <= z <= 1
                z_ek <= y_ik,  z_ek <= y_jk           where agreeing is rewarded, r_ek > 0
                z_ek >= y_ik + y_jk - 1               where it is punished, r_ek < 0
                y_ik + y_jk <= 1                      where it is forbidden, r_ek = -inf

Here ``r_ek = log_agree - log_differ`` of link e = (i, j), and z_ek stands for y_ik y_jk. It is the program
of Bilenko & Basu 2004, Eqs. 8-15, with the constraints corrected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from linkwise._interruption import run_interruptibly
from linkwise.inference.problem import Problem
from linkwise.inference.scoring import problem_score

__all__ = ["MilpLabels", "milp_labels"]

#: Gap, relative to max(1, abs(score)), up to which a labelling counts as optimal.
TOLERANCE = 1e-6
#: HiGHS closes gaps to 1e-6; with its objective scaled to this size it resolves 1e-9 of the largest score.
_OBJECTIVE_SIZE = 1e3
_INFEASIBLE = 2


class MilpLabels(NamedTuple):
    """Answer of the integer program.

    Attributes
    ----------
    labels : (n,) int64 or None
        None if the time was over before a labelling was found, or if there is none.
    upper_bound : float
        No labelling scores more; ``inf`` if the solver had no bound, ``-inf`` if there is no labelling.
    optimal : bool
        The labels are proven best, or proven not to exist.
    """

    labels: NDArray[np.int64] | None
    upper_bound: float
    optimal: bool


def milp_labels(problem: Problem, time_limit: float) -> MilpLabels:
    """Solve the integer program of a problem within a time limit.

    Parameters
    ----------
    problem : Problem
    time_limit : float
        Seconds.

    Returns
    -------
    MilpLabels

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> from linkwise.inference.problem import reduce_field
    >>> from linkwise.inference.exact.integer_program import milp_labels
    >>> field = PottsField([[0.0, 1.0, 0.9]] * 3, [(0, 1), (1, 2), (0, 2)], [-1.0, -1.0, -1.0])
    >>> answer = milp_labels(reduce_field(field, keep_zero_in_component=False).problem, time_limit=10.0)
    >>> sorted(answer.labels.tolist()), answer.optimal
    ([0, 1, 2], True)
    """
    n_nodes, n_labels = problem.unary.shape
    rewards = problem.coupling
    if rewards.ndim == 1:
        rewards = np.broadcast_to(rewards[:, None], (len(rewards), n_labels))
    soft_edge, soft_label = np.nonzero(np.isfinite(rewards) & (rewards != 0))
    reward = rewards[soft_edge, soft_label]

    allowed = np.isfinite(problem.unary)
    offset_of_node = problem.unary.max(axis=1)
    unary = np.where(allowed, problem.unary - offset_of_node[:, None], 0.0)
    offset = float(offset_of_node.sum())
    if problem.coupling.ndim == 1:
        offset -= float(np.maximum(problem.coupling, 0.0).sum())

    objective = np.concatenate([unary.ravel(), reward])
    largest = float(np.abs(objective).max(initial=0.0))
    scale = _OBJECTIVE_SIZE / largest if largest > 0 else 1.0
    upper = np.ones(objective.size)
    upper[: unary.size] = allowed.ravel()
    solved = run_interruptibly(
        lambda: milp(
            -scale * objective,
            integrality=np.arange(objective.size) < unary.size,
            bounds=Bounds(0.0, upper),
            constraints=_constraints(problem, rewards, soft_edge, soft_label, reward),
            options={"time_limit": time_limit, "mip_rel_gap": 0.0},
        )
    )
    if solved.status == _INFEASIBLE:
        return MilpLabels(None, -np.inf, optimal=True)
    dual = solved.get("mip_dual_bound")
    bound = np.inf if dual is None or not np.isfinite(dual) else offset - dual / scale
    if solved.x is None:
        return MilpLabels(None, bound, optimal=False)
    labels = solved.x[: unary.size].reshape(n_nodes, n_labels).argmax(axis=1)
    # The score of the labels counts: z of an incumbent need not be tight.
    score = problem_score(problem, labels)
    bound = max(bound, score)
    unresolved = max(bound - score, 1e-9 * largest)
    return MilpLabels(labels, bound, bool(unresolved <= TOLERANCE * max(1.0, abs(score))))


def _constraints(
    problem: Problem,
    rewards: NDArray[np.float64],
    soft_edge: NDArray[np.int64],
    soft_label: NDArray[np.int64],
    reward: NDArray[np.float64],
) -> list[LinearConstraint]:
    """One label per node, and the rows that tie z to y or forbid agreement."""
    n_nodes, n_labels = problem.unary.shape
    n_y, n_z = problem.unary.size, len(reward)
    one_label = csr_array(
        (np.ones(n_y), np.arange(n_y), np.arange(0, n_y + 1, n_labels)), shape=(n_nodes, n_y + n_z)
    )
    y_of_pair = problem.pairs[:, :, None] * n_labels + np.arange(n_labels)
    first, second = y_of_pair[soft_edge, 0, soft_label], y_of_pair[soft_edge, 1, soft_label]
    z = n_y + np.arange(n_z)
    gain, loss = reward > 0, reward < 0
    forbidden_edge, forbidden_label = np.nonzero(rewards == -np.inf)
    below = _rows([(z[gain], 1.0), (first[gain], -1.0)], n_y + n_z)
    below_too = _rows([(z[gain], 1.0), (second[gain], -1.0)], n_y + n_z)
    above = _rows([(first[loss], 1.0), (second[loss], 1.0), (z[loss], -1.0)], n_y + n_z)
    apart = _rows([(y_of_pair[forbidden_edge, side, forbidden_label], 1.0) for side in range(2)], n_y + n_z)
    limits = [(below, 0.0), (below_too, 0.0), (above, 1.0), (apart, 1.0)]
    return [LinearConstraint(one_label, 1.0, 1.0)] + [
        LinearConstraint(matrix, -np.inf, limit) for matrix, limit in limits if matrix.shape[0]
    ]


def _rows(terms: list[tuple[NDArray[np.int64], float]], n_columns: int) -> csr_array:
    """Matrix whose row r has each term's value in the term's r-th column."""
    n_rows = len(terms[0][0])
    columns = np.column_stack([column for column, _ in terms])
    values = np.tile([value for _, value in terms], n_rows)
    return csr_array(
        (values, columns.ravel(), np.arange(0, columns.size + 1, len(terms))), shape=(n_rows, n_columns)
    )
