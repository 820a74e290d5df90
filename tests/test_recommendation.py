"""The recommendation is the table of its docstring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise
from linkwise.recommendation import recommend_method


@pytest.mark.parametrize(
    ("links_per_row", "hard", "wrong_share", "expected"),
    [
        (0.15, True, 0.0, "ConstrainedEM"),
        (0.05, True, 0.0, "COPKMeans"),
        (0.3, False, 0.0, "ConstrainedSpectralClustering"),
        (0.05, False, 0.0, "MPCKMeans"),
        (0.3, False, 0.1, "MPCKMeans"),
        (0.05, False, 0.2, "PCKMeans"),
    ],
)
def test_measured_situations(links_per_row, hard, wrong_share, expected):
    n_links = round(200 * links_per_row)
    assert recommend_method(200, 10, n_links, hard, n_clusters=3, wrong_share=wrong_share) == expected


def test_no_full_covariances_of_too_few_rows():
    assert recommend_method(100, 50, 30, True, n_clusters=2) == "COPKMeans"
    assert recommend_method(102, 50, 30, True, n_clusters=2) == "ConstrainedEM"


@given(
    st.integers(1, 10**6), st.integers(1, 1000), st.integers(0, 10**6), st.booleans(),
    st.integers(1, 50), st.floats(0.0, 0.5),
)  # fmt: skip
def test_every_answer_is_an_estimator_that_suits_the_links(n, d, n_links, hard, n_clusters, wrong_share):
    name = recommend_method(n, d, n_links, hard, n_clusters=n_clusters, wrong_share=wrong_share)
    assert hasattr(linkwise, name)
    assert (name in ("ConstrainedEM", "COPKMeans")) == hard


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
