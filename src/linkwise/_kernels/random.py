"""Counter-based random numbers: a pure function of (seed, stream, counter), so thread count never matters."""

from __future__ import annotations

import numpy as np

from linkwise._kernels import inline_kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2 ** -53


@inline_kernel
def mix(value: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection that scrambles all 64 bits."""
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))


@inline_kernel
def counter_uniform(seed: np.uint64, stream: int, counter: int) -> float:
    """Uniform number in [0, 1) for this counter of this stream."""
    state = mix(seed + _GOLDEN * np.uint64(stream + 1))
    return np.float64(mix(state + _GOLDEN * np.uint64(counter + 1)) >> np.uint64(11)) * _TO_UNIT
