"""Explicit vectors inside kernels."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise._kernels import kernel, simd


@kernel
def _sizes(array):
    return simd.vector_size(array), simd.panel_size(array)


@kernel
def _vector_arithmetic(x, y, result):
    left, right = simd.load(x, 1), simd.load(y, 2)
    both = simd.add(simd.multiply(left, right), simd.zeros(x))
    both = simd.multiply_add(left, simd.broadcast(y, 0), simd.subtract(both, right))
    simd.store(result, 3, both)
    return simd.total(both)


@kernel
def _panel_arithmetic(x, y, result):
    left, right = simd.load_panel(x, 1), simd.load_panel(y, 2)
    both = simd.add(simd.multiply(left, right), simd.zeros_panel(x))
    both = simd.multiply_add(left, simd.broadcast_panel(y, 0), simd.subtract(both, right))
    simd.store(result, 3, both)
    return simd.total(both)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("panel", [False, True])
def test_lanes(dtype, panel):
    rng = np.random.default_rng(0)
    # Whole numbers, so that the order of sums and fused products do not matter.
    x, y = rng.integers(-20, 20, size=(2, 64)).astype(dtype)
    result = np.zeros(64, dtype=dtype)
    n = _sizes(x)[panel]
    assert n == (128 if panel else 32) // x.itemsize
    total = (_panel_arithmetic if panel else _vector_arithmetic)(x, y, result)
    expected = x[1 : 1 + n] * y[2 : 2 + n] - y[2 : 2 + n] + x[1 : 1 + n] * y[0]
    assert np.array_equal(result[3 : 3 + n], expected)
    assert not result[:3].any()
    assert not result[3 + n :].any()
    assert total == expected.sum()


@kernel
def _total(x):
    return simd.total(simd.load(x, 0))


def test_float32_lanes_are_added_in_float64():
    # One after the other in float32, the ones would vanish beside 2**24.
    x = np.array([2.0**24, 1, 1, 1, 1, 1, 1, 1], dtype=np.float32)
    assert _total(x) == 2.0**24 + 7.0


@kernel
def _quotients(x, y, result):
    for lane in range(0, x.size, simd.panel_size(x)):
        left, right = simd.load_panel(x, lane), simd.load_panel(y, lane)
        largest = simd.maximum(left, right)
        simd.store(result, lane, simd.divide(simd.multiply(largest, simd.fill_panel(x, 0.5)), right))


@kernel
def _exp(x, result):
    for lane in range(0, x.size, simd.panel_size(x)):
        simd.store(result, lane, simd.exp_nonpositive(simd.load_panel(x, lane)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_panels_of_quotients(dtype):
    x, y = np.random.default_rng(1).normal(size=(2, 128)).astype(dtype)
    result = np.empty_like(x)
    _quotients(x, y, result)
    assert np.array_equal(result, (np.maximum(x, y) * dtype(0.5)) / y)


@pytest.mark.parametrize(("dtype", "cutoff"), [(np.float64, -708.0), (np.float32, -87.0)])
def test_exp(dtype, cutoff):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            -np.logspace(-20, np.log10(-cutoff), 20_000),
            rng.uniform(cutoff, 0.0, 100_000),
            -np.log(2.0) * (np.arange(120) + 0.5),
            np.zeros(100),
        ]
    ).astype(dtype)
    x = np.where(x > cutoff, x, dtype(0.0))[: len(x) // 32 * 32]
    result = np.empty_like(x)
    _exp(x, result)
    exact = np.exp(x.astype(np.longdouble))
    assert (np.abs(result - exact) / np.spacing(exact.astype(dtype))).max() < 2.0
    assert np.all(result[x == 0.0] == 1.0)
    beyond = np.full(32, -np.inf, dtype=dtype)
    beyond[:4] = cutoff, np.nextafter(dtype(cutoff), dtype(-np.inf)), 10 * cutoff, np.nan
    result = np.ones_like(beyond)
    _exp(beyond, result)
    assert not result.any()
