"""Whether the hard links of a problem allow any labelling: asked of every answer that does not prove it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.graph import adjacency
from linkwise.inference.local_search.hard_links import feasible_labels, hard_rows
from linkwise.inference.problem import Problem, cached
from linkwise.inference.scoring import n_broken

__all__ = ["HardPart", "feasibility", "hard_part"]


class HardPart(NamedTuple):
    """The nodes with hard cannot-links, their hard links, and what is forbidden; soft terms count nothing.

    ``links`` has couplings of 0 or ``-inf`` and no scores, ``nodes`` (s,) are its nodes in the problem that
    it came from, and ``forbidden`` (s, K) the labels not allowed; None if all are, so that the links alone
    decide.
    """

    links: Problem
    nodes: NDArray[np.int64]
    forbidden: NDArray[np.bool_] | None

    def problem(self) -> Problem:
        """The links with scores of 0 and ``-inf``. Made when wanted: the table is as large as the field's."""
        scores = np.zeros((len(self.nodes), self.links.unary.shape[1]))
        if self.forbidden is not None:
            scores[self.forbidden] = -np.inf
        return self.links._replace(unary=scores)


def hard_part(problem: Problem) -> HardPart | None:
    """What decides whether a labelling is allowed, taken before an engine writes over the scores.

    None if there are no hard cannot-links: every node has a label that is not forbidden.
    """
    links, nodes = cached(problem, "hard links", lambda: _hard_links(problem))
    if not nodes.size:
        return None
    forbidden = None
    if problem.unary.min() == -np.inf:
        forbidden = problem.unary[nodes] == -np.inf
        forbidden = forbidden if forbidden.any() else None
    return HardPart(links, nodes, forbidden)


def _hard_links(problem: Problem) -> tuple[Problem, NDArray[np.int64]]:
    """The hard links with couplings of 0 and ``-inf``, without scores, and the nodes that have any."""
    hard = hard_rows(problem)
    nodes, ends = np.unique(problem.pairs[hard], return_inverse=True)
    pairs = ends.reshape(-1, 2).astype(np.int64)
    coupling = np.where(problem.coupling[hard] == -np.inf, -np.inf, 0.0)
    none = np.empty((0, problem.unary.shape[1]))
    cache: dict[Hashable, Any] | None = None if problem.cache is None else {}
    return Problem(none, pairs, coupling, adjacency(len(nodes), pairs), cache), nodes


def feasibility(part: HardPart, labels: NDArray[np.int64]) -> Literal["feasible", "infeasible", "unknown"]:
    """Whether some labelling breaks no hard link and uses no forbidden label; "unknown" proves nothing.

    ``labels`` (s,), those of its nodes that an engine came to, may show it; otherwise a labelling is
    searched for (:func:`~linkwise.inference.local_search.hard_links.feasible_labels`).
    """
    problem = part.problem()
    if n_broken(problem, labels) == 0:
        return "feasible"
    if part.forbidden is None:
        return cached(problem, "feasibility", lambda: _search(problem))
    return _search(problem)


def _search(problem: Problem) -> Literal["feasible", "infeasible", "unknown"]:
    # The search shuffles: a generator of its own leaves the draws of the engine alone.
    return feasible_labels(problem, np.random.default_rng(0))[0]
