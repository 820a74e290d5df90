"""EM of CPPC: when it stops, and what it does with clusters that vanish."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise._threads import Workers
from linkwise.datasets import make_eleven_gaussians
from linkwise.mixture.classes import em as class_em
from linkwise.mixture.classes.e_step import class_rows, pair_weights
from linkwise.mixture.classes.em import ClassStep, run_class_em
from linkwise.mixture.classes.plan import class_start
from linkwise.mixture.classes.tables import TablesInMemory
from linkwise.mixture.gaussian.data import points_of
from linkwise.mixture.gaussian.shrinkage import covariance_prior
from tests.repeats import LONG


def make_step(X, codes, start, weights, *, covariance_type="full", sequential=False, mixing="ignore"):
    rows = class_rows(codes, codes.max() + 1)
    tables = TablesInMemory(points_of(X), rows, start, start.max() + 1, Workers())
    return ClassStep(tables, weights, covariance_type, 1e-6, sequential, mixing, 0)


def run(step, *, tol=1e-4, max_iter=500, seed=0):
    return run_class_em(step, tol=tol, max_iter=max_iter, rng=np.random.default_rng(seed))


def twin_start():
    """Two blobs given twice; each copy is a cluster, so both clusters have the same moments: a saddle."""
    rng = np.random.default_rng(0)
    half = np.vstack([rng.normal(-3, 1, (50, 2)), rng.normal(3, 1, (50, 2))])
    return np.vstack([half, half]), np.zeros(200, dtype=int), np.repeat([0, 1], 100)


def test_a_saddle_is_left(monkeypatch):
    X, codes, start = twin_start()
    weights = np.zeros((1, 1))
    left = run(make_step(X, codes, start, weights))
    assert left.converged
    labels = left.prob[:, :2].argmax(axis=1)
    blob = X[:, 0] > 0
    assert max((labels == blob).mean(), (labels != blob).mean()) == 1.0
    monkeypatch.setattr(class_em, "_DISTURBANCES", ())
    stuck = run(make_step(X, codes, start, weights))
    np.testing.assert_allclose(stuck.prob[:, :2], 0.5)
    assert left.objective > stuck.objective + 0.5


def test_the_slow_saddle_of_the_eleven_gaussians_is_left(monkeypatch):
    """Plain EM stands still here within ten iterations, and goes on to rise after hundreds."""
    X, y, beliefs = make_eleven_gaussians(random_state=0)
    weights = pair_weights(beliefs, 0.002, np.bincount(y)[1:], "none")
    start = class_start(X, y - 1, 5, np.random.RandomState(0))
    left = run(make_step(X, y - 1, start, weights))
    monkeypatch.setattr(class_em, "_DISTURBANCES", ())
    stuck = run(make_step(X, y - 1, start, weights))
    assert stuck.converged
    assert len(stuck.lower_bounds) < 20
    assert left.objective > stuck.objective + 0.02


def test_a_disturbance_that_does_not_help_is_undone():
    X, y, beliefs = make_eleven_gaussians(random_state=0)
    weights = pair_weights(beliefs, 0.2, np.bincount(y)[1:], "none")
    start = class_start(X, y - 1, 4, np.random.RandomState(0))
    found = run(make_step(X, y - 1, start, weights))
    assert found.converged
    # Two disturbances of at least one window each, and the result is no lower than before them.
    assert len(found.lower_bounds) > 3 * class_em.PATIENCE
    assert found.objective >= max(found.lower_bounds) - 1e-6


def test_without_enough_iterations_it_says_so_and_keeps_the_best():
    X, y, beliefs = make_eleven_gaussians(random_state=0)
    weights = pair_weights(beliefs, 0.2, np.bincount(y)[1:], "none")
    start = class_start(X, y - 1, 4, np.random.RandomState(0))
    few = run(make_step(X, y - 1, start, weights), max_iter=3)
    assert not few.converged
    assert len(few.lower_bounds) == 4
    # Cut off in the middle of a disturbance: back to where it stood.
    cut = run(make_step(X, y - 1, start, weights), max_iter=class_em.PATIENCE + 3)
    assert not cut.converged
    assert cut.objective >= max(cut.lower_bounds) - 1e-6


@pytest.mark.parametrize(
    ("covariance_type", "sequential", "pseudo_rows"),
    [
        (covariance_type, sequential, pseudo_rows)
        for i, covariance_type in enumerate(("full", "tied", "diag", "spherical"))
        for j, sequential in enumerate((False, True))
        for k, pseudo_rows in enumerate((0.0, 6.0))
        if LONG or (i + j + k) % 2 == 0
    ],
)
def test_objective_never_falls_within_a_climb(covariance_type, sequential, pseudo_rows, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(class_em, "_DISTURBANCES", ())
    for seed in range(3):
        X = rng.normal(size=(300, 3)) + rng.normal(scale=3, size=(4, 3))[rng.integers(4, size=300)]
        codes = rng.integers(-1, 3, 300)
        beliefs = rng.uniform(-0.9, 0.9, (3, 3))
        beliefs = (beliefs + beliefs.T) / 2
        if not sequential:
            np.fill_diagonal(beliefs, np.abs(np.diagonal(beliefs)))
        weights = pair_weights(beliefs, 1.0, np.bincount(codes[codes >= 0]), "class")
        start = class_start(X, codes, 4, np.random.RandomState(seed))
        step = make_step(X, codes, start, weights, covariance_type=covariance_type, sequential=sequential)
        step.reg_covar = 0.0
        step.prior = covariance_prior(points_of(X), pseudo_rows, 0.0)
        bounds = run(step, tol=0.0, max_iter=40).lower_bounds
        assert len(bounds) > 20
        assert np.diff(bounds).min() > -1e-9


def test_start_parameters_are_the_moments_of_the_assignment():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 1e6
    codes = rng.integers(-1, 3, 60)
    step = make_step(X, codes, codes, np.zeros((3, 3)))
    parameters = step.start_parameters()
    for k in range(3):
        members = X[codes == k]
        np.testing.assert_allclose(parameters.gaussians.means[k], members.mean(axis=0))
        np.testing.assert_allclose(
            parameters.covariances[k], np.cov(members.T, bias=True) + 1e-6 * np.eye(2), rtol=1e-6
        )
    shares = np.bincount(codes[codes >= 0]) / (codes >= 0).sum()
    np.testing.assert_allclose(np.exp(parameters.log_weights), shares)


def test_an_emptied_cluster_keeps_its_shape_and_a_finite_weight():
    X, y, beliefs = make_eleven_gaussians(random_state=0)
    weights = pair_weights(beliefs, 0.2, np.bincount(y)[1:], "none")
    start = class_start(X, y - 1, 9, np.random.RandomState(0))
    parameters = run(make_step(X, y - 1, start, weights)).parameters
    empty = np.exp(parameters.log_weights) < 1e-6
    assert empty.sum() == 5
    assert np.isfinite(parameters.log_weights).all()
    variances = np.diagonal(parameters.covariances, axis1=1, axis2=2)
    assert variances[empty].min() > 0.1
