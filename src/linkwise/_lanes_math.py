"""exp and log of four numbers at a time, after :mod:`linkwise._math`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from linkwise._lanes import VECTOR, WIDTH, instruction, lanes, larger, select_below, splat
from linkwise._math import EXP_CUTOFF
from linkwise._numba import inline_kernel

__all__ = ["exp_lanes", "log_lanes"]

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
