"""Cheapest labels of groups linked apart: branch and bound on the conflicts of their favourite labels.

The favourite of a group is its cheapest allowed label; two linked groups with the same favourite are in
conflict. Without conflicts the favourites are the best labelling. Otherwise one group u of a conflict about
label a is chosen and the search goes on twice: once u gets a, which is then forbidden to its neighbours, and
once a is forbidden to u.
"""

from __future__ import annotations

import time

import numpy as np

from linkwise._arrays import Bools, Floats, Ints
from linkwise._kernels import kernel
from linkwise.graph import Adjacency

_TAKE, _FORBID = 0, 1
# Labels and neighbours that one call of the kernel looks at, in 10 to 40 ms. Between two calls a signal gets
# through, and the time is looked at.
_SLICE = 4 * 10**6
# Bounds this close to the best cost, as a share of it, do not promise an improvement but rounding.
_ROUNDING = 1e-12


@kernel
def _wishes(
    order: Ints,
    start: int,
    stop: int,
    cost: Floats,
    refused: Ints,
    wish: Ints,
    regret: Floats,
    n_allowed: Ints,
) -> float:
    """Cheapest allowed label of each node of ``order[start:stop]`` and its regret; their total cost."""
    total = 0.0
    for place in range(start, stop):
        node = order[place]
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
    order: Ints,
    start: int,
    stop: int,
    graph: Adjacency,
    wish: Ints,
    regret: Floats,
    n_allowed: Ints,
    matched: Bools,
) -> tuple[float, int, float]:
    """Least cost of resolving all conflicts, the node to branch on (-1: none), the cost if it takes.

    One end of a conflict has to give way, which costs at least the smaller regret; disjoint conflicts add up.
    """
    indptr, neighbours = graph.indptr, graph.neighbours
    least = 0.0
    branch = -1
    branch_worth = -1.0
    branch_push = 0.0
    for place in range(start, stop):
        matched[order[place]] = False
    for place in range(start, stop):
        node = order[place]
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
def _decide(choice: int, node: int, label: int, step: int, graph: Adjacency, refused: Ints) -> None:
    """Make (step = 1) or take back (step = -1) a decision: each label counts the reasons against it."""
    if choice == _FORBID:
        refused[node, label] += step
        return
    for other in range(refused.shape[1]):
        if other != label:
            refused[node, other] += step
    for slot in range(graph.indptr[node], graph.indptr[node + 1]):
        refused[graph.neighbours[slot], label] += step


@kernel
def _search_slice(
    part_starts: Ints,
    order: Ints,
    cost: Floats,
    graph: Adjacency,
    max_work: int,
    slice_work: int,
    cursor: Ints,
    refused: Ints,
    path: Ints,
    wish: Ints,
    regret: Floats,
    n_allowed: Ints,
    matched: Bools,
    labels: Ints,
    found: Floats,
    proven: Bools,
) -> bool:
    """Go on with the depth-first search of the parts where ``cursor`` stands; whether it is done.

    ``cursor``: part, depth, work. ``path``: node, label, choice and side of the decisions so far. ``labels``,
    ``found`` and ``proven`` are improved in place: numba turns a signal into an error if arrays are returned.
    """
    spent = 0
    part, depth, work = cursor[0], cursor[1], cursor[2]
    while part < part_starts.size - 1:
        start, stop = part_starts[part], part_starts[part + 1]
        work_of_step = 0
        for place in range(start, stop):
            node = order[place]
            work_of_step += cost.shape[1] + graph.indptr[node + 1] - graph.indptr[node]
        while True:
            if spent >= slice_work:
                cursor[0], cursor[1], cursor[2] = part, depth, work
                return False
            work += work_of_step
            spent += work_of_step
            if work > max_work:
                break
            bound = _wishes(order, start, stop, cost, refused, wish, regret, n_allowed)
            deeper = False
            if bound < found[part] * (1.0 - _ROUNDING):
                least, branch, push = _conflicts(order, start, stop, graph, wish, regret, n_allowed, matched)
                if branch < 0:
                    found[part] = bound
                    for place in range(start, stop):
                        labels[order[place]] = wish[order[place]]
                elif bound + least < found[part] * (1.0 - _ROUNDING):
                    deeper = True
                    path[depth, 0] = branch
                    path[depth, 1] = wish[branch]
                    path[depth, 2] = _TAKE if push <= regret[branch] else _FORBID
                    path[depth, 3] = 0
                    depth += 1
            while not deeper and depth > 0:
                top = depth - 1
                _decide(path[top, 2], path[top, 0], path[top, 1], np.int64(-1), graph, refused)
                if path[top, 3]:
                    depth -= 1
                else:
                    path[top, 3] = 1
                    path[top, 2] = _FORBID if path[top, 2] == _TAKE else _TAKE
                    deeper = True
            if not deeper:
                proven[part] = True
                break
            top = depth - 1
            _decide(path[top, 2], path[top, 0], path[top, 1], np.int64(1), graph, refused)
        part += 1
        depth = 0
        work = 0
    return True


def search_parts(
    part: Ints,
    n_parts: int,
    cost: Floats,
    graph: Adjacency,
    initial: Ints | None,
    *,
    max_work: int,
    deadline: float = np.inf,
) -> tuple[Ints, Floats, Bools]:
    """Labels of least total cost such that neighbours in ``graph`` differ, part by part.

    ``part`` (n,) numbers the parts, which no edge joins; ``cost`` (n, K) >= 0; ``initial`` (n,) are labels to
    improve on; ``max_work`` looks are allowed in one part. Returns labels (n,), -1 where none, their cost
    (n_parts,), and where the search was completed (n_parts,).
    """
    n_nodes, n_labels = cost.shape
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=n_parts)
    labels, found = np.full(n_nodes, -1, dtype=np.int64), np.full(n_parts, np.inf)
    if initial is not None:
        labels = initial.copy()
        found = np.bincount(part, cost[np.arange(n_nodes), initial], minlength=n_parts)
    proven = np.zeros(n_parts, dtype=np.bool_)
    search = (
        np.concatenate([[0], np.cumsum(sizes)]),
        order,
        cost,
        graph,
        max_work,
        _SLICE,
        np.zeros(3, dtype=np.int64),
        np.zeros((n_nodes, n_labels), dtype=np.int64),
        # Every decision leaves a node fewer labels, so a path has fewer than members x labels decisions.
        np.empty((int(sizes.max(initial=0)) * n_labels, 4), dtype=np.int64),
        np.empty(n_nodes, dtype=np.int64),
        np.empty(n_nodes),
        np.empty(n_nodes, dtype=np.int64),
        np.empty(n_nodes, dtype=np.bool_),
        labels,
        found,
        proven,
    )
    while not _search_slice(*search):
        if time.perf_counter() >= deadline:
            break
    return labels, found, proven
