"""Clusters that lose all their rows are counted, and the warning names the cause."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.mixture.links.occupancy import EMPTY_WEIGHT, occupied_clusters


def mosaic(seed, side, separation):
    """Four overlapping Gaussians in the quarters of an image, row by row."""
    rng = np.random.default_rng(seed)
    half = np.arange(side) // (side // 2)
    truth = np.add.outer(2 * half, half).ravel()
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return separation * corners[truth] + rng.normal(size=(side**2, 2)), truth


def chain(n, **strength):
    return Constraints(n, must_link=np.column_stack([np.arange(n - 1), np.arange(1, n)]), **strength)


def messages_of(model, X, links):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, constraints=links)
    return [str(warning.message) for warning in caught if "lost all their rows" in str(warning.message)]


class TestOccupiedClusters:
    def test_needs_a_row_and_a_weight(self):
        weights = np.array([0.5, 0.5 - EMPTY_WEIGHT / 2, EMPTY_WEIGHT / 2])
        found = occupied_clusters(np.array([1, 0, 2]), weights, np.arange(3))
        np.testing.assert_array_equal(found, [True, False, False])

    def test_adds_up_the_components_of_a_cluster(self):
        weights = np.array([0.6, 0.0, 0.0, 0.4])
        found = occupied_clusters(np.array([1, 1]), weights, np.array([0, 0, 1, 1]))
        np.testing.assert_array_equal(found, [True, True])


class TestOmegaIgnored:
    @pytest.mark.parametrize(
        "links", [chain(400, certainty=0.99), Constraints.from_grid((20, 20), certainty=0.9)]
    )
    def test_ignoring_omega_is_blamed_and_the_remedy_works(self, links):
        X, _ = mosaic(0, 20, 1.0)
        model = PPC(4, mixing="ignore", random_state=0)
        (message,) = messages_of(model, X, links)
        assert model.n_occupied_ == len(np.unique(model.labels_)) < 4
        assert message.startswith(f"{4 - model.n_occupied_} of 4 clusters")
        assert f"n_occupied_ is {model.n_occupied_}" in message
        assert 'mixing="ignore" leaves out the normaliser Omega' in message
        assert 'Use mixing="exact" or "fixed"' in message
        assert "start from the fit without links" in message
        for remedy in ("exact", "fixed"):
            mended = PPC(4, mixing=remedy, n_init=1, random_state=0)
            assert messages_of(mended, X, links) == []
            assert mended.n_occupied_ == 4

    def test_learning_the_noise_ignores_omega_too(self):
        X, _ = mosaic(0, 20, 1.0)
        # Shrunk covariances keep their clusters here, and the links are learned to say nothing.
        model = PPC(4, learn_noise=True, shrinkage=0, n_init=1, random_state=0)
        (message,) = messages_of(model, X, chain(400, certainty=0.99))
        assert model.n_occupied_ < 4
        assert "learn_noise counts links as observations" in message

    def test_warned_once_for_several_starts(self):
        X, _ = mosaic(0, 20, 1.0)
        model = PPC(4, mixing="ignore", n_init=3, random_state=0)
        assert len(messages_of(model, X, chain(400, certainty=0.99))) == 1


class TestOtherCauses:
    def test_disjoint_links_that_are_not(self):
        X, _ = mosaic(0, 20, 1.0)
        links = chain(400, certainty=0.9999)
        model = PPC(4, mixing="disjoint", tol=1e-6, max_iter=300, random_state=0)
        (message,) = messages_of(model, X, links)
        assert model.n_occupied_ < 4
        assert "as if no two links shared a row" in message

    @pytest.mark.parametrize("mixing", ["ignore", "fixed", "exact", "disjoint"])
    def test_hard_links_that_leave_too_few_groups(self, mixing):
        X, _ = mosaic(0, 10, 3.0)
        links = Constraints(100, must_link=np.column_stack([np.arange(98), np.arange(1, 99)]))
        (message,) = messages_of(PPC(4, mixing=mixing, n_init=1, random_state=0), X, links)
        assert "Hard must-links join all rows into 2 groups" in message
        assert "Use n_components=2 or less" in message
        assert "Omega" not in message

    @pytest.mark.parametrize("mixing", ["fixed", "exact"])
    def test_links_stronger_than_the_data(self, mixing):
        """Two clusters side by side, every row of one linked to a row of the other."""
        rng = np.random.default_rng(3)
        X = np.concatenate(
            [rng.normal(0, 1, (60, 2)), rng.normal(0.5, 1, (60, 2)), rng.normal(30, 1, (60, 2))]
        )
        links = Constraints(180, must_link=[(i, 60 + j) for i in range(60) for j in (i, (i + 1) % 60)])
        start = {
            "means_init": [[0, 0], [0.5, 0.5], [30, 30]],
            "weights_init": [0.4, 0.3, 0.3],
            "precisions_init": np.tile(np.eye(2), (3, 1, 1)),
        }
        model = PPC(3, mixing=mixing, **start)
        (message,) = messages_of(model, X, links)
        assert model.n_occupied_ == 2
        assert "must-links outweigh what the data say" in message
        assert "Omega is not the cause" in message

    def test_the_data_hold_fewer_clusters(self):
        """The third component shares the rows of the first, which one Gaussian fits: EM wipes it out."""
        rng = np.random.default_rng(1)
        X = np.concatenate([rng.uniform(-1, 1, (40, 1)), rng.uniform(19, 21, (40, 1))])
        start = {
            "means_init": [[0.0], [20.0], [0.5]],
            "weights_init": [0.3, 0.5, 0.2],
            "precisions_init": [[3.0]],
        }
        model = PPC(3, covariance_type="tied", mixing="ignore", tol=1e-9, max_iter=3000, **start)
        (message,) = messages_of(model, X, Constraints(80, must_link=[(0, 1)], certainty=0.9))
        assert model.n_occupied_ == 2
        assert "The links are probably not the cause: only" in message

    def test_a_cluster_that_was_empty_from_the_start_is_counted_without_a_warning(self):
        X, _ = mosaic(1, 10, 6.0)
        start = {
            "means_init": [[0, 0], [6, 6], [-500, -500]],
            "weights_init": np.full(3, 1 / 3),
            "precisions_init": np.tile(np.eye(2), (3, 1, 1)),
        }
        model = PPC(3, **start)
        assert messages_of(model, X, Constraints(100, must_link=[(0, 1)], certainty=0.9)) == []
        assert model.n_occupied_ == 2

    def test_constrained_em(self):
        X, _ = mosaic(0, 10, 3.0)
        model = ConstrainedEM(3, random_state=0)
        (message,) = messages_of(model, X, chain(100))
        assert "into 1 group," in message
        assert model.n_occupied_ == 1


def test_counted_without_links():
    X, _ = mosaic(0, 20, 6.0)
    assert PPC(4, random_state=0).fit(X).n_occupied_ == 4
