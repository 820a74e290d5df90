"""The EM loop on scripted objectives: when it stops, what it counts, and how it leaves a standstill."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, Constraints
from linkwise.datasets import make_ppc_artificial
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.em import EMRun, MixtureParameters, best_run, parameter_shift, run_em
from linkwise.mixture.gaussian.gaussians import Gaussians, precision_factors
from tests.repeats import LONG


def parameters(number):
    """Parameters that can be told apart by their first mean."""
    gaussians = Gaussians(np.array([[float(number)], [number + 1.0]]), np.ones(2), "spherical")
    return MixtureParameters(np.log([0.5, 0.5]), gaussians, np.ones(2), np.empty(0))


def number_of(found):
    return found.gaussians.means[0, 0]


class Script:
    """A step whose objectives are given; it counts its calls in the parameters."""

    def __init__(self, *objectives):
        self.objectives = list(objectives)

    def __call__(self, old):
        return parameters(number_of(old) + 1), self.objectives.pop(0)


def run(*objectives, **options):
    return run_em(Script(*objectives), parameters(0), **{"tol": 0.1, "max_iter": len(objectives), **options})


@pytest.mark.parametrize(
    ("objectives", "patience", "n_iter", "converged"),
    [
        ([0.0, 1.0, 2.0, 2.05, 9.0], 1, 4, True),
        ([0.0, 1.0, 2.0, 1.0, 0.0], 1, 5, False),
        ([0.0, 0.08, 0.16, 0.24, 0.32], 2, 5, False),
        ([0.0, 0.04, 0.08, 0.12], 2, 3, True),
        ([0.0], 1, 1, False),
    ],
)
def test_stops_when_the_objective_stands_still(objectives, patience, n_iter, converged):
    found = run(*objectives, patience=patience)
    assert (len(found.lower_bounds), found.converged, found.stopped) == (n_iter, converged, False)
    assert number_of(found.parameters) == n_iter
    assert number_of(found.start) == 0
    assert found.objective == objectives[n_iter - 1]


def test_decreases_are_counted():
    assert run(0.0, 1.0, 0.5, 2.0, 1.0).n_decreases == 2
    assert run(0.0, 1.0, 1.0 - 1e-12).n_decreases == 0


def test_without_an_objective_the_parameters_decide():
    """The means move by 1, twice their spread of 0.5."""
    assert not run(np.nan, np.nan, np.nan).converged
    found = run(np.nan, np.nan, np.nan, tol=2.1)
    assert found.converged
    assert len(found.lower_bounds) == 1
    assert found.objective == -np.inf


def test_escapes_from_a_standstill():
    seen = []

    def escape(old, objective):
        seen.append((number_of(old), objective))
        return parameters(100) if len(seen) == 1 else None

    found = run(0.0, 0.05, -3.0, -2.0, -1.99, 7.0, escape=escape)
    # The parameters of a standstill are those before its M-step; what falls by the escape is no decrease.
    assert seen == [(1.0, 0.05), (102.0, -1.99)]
    assert found.lower_bounds == [0.0, 0.05, -3.0, -2.0, -1.99]
    assert found.converged
    assert found.n_decreases == 0
    assert number_of(found.parameters) == 102


def test_an_objective_that_falls_stands_still_where_there_is_an_escape():
    assert run(0.0, -5.0, 9.0, escape=lambda *_: None).lower_bounds == [0.0, -5.0]
    assert not run(0.0, -5.0, 9.0).converged


class TestBestRun:
    @staticmethod
    def ended(objective, converged=True, **fields):
        return EMRun(parameters(0), [objective], converged, 0, **fields)

    def best(self, *runs):
        def make(found):
            if isinstance(found, Exception):
                raise found
            return found

        return best_run(make, runs, tol=0.1, max_iter=7)

    def test_highest_objective_or_judgement(self):
        runs = [self.ended(1.0), self.ended(np.nan, judged=3.0), self.ended(2.0), self.ended(np.inf)]
        assert self.best(*runs) is runs[1]

    def test_degenerate_starts_are_left_out(self):
        good = self.ended(1.0)
        bad = ValueError("not positive definite")
        with pytest.warns(ConvergenceWarning, match="2 of 3 starts ended in a degenerate covariance"):
            assert self.best(bad, good, np.linalg.LinAlgError("singular")) is good
        with pytest.raises(ValueError, match="not positive definite"):
            self.best(bad, bad)
        with pytest.raises(ValueError, match="another"):
            self.best(good, ValueError("another"))

    def test_warns_unless_converged_or_stopped(self):
        with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=7"):
            self.best(self.ended(1.0, converged=False))
        self.best(self.ended(1.0, converged=False, stopped=True))


class TestSettling:
    """With links EM ends only when the parameters stand still as well."""

    def test_parameters_must_stand_still(self):
        objectives = [0.0, 0.0, 0.0, 0.0, 0.0]
        assert len(run_em(Script(*objectives), parameters(0), tol=1e-3, max_iter=5).lower_bounds) == 2
        moving = run_em(Script(*objectives), parameters(0), tol=1e-3, max_iter=5, settle=True)
        assert len(moving.lower_bounds) == 5
        assert not moving.converged
        still = run_em(lambda old: (old, 0.0), parameters(0), tol=1e-3, max_iter=5, settle=True)
        assert len(still.lower_bounds) == 2
        assert still.converged

    @pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
    def test_shift_by_hand_and_in_other_units(self, covariance_type):
        rng = np.random.default_rng(0)
        n_components, n_features = 3, 2
        means = rng.normal(size=(n_components, n_features))
        moved = means + rng.normal(scale=0.1, size=means.shape)
        variances = rng.uniform(0.5, 2.0, (2, n_components, n_features))
        if covariance_type == "spherical":
            old, new = variances[:, :, 0]
            scale = np.full(n_features, 3.0)
            as_full = [np.array([v * np.eye(n_features) for v in one]) for one in (old, new)]
        elif covariance_type == "diag":
            old, new = variances
            scale = np.array([10.0, 0.1])
            as_full = [np.array([np.diag(v) for v in one]) for one in (old, new)]
        else:
            roots = rng.normal(size=(2, n_components, n_features, 4))
            old, new = roots @ roots.transpose(0, 1, 3, 2)
            scale = np.array([10.0, 0.1])
            if covariance_type == "tied":
                old, new = old[0], new[0]
            as_full = [np.broadcast_to(one, (n_components, n_features, n_features)) for one in (old, new)]
        weights = np.array([[0.2, 0.3, 0.5], [0.25, 0.3, 0.45]])

        def made(number, means, covariances):
            factors = precision_factors(covariances, covariance_type)
            gaussians = Gaussians(means, factors, covariance_type)
            return MixtureParameters(np.log(weights[number]), gaussians, covariances, np.empty(0))

        found = parameter_shift(made(0, means, old), made(1, moved, new))
        by_hand = [0.05]
        for k in range(n_components):
            move, before, after = moved[k] - means[k], as_full[0][k], as_full[1][k]
            ratios = np.linalg.eigvals(np.linalg.solve(before, after)).real
            root = np.sqrt(weights[1, k])
            by_hand.append(root * np.sqrt(move @ np.linalg.solve(before, move)))
            by_hand.append(root * np.sqrt(np.mean((ratios - 1.0) ** 2)))
        assert found == pytest.approx(max(by_hand), rel=1e-9)
        if covariance_type == "spherical":
            units = 9.0
        else:
            units = scale**2 if covariance_type == "diag" else np.outer(scale, scale)
        other = parameter_shift(made(0, means * scale, old * units), made(1, moved * scale, new * units))
        assert other == pytest.approx(found, rel=1e-9)

    @pytest.mark.parametrize(("which", "n_pairs"), [(1, 70), (3, 150)])
    def test_ends_where_a_thousand_times_stricter_tolerance_ends(self, which, n_pairs):
        """The third set stops after 2 steps, at accuracy .5 to .7, if the objective alone decides."""
        scores = []
        for seed in range(3 if LONG else 2):
            X, y = make_ppc_artificial(which, random_state=seed)
            links = Constraints.sample(y, n_pairs, random_state=100 + seed)
            model = PPC(2, n_init=1, random_state=seed).fit(X, constraints=links)
            strict = PPC(2, n_init=1, tol=1e-6, max_iter=2000, random_state=seed).fit(X, constraints=links)
            assert model.converged_
            assert model.n_iter_ < strict.n_iter_
            assert model.lower_bound_ == pytest.approx(strict.lower_bound_, abs=1e-4)
            assert (model.labels_ == strict.labels_).mean() > 0.95
            scores.append(clustering_accuracy(y, model.labels_))
        assert np.median(scores) > 0.96
