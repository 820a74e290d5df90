"""Links and likelihood choose K together: the rule on scripted labels, and on data of known K."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs

from linkwise import PPC, Constraints, PCKMeans
from linkwise.displays import CriterionDisplay
from linkwise.exceptions import InfeasibleConstraints
from linkwise.model_selection import sweep_components
from linkwise.model_selection.held_out import HeldOut, corrected_error, hold_out


class Labels(BaseEstimator):
    """Labels that are a known function of K; ``likelihood`` gives the BIC of each K, None has none."""

    def __init__(self, n_clusters=1, *, labels=None, likelihood=None):
        self.n_clusters = n_clusters
        self.labels = labels
        self.likelihood = likelihood

    def fit(self, X, y=None, *, constraints=None):
        self.labels_ = self.labels[self.n_clusters]
        return self

    def __getattr__(self, name):
        if name == "bic" and self.__dict__.get("likelihood") is not None:
            return lambda X: self.likelihood[self.n_clusters]
        raise AttributeError(name)


Y = np.repeat([0, 1, 2], 40)
X = np.zeros((120, 2))
LINKS = Constraints.sample(Y, 150, overlap=True, certainty=0.95, random_state=0)
MERGED = np.where(Y == 2, 1, Y)
SPLIT = np.where((Y == 0) & (np.arange(120) % 2 == 0), 3, Y)
#: A fourth cluster of rows without links, which links cannot tell from the truth.
ASIDE = Y.copy()
ASIDE[np.setdiff1d(np.arange(120), LINKS.pairs)[:3]] = 3


def sweep(fourth, bic, **options):
    labels = {2: MERGED, 3: Y, 4: fourth, 5: np.arange(120)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sweep_components(
            Labels(labels=labels, likelihood=bic), X, n_components=range(2, 6), constraints=LINKS,
            random_state=0, **options,
        )  # fmt: skip


class TestRule:
    def test_links_exclude_what_they_contradict(self):
        found = sweep(SPLIT, {2: 4.0, 3: 3.0, 4: 2.0, 5: 1.0})
        assert found.criterion == "held_out_links+bic"
        assert found.plausible == (3,)
        assert found.best_n_components == 3
        assert found.table["mean"][1] == 0.0
        assert found.table["mean"][3] == 0.5  # all must-links broken, no cannot-link

    @pytest.mark.parametrize(("bic", "chosen"), [({3: 1.0, 4: 2.0}, 3), ({3: 2.0, 4: 1.0}, 4)])
    def test_likelihood_decides_among_the_plausible(self, bic, chosen):
        found = sweep(ASIDE, {2: 0.0, 5: 0.0, **bic})
        assert found.plausible == (3, 4)
        assert found.best_n_components == chosen
        assert found.table["second"].tolist() == [0.0, bic[3], bic[4], 0.0]
        assert "lowest bic of the plausible 3, 4" in str(found)

    def test_without_likelihood_the_fewest_broken_links(self):
        found = sweep(ASIDE, None)
        assert found.criterion == "held_out_links"
        assert (found.plausible, found.best_n_components) == ((3, 4), 3)
        assert "lowest mean at 3" in repr(found)

    def test_named(self):
        bic = {2: 0.0, 3: 1.0, 4: 2.0, 5: 3.0}
        assert sweep(ASIDE, bic, criterion="bic").best_n_components == 2
        assert sweep(ASIDE, bic, criterion="held_out_links+bic", n_repeats=1).best_n_components == 3

    def test_without_links_of_both_kinds_the_likelihood_alone(self):
        for links in (None, Constraints(120, LINKS.must_link), Constraints(120, cannot_link=[(0, 119)])):
            found = sweep_components(
                Labels(labels={2: MERGED, 3: Y, 4: SPLIT}, likelihood={2: 2.0, 3: 1.0, 4: 3.0}), X,
                n_components=[2, 3, 4], constraints=links, n_repeats=2,
            )  # fmt: skip
            assert (found.criterion, found.best_n_components) == ("bic", 3)

    def test_links_that_follow_from_the_others_leave_the_likelihood(self):
        complete = Constraints(120, [(0, 1), (1, 2), (0, 2)], [(0, 119), (1, 119), (2, 119)])
        found = sweep_components(
            Labels(labels={2: MERGED, 3: Y}, likelihood={2: 2.0, 3: 1.0}), X, n_components=[2, 3],
            constraints=complete, n_repeats=5, random_state=0,
        )  # fmt: skip
        assert found.criterion == "bic"

    def test_both_curves_can_be_drawn(self):
        bic = {2: 4.0, 3: 3.0, 4: 2.0, 5: 1.0}
        found = sweep(SPLIT, bic)
        for name, means in (("held_out_links", found.table["mean"]), ("bic", list(bic.values()))):
            display = CriterionDisplay.from_sweep(found, criterion=name)
            np.testing.assert_allclose(display.line_.get_ydata(), means)
            assert display.chosen_ == 3
        assert found.plot().criterion == "held_out_links"
        with pytest.raises(ValueError, match="criterion must be one of held_out_links, bic, got 'icl'"):
            CriterionDisplay.from_sweep(found, criterion="icl")


class TestHeldOut:
    def test_error_of_one_cluster_and_of_single_rows_is_a_half(self):
        held = hold_out(LINKS, 0)
        assert held.error(np.zeros(120, dtype=int)) == held.error(np.arange(120)) == 0.5
        assert held.error(Y) == 0.0

    def test_error_by_hand(self):
        held = HeldOut(LINKS, np.array([[0, 1], [0, 2], [1, 2]]), np.array([[0, 3], [1, 3]]))
        assert held.error(np.array([0, 0, 1, 0])) == pytest.approx(0.5 * (2 / 3 + 1.0))

    def test_corrected_error(self):
        differences = np.array([0.1, 0.3, 0.2, 0.0])
        variance = sum((d - 0.15) ** 2 for d in differences) / 3
        assert corrected_error(differences) == pytest.approx((variance * (1 / 4 + 0.2 / 0.8)) ** 0.5)
        assert corrected_error(np.array([0.4])) == 0.0


class TestInfeasibleNumbers:
    clique = Constraints(120, LINKS.must_link, np.vstack([LINKS.cannot_link, [(0, 40), (40, 80), (0, 80)]]))

    def test_are_left_out_with_a_warning(self):
        with pytest.warns(UserWarning, match="hard links need more than K = 1, 2 clusters; left out"):
            found = sweep_components(
                Labels(labels={3: Y, 4: SPLIT}), X, n_components=range(1, 5), constraints=self.clique,
                n_repeats=3, random_state=0,
            )  # fmt: skip
        assert found.table["n_components"].tolist() == [3, 4]
        assert (found.best_n_components, found.at_edge) == (3, None)

    def test_are_refused_if_all_are(self):
        with pytest.raises(InfeasibleConstraints):
            sweep_components(Labels(), X, n_components=[1, 2], constraints=self.clique)


def balanced_links(y, n_each, rng):
    """Must-links within classes and cannot-links between them, no row twice, as many of each kind."""
    rows = [rng.permutation(np.flatnonzero(y == name)) for name in np.unique(y)]
    share = n_each // len(rows)
    must = [mine[2 * i : 2 * i + 2] for mine in rows for i in range(share)]
    cannot = [
        (rows[a][2 * share + i], rows[a - 1][2 * share + i + share])
        for a in range(len(rows))
        for i in range(share)
    ]
    return Constraints(len(y), must, cannot, certainty=0.95)


class TestKnownNumbers:
    """Data on which one criterion alone errs."""

    def sweep(self, estimator, X, links, n_repeats=3, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sweep_components(
                estimator,
                X,
                n_components=range(2, 5),
                constraints=links,
                n_repeats=n_repeats,
                random_state=0,
                **options,
            )

    def test_classes_that_overlap(self):
        """BIC takes two Gaussians 2.9 standard deviations apart for one; links know better."""
        centres = [[0.0, 0.0], [2.9, 0.0], [9.0, 0.0]]
        X, y = make_blobs(120, centers=centres, cluster_std=1.0, random_state=0)
        links = balanced_links(y, 30, np.random.default_rng(0))
        mixture = PPC(n_init=1, covariance_type="diag")
        assert self.sweep(mixture, X, links, criterion="bic").best_n_components == 2
        assert self.sweep(mixture, X, links).best_n_components == 3

    def test_plain_blobs(self):
        X, y = make_blobs(120, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.9, random_state=0)
        links = balanced_links(y, 24, np.random.default_rng(0))
        for model in (PPC(n_init=1, covariance_type="spherical"), PCKMeans(n_init=2)):
            assert self.sweep(model, X, links, n_repeats=2).best_n_components == 3
