"""counter_uniform must look like independent uniform numbers along counters, streams and seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from linkwise._kernels import kernel
from linkwise._kernels.random import counter_uniform, mix

N = 1 << 16
# Small, neighbouring and large seeds: none may be special.
SEEDS = [0, 1, 2, 12345, 2**63, 2**64 - 1]
# The tests below take some 200 p-values from fixed seeds; a broken generator gives far less than this.
SMALLEST_P = 1e-5


@kernel
def _fill(seed, streams, counters):
    out = np.empty(len(streams))
    for i in range(len(streams)):
        out[i] = counter_uniform(seed, streams[i], counters[i])
    return out


def numbers(seed, streams, counters):
    streams, counters = np.broadcast_arrays(np.asarray(streams), np.asarray(counters))
    return _fill(np.uint64(seed), streams.ravel().astype(np.int64), counters.ravel().astype(np.int64))


ALONG = {
    "counters": lambda seed: numbers(seed, 7, np.arange(N)),
    "streams": lambda seed: numbers(seed, np.arange(N), 3),
    "diagonal": lambda seed: numbers(seed, np.arange(N), np.arange(N)),
    "square": lambda seed: numbers(seed, np.arange(256)[:, None], np.arange(256)[None, :]),
    "strided": lambda seed: numbers(seed, 64 * np.arange(N), 1024),
}


def serial_p_value(first, second, bins=16):
    """Chi-square test that pairs fill the unit square evenly."""
    counts, _, _ = np.histogram2d(first, second, bins=bins, range=[[0, 1], [0, 1]])
    return stats.chisquare(counts.ravel()).pvalue


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_uniform(along, seed):
    u = ALONG[along](seed)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > SMALLEST_P
    assert stats.chisquare(np.bincount((u * 1024).astype(int), minlength=1024)).pvalue > SMALLEST_P
    # The low bits decide nothing in most uses, but must not be constant either.
    low = (u * 2.0**53).astype(np.int64) & 255
    assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > SMALLEST_P


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("lag", [1, 2, 3, 17, 256])
def test_serial_independence(along, lag):
    u = ALONG[along](99)
    assert serial_p_value(u[:-lag:2], u[lag::2][: len(u[:-lag:2])]) > SMALLEST_P
    z = np.corrcoef(u[:-lag], u[lag:])[0, 1] * np.sqrt(len(u) - lag)
    assert abs(z) < 4.5


@pytest.mark.parametrize(
    ("other_stream", "other_counter"), [(1, 0), (0, 1), (1, 1), (-1, 1), (1000, 0), (0, 1000)]
)
def test_neighbouring_streams_and_counters_are_independent(other_stream, other_counter):
    streams, counters = np.arange(2000, 2000 + N), 5000 + np.arange(N) % 7
    first = numbers(4, streams, counters)
    second = numbers(4, streams + other_stream, counters + other_counter)
    # Every other pair, so that no number occurs in two of them.
    assert serial_p_value(first[::2], second[::2]) > SMALLEST_P


@pytest.mark.parametrize("step", [1, 2, 2**32])
def test_neighbouring_seeds_are_independent(step):
    first, second = numbers(10, np.arange(N), 0), numbers(10 + step, np.arange(N), 0)
    assert serial_p_value(first, second) > SMALLEST_P


def test_sums_over_a_stream_have_the_variance_of_independent_numbers():
    u = numbers(5, np.arange(4096)[:, None], np.arange(64)[None, :]).reshape(4096, 64)
    z = (u.sum(axis=1) - 32) / np.sqrt(64 / 12)
    assert stats.kstest(z, "norm").pvalue > SMALLEST_P
    chi_square = float((z**2).sum())
    assert SMALLEST_P < stats.chi2(4096).cdf(chi_square) < 1 - SMALLEST_P


def test_a_pure_function_without_collisions():
    streams, counters = np.arange(N), np.arange(N)[::-1].copy()
    u = numbers(8, streams, counters)
    np.testing.assert_array_equal(u, numbers(8, streams, counters))
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_array_equal(u[order], numbers(8, streams[order], counters[order]))
    # 2**16 draws from 2**53 values: even one repetition has probability 2e-7.
    assert len(np.unique(numbers(8, np.arange(256)[:, None], np.arange(256)[None, :]))) == 256 * 256


def test_mix_is_the_published_finaliser():
    """SplitMix64 of Steele, Lea & Flood, written with Python's integers."""

    def published(value):
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
        return value ^ (value >> 31)

    for value in [0, 1, 2**31, 2**63 + 12345, 2**64 - 1, 0x9E3779B97F4A7C15]:
        assert int(mix(np.uint64(value))) == published(value)
