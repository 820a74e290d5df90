"""Two labels without frustration: the best labelling is a minimum cut.

A component with K = 2 whose links can all be satisfied at once (no ring with an odd number of links
that repel) becomes attractive when the labels of some points are swapped. Its score is then
a constant minus the capacity of a cut, and a maximum flow finds the smallest one. It takes 1.3 times as long
as PyMaxflow on a 200 x 200 grid (`make bench SECTION=graph`), which would be one more compiled dependency.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Bools, Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise.graph import Adjacency, reversed_slots
from linkwise.graph.parity import link_parity
from linkwise.inference.problem import Problem

_FREE = 0
_SOURCE = 1
_SINK = 2

_NONE = -1
_TERMINAL = -2
_ORPHAN = -3


@kernel
def _augment(
    meeting: int,
    source_end: int,
    sink_end: int,
    neighbours: ShortInts,
    sister: ShortInts,
    residual: Floats,
    terminal: Floats,
    parent: Ints,
    orphans: Ints,
) -> tuple[float, int]:
    """Push as much as the path through arc ``meeting`` can carry; list the nodes it cuts off."""
    amount = residual[meeting]
    node = source_end
    while parent[node] != _TERMINAL:
        amount = min(amount, residual[sister[parent[node]]])
        node = neighbours[parent[node]]
    amount = min(amount, terminal[node])
    node = sink_end
    while parent[node] != _TERMINAL:
        amount = min(amount, residual[parent[node]])
        node = neighbours[parent[node]]
    amount = min(amount, -terminal[node])
    if amount == np.inf:
        return amount, 0

    n_orphans = 0
    residual[meeting] -= amount
    residual[sister[meeting]] += amount
    node = source_end
    while True:
        slot = parent[node]
        above = node
        if slot == _TERMINAL:
            terminal[node] -= amount
            saturated = terminal[node] == 0.0
        else:
            above = neighbours[slot]
            residual[slot] += amount
            residual[sister[slot]] -= amount
            saturated = residual[sister[slot]] == 0.0
        if saturated:
            parent[node] = _ORPHAN
            orphans[n_orphans] = node
            n_orphans += 1
        if slot == _TERMINAL:
            break
        node = above
    node = sink_end
    while True:
        slot = parent[node]
        above = node
        if slot == _TERMINAL:
            terminal[node] += amount
            saturated = terminal[node] == 0.0
        else:
            above = neighbours[slot]
            residual[sister[slot]] += amount
            residual[slot] -= amount
            saturated = residual[slot] == 0.0
        if saturated:
            parent[node] = _ORPHAN
            orphans[n_orphans] = node
            n_orphans += 1
        if slot == _TERMINAL:
            break
        node = above
    return amount, n_orphans


@kernel
def _distance_to_root(
    node: int, neighbours: ShortInts, parent: Ints, stamp: Ints, distance: Ints, now: int
) -> int:
    """Steps from a node to its terminal, -1 if an orphan is on the way. Nodes stamped ``now`` know theirs."""
    steps = 0
    walker = node
    while stamp[walker] != now:
        slot = parent[walker]
        if slot == _ORPHAN:
            return -1
        if slot == _TERMINAL:
            stamp[walker] = now
            distance[walker] = 1
            break
        walker = neighbours[slot]
        steps += 1
    found = steps + distance[walker]
    left = found
    walker = node
    while stamp[walker] != now:
        stamp[walker] = now
        distance[walker] = left
        left -= 1
        walker = neighbours[parent[walker]]
    return found


@kernel
def _adopt(
    orphans: Ints,
    n_orphans: int,
    graph: Adjacency,
    sister: ShortInts,
    residual: Floats,
    tree: NDArray[np.int8],
    parent: Ints,
    stamp: Ints,
    distance: Ints,
    now: int,
    queue: Ints,
    queued: Bools,
    tail: int,
) -> int:
    """Give every orphan a new parent in its own tree, nearest to the root, or set it free. Queue tail."""
    indptr, neighbours = graph.indptr, graph.neighbours
    capacity = queue.shape[0]
    done = 0
    while done < n_orphans:
        node = orphans[done % capacity]
        done += 1
        side = tree[node]
        nearest = -1
        chosen = _NONE
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            inward = residual[sister[slot]] if side == _SOURCE else residual[slot]
            if inward > 0.0 and tree[other] == side:
                steps = _distance_to_root(other, neighbours, parent, stamp, distance, now)
                if steps >= 0 and (nearest < 0 or steps < nearest):
                    nearest = steps
                    chosen = slot
        if nearest >= 0:
            parent[node] = chosen
            stamp[node] = now
            distance[node] = nearest + 1
            continue
        for slot in range(indptr[node], indptr[node + 1]):
            other = neighbours[slot]
            if tree[other] != side:
                continue
            inward = residual[sister[slot]] if side == _SOURCE else residual[slot]
            if inward > 0.0 and not queued[other]:
                queued[other] = True
                queue[tail % capacity] = other
                tail += 1
            if parent[other] >= 0 and neighbours[parent[other]] == node:
                parent[other] = _ORPHAN
                orphans[n_orphans % capacity] = other
                n_orphans += 1
        tree[node] = _FREE
        parent[node] = _NONE
    return tail


@kernel
def _grow_and_augment(
    graph: Adjacency, sister: ShortInts, residual: Floats, terminal: Floats
) -> tuple[float, Bools]:
    """Maximum flow; ``residual`` and ``terminal`` are left as the residual capacities."""
    indptr, neighbours = graph.indptr, graph.neighbours
    n_nodes = terminal.shape[0]
    tree = np.zeros(n_nodes, dtype=np.int8)
    parent = np.full(n_nodes, _NONE, dtype=np.int64)
    stamp = np.zeros(n_nodes, dtype=np.int64)
    distance = np.zeros(n_nodes, dtype=np.int64)
    queue = np.empty(n_nodes + 1, dtype=np.int64)
    queued = np.zeros(n_nodes, dtype=np.bool_)
    orphans = np.empty(n_nodes + 1, dtype=np.int64)
    capacity = n_nodes + 1
    head = 0
    tail = 0
    for node in range(n_nodes):
        if terminal[node] != 0.0:
            tree[node] = _SOURCE if terminal[node] > 0.0 else _SINK
            parent[node] = _TERMINAL
            distance[node] = 1
            queued[node] = True
            queue[tail] = node
            tail += 1
    flow = 0.0
    now = 0
    while head < tail:
        node = queue[head % capacity]
        meeting = -1
        side = tree[node]
        if side != _FREE:
            for slot in range(indptr[node], indptr[node + 1]):
                outward = residual[slot] if side == _SOURCE else residual[sister[slot]]
                if outward <= 0.0:
                    continue
                other = neighbours[slot]
                if tree[other] == _FREE:
                    tree[other] = side
                    parent[other] = sister[slot]
                    stamp[other] = stamp[node]
                    distance[other] = distance[node] + 1
                    if not queued[other]:
                        queued[other] = True
                        queue[tail % capacity] = other
                        tail += 1
                elif tree[other] != side:
                    meeting = slot
                    break
                elif stamp[other] <= stamp[node] and distance[other] > distance[node] + 1:
                    parent[other] = sister[slot]
                    stamp[other] = stamp[node]
                    distance[other] = distance[node] + 1
        if meeting < 0:
            queued[node] = False
            head += 1
            continue
        other = neighbours[meeting]
        if side == _SOURCE:
            amount, n_orphans = _augment(
                meeting, node, other, neighbours, sister, residual, terminal, parent, orphans
            )
        else:
            amount, n_orphans = _augment(
                sister[meeting], other, node, neighbours, sister, residual, terminal, parent, orphans
            )
        flow += amount
        if amount == np.inf:
            break
        now += 1
        tail = _adopt(
            orphans, n_orphans, graph, sister, residual, tree, parent, stamp, distance, now,
            queue, queued, tail,
        )  # fmt: skip
    return flow, tree == _SOURCE


def max_flow(graph: Adjacency, capacity: Floats, terminal: Floats) -> tuple[float, Bools]:
    """Maximum flow from source to sink, and the nodes (n,) that stay with the source in the minimum cut.

    ``capacity`` (2 m,) of each half-edge is >= 0 or ``inf``; ``terminal`` (n,) is the capacity from the
    source if positive, to the sink if negative.
    """
    sister = reversed_slots(graph.edges, len(graph.edges) // 2)
    flow, source_side = _grow_and_augment(graph, sister, capacity.copy(), terminal.copy())
    return float(flow), source_side


def signed_two_colouring(problem: Problem) -> tuple[Bools, Bools]:
    """Points (n,) to swap so that every link attracts, and points (n,) of parts with frustrated rings."""
    sign = problem.coupling if problem.coupling.ndim == 1 else problem.coupling.sum(axis=1)
    acts = sign != 0.0
    found = link_parity(len(problem.unary), problem.pairs[acts], sign[acts])
    frustrated = np.zeros(len(problem.unary), dtype=bool)
    for points in found.unbalanced:
        frustrated[points] = True
    return found.side == 1, frustrated


@kernel
def _capacities(
    unary: Floats, pairs: Ints, coupling: Floats, swapped: Bools
) -> tuple[Floats, Floats, Floats]:
    """Terminal capacities, and those of links forwards and backwards: i -> j is cut if y_i = 0, y_j = 1."""
    n_nodes = unary.shape[0]
    n_pairs = pairs.shape[0]
    terminal = np.empty(n_nodes)
    for node in range(n_nodes):
        flip = int(swapped[node])
        terminal[node] = unary[node, flip] - unary[node, 1 - flip]
    forward = np.empty(n_pairs)
    backward = np.empty(n_pairs)
    for edge in range(n_pairs):
        if coupling.ndim == 1:
            forward[edge] = abs(coupling[edge])
            backward[edge] = forward[edge]
            continue
        i = pairs[edge, 0]
        j = pairs[edge, 1]
        flip = int(swapped[i])
        if swapped[i] == swapped[j]:
            # R_0 [y = 0, 0] + R_1 [y = 1, 1]
            #     = R_0 + (y_i + y_j) (R_1 - R_0) / 2 - |y_i - y_j| (R_0 + R_1) / 2
            tilt = 0.5 * (coupling[edge, flip] - coupling[edge, 1 - flip])
            terminal[i] += tilt
            terminal[j] += tilt
            forward[edge] = 0.5 * (coupling[edge, 0] + coupling[edge, 1])
            backward[edge] = forward[edge]
            continue
        out = -coupling[edge, flip]
        back = -coupling[edge, 1 - flip]
        # A negative capacity: [y_i = 1, y_j = 0] = [y_i = 1] - [y_j = 1] + [y_i = 0, y_j = 1].
        if back < 0.0:
            terminal[i] += back
            terminal[j] -= back
            out += back
            back = 0.0
        elif out < 0.0:
            terminal[j] += out
            terminal[i] -= out
            back += out
            out = 0.0
        forward[edge] = out
        backward[edge] = back
    return terminal, forward, backward


def min_cut_labels(problem: Problem, swapped: Bools) -> Ints:
    """Labels (n,) of highest score by one minimum cut, for two labels and no frustrated ring."""
    terminal, forward, backward = _capacities(problem.unary, problem.pairs, problem.coupling, swapped)
    graph = problem.graph
    rows = np.repeat(np.arange(len(terminal)), np.diff(graph.indptr))
    capacity = np.where(problem.pairs[graph.edges, 0] == rows, forward[graph.edges], backward[graph.edges])
    _, source_side = max_flow(graph, capacity, terminal)
    return (swapped ^ ~source_side).astype(np.int64)
