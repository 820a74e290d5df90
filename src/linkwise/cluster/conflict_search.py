"""Cheapest labels of groups linked apart: branch and bound on the conflicts of their favourite labels.

Every group wants its cheapest allowed label; two linked groups that want the same one are in conflict.
Without conflicts the wishes are the best labelling. Otherwise one group u of a conflict about label a is
chosen and the search goes on twice: u takes a, so that its neighbours may not, or u may not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.graph import Adjacency

__all__ = ["search_parts"]

_TAKE, _FORBID = 0, 1
# Bounds this close to the best cost, as a share of it, do not promise an improvement but rounding.
_ROUNDING = 1e-12


@kernel
def _wishes(
    members: NDArray[np.int64],
    cost: NDArray[np.float64],
    refused: NDArray[np.int64],
    wish: NDArray[np.int64],
    regret: NDArray[np.float64],
    n_allowed: NDArray[np.int64],
) -> float:
    """Cheapest allowed label of each member and what its next one would cost more; returns their total."""
    total = 0.0
    for node in members:
        lowest = np.inf
        second = np.inf
        wish[node] = -1
        allowed = 0
        for label in range(cost.shape[1]):
            if refused[node, label] == 0:
                allowed += 1
                value = cost[node, label]
                if value < lowest:
                    second = lowest
                    lowest = value
                    wish[node] = label
                elif value < second:
                    second = value
        if allowed == 0:
            return np.inf
        regret[node] = second - lowest
        n_allowed[node] = allowed
        total += lowest
    return total


@kernel
def _conflicts(
    members: NDArray[np.int64],
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    wish: NDArray[np.int64],
    regret: NDArray[np.float64],
    n_allowed: NDArray[np.int64],
    matched: NDArray[np.bool_],
) -> tuple[float, int, float]:
    """Least cost of resolving all conflicts, the node to branch on (-1 without conflicts), cost if it takes.

    One end of a conflict has to give way, which costs at least the smaller regret; disjoint conflicts add up.
    """
    least = 0.0
    branch = -1
    branch_worth = -1.0
    branch_push = 0.0
    for node in members:
        matched[node] = False
    for node in members:
        push = 0.0
        partner = -1
        partner_cost = -1.0
        in_conflict = False
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if wish[other] == wish[node]:
                in_conflict = True
                push += regret[other]
                if not matched[other] and min(regret[node], regret[other]) > partner_cost:
                    partner = other
                    partner_cost = min(regret[node], regret[other])
        if not in_conflict:
            continue
        if push == np.inf and regret[node] == np.inf:
            return np.inf, node, push
        if partner >= 0 and not matched[node]:
            matched[node] = True
            matched[partner] = True
            least += partner_cost
        # Forced moves first, then the choice whose cheaper side raises the bound most, then saturated nodes.
        forced = push == np.inf or regret[node] == np.inf
        worth = np.inf if forced else min(push, regret[node])
        if worth > branch_worth or (worth == branch_worth and n_allowed[node] < n_allowed[branch]):
            branch = node
            branch_worth = worth
            branch_push = push
    return least, branch, branch_push


@kernel
def _decide(
    choice: int,
    node: int,
    label: int,
    step: int,
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    refused: NDArray[np.int64],
) -> None:
    """Make (step = 1) or take back (step = -1) a decision: each label counts the reasons against it."""
    if choice == _FORBID:
        refused[node, label] += step
        return
    for other in range(refused.shape[1]):
        if other != label:
            refused[node, other] += step
    for slot in range(indptr[node], indptr[node + 1]):
        refused[neighbours[slot], label] += step


@kernel
def _search(
    part_starts: NDArray[np.int64],
    order: NDArray[np.int64],
    cost: NDArray[np.float64],
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    labels: NDArray[np.int64],
    has_labels: bool,
    max_work: int,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Depth-first search of every part; ``labels`` are improved in place. Returns costs and proofs."""
    n_nodes, n_labels = cost.shape
    n_parts = part_starts.size - 1
    refused = np.zeros((n_nodes, n_labels), dtype=np.int64)
    wish = np.empty(n_nodes, dtype=np.int64)
    regret = np.empty(n_nodes)
    n_allowed = np.empty(n_nodes, dtype=np.int64)
    matched = np.empty(n_nodes, dtype=np.bool_)
    found = np.full(n_parts, np.inf)
    proven = np.zeros(n_parts, dtype=np.bool_)
    for part in range(n_parts):
        members = order[part_starts[part] : part_starts[part + 1]]
        work_of_step = 0
        for node in members:
            work_of_step += n_labels + indptr[node + 1] - indptr[node]
        if has_labels:
            found[part] = 0.0
            for node in members:
                found[part] += cost[node, labels[node]]
        # Every decision leaves a node fewer labels, so a path has fewer than members x labels decisions.
        nodes_of = np.empty(members.size * n_labels, dtype=np.int64)
        labels_of = np.empty(members.size * n_labels, dtype=np.int64)
        choice_of = np.empty(members.size * n_labels, dtype=np.int64)
        second_side = np.empty(members.size * n_labels, dtype=np.bool_)
        depth = 0
        work = 0
        while True:
            work += work_of_step
            if work > max_work:
                break
            bound = _wishes(members, cost, refused, wish, regret, n_allowed)
            deeper = False
            if bound < found[part] * (1.0 - _ROUNDING):
                least, branch, push = _conflicts(
                    members, indptr, neighbours, wish, regret, n_allowed, matched
                )
                if branch < 0:
                    found[part] = bound
                    for node in members:
                        labels[node] = wish[node]
                elif bound + least < found[part] * (1.0 - _ROUNDING):
                    deeper = True
                    nodes_of[depth] = branch
                    labels_of[depth] = wish[branch]
                    choice_of[depth] = _TAKE if push <= regret[branch] else _FORBID
                    second_side[depth] = False
                    depth += 1
            while not deeper and depth > 0:
                top = depth - 1
                _decide(choice_of[top], nodes_of[top], labels_of[top], -1, indptr, neighbours, refused)
                if second_side[top]:
                    depth -= 1
                else:
                    second_side[top] = True
                    choice_of[top] = _FORBID if choice_of[top] == _TAKE else _TAKE
                    deeper = True
            if not deeper:
                proven[part] = True
                break
            top = depth - 1
            _decide(choice_of[top], nodes_of[top], labels_of[top], 1, indptr, neighbours, refused)
    return found, proven


def search_parts(
    part: NDArray[np.int64],
    n_parts: int,
    cost: NDArray[np.float64],
    graph: Adjacency,
    initial: NDArray[np.int64] | None,
    *,
    max_work: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Labels of least total cost such that neighbours differ, part by part.

    Parameters
    ----------
    part : (n,) int64
        Part of each node; no edge joins two parts.
    n_parts : int
    cost : (n, K)
        At least 0.
    graph : Adjacency
        Who must differ.
    initial : (n,) int64 or None
        Labels to improve on, with which neighbours differ.
    max_work : int
        Labels and neighbours that the search of one part may look at, a few nanoseconds each.

    Returns
    -------
    labels : (n,) int64
        The best labels found; -1 throughout a part where none were.
    found : (n_parts,)
        What they cost; ``inf`` where none were found.
    proven : (n_parts,) bool
        The search was completed: no labels cost less, up to rounding. With ``found = inf`` there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.cluster.conflict_search import search_parts
    >>> from linkwise.graph import adjacency
    >>> cost = np.array([[0.0, 3.0, 4.0], [0.0, 2.0, 5.0], [0.0, 9.0, 1.0]])
    >>> triangle = adjacency(3, np.array([[0, 1], [0, 2], [1, 2]]))
    >>> search_parts(np.zeros(3, dtype=np.int64), 1, cost, triangle, None, max_work=10**6)
    (array([0, 1, 2]), array([3.]), array([ True]))
    """
    order = np.argsort(part, kind="stable")
    part_starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=n_parts))])
    has_labels = initial is not None
    labels = initial.copy() if initial is not None else np.full(len(cost), -1, dtype=np.int64)
    found, proven = _search(
        part_starts, order, cost, graph.indptr, graph.neighbours, labels, has_labels, max_work
    )
    return labels, found, proven
