"""Closed forms are minimisers, steps never rise, bounds bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from linkwise.kmeans.distortions.metric_steps import (
    BoxBound,
    DiameterBound,
    SphereBound,
    backtrack,
    descend_log_weights,
    diagonal_minimiser,
    full_minimiser,
    linear_metric_step,
    log_det,
    metric_factor,
    rayleigh_minimiser,
    rayleigh_prior,
    squared_diameter,
)
from tests.repeats import examples, for_seeds


def random_metric(rng, d, kind):
    if kind == "diag":
        return rng.uniform(0.2, 3.0, size=d)
    root = rng.normal(size=(d, d))
    return root @ root.T + 0.1 * np.eye(d)


class TestClosedForms:
    @for_seeds(20)
    def test_diagonal(self, seed):
        rng = np.random.default_rng(seed)
        scatter, count, upper = rng.normal(1.0, 2.0, size=4), rng.uniform(1, 9), rng.uniform(0.5, 5, size=4)
        best = diagonal_minimiser(scatter, count, upper)
        assert (best > 0).all()
        assert (best <= upper * (1 + 1e-15)).all()
        for m in range(4):
            grid = np.linspace(1e-3, upper[m], 20_001)
            values = grid * scatter[m] - count * np.log(grid)
            own = best[m] * scatter[m] - count * np.log(best[m])
            assert own <= values.min() + 1e-12

    @for_seeds(20)
    def test_full_is_the_best_matrix_under_its_bound(self, seed):
        rng = np.random.default_rng(seed)
        d, count, floor = 3, 5.0, 0.05
        scale = rng.uniform(0.5, 2.0, size=d)
        values = rng.uniform(-1.0, 6.0, size=d)  # indefinite in most cases
        vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
        scatter = (vectors * values) @ vectors.T

        def objective(matrix):
            return float((matrix * scatter).sum()) - count * np.linalg.slogdet(matrix)[1]

        best = full_minimiser(scatter, count, scale, floor)
        units = np.diag(scale) @ best @ np.diag(scale)
        assert np.linalg.eigvalsh(units).min() > 0
        assert np.linalg.eigvalsh(units).max() <= 1 / floor * (1 + 1e-9)
        # Any other feasible matrix, near or far, is no better.
        for size in (1e-3, 0.03, 1.0):
            for _ in range(40):
                noise = rng.normal(size=(d, d)) * size
                other = units + noise + noise.T
                w, v = np.linalg.eigh(other)
                other = (v * np.clip(w, 1e-3, 1 / floor)) @ v.T
                assert objective(best) <= objective(other / np.outer(scale, scale)) + 1e-9

    def test_full_without_clipping_is_the_inverse(self):
        rng = np.random.default_rng(0)
        scatter = random_metric(rng, 4, "full")
        found = full_minimiser(scatter, 7.0, rng.uniform(1, 2, size=4), 1e-9)
        np.testing.assert_allclose(found, 7.0 * np.linalg.inv(scatter), rtol=1e-9)

    @pytest.mark.parametrize("strength", [0.01, 1.0, 50.0])
    def test_rayleigh(self, strength):
        scatter = np.array([-1e4, -3.0, 0.0, 1e-9, 2.0, 1e6])
        best = rayleigh_minimiser(scatter, strength)
        slope = scatter + strength * (best - 1 / best)
        np.testing.assert_allclose(slope / (np.abs(scatter) + strength / best), 0.0, atol=1e-12)
        assert (best > 0).all()
        assert rayleigh_prior(np.ones(2)) == 0.0
        assert rayleigh_prior(np.array([0.5, 2.0])) > 0.0


class TestSteps:
    def test_backtracking_never_rises_and_gives_up_in_peace(self):
        old, candidate = np.array([1.0]), np.array([9.0])
        assert backtrack(lambda a: float((a[0] - 1.5) ** 2), old, candidate)[0] == 2.0
        np.testing.assert_array_equal(backtrack(lambda a: float(abs(a[0] - 1.0)), old, candidate), old)

    @pytest.mark.parametrize("kind", ["diag", "full"])
    @pytest.mark.parametrize("bound_name", ["cheap", "diameter"])
    @for_seeds(examples(15, 6))
    def test_linear_step_lowers_the_objective(self, kind, bound_name, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 3)) * rng.uniform(0.3, 3.0, size=3)
        old = random_metric(rng, 3, kind)
        gap = X[:8] - X[8:16]
        base = (X**2).sum(axis=0) if kind == "diag" else X.T @ X
        base = base - ((gap**2).sum(axis=0) if kind == "diag" else gap.T @ gap)
        if bound_name == "diameter":
            bound = DiameterBound(X)
        elif kind == "diag":
            bound = BoxBound(np.ptp(X, axis=0) ** 2)
        else:
            bound = SphereBound(X - X.mean(axis=0))
        if kind == "diag":
            minimise = lambda s: diagonal_minimiser(s, 20.0, np.full(3, 50.0))  # noqa: E731
        else:
            minimise = lambda s: full_minimiser(s, 20.0, np.ones(3), 0.02)  # noqa: E731
        regulariser = lambda a: -20.0 * float(log_det(a, diagonal=kind == "diag"))  # noqa: E731

        def objective(metric):
            return float((metric * base).sum()) + 8 * bound.value(metric) + regulariser(metric)

        history = [objective(old)]
        for _ in range(10):
            old = linear_metric_step(base, 8.0, bound, minimise, regulariser, old)
            history.append(objective(old))
        assert np.diff(history).max() <= 1e-10 * abs(history[0])
        assert history[-1] < history[0]
        if kind == "diag" and bound_name == "cheap":
            # The box is linear: the first step is the minimum.
            solved = minimize(
                lambda t: objective(np.exp(t)), np.zeros(3), bounds=[(-20, np.log(50.0))] * 3, tol=1e-12
            )
            assert history[1] <= solved.fun + 1e-7

    def test_descent_in_log_weights_finds_the_minimum(self):
        rng = np.random.default_rng(0)
        scatter = rng.uniform(0.1, 5.0, size=5)

        def value_and_gradient(a):
            return float(a @ scatter) + rayleigh_prior(a), scatter + a - 1 / a

        found = descend_log_weights(value_and_gradient, np.ones(5), 0.5, 400)
        np.testing.assert_allclose(found, rayleigh_minimiser(scatter, 1.0), rtol=1e-4)

    def test_descent_never_rises_from_a_bad_start(self):
        start = np.array([1e-3, 1e3])

        def value_and_gradient(a):
            return rayleigh_prior(a), a - 1 / a

        values = [
            value_and_gradient(descend_log_weights(value_and_gradient, start, 100.0, n))[0] for n in range(8)
        ]
        assert (np.diff(values) <= 0).all()
        assert values[-1] < values[0]


class TestBounds:
    @for_seeds(examples(40))
    def test_diameter_equals_all_pairs(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rng.integers(1, 40), rng.integers(1, 6)))
        value, i, j = squared_diameter(X)
        every = [float(((a - b) ** 2).sum()) for a, b in itertools.combinations(X, 2)]
        assert value == pytest.approx(max(every, default=0.0), rel=1e-12)
        assert value == pytest.approx(float(((X[i] - X[j]) ** 2).sum()), rel=1e-12)

    @for_seeds(15)
    @pytest.mark.parametrize("kind", ["diag", "full"])
    def test_bounds_cover_all_pairs_and_slopes_are_subgradients(self, kind, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(15, 3))
        bounds = [DiameterBound(X)]
        bounds.append(BoxBound(np.ptp(X, axis=0) ** 2) if kind == "diag" else SphereBound(X - X.mean(axis=0)))
        here, there = random_metric(rng, 3, kind), random_metric(rng, 3, kind)
        matrix = np.diag(here) if kind == "diag" else here
        largest = max(float((a - b) @ matrix @ (a - b)) for a, b in itertools.combinations(X, 2))
        assert bounds[0].value(here) == pytest.approx(largest)
        assert bounds[1].value(here) >= largest * (1 - 1e-12)
        for bound in bounds:
            slope = bound.slope(here)
            assert float((here * slope).sum()) == pytest.approx(bound.value(here))
            assert float((there * slope).sum()) <= bound.value(there) * (1 + 1e-12)

    def test_factor(self):
        matrix = random_metric(np.random.default_rng(0), 5, "full")
        factor = metric_factor(matrix)
        np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-12)
