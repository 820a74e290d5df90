"""Sampled Omega against the sum over all labellings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from linkwise.datasets import make_eleven_gaussians
from linkwise.mixture.classes.e_step import pair_weights
from linkwise.mixture.classes.omega import draw_labellings, log_omega, sampled_mixing
from tests.mixture import class_oracle
from tests.repeats import examples


def tiny(seed, strength=1.0):
    rng = np.random.default_rng(seed)
    n_classes, n_components, n = int(rng.integers(1, 4)), int(rng.integers(2, 4)), int(rng.integers(3, 8))
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n)])[:n]
    n_classes = codes.max() + 1
    weights = rng.uniform(-strength, strength, (n_classes, n_classes))
    return codes, (weights + weights.T) / 2, log_softmax(rng.normal(size=n_components)), rng


def test_estimate_equals_enumeration():
    for seed in range(examples(20)):
        codes, weights, log_weights, rng = tiny(seed)
        draws = draw_labellings(log_weights, np.bincount(codes), weights, rng, 40_000)
        estimate = log_omega(draws, log_weights)
        error = 5.0 / np.sqrt(estimate.effective_sample_size)
        assert estimate.value == pytest.approx(class_oracle.log_omega(log_weights, codes, weights), abs=error)
        # And at weights other than those of the draws.
        moved = log_softmax(log_weights + rng.normal(scale=0.3, size=len(log_weights)))
        there = log_omega(draws, moved)
        error = 5.0 / np.sqrt(there.effective_sample_size)
        assert there.value == pytest.approx(class_oracle.log_omega(moved, codes, weights), abs=error)


def test_energy_counts_every_pair_once():
    codes, weights, _, rng = tiny(3)
    draws = draw_labellings(np.array([0.0, -np.inf]), np.bincount(codes), weights, rng, 5)
    pairs = class_oracle.pair_matrix(codes, weights)
    np.testing.assert_allclose(draws.energy, pairs.sum() / 2)
    np.testing.assert_array_equal(draws.counts, np.tile([len(codes), 0], (5, 1)))


def test_expected_counts_are_the_gradient():
    codes, weights, log_weights, rng = tiny(5)
    draws = draw_labellings(log_weights, np.bincount(codes), weights, rng, 2000)
    gradient = log_omega(draws, log_weights).expected_counts
    for k in range(len(log_weights)):
        step = np.zeros_like(log_weights)
        step[k] = 1e-5
        slope = (
            log_omega(draws, log_weights + step).value - log_omega(draws, log_weights - step).value
        ) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=1e-5)


def test_without_beliefs_the_weights_are_the_shares():
    counts = np.array([10.0, 25.0, 5.0])
    step = sampled_mixing(
        counts, np.log([0.3, 0.4, 0.3]), np.array([20, 20]), np.zeros((2, 2)), np.random.default_rng(0)
    )
    # Conjugate gradients shorten the way where draws from the start thin out, so iterate as EM does.
    for seed in range(30):
        step = sampled_mixing(
            counts, step.log_weights, np.array([20, 20]), np.zeros((2, 2)), np.random.default_rng(seed)
        )
    assert step.usable
    assert step.log_omega == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(np.exp(step.log_weights), counts / 40, atol=0.02)


def test_weights_maximise_the_exact_objective():
    """Two clusters, so that the maximum can be found on a grid of enumerated Omegas."""
    codes, weights = np.array([0, 0, 0, 1, 1]), np.array([[-0.9, -0.6], [-0.6, -0.8]])
    counts = np.array([5.0, 2.0])  # two rows more than labelled ones
    grid = np.linspace(0.05, 0.95, 181)
    exact = [
        counts @ np.log([p, 1 - p]) - class_oracle.log_omega(np.log([p, 1 - p]), codes, weights) for p in grid
    ]
    step = sampled_mixing(counts, np.log([0.5, 0.5]), np.bincount(codes), weights, np.random.default_rng(0))
    assert np.exp(step.log_weights[0]) == pytest.approx(grid[int(np.argmax(exact))], abs=0.03)
    # Ignoring Omega gives something else.
    assert abs(5 / 7 - grid[int(np.argmax(exact))]) > 0.1


def test_printed_weights_leave_a_single_draw():
    _, y, beliefs = make_eleven_gaussians(random_state=0)
    sizes = np.bincount(y)[1:]
    log_weights = np.full(6, -np.log(6))
    weights = pair_weights(beliefs, 0.2, sizes, "none")
    found = []
    for factor in (1.0, 0.01, 0.0025):
        draws = draw_labellings(log_weights, sizes, factor * weights, np.random.default_rng(0))
        found.append(log_omega(draws, log_weights).effective_sample_size)
    assert found[0] == pytest.approx(1.0, abs=0.1)
    assert found[1] < 20
    assert found[2] > 500
    counts = np.arange(1.0, 7.0) * 100
    step = sampled_mixing(counts, log_weights, sizes, weights, np.random.default_rng(0))
    assert not step.usable
    np.testing.assert_allclose(np.exp(step.log_weights), counts / counts.sum())
