"""The best labelling as a mixed-integer linear program, solved by HiGHS.

It is the program of :mod:`linkwise.inference.local_polytope` (Bilenko & Basu 2004, Eqs. 8-15, with the
constraints corrected) with the shares y of the labels 0 or 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from linkwise._running import run_interruptibly
from linkwise.inference.local_polytope import label_program
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

    ``labels`` (n,) is None if the time was over before a labelling was found, or if there is none.
    ``upper_bound``: no labelling scores more; inf if the solver had no bound, -inf if there is no labelling.
    ``optimal``: the labels are proven best, or proven not to exist.
    """

    labels: NDArray[np.int64] | None
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
