"""Section 4.1 of the CPPC paper: groupings, criteria and claims are what the text says."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.classes import groupings as cppc_groupings
from experiments.classes import readings as cppc
from experiments.classes.legend_scores import legend_criteria
from linkwise.datasets import make_eleven_gaussians
from linkwise.metrics import belief_adherence


def printed_criterion(X, y, clusters, beliefs, weight):
    """Eq. 9-15 as printed, pair by pair where the library counts."""
    n = len(X)
    residual = 0.0
    for k in np.unique(clusters):
        rows = X[clusters == k]
        covariance = np.cov(rows.T, bias=True)
        for row in rows - rows.mean(axis=0):
            square = row @ np.linalg.solve(covariance, row)
            density = np.exp(-0.5 * square) / np.sqrt(np.linalg.det(2.0 * np.pi * covariance))
            residual += (1.0 - density) ** 2
    classes = np.unique(y)
    distance = 0.0
    for a, first in enumerate(classes):
        for b, second in enumerate(classes):
            same = np.equal.outer(clusters[y == first], clusters[y == second]).astype(float)
            if a == b:
                same = same[np.triu_indices(len(same), k=1)]
            distance += (beliefs[a, b] - (2.0 * same.mean() - 1.0)) ** 2
    adherence = distance / (4 * len(classes) ** 2)
    fit = (1.0 - weight) * n * np.log(residual / n)
    return fit + weight * n * np.log(adherence) + len(np.unique(clusters)) * np.log(n)


@pytest.mark.parametrize("weight", [0.2, 0.75])
def test_fixed_groupings_are_scored_as_printed(weight):
    X, y, beliefs = make_eleven_gaussians(random_state=3)
    rows = cppc_groupings.cppc_fixed_groupings(3, weight)
    assert [row["method"] for row in rows] == list(cppc_groupings.GROUPINGS)
    values = [
        printed_criterion(X, y, cppc_groupings.grouped(X, y, name), beliefs, weight)
        for name in cppc_groupings.GROUPINGS
    ]
    assert [row["cbic_paper"] for row in rows] == pytest.approx(values, rel=1e-5)
    assert [row["lowest_paper"] for row in rows] == [float(value == min(values)) for value in values]
    assert sum(row["lowest"] for row in rows) == 1.0


def test_groupings_are_those_of_their_names():
    X, y, _ = make_eleven_gaussians(random_state=0)
    nearest = np.where(X[:, 0] > -3.5, "b", "a")
    for name in list(cppc_groupings.GROUPINGS)[:4]:
        clusters = cppc_groupings.grouped(X, y, name)
        for group in name.replace("5-9", "5,6,7,8,9").replace("{", "").split("} "):
            members = np.zeros(len(y), dtype=bool)
            for part in group.strip("}").split(","):
                members |= (y == int(part[0])) & ((nearest == part[1:]) if part[1:] else True)
            own = np.unique(clusters[members])
            assert len(own) == 1
            assert not np.isin(clusters[~members], own).any()


def test_likelihood_of_a_legend_is_that_of_its_mixture():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)) * [1, 2, 3], np.repeat([0, 1, 2], 30)
    legend = np.where(y == 2, 7, y)
    density = sum(
        (legend == k).mean()
        * multivariate_normal(X[legend == k].mean(axis=0), np.cov(X[legend == k].T, bias=True)).pdf(X)
        for k in (0, 1, 7)
    )
    criteria = legend_criteria(X, y, legend, 2.0 * np.eye(3) - 1.0, 0.0)
    n_parameters = 3 * (3 + 6) + 2
    bic = -2.0 * np.log(density).sum() + n_parameters * np.log(90)
    assert criteria["bic"] == pytest.approx(bic, rel=1e-6)
    assert criteria["cbic"] == pytest.approx(bic, rel=1e-6)


class FakeFit:
    """A CPPC that returns prepared clusters and counts how it was asked."""

    asked: list[dict] = []  # noqa: RUF012

    def __init__(self, n_components, **settings):
        self.settings = {"n_components": n_components, **settings}

    def get_params(self):
        return dict(self.settings)

    def fit(self, X, y):
        FakeFit.asked.append(self.settings)
        k = self.settings["n_components"]
        names = list(cppc_groupings.GROUPINGS)
        grouping = {4: names[0], 5: names[2], 6: names[3]}[k]
        self.labels_ = np.unique(cppc_groupings.grouped(X, y, grouping), return_inverse=True)[1]
        self.n_occupied_ = k
        self.beliefs_ = self.settings["beliefs"]
        self.separability_ = np.zeros((9, 9))
        self.adherence_ = belief_adherence(self.beliefs_, self.separability_)
        self.criteria_ = {"cbic_paper": -k, "cbic": abs(k - 5), "bic_paper": k, "bic": abs(k - 5)}
        return self


@pytest.mark.parametrize(
    ("weight", "met"), [(0.2, {"cbic_paper": 1.0, "cbic": 0.0}), (0.75, {"cbic_paper": 0.0, "cbic": 1.0})]
)
def test_claims_need_both_k_and_clusters(monkeypatch, weight, met):
    FakeFit.asked.clear()
    monkeypatch.setattr(cppc, "CPPC", FakeFit)
    rows = {row["method"]: row for row in cppc.cppc_readings(1, "printed / 100", weight, most=6, fewest=4)}
    assert {name: rows[name]["k"] for name in ("cbic_paper", "cbic", "bic_paper")} == {
        "cbic_paper": 6, "cbic": 5, "bic_paper": 4,
    }  # fmt: skip
    assert {name: rows[name]["claim_met"] for name in met} == met
    assert rows["bic_paper"]["clusters"] == "{1} {2,3} {4} {5,6,7,8,9}"
    assert "claim_met" not in rows["bic"]
    assert len(FakeFit.asked) == 3  # starts are not random there: one fit for each K
    for settings in FakeFit.asked:
        assert settings["confidence"] == pytest.approx(0.01 * weight)
        assert settings["criterion_weight"] == weight
        assert settings["normalize"] == "none"
        assert (settings["init"], settings["shrinkage"]) == ("paper", 0)


def test_right_clusters_with_another_k_are_not_the_claim(monkeypatch):
    class OneMore(FakeFit):
        def fit(self, X, y):
            self.settings["n_components"] -= 1
            super().fit(X, y)
            self.settings["n_components"] += 1
            return self

    monkeypatch.setattr(cppc, "CPPC", OneMore)
    row = cppc.cppc_readings(0, "per class", 0.2, most=7, fewest=7)[0]
    assert (row["k"], row["grouping_met"], row["claim_met"]) == (7, 1.0, 0.0)


def test_belief_weight_in_the_adherence():
    """The criterion with lambda C is Eq. 15 with that matrix in G and nothing else changed."""
    X, y, beliefs = make_eleven_gaussians(random_state=0)
    model = cppc._fit(cppc.CPPC(4, beliefs=beliefs, criterion_weight=0.2), X, y, [0])
    scaled = 0.2 * beliefs
    expected = printed_criterion(X, y, model.labels_, scaled, 0.2)
    plain = printed_criterion(X, y, model.labels_, beliefs, 0.2)
    found = cppc._criterion(model, "cbic_paper, lambda C", 0.2) - model.criteria_["cbic_paper"]
    assert found == pytest.approx(expected - plain, rel=1e-6)


def test_printed_weights_leave_four_clusters():
    rows = cppc.cppc_readings(0, "as printed", 0.2, fewest=4, most=7)
    assert {row["occupied"] for row in rows} == {4}
    assert all(row["claim_met"] == 0.0 for row in rows[:3])


def test_plain_em_is_judged_by_bic_alone():
    rows = cppc.cppc_readings(0, "no beliefs", 0.2, fewest=9, most=9)
    assert [row["method"] for row in rows] == ["bic_paper", "bic"]
