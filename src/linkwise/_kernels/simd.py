"""Explicit SIMD inside kernels: the register blocking that LLVM does not find by itself.

LLVM vectorises a single inner loop, but the triangular product needs a loop over features *inside* a
vector of points, with its sums in registers. Written with these types it takes 55 to 75 % of the time of
the best auto-vectorised loop (10 to 50 features, AVX2).

A *vector* holds 32 bytes, 4 float64 or 8 float32, on every machine: LLVM splits it where registers are
shorter. A *panel* is four vectors side by side, so that four independent sums hide the latency of an
addition. All arithmetic takes either. The functions can be called inside kernels only; ``array`` is 1-D and
contiguous, ``index`` counts its elements, and nothing is bounds-checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import models, register_model

from linkwise._kernels.math import intrinsic

__all__ = [
    "add",
    "broadcast",
    "broadcast_panel",
    "divide",
    "exp_nonpositive",
    "fill_panel",
    "load",
    "load_panel",
    "maximum",
    "multiply",
    "multiply_add",
    "panel_size",
    "store",
    "subtract",
    "total",
    "vector_size",
    "zeros",
    "zeros_panel",
]

_VECTOR_BYTES = 32
_PANEL_BYTES = 128
# x * y + z may become one fused instruction, as in every kernel of linkwise.
_FLAGS = ("contract", "nsz")
_INDEX = ir.IntType(32)


class _Lanes(types.Type):
    """``count`` numbers of type ``scalar`` in registers."""

    def __init__(self, scalar: Any, n_bytes: int) -> None:
        self.scalar = scalar
        self.count = n_bytes * 8 // scalar.bitwidth
        super().__init__(name=f"Lanes({scalar}, {self.count})")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: _Lanes) -> None:
        scalar = ir.DoubleType() if lanes.scalar == types.float64 else ir.FloatType()
        super().__init__(manager, lanes, ir.VectorType(scalar, lanes.count))


def _size(array: Any, n_bytes: int) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.intp, _Lanes(array.dtype, n_bytes).count)

    return types.intp(array), codegen


def _zeros(array: Any, n_bytes: int) -> Any:
    lanes = _Lanes(array.dtype, n_bytes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(lanes), [0.0] * lanes.count)

    return lanes(array), codegen


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _load(array: Any, n_bytes: int) -> Any:
    lanes = _Lanes(array.dtype, n_bytes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.bitcast(pointer, context.get_value_type(lanes).as_pointer())
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return lanes(array, types.intp), codegen


def _splat(context: Any, builder: Any, lanes: _Lanes, scalar: Any) -> Any:
    undefined = ir.Constant(context.get_value_type(lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(_INDEX, lanes.count), [0] * lanes.count)
    )


def _broadcast(array: Any, n_bytes: int) -> Any:
    lanes = _Lanes(array.dtype, n_bytes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        scalar = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1]))
        return _splat(context, builder, lanes, scalar)

    return lanes(array, types.intp), codegen


def _arithmetic(lanes: Any, n_operands: int, compute: Callable[..., Any]) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return compute(builder, *args)

    return lanes(*[lanes] * n_operands), codegen


@intrinsic
def vector_size(typing_context: Any, array: Any) -> Any:
    """vector_size(array): number of elements of ``array`` in a vector."""
    return _size(array, _VECTOR_BYTES)


@intrinsic
def panel_size(typing_context: Any, array: Any) -> Any:
    """panel_size(array): number of elements of ``array`` in a panel."""
    return _size(array, _PANEL_BYTES)


@intrinsic
def zeros(typing_context: Any, array: Any) -> Any:
    """zeros(array): a vector of zeros of the type of ``array``."""
    return _zeros(array, _VECTOR_BYTES)


@intrinsic
def zeros_panel(typing_context: Any, array: Any) -> Any:
    """zeros_panel(array): a panel of zeros of the type of ``array``."""
    return _zeros(array, _PANEL_BYTES)


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """load(array, index): the vector of the elements from ``index`` on."""
    return _load(array, _VECTOR_BYTES)


@intrinsic
def load_panel(typing_context: Any, array: Any, index: Any) -> Any:
    """load_panel(array, index): the panel of the elements from ``index`` on."""
    return _load(array, _PANEL_BYTES)


@intrinsic
def broadcast(typing_context: Any, array: Any, index: Any) -> Any:
    """broadcast(array, index): a vector with one element in every lane."""
    return _broadcast(array, _VECTOR_BYTES)


@intrinsic
def broadcast_panel(typing_context: Any, array: Any, index: Any) -> Any:
    """broadcast_panel(array, index): a panel with one element in every lane."""
    return _broadcast(array, _PANEL_BYTES)


@intrinsic
def fill_panel(typing_context: Any, array: Any, value: Any) -> Any:
    """fill_panel(array, value): a panel of the type of ``array`` with one number in every lane."""
    lanes = _Lanes(array.dtype, _PANEL_BYTES)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(context, builder, lanes, context.cast(builder, args[1], types.float64, array.dtype))

    return lanes(array, types.float64), codegen


@intrinsic
def store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """store(array, index, lanes): write the lanes to the elements from ``index`` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.bitcast(pointer, context.get_value_type(lanes).as_pointer())
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def add(typing_context: Any, left: Any, right: Any) -> Any:
    """add(left, right): lane by lane."""
    return _arithmetic(left, 2, lambda builder, x, y: builder.fadd(x, y, flags=_FLAGS))


@intrinsic
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
    """subtract(left, right): lane by lane."""
    return _arithmetic(left, 2, lambda builder, x, y: builder.fsub(x, y, flags=_FLAGS))


@intrinsic
def multiply(typing_context: Any, left: Any, right: Any) -> Any:
    """multiply(left, right): lane by lane."""
    return _arithmetic(left, 2, lambda builder, x, y: builder.fmul(x, y, flags=_FLAGS))


@intrinsic
def divide(typing_context: Any, left: Any, right: Any) -> Any:
    """divide(left, right): lane by lane."""
    return _arithmetic(left, 2, lambda builder, x, y: builder.fdiv(x, y, flags=_FLAGS))


@intrinsic
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """maximum(left, right): lane by lane; ``right`` where one is NaN."""
    return _arithmetic(left, 2, lambda builder, x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y))


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    """multiply_add(left, right, addend): left * right + addend, lane by lane."""
    return _arithmetic(
        left, 3, lambda builder, x, y, z: builder.fadd(builder.fmul(x, y, flags=_FLAGS), z, flags=_FLAGS)
    )


@intrinsic
def total(typing_context: Any, lanes: Any) -> Any:
    """total(lanes): the sum of the lanes, added in float64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count = lanes.count
        value = args[0]
        if lanes.scalar != types.float64:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), count))
        while count > 1:
            count //= 2
            mask = ir.VectorType(_INDEX, count)
            lower = builder.shuffle_vector(value, value, ir.Constant(mask, list(range(count))))
            upper = builder.shuffle_vector(value, value, ir.Constant(mask, list(range(count, 2 * count))))
            value = builder.fadd(lower, upper, flags=_FLAGS)
        return builder.extract_element(value, ir.Constant(_INDEX, 0))

    return types.float64(lanes), codegen


class _Exp(NamedTuple):
    """What ``exp_nonpositive`` needs to know of a type; log 2 is in two parts, to keep all its digits."""

    cutoff: float
    log2_high: float
    log2_low: float
    mantissa_bits: int
    exponent_bias: int
    degree: int


_EXP_64 = _Exp(-708.0, 6.93145751953125e-1, 1.42860682030941723212e-6, 52, 1023, 13)
_EXP_32 = _Exp(-87.0, 6.93359375e-1, -2.12194440054690583e-4, 23, 127, 7)


@intrinsic
def exp_nonpositive(typing_context: Any, lanes: Any) -> Any:
    """exp_nonpositive(lanes): exp(x) for x <= 0 to an ulp; exactly 0 for NaN and below -708 (float32: -87).

    The algorithm of ``linkwise._kernels.math.exp_nonpositive``. On a panel each coefficient is fetched once
    for four vectors, which takes 60 % of the time of the loop that LLVM makes of the scalar function.
    """
    constants = _EXP_64 if lanes.scalar == types.float64 else _EXP_32

    def compute(builder: Any, x: Any) -> Any:
        floats = x.type
        integers = ir.VectorType(ir.IntType(lanes.scalar.bitwidth), lanes.count)

        def fill(value: float, kind: Any = floats) -> Any:
            return ir.Constant(kind, [value] * lanes.count)

        def multiply_add(left: Any, right: Any, addend: Any) -> Any:
            return builder.fadd(builder.fmul(left, right, flags=_FLAGS), addend, flags=_FLAGS)

        inside = builder.fcmp_ordered(">", x, fill(constants.cutoff))
        x = builder.select(inside, x, fill(constants.cutoff))
        rounder = fill(1.5 * 2.0**constants.mantissa_bits)
        shifted = multiply_add(x, fill(1.0 / math.log(2.0)), rounder)
        k = builder.fsub(shifted, rounder)
        r = multiply_add(k, fill(-constants.log2_high), x)
        r = multiply_add(k, fill(-constants.log2_low), r)
        series = fill(1.0 / math.factorial(constants.degree))
        for n in range(constants.degree - 1, -1, -1):
            series = multiply_add(series, r, fill(1.0 / math.factorial(n)))
        # The low bits of ``shifted`` hold k; the shift drops the others.
        power = builder.shl(builder.bitcast(shifted, integers), fill(constants.mantissa_bits, integers))
        power = builder.add(power, fill(constants.exponent_bias << constants.mantissa_bits, integers))
        value = builder.fmul(series, builder.bitcast(power, floats), flags=_FLAGS)
        return builder.select(inside, value, fill(0.0))

    return _arithmetic(lanes, 1, compute)
