"""Four numbers at a time: SIMD values for kernels whose inner loops are short.

LLVM vectorises a loop over K labels only in strides of 16, so for K around 10 every label is left to
its scalar remainder (measured: 14 instead of 4 ns per edge and label in belief propagation). Kernels that pad
their rows to a multiple of ``WIDTH`` and work on ``load(array, position)`` are vectorised by
construction, on any machine: LLVM splits the four lanes where registers are shorter.

A value of this kind supports ``+``, ``-`` and ``*`` with its like; arrays must be one-dimensional.

exp and log of four numbers at a time, after :mod:`linkwise._kernels.math`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from linkwise._kernels import inline_kernel
from linkwise._kernels.math import EXP_CUTOFF
from linkwise._kernels.prefetch import prefetch

__all__ = [
    "VECTOR",
    "WIDTH",
    "any_above",
    "exp_lanes",
    "hint",
    "instruction",
    "lane_max",
    "lane_min",
    "lane_sum",
    "lanes",
    "larger",
    "load",
    "log_lanes",
    "padded",
    "select_below",
    "smaller",
    "splat",
    "store",
]

#: ``numba.extending.intrinsic``, typed so that kernels may call what it decorates.
instruction: Callable[..., Any] = intrinsic

#: Numbers in one value.
WIDTH = 4

#: The LLVM type of a value, for further intrinsics.
VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INT32 = ir.IntType(32)
_CACHE_LINE = 8  # numbers


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"Lanes{WIDTH}")


#: The numba type of a value.
lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def padded(n_labels: int) -> int:
    """Row length that holds ``n_labels`` numbers in whole values."""
    return -(-n_labels // WIDTH) * WIDTH


def _address(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [position])


@instruction
def load(typing_context: Any, array: Any, position: Any) -> Any:
    """The numbers ``array[position:position + WIDTH]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        return builder.load(builder.bitcast(address, VECTOR.as_pointer()), align=8, typ=VECTOR)

    return lanes(array, types.intp), codegen


@instruction
def store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """Write ``array[position:position + WIDTH]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], builder.bitcast(address, VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, lanes), codegen


@instruction
def splat(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined = ir.Constant(VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(_INT32, 0))
        return builder.shuffle_vector(
            first, undefined, ir.Constant(ir.VectorType(_INT32, WIDTH), [0] * WIDTH)
        )

    return lanes(types.float64), codegen


@instruction
def select_below(typing_context: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """Lane by lane: ``then`` where left < right, else ``otherwise`` (also where either is NaN)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return lanes(lanes, lanes, lanes, lanes), codegen


@instruction
def any_above(typing_context: Any, left: Any, right: Any) -> Any:
    """Whether left > right in some lane; NaN is above nothing."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.IntType(WIDTH)
        above = builder.bitcast(builder.fcmp_ordered(">", args[0], args[1]), bits)
        return builder.icmp_unsigned("!=", above, ir.Constant(bits, 0))

    return types.boolean(lanes, lanes), codegen


def _define(symbol: Callable[..., Any], name: str) -> None:
    """Teach numba an operator between two values of lanes."""

    @type_callable(symbol)
    def typed(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            return lanes if isinstance(left, _Lanes) and isinstance(right, _Lanes) else None

        return typer

    @lower_builtin(symbol, _Lanes, _Lanes)
    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


def _chosen(order: str, doc: str) -> Callable[..., Any]:
    @instruction
    def choose(typing_context: Any, value: Any, current: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(order, args[0], args[1]), args[0], args[1])

        return lanes(lanes, lanes), codegen

    choose.__doc__ = doc
    return choose


larger = _chosen(">", "Lane by lane the larger one; ``current`` where ``value`` is NaN.")
smaller = _chosen("<", "Lane by lane the smaller one; ``current`` where ``value`` is NaN.")


def _reduced(combine: Callable[..., Any], doc: str) -> Callable[..., Any]:
    @instruction
    def reduce(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            parts = [builder.extract_element(args[0], ir.Constant(_INT32, lane)) for lane in range(WIDTH)]
            while len(parts) > 1:
                half = len(parts) // 2
                parts = [combine(builder, parts[i], parts[i + half]) for i in range(half)]
            return parts[0]

        return types.float64(lanes), codegen

    reduce.__doc__ = doc
    return reduce


def _select(order: str) -> Callable[..., Any]:
    return lambda builder, x, y: builder.select(builder.fcmp_ordered(order, x, y), x, y)


lane_sum = _reduced(lambda builder, x, y: builder.fadd(x, y), "Sum over the lanes.")
lane_max = _reduced(_select(">"), "Largest lane.")
lane_min = _reduced(_select("<"), "Smallest lane.")


@inline_kernel
def hint(array: Any, start: int, stop: int) -> None:
    """Ask the memory for ``array[start:stop]`` ahead of its use; changes no result."""
    for position in range(start, stop, _CACHE_LINE):
        prefetch(array, position)


_LOG2_E = 1.0 / math.log(2.0)
_LOG2_HIGH = 6.93145751953125e-1
_LOG2_LOW = 1.42860682030941723212e-6
_ROUNDER = 6755399441055744.0
_ROUNDER_BITS = np.float64(_ROUNDER).view(np.int64).item()
_ROOT_HALF_BITS = np.float64(math.sqrt(0.5)).view(np.int64).item()
_BITS = ir.VectorType(ir.IntType(64), WIDTH)


def _constant(bits: int) -> Any:
    return ir.Constant(_BITS, [bits] * WIDTH)


@instruction
def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    """2**k for shifted = _ROUNDER + k."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.sub(builder.bitcast(args[0], _BITS), _constant(_ROUNDER_BITS - 1023))
        return builder.bitcast(builder.shl(bits, _constant(52)), VECTOR)

    return lanes(lanes), codegen


def _exponent_bits(builder: Any, value: Any) -> tuple[Any, Any]:
    bits = builder.bitcast(value, _BITS)
    return bits, builder.ashr(builder.sub(bits, _constant(_ROOT_HALF_BITS)), _constant(52))


@instruction
def _exponent(typing_context: Any, value: Any) -> Any:
    """_ROUNDER + k for value = 2**k m, m in [sqrt(1/2), sqrt(2))."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, k = _exponent_bits(builder, args[0])
        return builder.bitcast(builder.add(k, _constant(_ROUNDER_BITS)), VECTOR)

    return lanes(lanes), codegen


@instruction
def _mantissa(typing_context: Any, value: Any) -> Any:
    """The m of value = 2**k m, m in [sqrt(1/2), sqrt(2))."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits, k = _exponent_bits(builder, args[0])
        return builder.bitcast(builder.sub(bits, builder.shl(k, _constant(52))), VECTOR)

    return lanes(lanes), codegen


@inline_kernel
def exp_lanes(x: Any) -> Any:
    """exp(x) for x <= 0 in every lane, to a few ulp; exactly 0 below ``EXP_CUTOFF``, ``-inf`` included."""
    cutoff = splat(EXP_CUTOFF)
    rounder = splat(_ROUNDER)
    clipped = larger(x, cutoff)
    shifted = clipped * splat(_LOG2_E) + rounder
    k = shifted - rounder
    r = (clipped - k * splat(_LOG2_HIGH)) - k * splat(_LOG2_LOW)
    p = splat(1.0 / 6227020800.0)
    p = p * r + splat(1.0 / 479001600.0)
    p = p * r + splat(1.0 / 39916800.0)
    p = p * r + splat(1.0 / 3628800.0)
    p = p * r + splat(1.0 / 362880.0)
    p = p * r + splat(1.0 / 40320.0)
    p = p * r + splat(1.0 / 5040.0)
    p = p * r + splat(1.0 / 720.0)
    p = p * r + splat(1.0 / 120.0)
    p = p * r + splat(1.0 / 24.0)
    p = p * r + splat(1.0 / 6.0)
    p = p * r + splat(0.5)
    p = p * r + splat(1.0)
    p = p * r + splat(1.0)
    return select_below(cutoff, x, p * _power_of_two(shifted), splat(0.0))


@inline_kernel
def log_lanes(x: Any) -> Any:
    """log(x) for normal x > 0 in every lane, to a few ulp; some finite number for 0.

    x = 2**k m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m - 1) / (m + 1), by its series:
    s**2 < 0.0295, so eleven terms leave less than 1e-18.
    """
    one = splat(1.0)
    m = _mantissa(x)
    k = _exponent(x) - splat(_ROUNDER)
    s = (m - one) / (m + one)
    z = s * s
    p = splat(1.0 / 21.0)
    p = p * z + splat(1.0 / 19.0)
    p = p * z + splat(1.0 / 17.0)
    p = p * z + splat(1.0 / 15.0)
    p = p * z + splat(1.0 / 13.0)
    p = p * z + splat(1.0 / 11.0)
    p = p * z + splat(1.0 / 9.0)
    p = p * z + splat(1.0 / 7.0)
    p = p * z + splat(1.0 / 5.0)
    p = p * z + splat(1.0 / 3.0)
    double = s + s
    return k * splat(_LOG2_HIGH) + (double * (z * p) + k * splat(_LOG2_LOW) + double)
