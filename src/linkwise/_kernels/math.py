"""Scalar functions that LLVM turns into SIMD code inside kernels.

numba calls the C library for ``exp``, one value at a time. The functions here are plain
arithmetic, so a loop over points or labels vectorises.

log sum exp of short rows, without the 100 microseconds that a general routine spends on its arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import extending, types
from numpy.typing import NDArray

from linkwise._kernels import inline_kernel, kernel

__all__ = ["log_sum_exp", "log_sum_exp_rows"]

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


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    signature = types.int64(types.float64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

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


@kernel
def log_sum_exp(values: NDArray[np.float64]) -> float:
    """Log sum_k exp(values_k), -inf if all values are.

    Parameters
    ----------
    values : (K,) float64
        Finite or -inf.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise._kernels.math import log_sum_exp
    >>> round(log_sum_exp(np.log([0.25, 0.5])), 9) == round(float(np.log(0.75)), 9)
    True
    """
    top = -np.inf
    for k in range(values.shape[0]):
        top = max(top, values[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(values.shape[0]):
        total += math.exp(values[k] - top)
    return top + math.log(total)


@kernel
def log_sum_exp_rows(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log sum_k exp(table_ik) of each row.

    Parameters
    ----------
    table : (n, K) float64
        Finite or -inf.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise._kernels.math import log_sum_exp_rows
    >>> log_sum_exp_rows(np.array([[1000.0, -np.inf], [-np.inf, -np.inf]]))
    array([1000.,  -inf])
    """
    sums = np.empty(table.shape[0])
    for i in range(table.shape[0]):
        sums[i] = log_sum_exp(table[i])
    return sums
