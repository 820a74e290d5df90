"""Kernels of the class-level E-step: rows are read once, whatever the number of classes.

Rows are padded to whole lanes by clusters of score -inf and probability 0. Tables may be float64 or float32;
arithmetic is float64 in both, so that float32 halves the memory and its traffic but not the digits of sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numpy.typing import NDArray

from linkwise._lanes import (
    VECTOR,
    WIDTH,
    instruction,
    lane_max,
    lane_sum,
    lanes,
    larger,
    load,
    splat,
    store,
)
from linkwise._lanes_math import exp_lanes
from linkwise._numba import inline_kernel, reassociating_kernel

__all__ = ["update_rows"]

#: Normalisers (at most K each) are multiplied up to this size before one logarithm is taken of the product.
_LARGE = 1e200

_SINGLE = ir.VectorType(ir.FloatType(), WIDTH)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, position: Any, vector: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), vector.as_pointer())


@instruction
def _read(typing_context: Any, table: Any, position: Any) -> Any:
    """Four numbers of a float64 or float32 table as float64 lanes."""
    single = table.dtype == types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = _SINGLE if single else VECTOR
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], stored)
        value = builder.load(pointer, align=4 if single else 8, typ=stored)
        return builder.fpext(value, VECTOR) if single else value

    return lanes(table, types.intp), codegen


@instruction
def _write(typing_context: Any, table: Any, position: Any, value: Any) -> Any:
    """Store float64 lanes into a float64 or float32 table."""
    single = table.dtype == types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = _SINGLE if single else VECTOR
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], stored)
        value = builder.fptrunc(args[2], stored) if single else args[2]
        builder.store(value, pointer, align=4 if single else 8)
        return context.get_dummy_value()

    return types.none(table, types.intp, lanes), codegen


@inline_kernel
def _new_row(
    unary: NDArray[np.floating],
    prob: NDArray[np.floating],
    start: int,
    pull: NDArray[np.float64],
    self_weight: Any,
    score: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Unnormalised new probabilities of one row in ``score``; row maximum, normaliser, sum of score * shift.

    shift = pull - self_weight * old probability is what the other rows say.
    """
    stride = pull.shape[0]
    highest = splat(-np.inf)
    for k in range(0, stride, WIDTH):
        others = load(pull, k) - self_weight * _read(prob, start + k)
        value = _read(unary, start + k) + others
        store(shift, k, others)
        store(score, k, value)
        highest = larger(value, highest)
    top = lane_max(highest)
    lowered = splat(top)
    weights = splat(0.0)
    overlap = splat(0.0)
    for k in range(0, stride, WIDTH):
        weight = exp_lanes(load(score, k) - lowered)
        store(score, k, weight)
        weights = weights + weight
        overlap = overlap + weight * load(shift, k)
    return top, lane_sum(weights), lane_sum(overlap)


@reassociating_kernel
def update_rows(
    unary: NDArray[np.floating],
    prob: NDArray[np.floating],
    first: int,
    last: int,
    pull: NDArray[np.float64],
    self_weight: float,
    sequential: bool,
    sums: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Update rows ``first:last`` of one class in place and add them to ``sums``.

    All rows see the same ``pull``, the class's row of A @ T; if ``sequential`` it follows every row, which
    costs O(K) and not O(LK), because the rows of one class are read before those of the next.
    Returns sum_ik q (u - log q), sum_ik q^2 and the largest change of a probability.
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
            before = _read(prob, start + k)
            difference = value - before
            change = larger(larger(difference, before - value), change)
            squares = squares + value * value
            store(total, k, load(total, k) + value)
            if sequential:
                store(pull, k, load(pull, k) + own * difference)
            _write(prob, start + k, value)
        energy += top - overlap / normaliser
        product *= normaliser
        if product > _LARGE:
            energy += math.log(product)
            product = 1.0
    for k in range(stride):
        sums[k] += total[k]
    return energy + math.log(product), lane_sum(squares), lane_max(change)
