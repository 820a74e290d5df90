"""Base rates of certainties: what an answer says about the truth."""

import numpy as np
import pytest

from linkwise.constraints.evidence import base_rate, certainty_weight, truth_weights


def answers(rng, n_pairs, rate, certainty):
    """Truth and signed weights of pairs whose answer is right with these certainties."""
    same = rng.random(n_pairs) < rate
    said = same ^ (rng.random(n_pairs) >= certainty)
    return same, np.where(said, 1.0, -1.0) * certainty_weight(np.broadcast_to(certainty, n_pairs))


@pytest.mark.parametrize("rate", [0.04, 0.1, 0.5, 0.8])
@pytest.mark.parametrize("certainty", [0.6, 0.8, 0.95, 1.0])
def test_weights_are_half_the_log_odds_of_bayes_rule(rate, certainty):
    weights = np.array([1.0, -1.0]) * certainty_weight(np.float64(certainty))
    must = certainty * rate / (certainty * rate + (1 - certainty) * (1 - rate))
    cannot = certainty * (1 - rate) / (certainty * (1 - rate) + (1 - certainty) * rate)
    found = truth_weights(weights, rate)
    for weight, chance in zip(np.abs(found), (must, cannot), strict=True):
        if chance == 1.0:
            assert weight == np.inf
        elif chance > 0.51:
            assert weight == pytest.approx(0.5 * np.log(chance / (1 - chance)))
        else:
            assert 0.0 < weight < 0.05
    np.testing.assert_array_equal(np.sign(found), np.sign(weights))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.6])
def test_the_rate_is_that_of_the_truth_not_of_the_answers(rate):
    rng = np.random.default_rng(0)
    certainty = rng.choice([0.7, 0.85, 0.99], size=20_000)
    same, weights = answers(rng, 20_000, rate, certainty)
    assert abs((weights > 0).mean() - rate) > 0.02 or rate == 0.6
    assert base_rate(weights, 4) == pytest.approx(same.mean(), abs=0.02)


def test_the_rate_is_a_maximum_found_by_search():
    rng = np.random.default_rng(1)
    _, weights = answers(rng, 60, 0.3, rng.choice([0.6, 0.9], size=60))
    rates = np.linspace(0.001, 0.999, 9981)
    right = 1.0 / (1.0 + np.exp(-2.0 * weights))  # P(answer | same), up to a constant of the answer
    likelihood = np.log(np.outer(rates, right) + np.outer(1 - rates, 1 - right)).sum(axis=1)
    prior = 10 * (np.log(rates) / 5 + np.log1p(-rates) * 4 / 5)
    assert base_rate(weights, 5) == pytest.approx(rates[(likelihood + prior).argmax()], abs=2e-4)


def test_calibrated_weights_are_the_share_of_true_answers():
    rng = np.random.default_rng(2)
    same, weights = answers(rng, 100_000, 0.2, 0.85)
    found = truth_weights(weights, base_rate(weights, 5))
    for sign in (1, -1):
        chance = 1.0 / (1.0 + np.exp(-2.0 * np.abs(found[weights * sign > 0][0])))
        right = same[weights * sign > 0] == (sign > 0)
        assert chance == pytest.approx(right.mean(), abs=0.02)


def test_no_links_few_links_and_one_cluster():
    assert base_rate(np.empty(0), 4) == 0.25
    assert 0.25 < base_rate(np.array([2.0]), 4) < 0.35
    assert 0.99 < base_rate(np.array([-1.0, 1.0]), 1) < 1.0
    assert base_rate(np.full(10**4, np.inf), 2) < 1.0
    np.testing.assert_allclose(truth_weights(np.array([np.inf, -np.inf]), 0.1), [np.inf, -np.inf])
