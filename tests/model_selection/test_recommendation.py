"""The recommendation is what half A of the leaderboard chooses, with two rules of arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise
from experiments.framework.tables import read_table
from experiments.leaderboard.choice import SITUATIONS, choice_table
from linkwise.model_selection.recommendation import CHOICES, recommend_method

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_choices_are_those_of_the_leaderboard():
    _, rows = choice_table(read_table(RESULTS / "leaderboard.csv"))
    assert {row[0]: row[1] for row in rows} == CHOICES


@pytest.mark.parametrize("situation", SITUATIONS)
def test_measured_situations(situation):
    kind, shares, flips = SITUATIONS[situation]
    for share in shares:
        for flip in flips:
            chosen = recommend_method(
                200, 10, round(200 * share), kind == "hard", n_clusters=3, wrong_share=flip
            )
            assert chosen == (CHOICES[situation], f"{situation} links")


def test_no_full_covariances_of_too_few_rows():
    assert recommend_method(101, 50, 30, True, n_clusters=2).estimator == "COPKMeans"
    assert recommend_method(101, 50, 0, False, n_clusters=2).estimator == "HMRFKMeans"
    assert recommend_method(102, 50, 0, False, n_clusters=2) == ("PPC", "no links")


@given(
    st.integers(1, 10**6), st.integers(1, 1000), st.integers(0, 10**6), st.booleans(),
    st.integers(1, 50), st.floats(0.0, 0.5),
)  # fmt: skip
def test_every_answer_is_an_estimator_that_suits_the_links(n, d, n_links, hard, n_clusters, wrong_share):
    name, reason = recommend_method(n, d, n_links, hard, n_clusters=n_clusters, wrong_share=wrong_share)
    assert hasattr(linkwise, name)
    assert reason
    if hard and n_links:
        assert name in ("PPC", "ConstrainedEM", "COPKMeans")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 1, True), "n_samples is 0"),
        ((5, 0, 1, True), "n_features is 0"),
        ((5, 2, -1, True), "n_links is -1"),
    ],
)
def test_bad_counts_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        recommend_method(*arguments)


def test_bad_shares_are_named():
    with pytest.raises(ValueError, match=r"wrong_share is 0\.7"):
        recommend_method(10, 2, 3, False, wrong_share=0.7)
    with pytest.raises(ValueError, match="wrong_share is nan"):
        recommend_method(10, 2, 3, False, wrong_share=float("nan"))
