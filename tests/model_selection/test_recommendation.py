"""The recommendation of each situation, with two rules of arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise
from linkwise.model_selection.recommendation import CHOICES, recommend_method

#: Kind of the links, links per row, shares of wrong links. The leaderboard that chose had another protocol
#: than today's, so the choices themselves are no longer compared with its table.
SITUATIONS = {
    "hard, many": ("hard", (0.15, 0.3), (0.0,)),
    "hard, few": ("hard", (0.05,), (0.0,)),
    "soft, sure, many": ("soft", (0.15, 0.3), (0.0,)),
    "soft, sure, few": ("soft", (0.05,), (0.0,)),
    "soft, doubtful, many": ("soft", (0.15, 0.3), (0.1, 0.2)),
    "soft, doubtful, few": ("soft", (0.05,), (0.1, 0.2)),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_measured_situations(situation):
    assert set(CHOICES) == set(SITUATIONS)
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
