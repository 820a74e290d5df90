"""exp and log that LLVM keeps in SIMD code, for single numbers and for lanes, and log sum exp of short rows.

numba calls the C library for ``exp`` and ``log``, one value at a time. Here they are plain arithmetic that
is written into the calling kernel: loops over single numbers still vectorise, and nothing is compiled apart.
Every instruction has flags of its own, because kernels that may reorder sums give theirs to those without,
and then (x + c) - c no longer rounds.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from linkwise._arrays import Floats
from linkwise._kernels import kernel
from linkwise._kernels.simd import FUSED, Lanes, fused, instruction

#: ``exp_nonpositive`` returns 0 from here down, where exp(x) would leave the normal numbers (float32: -87).
EXP_CUTOFF = -708.0
_SQRT_HALF_BITS = np.float64(math.sqrt(0.5)).view(np.int64).item()


class _Format(NamedTuple):
    """A floating point type; log 2 is in two parts, so that x - k log 2 keeps its last digits."""

    cutoff: float
    log2_high: float
    log2_low: float
    mantissa_bits: int
    exponent_bias: int
    exp_degree: int

    @property
    def rounder(self) -> float:
        """Added and subtracted, it rounds to the nearest integer, which it leaves in the low bits."""
        return 1.5 * 2.0**self.mantissa_bits


_FLOAT64 = _Format(EXP_CUTOFF, 6.93145751953125e-1, 1.42860682030941723212e-6, 52, 1023, 13)
_FLOAT32 = _Format(-87.0, 6.93359375e-1, -2.12194440054690583e-4, 23, 127, 7)


def _fill(kind: Any, value: float) -> Any:
    """A constant number, or a constant in every lane."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _integers(kind: Any, bits: int) -> Any:
    """The integers of the size of a floating point number, or of every lane."""
    return (
        ir.VectorType(ir.IntType(bits), kind.count) if isinstance(kind, ir.VectorType) else ir.IntType(bits)
    )


@instruction
def exp_nonpositive(typing_context: Any, x: Any) -> Any:
    """exp(x) for x <= 0 to two ulp; exactly 0 for NaN and from ``EXP_CUTOFF`` down, ``-inf`` included.

    exp(x) = 2**k exp(r) with r = x - k log 2 in [-log 2 / 2, log 2 / 2]; the Taylor polynomial of degree 13
    leaves r**14 / 14! < 5e-18. Positive arguments up to 700 are right too. On a panel each coefficient is
    fetched once for four vectors: 60 % of the time of the loop that LLVM makes of single numbers.
    """
    value_type = x if isinstance(x, Lanes) else types.float64
    form = _FLOAT32 if isinstance(x, Lanes) and x.scalar == types.float32 else _FLOAT64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        whole = _integers(kind, 1 + form.mantissa_bits + (form.exponent_bias + 1).bit_length())
        inside = builder.fcmp_ordered(">", args[0], _fill(kind, form.cutoff))
        clipped = builder.select(inside, args[0], _fill(kind, form.cutoff))
        rounder = _fill(kind, form.rounder)
        shifted = fused(builder, clipped, _fill(kind, 1.0 / math.log(2.0)), rounder)
        k = builder.fsub(shifted, rounder, flags=FUSED)
        r = fused(builder, k, _fill(kind, -form.log2_high), clipped)
        r = fused(builder, k, _fill(kind, -form.log2_low), r)
        series = _fill(kind, 1.0 / math.factorial(form.exp_degree))
        for n in range(form.exp_degree - 1, -1, -1):
            series = fused(builder, series, r, _fill(kind, 1.0 / math.factorial(n)))
        # The low bits of ``shifted`` hold k; the shift drops the others.
        power = builder.shl(builder.bitcast(shifted, whole), _fill(whole, form.mantissa_bits))
        power = builder.add(power, _fill(whole, form.exponent_bias << form.mantissa_bits))
        value = builder.fmul(series, builder.bitcast(power, kind), flags=FUSED)
        return builder.select(inside, value, _fill(kind, 0.0))

    return value_type(value_type), codegen


@instruction
def log_positive(typing_context: Any, x: Any) -> Any:
    """log(x) for finite normal float64 x > 0, to three ulp; some finite number for 0.

    x = 2**k m with m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1), log m = 2 artanh s, whose series in
    s**2 < 0.0295 is cut after s**21 (the next term is below 3e-19 relative to s).
    """
    value_type = x if isinstance(x, Lanes) else types.float64
    form = _FLOAT64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        whole = _integers(kind, 64)
        shift = _fill(whole, form.mantissa_bits)
        bits = builder.bitcast(args[0], whole)
        # Subtracting the bits of sqrt(1/2) first makes the exponent field round at sqrt(2), not at 2.
        exponent = builder.ashr(builder.sub(bits, _fill(whole, _SQRT_HALF_BITS)), shift)
        m = builder.bitcast(builder.sub(bits, builder.shl(exponent, shift)), kind)
        # The exponent as a float without an integer conversion, which AVX2 lacks for int64.
        rounder_bits = np.float64(form.rounder).view(np.int64).item()
        k = builder.bitcast(builder.add(exponent, _fill(whole, rounder_bits)), kind)
        k = builder.fsub(k, _fill(kind, form.rounder), flags=FUSED)
        one = _fill(kind, 1.0)
        s = builder.fdiv(builder.fsub(m, one, flags=FUSED), builder.fadd(m, one, flags=FUSED), flags=FUSED)
        z = builder.fmul(s, s, flags=FUSED)
        series = _fill(kind, 1.0 / 21.0)
        for n in range(19, 1, -2):
            series = fused(builder, series, z, _fill(kind, 1.0 / n))
        double = builder.fadd(s, s, flags=FUSED)
        low = builder.fmul(double, builder.fmul(z, series, flags=FUSED), flags=FUSED)
        low = fused(builder, k, _fill(kind, form.log2_low), low)
        return fused(builder, k, _fill(kind, form.log2_high), builder.fadd(low, double, flags=FUSED))

    return value_type(value_type), codegen


@kernel
def log_sum_exp(values: Floats) -> float:
    """Log sum_k exp(values_k) of finite numbers or -inf (K,); -inf if all values are."""
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
def log_sum_exp_rows(table: Floats) -> Floats:
    """Log sum_k exp(table_ik) of each row (n,), without the 100 us of a general routine."""
    sums = np.empty(table.shape[0])
    for i in range(table.shape[0]):
        sums[i] = log_sum_exp(table[i])
    return sums
