"""Scalar functions that LLVM turns into SIMD code inside kernels.

numba calls the C library for ``exp``, one value at a time. The functions here are plain
arithmetic, so a loop over points or labels vectorises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import extending, types

from linkwise._numba import inline_kernel

# numba's annotations describe the function that is decorated, not the one that kernels call.
intrinsic: Any = extending.intrinsic

_LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts, so that x - k log 2 keeps its last digits.
_LOG2_HIGH = 6.93145751953125e-1
_LOG2_LOW = 1.42860682030941723212e-6
# Adding and subtracting 1.5 * 2**52 rounds to the nearest integer and leaves it in the low bits.
_ROUNDER = 6755399441055744.0
_ROUNDER_BITS = np.float64(_ROUNDER).view(np.int64).item()
_SQRT_HALF_BITS = np.float64(math.sqrt(0.5)).view(np.int64).item()
_EXPONENT_MASK = -(1 << 52)  # sign and exponent bits of a float64

#: ``exp_nonpositive`` returns 0 below this, where exp(x) would leave the normal numbers.
EXP_CUTOFF = -708.0

_ZERO_32, _HALF_32, _ONE_32 = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_LOG2_E_32 = np.float32(_LOG2_E)
_LOG2_HIGH_32 = np.float32(0.693359375)
_LOG2_LOW_32 = np.float32(math.log(2.0) - 0.693359375)
_ROUNDER_32 = np.float32(1.5 * 2.0**23)
_ROUNDER_BITS_32 = np.int32(_ROUNDER_32.view(np.int32))
_BIAS_32, _MANTISSA_32 = np.int32(127), np.int32(23)
_C3_32, _C4_32, _C5_32, _C6_32, _C7_32 = (np.float32(1.0 / math.factorial(n)) for n in range(3, 8))

#: The same for ``exp_nonpositive_float32``.
EXP_CUTOFF_32 = np.float32(-87.0)


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    signature = types.int64(types.float64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return signature, codegen


@intrinsic
def _bits_of_32(typing_context: Any, value: Any) -> Any:
    signature = types.int32(types.float32)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int32))

    return signature, codegen


@intrinsic
def _float_of_32(typing_context: Any, value: Any) -> Any:
    signature = types.float32(types.int32)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return signature, codegen


@intrinsic
def _float_of(typing_context: Any, value: Any) -> Any:
    signature = types.float64(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return signature, codegen


@inline_kernel
def exp_nonpositive(x: float) -> float:
    """exp(x) for x <= 0, to a few ulp; exactly 0 below ``EXP_CUTOFF``. NaN gives 0: check inputs before.

    exp(x) = 2**k exp(r) with r = x - k log 2 in [-log 2 / 2, log 2 / 2]; the Taylor polynomial of
    degree 13 leaves r**14 / 14! < 5e-18. Positive arguments up to 700 are right too.
    """
    clipped = max(x, EXP_CUTOFF)
    shifted = clipped * _LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (clipped - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = _float_of((_bits_of(shifted) - _ROUNDER_BITS + 1023) << 52)
    return p * power if x > EXP_CUTOFF else 0.0


@inline_kernel
def exp_nonpositive_float32(x: np.float32) -> np.float32:
    """exp(x) for float32 x <= 0, in float32 throughout; exactly 0 below ``EXP_CUTOFF_32``. NaN gives 0.

    As ``exp_nonpositive`` with the Taylor polynomial of degree 7: r**8 / 8! < 6e-9, a tenth of an ulp.
    """
    clipped = max(x, EXP_CUTOFF_32)
    shifted = clipped * _LOG2_E_32 + _ROUNDER_32
    k = shifted - _ROUNDER_32
    r = (clipped - k * _LOG2_HIGH_32) - k * _LOG2_LOW_32
    p = _C7_32
    p = p * r + _C6_32
    p = p * r + _C5_32
    p = p * r + _C4_32
    p = p * r + _C3_32
    p = p * r + _HALF_32
    p = p * r + _ONE_32
    p = p * r + _ONE_32
    # int32 throughout: numba widens int32 sums to int64, which would halve the SIMD width.
    exponent = np.int32(np.int32(_bits_of_32(shifted) - _ROUNDER_BITS_32) + _BIAS_32)
    power = _float_of_32(np.int32(exponent << _MANTISSA_32))
    return p * power if x > EXP_CUTOFF_32 else _ZERO_32


def exp_nonpositive_by_type(x: Any) -> Any:
    """``exp_nonpositive`` or ``exp_nonpositive_float32``, by the type of x. For generic kernels."""
    return exp_nonpositive_float32(x) if isinstance(x, np.float32) else exp_nonpositive(x)


@extending.overload(exp_nonpositive_by_type, inline="always", strict=False)
def _exp_nonpositive_by_type(x: Any) -> Any:
    if x == types.float32:
        return lambda x: exp_nonpositive_float32(x)
    return lambda x: exp_nonpositive(x)


@inline_kernel
def log_positive(x: float) -> float:
    """log(x) for finite normal x > 0, to a few ulp.

    x = 2**k m with m in [sqrt(1/2), sqrt(2)); with f = (m - 1) / (m + 1), log m = 2 artanh f, whose
    series in f**2 < 0.0295 is cut after f**21 (the next term is below 3e-19 relative to f).
    """
    # Subtracting the bits of sqrt(1/2) first makes the exponent field round at sqrt(2), not at 2.
    k_bits = (_bits_of(x) - _SQRT_HALF_BITS) & _EXPONENT_MASK
    m = _float_of(_bits_of(x) - k_bits)
    # The exponent as a float without an integer conversion, which AVX2 lacks for int64.
    k = _float_of((k_bits >> 52) + _ROUNDER_BITS) - _ROUNDER
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    p = 1.0 / 21.0
    p = p * g + 1.0 / 19.0
    p = p * g + 1.0 / 17.0
    p = p * g + 1.0 / 15.0
    p = p * g + 1.0 / 13.0
    p = p * g + 1.0 / 11.0
    p = p * g + 1.0 / 9.0
    p = p * g + 1.0 / 7.0
    p = p * g + 1.0 / 5.0
    p = p * g + 1.0 / 3.0
    return k * _LOG2_HIGH + (k * _LOG2_LOW + 2.0 * (f + f * g * p))
