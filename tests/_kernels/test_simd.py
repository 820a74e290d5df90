"""Lanes of every type and size inside kernels."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise._kernels import kernel, simd
from linkwise._kernels.math import EXP_CUTOFF, exp_nonpositive, log_positive
from linkwise._kernels.simd import WIDTH


@kernel
def _sizes(array):
    return simd.vector_size(array), simd.panel_size(array)


@kernel
def _vector_arithmetic(x, y, result):
    left, right = simd.load(x, 1), simd.load(y, 2)
    both = simd.multiply_add(left, simd.broadcast_rows(y, 0)[0], left * right - right)
    simd.store(result, 3, both)
    return simd.lane_sum(both)


@kernel
def _panel_arithmetic(x, y, result):
    left, right = simd.load_panel(x, 1), simd.load_panel(y, 2)
    both = left * right + simd.splat_panel(x, 0.0)
    both = simd.multiply_add(left, simd.broadcast_panel(y, 0), both - right)
    simd.store(result, 3, both)
    return simd.lane_sum(both)


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
    return simd.lane_sum(simd.load(x, 0))


def test_float32_lanes_are_added_in_float64():
    # One after the other in float32, the ones would vanish beside 2**24.
    x = np.array([2.0**24, 1, 1, 1, 1, 1, 1, 1], dtype=np.float32)
    assert _total(x) == 2.0**24 + 7.0


@kernel
def _quotients(x, y, result):
    for lane in range(0, x.size, simd.panel_size(x)):
        left, right = simd.load_panel(x, lane), simd.load_panel(y, lane)
        largest = simd.larger(left, right)
        simd.store(result, lane, largest * simd.splat_panel(x, 0.5) / right)


@kernel
def _exp(x, result):
    for lane in range(0, x.size, simd.panel_size(x)):
        simd.store(result, lane, exp_nonpositive(simd.load_panel(x, lane)))


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


@kernel
def _exp_of_vectors(x, out):
    for k in range(0, x.shape[0], WIDTH):
        simd.store(out, k, exp_nonpositive(simd.load(x, k)))


@kernel
def _log(x, out):
    for k in range(0, x.shape[0], WIDTH):
        simd.store(out, k, log_positive(simd.load(x, k)))


@kernel
def _arithmetic(x, y, out):
    simd.hint(x, 0, x.shape[0])
    for k in range(0, x.shape[0], WIDTH):
        a, b = simd.load(x, k), simd.load(y, k)
        simd.store(out, k, (a + b) * (a - b) / simd.splat(4.0))


@kernel
def _order(x, y, out):
    a, b = simd.load(x, 0), simd.load(y, 0)
    simd.store(out, 0, simd.larger(a, b))
    simd.store(out, WIDTH, simd.smaller(a, b))
    simd.store(out, 2 * WIDTH, simd.select_below(a, b, simd.splat(1.0), simd.splat(2.0)))


@kernel
def _any_above(x, y):
    return simd.any_above(simd.load(x, 0), simd.load(y, 0))


@kernel
def _reduce(x):
    value = simd.load(x, 0)
    return simd.lane_sum(value), simd.lane_max(value), simd.lane_min(value)


def test_any_above():
    low, high = np.zeros(WIDTH), np.zeros(WIDTH)
    assert not _any_above(low, high)
    for lane in range(WIDTH):
        high[:] = 0.0
        high[lane] = 1e-300
        assert _any_above(high, low)
        assert not _any_above(low, high)
        high[lane] = np.nan
        assert not _any_above(high, low)
        assert not _any_above(low, high)


def test_padded_is_the_next_multiple():
    assert [simd.padded(k) for k in (1, 4, 5, 8, 10, 34)] == [4, 4, 8, 8, 12, 36]


def test_arithmetic_works_lane_by_lane():
    rng = np.random.default_rng(0)
    x, y, out = rng.normal(size=(3, 40))
    _arithmetic(x, y, out)
    np.testing.assert_allclose(out, (x + y) * (x - y) / 4.0, rtol=1e-13, atol=1e-15)


def test_nan_never_wins_a_comparison():
    x, y = np.array([1.0, np.nan, -np.inf, 5.0]), np.array([2.0, 3.0, 0.0, 4.0])
    out = np.empty(12)
    _order(x, y, out)
    assert out[:4].tolist() == [2.0, 3.0, 0.0, 5.0]
    assert out[4:8].tolist() == [1.0, 3.0, -np.inf, 4.0]
    assert out[8:].tolist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("position", range(WIDTH))
def test_reductions_look_at_every_lane(position):
    x = np.array([1.0, 2.0, 4.0, 8.0])
    x[position] = -100.0
    assert _reduce(x) == (x.sum(), x.max(), -100.0)


def test_exp_is_accurate_and_zero_where_it_would_underflow():
    rng = np.random.default_rng(1)
    x = np.concatenate([-rng.uniform(0, 707, 4000), -rng.uniform(0, 1e-3, 400), [0.0] * 4])
    out = np.empty_like(x)
    _exp_of_vectors(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=4e-16)
    below = np.array([EXP_CUTOFF, -1e5, -1e300, -np.inf])
    out = np.ones(4)
    _exp_of_vectors(below, out)
    assert (out == 0.0).all()


def test_log_is_accurate_over_the_normal_numbers():
    rng = np.random.default_rng(2)
    x = np.concatenate([np.exp(-rng.uniform(0, 700, 4000)), rng.uniform(0.5, 2.0, 4000), [1.0] * 4])
    out = np.empty_like(x)
    _log(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=5e-16, atol=1e-300)


@kernel
def _tiles(x, y, rows, full, upper):
    n = simd.vector_size(x)
    left = simd.subtract_rows(simd.load_rows(x, 0, n), simd.broadcast_rows(y, 3 * n))
    right = simd.scale_rows(simd.load_rows(y, 0, n), simd.load(x, n))
    simd.store_rows(rows, 0, n, left)
    simd.store_rows(rows, 3 * n, n, right)
    tile = simd.add_outer(simd.zero_tile(x), left, right)
    simd.add_tile_sums(full, 1, 4, simd.add_outer(tile, right, left))
    simd.add_tile_sums(upper, 1, 4, simd.add_upper_outer(simd.zero_tile(x), left, right))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_are_outer_products(dtype):
    n = 32 // np.dtype(dtype).itemsize
    x, y = np.random.default_rng(3).integers(-9, 9, size=(2, 4 * n)).astype(dtype)
    rows, (full, upper) = np.zeros(6 * n, dtype=dtype), np.ones((2, 3, 4))
    _tiles(x, y, rows, full, upper)
    left = x[: 3 * n].reshape(3, n) - y[3 * n : 3 * n + 3, None]
    right = y[: 3 * n].reshape(3, n) * x[n : 2 * n]
    assert np.array_equal(rows.reshape(6, n), np.vstack([left, right]))
    assert np.array_equal(full[:, 1:], 1.0 + left @ right.T + right @ left.T)
    assert np.array_equal(upper[:, 1:], 1.0 + np.triu(left @ right.T))
    assert (full[:, 0] == 1.0).all()


@kernel
def _double(x, out):
    simd.store(out, 1, simd.load_double(x, 1) * simd.splat(2.0))
    simd.poke(out, 0, simd.peek(x, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_of_either_type_are_read_as_float64(dtype):
    x, out = np.arange(8, dtype=dtype), np.zeros(8, dtype=dtype)
    _double(x, out)
    assert out.tolist() == [2.0, 2.0, 4.0, 6.0, 8.0, 0.0, 0.0, 0.0]
