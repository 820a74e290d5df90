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

    ``whole`` is the problem that it is part of, without scores, and ``forbidden`` (s, K) the labels not
    allowed to its nodes; None if all are, so that the links alone decide. The rest is made when wanted, for
    an exact answer needs none of it.
    """

    whole: Problem
    forbidden: NDArray[np.bool_] | None

    def problem(self) -> tuple[Problem, NDArray[np.int64]]:
        """The links with couplings and scores of 0 and ``-inf``, and the nodes (s,) that have any."""
        links, nodes = cached(self.whole, "hard links", lambda: _hard_links(self.whole))
        scores = np.zeros((len(nodes), links.unary.shape[1]))
        if self.forbidden is not None:
            scores[self.forbidden] = -np.inf
        return links._replace(unary=scores), nodes


def hard_part(problem: Problem) -> HardPart | None:
    """What decides whether a labelling is allowed, taken before an engine writes over the scores.

    None if there are no hard cannot-links: every node has a label that is not forbidden.
    """
    if not cached(problem, "any hard", lambda: bool(hard_rows(problem).any())):
        return None
    forbidden = None
    if problem.unary.min() == -np.inf:
        _, nodes = cached(problem, "hard links", lambda: _hard_links(problem))
        forbidden = problem.unary[nodes] == -np.inf
        forbidden = forbidden if forbidden.any() else None
    return HardPart(problem._replace(unary=np.empty((0, problem.unary.shape[1]))), forbidden)


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

    ``labels`` (n,), those of the whole problem that an engine came to, may show it; otherwise a labelling is
    searched for (:func:`~linkwise.inference.local_search.hard_links.feasible_labels`).
    """
    problem, nodes = part.problem()
    if n_broken(problem, labels[nodes]) == 0:
        return "feasible"
    if part.forbidden is None:
        return cached(problem, "feasibility", lambda: _search(problem))
    return _search(problem)


def _search(problem: Problem) -> Literal["feasible", "infeasible", "unknown"]:
    # The search shuffles: a generator of its own leaves the draws of the engine alone.
    return feasible_labels(problem, np.random.default_rng(0))[0]
