"""Two labels without frustration: the best labelling is a minimum cut.

A component with K = 2 whose links can all be satisfied at once (no ring with an odd number of links
that repel) becomes attractive when the labels of some points are swapped. Its score is then
a constant minus the capacity of a cut, and a maximum flow finds the smallest one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._kernels import kernel
from linkwise.graph.parity import link_parity
from linkwise.inference.exact.max_flow import max_flow
from linkwise.inference.problem import Problem

__all__ = ["min_cut_labels", "signed_two_colouring"]


def signed_two_colouring(problem: Problem) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The points (n,) whose labels to swap so that every link attracts, and those where no swapping helps.

    With two labels a link attracts if agreeing on both beats differing both ways; a part of the graph with
    a ring that has an odd number of repelling links is frustrated.
    """
    sign = problem.coupling if problem.coupling.ndim == 1 else problem.coupling.sum(axis=1)
    acts = sign != 0.0
    found = link_parity(len(problem.unary), problem.pairs[acts], sign[acts])
    frustrated = np.zeros(len(problem.unary), dtype=bool)
    for points in found.unbalanced:
        frustrated[points] = True
    return found.side == 1, frustrated


@kernel
def _capacities(
    unary: NDArray[np.float64],
    pairs: NDArray[np.int64],
    coupling: NDArray[np.float64],
    swapped: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Terminal capacities, and those of each link forwards and backwards.

    With y = label xor swapped, a node on the source side has y = 0; cutting i -> j costs what
    y_i = 0, y_j = 1 loses.
    """
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


def min_cut_labels(problem: Problem, swapped: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A labelling (n,) of highest score by one minimum cut, for two labels and no frustrated ring.

    ``swapped`` is that of ``signed_two_colouring``. The score is ``-inf`` only if no labelling is allowed.
    """
    terminal, forward, backward = _capacities(problem.unary, problem.pairs, problem.coupling, swapped)
    graph = problem.graph
    rows = np.repeat(np.arange(len(terminal)), np.diff(graph.indptr))
    capacity = np.where(problem.pairs[graph.edges, 0] == rows, forward[graph.edges], backward[graph.edges])
    _, source_side = max_flow(graph, capacity, terminal)
    return (swapped ^ ~source_side).astype(np.int64)
