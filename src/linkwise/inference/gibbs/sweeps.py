"""The plain move of Gibbs sampling: every point draws its label given its neighbours."""

from __future__ import annotations

import numpy as np

from linkwise._arrays import Floats, Ints, ShortInts
from linkwise._kernels import kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.random import counter_uniform
from linkwise._kernels.simd import prefetch
from linkwise.inference.sweep_layout import BLOCK

#: A factor that brings u * total below the total whatever the rounding.
BELOW_ONE = 1.0 - 2.0**-52


@kernel
def draw_label(scores: Floats, uniform: float) -> int:
    """Label with probability proportional to exp(scores); overwrites the scores."""
    n_labels = scores.shape[0]
    top = scores.max()
    total = 0.0
    for label in range(n_labels):
        scores[label] = exp_nonpositive(scores[label] - top)
        total += scores[label]
    threshold = uniform * total * BELOW_ONE
    below = 0.0
    for label in range(n_labels):
        below += scores[label]
        if below > threshold:
            return label
    return n_labels - 1


@kernel
def sweep_labels(
    first_block: int,
    last_block: int,
    blocks: Ints,
    order: Ints,
    unary: Floats,
    indptr: ShortInts,
    neighbours: ShortInts,
    edges: Ints,
    coupling: Floats,
    scattered: bool,
    seed: np.uint64,
    sweep: int,
    record: bool,
    labels: Ints,
    prob_sum: Floats,
    agreement_sum: Floats,
) -> float:
    """Draw labels for the nodes of some blocks and add their distributions, whose squares it sums.

    Weights are kept (label, lane): lanes are nodes, and loops over them vectorise for any K.
    """
    n_labels = unary.shape[1]
    weight = np.empty((n_labels, BLOCK))
    top = np.empty(BLOCK)
    total = np.empty(BLOCK)
    threshold = np.empty(BLOCK)
    drawn = np.empty(BLOCK, dtype=np.int64)
    squares = 0.0
    for block in range(first_block, last_block):
        start = blocks[block]
        width = blocks[block + 1] - start
        if scattered and block + 1 < last_block:
            for slot in range(indptr[blocks[block + 1]], indptr[blocks[block + 2]]):
                prefetch(labels, neighbours[slot])
        for lane in range(width):
            place = start + lane
            for label in range(n_labels):
                weight[label, lane] = unary[place, label]
            for slot in range(indptr[place], indptr[place + 1]):
                label = labels[neighbours[slot]]
                if coupling.ndim == 1:
                    weight[label, lane] += coupling[slot]
                else:
                    weight[label, lane] += coupling[edges[slot], label]
        for lane in range(width):
            top[lane] = weight[0, lane]
            total[lane] = 0.0
            drawn[lane] = 0
        for label in range(1, n_labels):
            for lane in range(width):
                top[lane] = max(top[lane], weight[label, lane])
        for label in range(n_labels):
            for lane in range(width):
                weight[label, lane] = exp_nonpositive(weight[label, lane] - top[lane])
                total[lane] += weight[label, lane]
        for lane in range(width):
            uniform = counter_uniform(seed, order[start + lane], sweep)
            threshold[lane] = uniform * total[lane] * BELOW_ONE
            top[lane] = 0.0
        # ``top`` now runs up to the total, by the same additions, and so ends above the threshold.
        for label in range(n_labels):
            for lane in range(width):
                top[lane] += weight[label, lane]
                drawn[lane] += top[lane] <= threshold[lane]
        for lane in range(width):
            place = start + lane
            labels[place] = drawn[lane]
            if record:
                scale = 1.0 / total[lane]
                for label in range(n_labels):
                    prob = weight[label, lane] * scale
                    prob_sum[place, label] += prob
                    squares += prob * prob
                for slot in range(indptr[place], indptr[place + 1]):
                    agreement_sum[slot] += weight[labels[neighbours[slot]], lane] * scale
    return squares
