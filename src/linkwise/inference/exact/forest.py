"""Exact inference on forests: one pass up, one pass down, O(n K) by the Potts structure.

Up, in logarithms: with ``h_c`` the score of everything below and at node c, its message to the parent is

    m_c(b) = log( exp(agree_b + h_c(b)) + exp(differ) sum_{a != b} exp(h_c(a)) ).

Down, in probabilities: ``P(z_c = a) = sum_b P(z_parent = b) exp(h_c(a) + theta(a, b) - m_c(b))``, a product
with a stochastic matrix. It adds positive numbers only, so there is no division of messages, no
``-inf`` minus ``-inf``, and errors do not grow with depth.

The engine ``tree`` is exact on a maximum spanning forest of the links (Shental et al. 2003).
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from linkwise._arrays import Bools, Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive, log_positive
from linkwise._kernels.simd import prefetch
from linkwise.exceptions import ApproximationWarning
from linkwise.graph import Adjacency, adjacency, group_labels
from linkwise.graph.csr import find
from linkwise.inference.engines import EngineMarginals, marginals_engine
from linkwise.inference.problem import Problem, cached, log_agree, log_differ

#: Exponents up to this size can be multiplied as plain numbers and logged again without harm.
_SAFE = 300.0
#: exp(-_NEGLIGIBLE) is below half the spacing of the floats at 1.
_NEGLIGIBLE = 38.0
#: How many places before its visit a row is fetched: a forest whose nodes lie in random order takes half as
#: long.
_AHEAD = 8
_CACHE_LINE = 8  # numbers


class RootedForest(NamedTuple):
    """Breadth-first order (n,) of a forest, place (n,) of each parent and edge (n,) to it, -1 at roots."""

    order: ShortInts
    parent: ShortInts
    edge: ShortInts


def root_forest(graph: Adjacency, component: NDArray[np.integer] | None = None) -> RootedForest:
    """Root every tree of a forest, ``component`` (n,) if that is known, at its first node."""
    n_nodes = len(graph.indptr) - 1
    rows = np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(graph.indptr))
    if component is None:
        ends = np.column_stack((rows, graph.neighbours)).astype(np.int64)
        component, n_trees = group_labels(n_nodes, ends)
        if len(graph.neighbours) != 2 * (n_nodes - n_trees):
            raise ValueError(
                "the graph has a cycle: use the junction tree, or drop links to a spanning forest"
            )
    # One search from an extra node joined to all roots; then tree by tree, each in the order of the search.
    roots = np.flatnonzero(np.diff(np.maximum.accumulate(component), prepend=-1))
    indices = np.append(graph.neighbours, roots.astype(np.int32))
    indptr = np.append(graph.indptr, np.int32(len(indices)))
    joined = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n_nodes + 1,) * 2)
    order, above = breadth_first_order(joined, n_nodes)
    del joined, indices, indptr, roots
    order = order[1:][np.argsort(component[order[1:]], kind="stable")]
    # Kept from one EM step to the next, so half the memory counts; nobody has 2**31 nodes in memory.
    edge = np.full(n_nodes, -1, dtype=np.int32)
    to_parent = graph.neighbours == above[rows]
    edge[rows[to_parent]] = graph.edges[to_parent]
    place = np.full(n_nodes + 1, -1, dtype=np.int32)
    place[order] = np.arange(n_nodes, dtype=np.int32)
    return RootedForest(order, place[above[order]], edge[order])


@kernel
def send_message(
    h: Floats, coupling: Floats, edge: int, agree: Floats, weight: Floats, message: Floats
) -> tuple[float, int]:
    """Shift h to a maximum of 0 and write its message over the edge; the shift and the top label."""
    n_labels = h.shape[0]
    top = 0
    for a in range(1, n_labels):
        if h[a] > h[top]:
            top = a
    shift = h[top]
    if shift == -np.inf:
        for a in range(n_labels):
            message[a] = -np.inf
        return shift, top
    if coupling.ndim == 1:
        differ = -max(coupling[edge], 0.0)
        for a in range(n_labels):
            agree[a] = coupling[edge] + differ
        largest = -agree[0] if n_labels == 1 else 0.0
    else:
        differ = 0.0
        largest = 0.0
        for a in range(n_labels):
            agree[a] = coupling[edge, a]
            largest = max(largest, abs(agree[a]))
    for a in range(n_labels):
        h[a] -= shift
        weight[a] = exp_nonpositive(h[a])
    rest = 0.0
    second = -np.inf
    for a in range(n_labels):
        largest = max(largest, -h[a])
        if a != top:
            rest += weight[a]
            second = max(second, h[a])
    if largest < _SAFE:
        # Plain numbers. The sum without b is 1 + (rest - weight_b): nothing cancels, for the 1 stays.
        apart = math.exp(differ)
        for b in range(n_labels):
            message[b] = apart * (1.0 + (rest - weight[b]))
        message[top] = apart * rest
        together = math.exp(agree[0])
        for b in range(n_labels):
            if coupling.ndim == 2:
                together = math.exp(agree[b])
            message[b] = log_positive(message[b] + together * weight[b])
        return shift, top
    # exp(h) may have underflowed for all labels but the top: a sum with a reference of its own.
    others = 0.0
    for a in range(n_labels):
        if a != top and second > -np.inf:
            others += math.exp(h[a] - second)
    for b in range(n_labels):
        leave = second + math.log(others) if b == top else math.log1p(rest - weight[b])
        high = max(agree[b] + h[b], differ + leave)
        low = min(agree[b] + h[b], differ + leave)
        message[b] = high + math.log1p(math.exp(low - high)) if low > high - _NEGLIGIBLE else high
    return shift, top


@kernel
def _solve_forest(
    table: Floats,
    order: ShortInts,
    parent: ShortInts,
    edge: ShortInts,
    coupling: Floats,
    agreement: Floats,
    up: bool,
    down: bool,
    same: Floats,
    weight: Floats,
    message: Floats,
) -> float:
    """Scores of nodes in ``order`` become marginals; log partition. ``up``, ``down``: one pass alone."""
    n_places = order.shape[0]
    n_labels = table.shape[1]
    log_partition = 0.0
    lost = 0.0
    start = 0
    while start < n_places:
        stop = start + 1
        while stop < n_places and (parent[stop] >= 0 or not (up and down)):
            stop += 1
        for place in range(stop - 1, start - 1 if up else stop - 1, -1):
            if parent[place] < 0:
                continue
            ahead = order[max(place - _AHEAD, start)] * n_labels
            for k in range(0, n_labels, _CACHE_LINE):
                prefetch(table, ahead + k)
            # As int64, as block moves have it, so that it is compiled once for both.
            own_edge = np.int64(edge[place])
            shift, _ = send_message(table[order[place]], coupling, own_edge, same, weight, message)
            above = table[order[parent[place]]]
            for k in range(n_labels):
                above[k] += message[k]
            # Compensated: digits lost to a long sum are added at its end.
            shift += lost
            total = log_partition + shift
            lost = shift - (total - log_partition) if total > -np.inf else 0.0
            log_partition = total
        for place in range(start, stop if down else start):
            if parent[place] < 0 and not up:
                continue
            ahead = order[min(place + _AHEAD, n_places - 1)] * n_labels
            for k in range(0, n_labels, _CACHE_LINE):
                prefetch(table, ahead + k)
            own = table[order[place]]
            if place == start:
                top = own[0]
                for k in range(1, n_labels):
                    top = max(top, own[k])
                for k in range(n_labels):
                    own[k] = exp_nonpositive(own[k] - top)
            else:
                above = table[order[parent[place]]]
                # The message is made again, which takes less time than keeping it takes memory.
                own_edge = np.int64(edge[place])
                _, top_label = send_message(own, coupling, own_edge, same, weight, message)
                differ = log_differ(coupling, own_edge)
                log_leave_top = differ - message[top_label]
                leaving = 0.0
                together = 0.0
                for k in range(n_labels):
                    # A parent label of probability 0 adds nothing; its message may be -inf.
                    same[k] = above[k] * exp_nonpositive(own[k] + same[k] - message[k])
                    message[k] = above[k] * exp_nonpositive(differ - message[k])
                message[top_label] = 0.0
                for k in range(n_labels):
                    leaving += message[k]
                    together += same[k]
                # exp(differ - m) of the top label can overflow although exp(h + differ - m) <= 1.
                from_top = above[top_label]
                for k in range(n_labels):
                    moved = from_top * exp_nonpositive(own[k] + log_leave_top) if from_top > 0.0 else 0.0
                    own[k] = same[k] + weight[k] * max(leaving - message[k], 0.0)
                    if k != top_label:
                        own[k] += moved
            total = 0.0
            for k in range(n_labels):
                total += own[k]
            for k in range(n_labels):
                own[k] /= total
            if place == start:
                # A root without a label that is allowed: NaN stays in the table, -inf in the sum.
                log_partition += lost + (top + math.log(total) if top > -np.inf else top)
                lost = 0.0
            else:
                agreement[edge[place]] = together / total
        start = stop
    return log_partition + lost


def forest_marginals(
    problem: Problem, component: NDArray[np.integer] | None = None
) -> tuple[Floats, Floats, float]:
    """Marginals (n, K), NaN if impossible, agreement (m,) and log partition of a problem on a forest."""
    forest = cached(problem, "rooted forest", lambda: root_forest(problem.graph, component))
    problem.forget_graph()
    prob = problem.unary if problem.may_overwrite_unary else problem.unary.copy()
    agreement = np.empty(len(problem.pairs))
    return prob, agreement, fill_forest(forest, problem.coupling, prob, agreement)


def fill_forest(
    forest: RootedForest,
    coupling: Floats,
    table: Floats,
    agreement: Floats,
    *,
    up: bool = True,
    down: bool = True,
) -> float:
    """Scores of a forest in ``table`` (n, K) become marginals, with agreement (m,); its log partition.

    ``up`` alone adds to the scores of the roots what is below them, ``down`` needs marginals of the roots.
    """
    room = np.empty((3, table.shape[1]))
    return float(_solve_forest(table, *forest, coupling, agreement, up, down, *room))


@kernel
def _peel(graph: Adjacency, nodes: ShortInts) -> tuple[ShortInts, ShortInts, ShortInts, Bools]:
    """Take leaves away until none is left; ``order``, ``parent``, ``edge`` of the trees, and who stays."""
    indptr, neighbours, edges = graph
    degree = np.zeros(indptr.shape[0] - 1, dtype=np.int32)
    leaves = np.empty(nodes.shape[0], dtype=np.int32)
    n_leaves = 0
    for node in nodes:
        degree[node] = indptr[node + 1] - indptr[node]
        if degree[node] == 1:
            leaves[n_leaves] = node
            n_leaves += 1
    slots = np.empty(nodes.shape[0], dtype=np.int32)
    done = 0
    while done < n_leaves:
        node = leaves[done]
        degree[node] = 0
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if degree[other] > 0:
                slots[done] = slot
                degree[other] -= 1
                if degree[other] == 1:
                    leaves[n_leaves] = other
                    n_leaves += 1
        done += 1
    stays = degree > 0
    # From here on the place of a node; roots come first, and leaves that went last before earlier ones.
    place = degree
    place[:] = -1
    n_roots = 0
    for leaf in range(n_leaves):
        above = neighbours[slots[leaf]]
        if stays[above] and place[above] < 0:
            place[above] = n_roots
            n_roots += 1
    order = np.empty(n_roots + n_leaves, dtype=np.int32)
    parent = np.full(n_roots + n_leaves, -1, dtype=np.int32)
    edge = np.full(n_roots + n_leaves, -1, dtype=np.int32)
    for here in range(n_roots, n_roots + n_leaves):
        leaf = n_roots + n_leaves - 1 - here
        above = neighbours[slots[leaf]]
        order[here] = leaves[leaf]
        place[leaves[leaf]] = here
        parent[here] = place[above]
        edge[here] = edges[slots[leaf]]
        if stays[above]:
            order[place[above]] = above
    return order, parent, edge, stays


def hanging_trees(graph: Adjacency, nodes: ShortInts) -> tuple[RootedForest, Bools]:
    """The trees that hang on rings, and whether a node (n,) is on a ring or between rings.

    What messages from such a tree say never changes: it is solved in one pass up before messages circle, and
    one down after. With as many random links as rows, two thirds of the links need no messages.

    ``nodes``: all those of some components, none of which is a tree; the others are on none. The roots of
    the trees are the nodes they hang on.
    """
    *forest, stays = _peel(graph, nodes)
    return RootedForest(*forest), stays


@kernel
def _maximise(h: Floats, parent: ShortInts, edge: ShortInts, coupling: Floats) -> Ints:
    """Max-product up, choices back down; ``h`` comes in as the unary scores by place."""
    n_places, n_labels = h.shape
    top = np.zeros(n_places, dtype=np.int64)
    second = np.zeros(n_places, dtype=np.int64)
    for place in range(n_places - 1, -1, -1):
        best = 0
        for a in range(1, n_labels):
            if h[place, a] > h[place, best]:
                best = a
        runner_up = -1
        for a in range(n_labels):
            if a != best and (runner_up < 0 or h[place, a] > h[place, runner_up]):
                runner_up = a
        top[place] = best
        second[place] = runner_up
        above = parent[place]
        # Shifted so that scores stay small however deep the tree is.
        shift = h[place, best] if h[place, best] > -np.inf else 0.0
        for a in range(n_labels):
            h[place, a] -= shift
        if above < 0:
            continue
        differ = log_differ(coupling, edge[place])
        for b in range(n_labels):
            other = runner_up if b == best else best
            value = log_agree(coupling, edge[place], b) + h[place, b]
            if other >= 0:
                value = max(value, differ + h[place, other])
            h[above, b] += value
    labels = np.empty(n_places, dtype=np.int64)
    for place in range(n_places):
        above = parent[place]
        if above < 0:
            labels[place] = top[place]
            continue
        b = labels[above]
        other = second[place] if b == top[place] else top[place]
        stay = log_agree(coupling, edge[place], b) + h[place, b]
        leave = log_differ(coupling, edge[place]) + h[place, other] if other >= 0 else -np.inf
        labels[place] = other if leave > stay else b
    return labels


def forest_best_labels(problem: Problem) -> Ints:
    """Max-product on a forest with back-tracking: labels (n,) of highest score, -inf if none is allowed."""
    order, parent, edge = root_forest(problem.graph)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = _maximise(problem.unary[order], parent, edge, problem.coupling)
    return labels


@kernel
def _kruskal(n_nodes: int, pairs: Ints, order: Ints) -> Bools:
    """Keep each pair, in this order, that joins two groups not yet joined."""
    parent = np.arange(n_nodes)
    kept = np.zeros(pairs.shape[0], dtype=np.bool_)
    for row in order:
        a = find(parent, pairs[row, 0])
        b = find(parent, pairs[row, 1])
        if a != b:
            parent[max(a, b)] = min(a, b)
            kept[row] = True
    return kept


def maximum_spanning_forest(problem: Problem, rng: np.random.Generator) -> Bools:
    """The links (m,) of a spanning forest of largest total abs(coupling); ``rng`` settles ties."""
    strength = np.abs(problem.coupling)
    if strength.ndim == 2:
        strength = strength.max(axis=1)
    shuffled = rng.permutation(len(strength))
    order = shuffled[np.argsort(-strength[shuffled], kind="stable")]
    return _kruskal(len(problem.unary), problem.pairs, order)


@marginals_engine("tree", uses_initial=False, differentiable=True)
def spanning_forest(
    problem: Problem, rng: np.random.Generator, *, initial: Floats | None = None, n_threads: int = 1
) -> EngineMarginals:
    """Exact marginals of the field without the links outside a maximum spanning forest.

    Exact if no link had to be dropped. Otherwise it warns, and ``details`` has ``n_dropped`` and
    ``dropped``, the rows of ``pairs``; the agreement of a dropped link is that of independent ends, ``sum_k
    P(z_i = k) P(z_j = k)``, so it also says how often the forest would break a hard one. A dropped penalty
    can only have lowered the partition function, so ``log_partition`` is an upper bound; it is a lower
    bound where only rewards were dropped (couplings per label), and an approximation without a sign where
    both were.
    """
    kept = maximum_spanning_forest(problem, rng)
    n_dropped = len(kept) - int(kept.sum())
    if n_dropped == 0:
        prob, agreement, log_partition = forest_marginals(problem)
        return EngineMarginals(prob, log_partition, agreement, exact=True)
    pairs = problem.pairs[kept]
    forest = Problem(problem.unary, pairs, problem.coupling[kept], adjacency(len(problem.unary), pairs))
    agreement = np.empty(len(kept))
    prob, agreement[kept], log_partition = forest_marginals(forest)
    if log_partition == -np.inf:
        # The forest's links alone allow no labelling: that much is exact.
        return EngineMarginals(prob, log_partition, np.full(len(kept), np.nan), exact=True)
    ends = problem.pairs[~kept]
    agreement[~kept] = np.einsum("ek,ek->e", prob[ends[:, 0]], prob[ends[:, 1]])
    warnings.warn(
        f"{n_dropped} of {len(kept)} links were dropped to leave a forest and may be violated; "
        "method='exact' or 'auto' uses all of them",
        ApproximationWarning,
        stacklevel=4,
    )
    return EngineMarginals(
        prob,
        log_partition,
        agreement,
        exact=False,
        log_partition_kind=_kind(problem.coupling[~kept]),
        details={"n_dropped": n_dropped, "dropped": np.flatnonzero(~kept)},
    )


def _kind(dropped: Floats) -> str:
    """What the partition function without these links is of the one with them."""
    if dropped.ndim == 1 or not (dropped > 0).any():
        return "upper_bound"
    return "lower_bound" if not (dropped < 0).any() else "approximation"
