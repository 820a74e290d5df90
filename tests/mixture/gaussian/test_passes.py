"""The fused passes against scipy and a slow mixture in extended precision."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from linkwise._threads import Workers
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.gaussians import COVARIANCE_TYPES, Gaussians, precision_factors
from linkwise.mixture.gaussian.kernels import gaussian_pass
from linkwise.mixture.gaussian.passes import em_pass, log_density_pass, posterior_pass, statistics_pass
from tests.mixture import gaussian_oracle as oracle
from tests.repeats import examples

DTYPES = (np.float64, np.float32)


def problem(seed, n, d, k, covariance_type, dtype=np.float64):
    """Data, log-weights, Gaussians, and their covariances as matrices."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=2.0, size=(k, d))
    covariances, matrices = oracle.random_covariances(rng, k, d, covariance_type)
    X = (means[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)
    weights = rng.dirichlet(np.full(k, 5.0))
    gaussians = Gaussians(means, precision_factors(covariances, covariance_type), covariance_type)
    return X, np.log(weights), gaussians, matrices


def expected_statistics(X, responsibilities, centres, covariance_type):
    deviations = X[:, np.newaxis].astype(oracle.EXTENDED) - centres
    second = np.einsum("nk,nki,nkj->kij", responsibilities, deviations, deviations)
    if covariance_type in ("diag", "spherical"):
        second = np.diagonal(second, axis1=1, axis2=2)
    return responsibilities.sum(axis=0), np.einsum("nk,nki->ki", responsibilities, deviations), second


def assert_statistics(statistics, expected, unit):
    """Equal to rounding; ``unit`` is the machine epsilon times the number of points."""
    for name, value, factor in zip(("counts", "first", "second"), expected, (16, 32, 200), strict=True):
        np.testing.assert_allclose(
            getattr(statistics, name), value.astype(np.float64), rtol=0, atol=factor * unit, err_msg=name
        )


def same_bits(left, right):
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("counts", "first", "second", "log_likelihood", "centres")
    )


@settings(max_examples=examples(60, 15))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 70),
    d=st.integers(1, 9),
    k=st.integers(1, 6),
    covariance_type=st.sampled_from(COVARIANCE_TYPES),
    dtype=st.sampled_from(DTYPES),
)
def test_every_pass_equals_the_oracle(seed, n, d, k, covariance_type, dtype):
    X, log_weights, gaussians, matrices = problem(seed, n, d, k, covariance_type, dtype)
    points = points_of(X)
    # Four to eight times the largest errors seen in 600 problems, alike in both types: the data are a few
    # sigma wide, so float32 loses nothing beyond its digits.
    eps = np.finfo(dtype).eps
    density = oracle.log_densities(X, gaussians.means, matrices).astype(np.float64)
    scale = 1.0 + np.abs(density)

    assert np.all(np.abs(log_density_pass(points, gaussians) - density) <= 16 * eps * scale)
    with_weights = log_density_pass(points, gaussians, log_weights=log_weights)
    assert np.all(np.abs(with_weights - density - log_weights) <= 16 * eps * scale)

    q, log_likelihood = oracle.posterior(X, np.exp(log_weights), gaussians.means, matrices)
    result = posterior_pass(
        points, gaussians, log_weights, labels=True, probabilities=True, log_likelihood=True, confidence=True
    )
    np.testing.assert_allclose(result.probabilities, q.astype(np.float64), rtol=0, atol=32 * eps)
    np.testing.assert_allclose(result.confidence, q.max(axis=1).astype(np.float64), rtol=0, atol=32 * eps)
    assert result.probabilities.dtype == result.confidence.dtype == dtype
    assert np.all(np.abs(result.log_likelihood - log_likelihood) <= 16 * eps * scale.max(axis=1))
    assert np.all(q[np.arange(n), result.labels] >= q.max(axis=1) - 64 * eps)

    statistics = em_pass(points, gaussians, log_weights)
    assert_statistics(statistics, expected_statistics(X, q, statistics.centres, covariance_type), eps * n)
    assert abs(statistics.log_likelihood - log_likelihood.sum()) <= 16 * eps * scale.sum()

    given_q = np.random.default_rng(seed).random((n, k))
    statistics = statistics_pass(points, gaussians.means, given_q, covariance_type)
    expected = expected_statistics(X, given_q, statistics.centres, covariance_type)
    assert_statistics(statistics, expected, eps * n)
    assert statistics.log_likelihood == 0.0


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_log_densities_equal_scipy(covariance_type):
    X, _, gaussians, matrices = problem(3, 200, 5, 4, covariance_type)
    expected = np.column_stack(
        [
            multivariate_normal(mean, matrix).logpdf(X)
            for mean, matrix in zip(gaussians.means, matrices, strict=True)
        ]
    )
    np.testing.assert_allclose(log_density_pass(points_of(X), gaussians), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 127, 128, 129, 255, 256, 257, 511, 513, 1000])
def test_block_remainders(n, dtype):
    for covariance_type in ("full", "diag"):
        X, log_weights, gaussians, matrices = problem(n, n, 4, 3, covariance_type, dtype)
        q, log_likelihood = oracle.posterior(X, np.exp(log_weights), gaussians.means, matrices)
        statistics = em_pass(points_of(X), gaussians, log_weights)
        eps = np.finfo(dtype).eps
        expected = expected_statistics(X, q, statistics.centres, covariance_type)
        assert_statistics(statistics, expected, eps * n)
        np.testing.assert_allclose(statistics.log_likelihood, float(log_likelihood.sum()), rtol=16 * eps)
        np.testing.assert_allclose(statistics.counts.sum(), n, rtol=16 * eps)
        result = posterior_pass(points_of(X), gaussians, log_weights, probabilities=True)
        np.testing.assert_allclose(result.probabilities, q.astype(np.float64), rtol=0, atol=32 * eps)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 11, 19, 20, 31])
def test_wide_data(d):
    X, log_weights, gaussians, matrices = problem(d, 300, d, 3, "full")
    q, _ = oracle.posterior(X, np.exp(log_weights), gaussians.means, matrices)
    statistics = em_pass(points_of(X), gaussians, log_weights)
    expected = expected_statistics(X, q, statistics.centres, "full")
    assert_statistics(statistics, expected, 4e-16 * len(X))
    assert np.array_equal(statistics.second, statistics.second.transpose(0, 2, 1))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(covariance_type, dtype):
    X, log_weights, gaussians, _ = problem(0, 200_000, 3, 3, covariance_type, dtype)
    points = points_of(X)
    excluded = np.flatnonzero(np.random.default_rng(0).random(len(X)) < 0.1)
    q = np.random.default_rng(1).random((len(X), 3))
    results = []
    for n_threads in (1, 2, 3, 7):
        workers = Workers(n_threads)
        results.append(
            (
                em_pass(points, gaussians, log_weights, workers=workers),
                em_pass(points, gaussians, log_weights, excluded=excluded, workers=workers),
                statistics_pass(points, gaussians.means, q, covariance_type, workers=workers),
                log_density_pass(points, gaussians, rows=excluded, workers=workers),
                posterior_pass(points, gaussians, log_weights, probabilities=True, workers=workers)[1],
            )
        )
    for result in results[1:]:
        for left, right in zip(results[0][:3], result[:3], strict=True):
            assert same_bits(left, right)
        for left, right in zip(results[0][3:], result[3:], strict=True):
            assert np.array_equal(left, right)


def test_memory_layouts_give_the_same_bits_from_one_compiled_kernel():
    X, log_weights, gaussians, _ = problem(5, 700, 4, 3, "full")
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = np.full((1400, 9), np.nan)
    wide[::2, 1::2] = X
    layouts = {
        "C": X,
        "Fortran": np.asfortranarray(X),
        "read-only": read_only,
        "strided": wide[::2, 1::2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
    }
    q = np.random.default_rng(0).random((700, 3))
    offset = X.mean(axis=0)
    seen = {}
    for name, layout in layouts.items():
        points = points_of(layout, offset)
        seen[name] = (
            em_pass(points, gaussians, log_weights),
            statistics_pass(points, gaussians.means, q, "full"),
            log_density_pass(points, gaussians),
            len(gaussian_pass.signatures),
        )
    for name, result in seen.items():
        assert same_bits(result[0], seen["C"][0]), name
        assert same_bits(result[1], seen["C"][1]), name
        assert np.array_equal(result[2], seen["C"][2]), name
        assert result[3] == seen["C"][3], f"{name} made numba compile again"


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 900), share=st.floats(0.0, 1.0))
def test_row_subsets_equal_slices(covariance_type, seed, n, share):
    X, log_weights, gaussians, _ = problem(seed, n, 3, 3, covariance_type)
    rng = np.random.default_rng(seed)
    points = points_of(X)
    rows = np.flatnonzero(rng.random(n) < share)
    kept = np.delete(X, rows, axis=0)
    assert same_bits(
        em_pass(points, gaussians, log_weights, excluded=rows),
        em_pass(points_of(kept, points.offset), gaussians, log_weights),
    )
    shuffled = rng.permutation(rows)
    slice_points = points_of(X[shuffled], points.offset)
    assert np.array_equal(
        log_density_pass(points, gaussians, rows=shuffled), log_density_pass(slice_points, gaussians)
    )
    q = rng.random((len(rows), 3))
    assert same_bits(
        statistics_pass(points, gaussians.means, q, covariance_type, rows=shuffled),
        statistics_pass(slice_points, gaussians.means, q, covariance_type),
    )


def test_linked_and_free_rows_add_up_across_ranges():
    X, log_weights, gaussians, _ = problem(1, 150_000, 3, 3, "full")
    points = points_of(X)
    rng = np.random.default_rng(0)
    # Some ranges lose a few rows, one loses all of them.
    rows = np.unique(np.concatenate([rng.integers(0, len(X), 1000), np.arange(65_536, 131_072)]))
    everything = em_pass(points, gaussians, log_weights)
    free = em_pass(points, gaussians, log_weights, excluded=rows)
    joint = log_density_pass(points, gaussians, log_weights=log_weights, rows=rows)
    q = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, np.newaxis])
    linked = statistics_pass(points, gaussians.means, q, "full", rows=rows)
    together = free + linked
    assert_statistics(together, (everything.counts, everything.first, everything.second), 2e-16 * len(X))
    np.testing.assert_allclose(
        free.log_likelihood + np.logaddexp.reduce(joint, axis=1).sum(), everything.log_likelihood, rtol=1e-12
    )
    nothing = em_pass(points, gaussians, log_weights, excluded=np.arange(len(X)))
    assert not nothing.counts.any()
    assert not nothing.second.any()
    assert nothing.log_likelihood == 0.0


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_float32_points_are_summed_in_float64(covariance_type):
    """The sum of 100,000 times 255^2 is exact in float64 and, over a block, in the lanes of float32."""
    n = 100_000
    points = points_of(np.full((n, 1), 255.0, dtype=np.float32), offset=[0.0])
    statistics = statistics_pass(points, np.zeros((1, 1)), np.ones((n, 1)), covariance_type)
    assert statistics.counts.item() == n
    assert statistics.first.item() == n * 255.0
    assert statistics.second.item() == n * 255.0**2


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_float32_statistics_of_many_points(covariance_type):
    X, log_weights, gaussians, _ = problem(2, 100_000, 4, 3, covariance_type, np.float32)
    single = em_pass(points_of(X), gaussians, log_weights)
    double = em_pass(points_of(X.astype(np.float64)), gaussians, log_weights)
    for name in ("counts", "log_likelihood"):
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), rtol=1e-6)
    for name in ("first", "second"):
        left, right = getattr(single, name), getattr(double, name)
        np.testing.assert_allclose(left, right, rtol=0, atol=2e-6 * np.abs(double.second).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_points_far_from_every_component(dtype):
    """Densities underflow; responsibilities must not."""
    gaussians = Gaussians(np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones((2, 2)), "diag")
    log_weights = np.log([0.5, 0.5])
    X = np.array([[-1000.0, 0.0], [1000.0, 0.0], [0.5, 3000.0]], dtype=dtype)
    result = posterior_pass(
        points_of(X), gaussians, log_weights, labels=True, probabilities=True, log_likelihood=True
    )
    assert result.labels[:2].tolist() == [0, 1]
    np.testing.assert_allclose(result.probabilities, [[1, 0], [0, 1], [0.5, 0.5]], atol=1e-6)
    expected = [-500_000.0, -499_000.5, -4_500_000.125]
    np.testing.assert_allclose(result.log_likelihood, expected, rtol=1e-5)
    statistics = em_pass(points_of(X), gaussians, log_weights)
    np.testing.assert_allclose(statistics.counts, [1.5, 1.5], rtol=1e-6)


def test_a_component_of_weight_zero_takes_no_part():
    X, _, gaussians, matrices = problem(0, 400, 3, 3, "full")
    statistics = em_pass(points_of(X), gaussians, np.array([np.log(0.4), -np.inf, np.log(0.6)]))
    q, log_likelihood = oracle.posterior(X, [0.4, 0.6], gaussians.means[[0, 2]], matrices[[0, 2]])
    assert statistics.counts[1] == 0.0
    assert not statistics.second[1].any()
    np.testing.assert_allclose(statistics.counts[[0, 2]], q.sum(axis=0).astype(float), rtol=1e-12)
    np.testing.assert_allclose(statistics.log_likelihood, float(log_likelihood.sum()), rtol=1e-12)


def test_blocks_without_a_component_are_skipped_exactly():
    """The first 1000 points have responsibilities of exactly 0 for component 1, the rest do not."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2)) + [300.0, 0.0]])
    gaussians = Gaussians(np.array([[0.0, 0.0], [300.0, 0.0]]), np.tile(np.eye(2), (2, 1, 1)), "full")
    statistics = em_pass(points_of(X), gaussians, np.log([0.5, 0.5]))
    assert statistics.counts.tolist() == [1000.0, 1000.0]
    q = np.repeat(np.eye(2), 1000, axis=0)
    assert_statistics(statistics, expected_statistics(X, q, statistics.centres, "full"), 2e-16 * len(X))


def test_an_unconstrained_pass_needs_no_memory_that_grows_with_the_data():
    X, log_weights, gaussians, _ = problem(0, 300_000, 4, 8, "full", np.float32)
    points = points_of(X)
    em_pass(points, gaussians, log_weights)
    tracemalloc.start()
    points = points_of(X)
    em_pass(points, gaussians, log_weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20, f"{peak} bytes; a copy of X has {X.nbytes}, N x K has {8 * 4 * len(X)}"


def test_bad_rows_and_shapes_are_refused():
    X, log_weights, gaussians, _ = problem(0, 10, 2, 2, "diag")
    points = points_of(X)
    with pytest.raises(IndexError, match=r"0, \.\.\., 9; these go from 3 to 10"):
        log_density_pass(points, gaussians, rows=np.array([3, 10]))
    with pytest.raises(IndexError, match="from -1"):
        em_pass(points, gaussians, log_weights, excluded=np.array([-1]))
    with pytest.raises(ValueError, match="strictly ascending"):
        em_pass(points, gaussians, log_weights, excluded=np.array([3, 3]))
    with pytest.raises(ValueError, match=r"shape \(10, 3\); 10 rows and 2 means need \(10, 2\)"):
        statistics_pass(points, gaussians.means, np.ones((10, 3)), "diag")
    empty = np.empty(0, dtype=np.int64)
    assert log_density_pass(points, gaussians, rows=empty).shape == (0, 2)
    assert not statistics_pass(points, gaussians.means, np.empty((0, 2)), "diag", rows=empty).counts.any()
