import numpy as np
import pytest

from linkwise._kernels import kernel
from linkwise._kernels.lanes import (
    WIDTH,
    any_above,
    exp_lanes,
    hint,
    lane_max,
    lane_min,
    lane_sum,
    larger,
    load,
    log_lanes,
    padded,
    select_below,
    smaller,
    splat,
    store,
)
from linkwise._kernels.math import EXP_CUTOFF


@kernel
def _exp(x, out):
    for k in range(0, x.shape[0], WIDTH):
        store(out, k, exp_lanes(load(x, k)))


@kernel
def _log(x, out):
    for k in range(0, x.shape[0], WIDTH):
        store(out, k, log_lanes(load(x, k)))


@kernel
def _arithmetic(x, y, out):
    hint(x, 0, x.shape[0])
    for k in range(0, x.shape[0], WIDTH):
        a, b = load(x, k), load(y, k)
        store(out, k, (a + b) * (a - b) / splat(4.0))


@kernel
def _order(x, y, out):
    a, b = load(x, 0), load(y, 0)
    store(out, 0, larger(a, b))
    store(out, WIDTH, smaller(a, b))
    store(out, 2 * WIDTH, select_below(a, b, splat(1.0), splat(2.0)))


@kernel
def _any_above(x, y):
    return any_above(load(x, 0), load(y, 0))


@kernel
def _reduce(x):
    value = load(x, 0)
    return lane_sum(value), lane_max(value), lane_min(value)


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
    assert [padded(k) for k in (1, 4, 5, 8, 10, 34)] == [4, 4, 8, 8, 12, 36]


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
    _exp(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=4e-16)
    below = np.array([EXP_CUTOFF, -1e5, -1e300, -np.inf])
    out = np.ones(4)
    _exp(below, out)
    assert (out == 0.0).all()


def test_log_is_accurate_over_the_normal_numbers():
    rng = np.random.default_rng(2)
    x = np.concatenate([np.exp(-rng.uniform(0, 700, 4000)), rng.uniform(0.5, 2.0, 4000), [1.0] * 4])
    out = np.empty_like(x)
    _log(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=5e-16, atol=1e-300)
