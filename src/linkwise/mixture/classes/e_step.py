"""The class-level E-step: links of equal strength between any two rows of two classes, never listed.

With the class sums T(l, k) = sum of q_ik over the rows of class l and pair weights A (L, L), the mean field

    log q_ik = u_ik + sum_m A(l_i, m) T(m, k) - A(l_i, l_i) q_ik - normaliser_i

(Preston et al. 2010, Eq. 7-8, with u_ik = log pi_k + log N(x_i; k) and A = 2 lambda C; the last term takes
the row out of its own class sum) climbs

    F = sum_ik q_ik (u_ik - log q_ik) + 1/2 [ sum_lk T (A T) - sum_ik A(l_i, l_i) q_ik^2 ].

A sweep visits the classes in turn and costs O(NK + L^2 K), in place of the printed O(NKL). Within a class,

* sequential sweeps update one row after another: each takes its best value, so F never falls;
* block sweeps update all rows from the same sums. F never falls while 0 <= A(l, l) <= 2: the part
  A(l, l) |T(l)|^2 / 2 is convex, so its linearisation bounds it from below, and the rest changes by
  KL(old, new) - A(l, l) / 2 |new - old|^2 >= (1 - A(l, l) / 2) |new - old|^2 by Pinsker's inequality. With a
  negative A(l, l) all rows leave the clusters where all of them are, and jump back and forth for ever.

Rows are padded to whole lanes by clusters of score -inf and probability 0. Tables may be float64 or float32;
arithmetic is float64 in both, so that float32 halves the memory and its traffic but not the digits of sums.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise._kernels import inline_kernel, reassociating_kernel
from linkwise._kernels.math import exp_nonpositive
from linkwise._kernels.simd import (
    WIDTH,
    lane_max,
    lane_sum,
    larger,
    load,
    load_double,
    padded,
    splat,
    store,
)
from linkwise._threads import Workers, chunk_bounds

#: Normalisers (at most K each) are multiplied up to this size before one logarithm is taken of the product.
_LARGE = 1e200

#: Strength of a belief of ±1, in place of atanh(1) = inf: more than densities in hundreds of features differ.
SURE_STRENGTH = 1e4

#: Strongest wish of a class to fall apart, that of -.9: a stronger one would cut it into equal parts
#: against the data. That a class believed split (-1) is split at all is left to the start.
MOST_SPLIT = -float(np.arctanh(0.9))


@inline_kernel
def _new_row(
    unary: AnyFloats,
    prob: AnyFloats,
    start: int,
    pull: Floats,
    self_weight: Any,
    score: Floats,
    shift: Floats,
) -> tuple[float, float, float]:
    """New probabilities of a row, not normalised, to ``score``; top, normaliser, score @ shift."""
    stride = pull.shape[0]
    highest = splat(-np.inf)
    for k in range(0, stride, WIDTH):
        others = load(pull, k) - self_weight * load_double(prob, start + k)
        value = load_double(unary, start + k) + others
        store(shift, k, others)
        store(score, k, value)
        highest = larger(value, highest)
    top = lane_max(highest)
    lowered = splat(top)
    weights = splat(0.0)
    overlap = splat(0.0)
    for k in range(0, stride, WIDTH):
        weight = exp_nonpositive(load(score, k) - lowered)
        store(score, k, weight)
        weights = weights + weight
        overlap = overlap + weight * load(shift, k)
    return top, lane_sum(weights), lane_sum(overlap)


@reassociating_kernel
def update_rows(
    unary: AnyFloats,
    prob: AnyFloats,
    first: int,
    last: int,
    pull: Floats,
    self_weight: float,
    sequential: bool,
    sums: Floats,
) -> tuple[float, float, float]:
    """Update rows ``first:last`` of one class in place and add them to ``sums``.

    All see the same ``pull``, the class's row of A @ T; if ``sequential`` it follows every row. Returns
    sum_ik q (u - log q), sum_ik q^2 and the largest change of a probability.
    """
    stride = pull.shape[0]
    score, shift, total = np.empty(stride), np.empty(stride), np.zeros(stride)
    own = splat(self_weight)
    energy, product = 0.0, 1.0
    squares, change = splat(0.0), splat(0.0)
    for start in range(first * stride, last * stride, stride):
        top, normaliser, overlap = _new_row(unary, prob, start, pull, own, score, shift)
        scale = splat(1.0 / normaliser)
        for k in range(0, stride, WIDTH):
            value = load(score, k) * scale
            before = load_double(prob, start + k)
            difference = value - before
            change = larger(larger(difference, before - value), change)
            squares = squares + value * value
            store(total, k, load(total, k) + value)
            if sequential:
                store(pull, k, load(pull, k) + own * difference)
            store(prob, start + k, value)
        energy += top - overlap / normaliser
        product *= normaliser
        if product > _LARGE:
            energy += math.log(product)
            product = 1.0
    for k in range(stride):
        sums[k] += total[k]
    return energy + math.log(product), lane_sum(squares), lane_max(change)


#: Numbers of a table in one range of rows: half a millisecond, long beside the hand-over to a thread.
_RANGE_SIZE = 1 << 17

_SERIAL = Workers()


class ClassRows(NamedTuple):
    """Row numbers class by class (n,), unlabelled ones last; class l is at ``starts[l]:starts[l + 1]``."""

    order: Ints
    starts: Ints

    @property
    def sizes(self) -> Ints:
        """Number of rows of each class, (L,)."""
        return np.diff(self.starts)


class Sweep(NamedTuple):
    """F after a sweep, and the largest change of a probability in it."""

    objective: float
    change: float


def class_rows(codes: NDArray[np.integer], n_classes: int) -> ClassRows:
    """Sort rows by class; ``codes`` (n,) are -1 where unlabelled."""
    place = np.where(codes < 0, n_classes, codes)
    order = np.argsort(place, kind="stable").astype(np.int64)
    counts = np.bincount(place, minlength=n_classes)[:n_classes]
    return ClassRows(order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def belief_strengths(beliefs: Floats, normalize: str = "class") -> Floats:
    """atanh(C), half the log-odds of the certainty (1 + C) / 2, ±SURE_STRENGTH for ±1; "none": C itself."""
    beliefs = np.asarray(beliefs, dtype=np.float64)
    if normalize == "none":
        return beliefs
    with np.errstate(divide="ignore"):
        return np.clip(np.arctanh(beliefs), -SURE_STRENGTH, SURE_STRENGTH)


def pair_strengths(beliefs: Floats, normalize: str) -> Floats:
    """Strengths (L, L) of beliefs C; with ``normalize="class"`` none of the diagonal is below MOST_SPLIT."""
    strengths = belief_strengths(beliefs, normalize).copy()
    if normalize == "class":
        np.fill_diagonal(strengths, np.maximum(np.diagonal(strengths), MOST_SPLIT))
    return strengths


def pair_scale(confidence: float, sizes: Ints, normalize: str) -> Floats:
    """Weight (L, L) of an ordered pair of rows: lambda, by sqrt(N_a N_b) if ``normalize="class"``."""
    if normalize == "none":
        return np.full((len(sizes), len(sizes)), float(confidence))
    root = np.sqrt(sizes)
    return np.asarray(confidence / root[:, np.newaxis] / root)


def pair_weights(beliefs: Floats, confidence: float, sizes: Ints, normalize: str) -> Floats:
    """Compute the reward A(a, b), in nats, of putting a row of class a and one of class b together, (L, L).

    ``normalize="none"``: A = 2 lambda C (the paper): the pull on a row grows with the number of rows.
    ``"class"``: A(a, b) = 2 lambda atanh(C(a, b)) / sqrt(N_a N_b): lambda times the log-odds, whatever the
    size.
    """
    return 2.0 * pair_scale(confidence, sizes, normalize) * pair_strengths(beliefs, normalize)


def block_sweeps_climb(weights: Floats) -> bool:
    """Return whether block sweeps are proved never to lower F: 0 <= A(l, l) <= 2 for every class."""
    diagonal = np.diagonal(weights)
    return bool(((diagonal >= 0.0) & (diagonal <= 2.0)).all())


def empty_table(n_rows: int, n_components: int, dtype: np.dtype[np.floating]) -> AnyFloats:
    """Make a table of zeros (n, K) for the kernels, K rounded up to whole lanes."""
    return np.zeros((n_rows, padded(n_components)), dtype=dtype)


def class_sums(prob: AnyFloats, rows: ClassRows) -> Floats:
    """Compute T(l, k) = sum of q_ik over the rows of class l, (L, K)."""
    spans = pairwise(rows.starts)
    return np.array([prob[start:stop].sum(axis=0, dtype=np.float64) for start, stop in spans])


def class_sweep(
    unary: AnyFloats,
    prob: AnyFloats,
    sums: Floats,
    weights: Floats,
    rows: ClassRows,
    *,
    sequential: bool = False,
    workers: Workers | None = None,
) -> Sweep:
    """Update every row once, class by class; ``prob`` (n, K) and ``sums`` (L, K) are changed in place.

    ``unary`` (n, K) is u_ik in the order of ``rows``. Sequential sweeps share out unlabelled rows only.
    """
    n_classes = len(rows.starts) - 1
    ends = np.append(rows.starts, len(unary))
    length = max(_RANGE_SIZE // unary.shape[1], 1)
    energies, changes, pair_term = [], [0.0], 0.0
    for label in range(n_classes + 1):
        labelled = label < n_classes
        start, stop = int(ends[label]), int(ends[label + 1])
        pull = weights[label] @ sums if labelled else np.zeros(unary.shape[1])
        own = float(weights[label, label]) if labelled else 0.0
        in_turn = sequential and labelled

        def update(
            span: tuple[int, int], pull: Floats = pull, own: float = own, in_turn: bool = in_turn
        ) -> tuple[tuple[float, float, float], Floats]:
            part = np.zeros_like(pull)
            return update_rows(unary, prob, *span, pull, own, in_turn, part), part

        spans = [(start, stop)] if in_turn else chunk_bounds(start, stop, length)
        total = np.zeros_like(pull)
        for (energy, squares, change), part in (workers or _SERIAL).map(update, spans):
            energies.append(energy)
            changes.append(change)
            pair_term -= own * squares
            total += part
        if labelled:
            sums[label] = total
    pair_term += float((sums * (weights @ sums)).sum())
    return Sweep(float(np.sum(energies)) + 0.5 * pair_term, max(changes))
