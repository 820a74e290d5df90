"""Starts in which the links lead, restarts that differ, and the choice among runs by their links."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from linkwise import PPC, Constraints
from linkwise.datasets import make_ppc_artificial
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.em import EMRun, MixtureParameters, best_run
from linkwise.mixture.gaussian.gaussians import Gaussians, log_determinants, precision_factors
from linkwise.mixture.gaussian.shrinkage import CovariancePrior
from linkwise.mixture.gaussian.source import RowsInMemory
from linkwise.mixture.links.em_step import LinkedStep
from linkwise.mixture.links.rows import select_linked_rows
from linkwise.mixture.links.starts import discriminating_labels, links_lead, restart_labels
from tests.repeats import for_seeds


def some_parameters(rng, n_components, n_features, n_links):
    covariances = np.array([np.eye(n_features) * v for v in rng.uniform(0.5, 2.0, n_components)])
    gaussians = Gaussians(
        rng.normal(size=(n_components, n_features)), precision_factors(covariances, "full"), "full"
    )
    log_weights = np.log(rng.dirichlet(np.full(n_components, 5.0)))
    return MixtureParameters(log_weights, gaussians, covariances, np.zeros(n_links))


def step_for(X, links, n_components, mixing):
    linked = select_linked_rows(links, np.arange(n_components))
    return LinkedStep(RowsInMemory(X, 0.0), linked, "full", 0.0, "exact", mixing, None, 0)


class TestLinkEvidence:
    @pytest.mark.parametrize("mixing", ["ignore", "exact"])
    @for_seeds(4)
    def test_against_all_labellings(self, seed, mixing):
        """log E[g(Z)] over labels from the posterior without links, less that over the weights alone."""
        rng = np.random.default_rng(seed)
        n, k = 5, 3
        X = rng.normal(size=(n, 2))
        links = Constraints(n, [(0, 1), (1, 2)], [(2, 3), (0, 4)], certainty=[0.9, 0.8, 0.95, 0.7])
        parameters = some_parameters(rng, k, 2, links.n_pairs)
        means, factors, _ = parameters.gaussians
        joint = (
            np.array(
                [
                    [
                        -0.5 * (((x - means[c]) @ factors[c]) ** 2).sum()
                        + log_determinants(parameters.gaussians)[c]
                        for c in range(k)
                    ]
                    for x in X
                ]
            )
            + parameters.log_weights
        )
        posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        weights = np.exp(parameters.log_weights)
        kept = prior = 0.0
        for z in itertools.product(range(k), repeat=n):
            labels = np.array(z)
            reward = np.exp(-2.0 * np.abs(links.weights)[links.violations(labels)].sum())
            kept += reward * np.prod(posterior[np.arange(n), labels])
            prior += reward * np.prod(weights[labels])
        expected = np.log(kept) - (np.log(prior) if mixing == "exact" else 0.0)
        found = step_for(X, links, k, mixing).link_evidence(parameters)
        assert found == pytest.approx(expected, abs=1e-9)

    def test_a_run_that_foretells_the_links_is_preferred(self):
        likely = EMRun(None, [-1.0], converged=True, n_decreases=0, link_evidence=-40.0)
        faithful = EMRun(None, [-1.2], converged=True, n_decreases=0, link_evidence=-10.0)
        runs = {0: likely, 1: faithful}
        assert best_run(runs.get, [0, 1], tol=1e-3, max_iter=10) is faithful
        assert EMRun(None, [-1.0], converged=True, n_decreases=0).merit == -1.0


class TestLeading:
    @pytest.mark.parametrize("seed", range(3))
    def test_links_of_a_cross(self, seed):
        """No k-means finds a cross, and EM does not leave what k-means finds."""
        X, y = make_ppc_artificial(1, random_state=seed)
        links = Constraints.sample(y, 70, random_state=seed)
        # Heavier linked rows would find it from any start.
        one = {"n_init": 1, "linked_weight": 1, "random_state": seed}
        led = PPC(2, **one).fit(X, constraints=links)
        left = PPC(2, init_params="kmeans", **one).fit(X, constraints=links)
        assert clustering_accuracy(y, led.labels_) > 0.99
        assert clustering_accuracy(y, left.labels_) < 0.8

    @pytest.mark.parametrize("shrinkage", ["auto", 0])
    def test_a_single_link_leaves_all_clusters(self, shrinkage):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(4), 40)
        X = rng.normal(size=(160, 2)) + 6.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y]
        for links in (Constraints(160, [(0, 1)]), Constraints(160, (), [(0, 50)])):
            model = PPC(4, shrinkage=shrinkage, random_state=0).fit(X, constraints=links)
            assert clustering_accuracy(y, model.labels_) > 0.95

    def test_neighbours_do_not_lead(self):
        grid = Constraints.from_grid((10, 10), certainty=0.9)
        assert not links_lead("constraints", 0, grid)
        assert not links_lead("constraints", 0, grid + Constraints(100, (), [(0, 99)], certainty=0.9))
        y = np.repeat([0, 1], 50)
        some = Constraints.sample(y, 30, certainty=0.9, random_state=0)
        assert [links_lead("constraints", number, some) for number in range(5)] == [
            True, True, False, True, True,
        ]  # fmt: skip
        assert not links_lead("kmeans", 0, some)
        assert not links_lead("constraints", 0, None)
        assert links_lead("constraints", 0, Constraints.from_labels(y))

    def test_a_start_that_would_lose_a_cluster_is_kept_as_it_was(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(0, 1, (30, 2)), rng.normal(4, 1, (30, 2))])
        everything = Constraints(60, must_link=[(i, i + 1) for i in range(59)])
        start = some_parameters(rng, 2, 2, everything.n_pairs)
        prior = CovariancePrior(3.0, 1.0, np.ones(2))
        assert step_for(X, everything, 2, "ignore").from_links(start, prior) is start


class TestRestarts:
    def test_they_differ(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 30)
        X = rng.normal(size=(90, 3)) * [5.0, 1.0, 1.0] + 3.0 * np.eye(3)[y]
        links = Constraints.sample(y, 40, certainty=0.95, random_state=0)
        found = {
            tuple(restart_labels(X, 3, "constraints", links, np.random.RandomState(0), number))
            for number in range(4)
        }
        assert len(found) == 3  # the third starts from k-means as the first, but the links do not lead

    def test_directions_of_the_links(self):
        """One narrow column tells the classes, wide ones do not: k-means cuts the wide ones."""
        rng = np.random.default_rng(1)
        y = np.repeat([0, 1], 60)
        X = np.column_stack([0.2 * rng.normal(size=120) + y, 20.0 * rng.uniform(-1, 1, (120, 3))])
        links = Constraints.sample(y, 40, random_state=0)
        led = discriminating_labels(X, 2, links, np.random.RandomState(0))
        assert clustering_accuracy(y, led) > 0.9
        plain = restart_labels(X, 2, "kmeans", links, np.random.RandomState(0), 0)
        assert clustering_accuracy(y, plain) < 0.65
        in_other_units = discriminating_labels(
            X * [1e3, 1.0, 1e-3, 7.0] + 5.0, 2, links, np.random.RandomState(0)
        )
        np.testing.assert_array_equal(in_other_units, led)

    @pytest.mark.parametrize("X", [np.ones((20, 2)), np.column_stack([np.arange(20.0), np.ones(20)])])
    def test_constant_columns(self, X):
        links = Constraints(20, [(0, 1)], [(0, 19)])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert discriminating_labels(X, 2, links, np.random.RandomState(0)).shape == (20,)
