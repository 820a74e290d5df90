"""Evidence of groupings against a direct sum over rows and answers; divisions of joined groups."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active import evidence as module
from linkwise.active.evidence import (
    Evidence,
    asked_landmarks,
    divide,
    log_total,
    merge_chances,
    quick_operators,
    unite,
)
from linkwise.active.knowledge import Answers
from linkwise.active.landscape import survey
from linkwise.active.predictors import ridge, shares
from tests.repeats import examples


def answers_of(pairs, says, certainty=np.nan):
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Answers(pairs, np.array(says, dtype=np.int8), np.full(len(pairs), certainty), ("",) * len(pairs))


def blobs(seed, centres, n=12, spread=0.3):
    rng = np.random.default_rng(seed)
    centres = np.array(centres, dtype=float)
    y = np.repeat(np.arange(len(centres)), n)
    return centres[y] + spread * rng.normal(size=(len(y), centres.shape[1])), y


def random_case(seed):
    """Rows, answers about some of them, and a grouping in which some asked rows are open."""
    rng = np.random.default_rng(seed)
    landscape = survey(rng.normal(size=(25, 2)), seed=seed)
    pairs = np.array([rng.choice(25, 2, replace=False) for _ in range(14)])
    answers = answers_of(pairs, rng.choice([-1, 1], size=14))
    asked = asked_landmarks(landscape, answers)
    label = rng.integers(-1, 3, size=len(asked.places))
    label[:3] = [0, 1, 2]
    return landscape, asked, label, asked.strength(0.05)


def slow_value(landscape, asked, label, strength, alpha):
    """Row by row, with a regression of its own for each row that has a group."""
    places, t, g = asked.places, len(label), int(label.max()) + 1
    total = 0.0
    founded = set()
    for i in range(t):
        others = [j for j in range(t) if label[j] >= 0 and j != i]
        rows = places[others]
        prob = np.zeros(g)
        for k in module._QUICK:
            kernel = landscape.kernels[k]
            dual = np.linalg.solve(
                kernel[np.ix_(rows, rows)] + module._PENALTY * np.eye(len(rows)), np.eye(g)[label[others]]
            )
            one = np.maximum(kernel[places[i], rows] @ dual, 1e-3)
            prob += one / one.sum() / len(module._QUICK)
        s = sum(landscape.nearness[places[i], row] for row in rows) + module.LEAST_SIMILARITY
        new = alpha / (alpha + s)
        if label[i] >= 0 and label[i] not in founded:
            founded.add(label[i])
            before = [j for j in others if j < i]
            s = sum(landscape.nearness[places[i], places[j]] for j in before) + module.LEAST_SIMILARITY
            total += np.log(alpha / (alpha + s))
        elif label[i] >= 0:
            total += np.log(prob[label[i]] * (1.0 - new))
        else:
            terms = prob * (1.0 - new)
            for (a, b), value in zip(asked.pairs, strength, strict=True):
                other = b if a == i else a if b == i else None
                if other is not None and label[other] >= 0:
                    terms[label[other]] *= np.exp(value)
            total += np.log(terms.sum() + new)
    for (a, b), value in zip(asked.pairs, strength, strict=True):
        if label[a] >= 0 and label[a] == label[b]:
            total += value
    return total


@pytest.mark.parametrize("seed", range(examples(20)))
def test_value_against_a_sum_over_rows_and_answers(seed):
    landscape, asked, label, strength = random_case(seed)
    found = Evidence(asked, label >= 0, strength, 0.4).value(label)
    assert found == pytest.approx(slow_value(landscape, asked, label, strength, 0.4), abs=1e-8)


def test_operators_make_the_predictions_of_the_regression():
    landscape, asked, label, _ = random_case(3)
    known = np.flatnonzero(label >= 0)
    targets = np.eye(3)[label[known]]
    for k, operator in zip(module._QUICK, quick_operators(asked, label >= 0), strict=True):
        kernel = landscape.kernels[k][np.ix_(asked.places, asked.places)]
        penalty = np.full(len(known), module._PENALTY)
        (dual,), (held_out,) = ridge(kernel[None, known[:, None], known], targets, penalty)
        everywhere = shares(kernel[:, known] @ dual)
        everywhere[known] = held_out
        assert shares(operator @ targets) == pytest.approx(everywhere, abs=1e-10)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_moves_never_lose_evidence_or_groups(seed):
    _, asked, label, strength = random_case(seed)
    evidence = Evidence(asked, label >= 0, strength, 0.4)
    moved, value = evidence.improved(label)
    assert value >= evidence.value(label)
    assert value == evidence.value(moved)
    assert np.array_equal(moved < 0, label < 0)
    assert set(moved[moved >= 0]) == {0, 1, 2}


@pytest.mark.parametrize("seed", range(examples(20)))
def test_values_of_unions_are_those_of_the_united_groups(seed):
    _, asked, label, strength = random_case(seed)
    evidence = Evidence(asked, label >= 0, strength, 0.4)
    found = evidence.merged_values(label)
    for a, b in [(1, 0), (2, 0), (2, 1)]:
        united = np.where(label == a, b, label)
        expected = evidence.value(united - (united > a))
        assert found[a, b] == pytest.approx(expected, abs=1e-9)
    assert not np.triu(found).any()


@pytest.mark.parametrize("seed", range(10))
def test_a_wrong_answer_that_joins_two_clusters_is_cut(seed):
    """Chains of right answers inside two clusters, and one wrong "same" between them; some rows say so."""
    X, _ = blobs(seed, [[0, 0], [6, 0]])
    chain = [(i, i + 1) for i in range(5)] + [(i, i + 1) for i in range(12, 17)]
    pairs = [*chain, (2, 14), (8, 13), (9, 16), (10, 15), (20, 3), (7, 12), (21, 4)]
    answers = answers_of(pairs, [1] * 11 + [-1] * 6)
    landscape = survey(X, seed=seed)
    asked = asked_landmarks(landscape, answers)
    label = np.where(np.isin(asked.places, [7, 8, 9, 10, 20, 21]), -1, 0)
    evidence = Evidence(asked, label >= 0, asked.strength(0.02), 0.3)
    divided, _ = divide(evidence, label, most=10)
    first = set(asked.places[divided == divided[0]].tolist())
    assert first == set(range(6))
    assert divided.max() == 1
    # Not if there are no more clusters than groups.
    assert np.array_equal(divide(evidence, label, most=1)[0], label)


@pytest.mark.parametrize("seed", range(10))
def test_one_cluster_is_not_divided(seed):
    X, _ = blobs(seed, [[0, 0], [6, 0]])
    chain = [(i, i + 1) for i in range(11)] + [(11, 12)]
    answers = answers_of(chain, [1] * 11 + [-1])
    landscape = survey(X, seed=seed)
    asked = asked_landmarks(landscape, answers)
    label = np.where(asked.places == 12, 1, 0)
    evidence = Evidence(asked, label >= 0, asked.strength(0.02), 0.3)
    divided, refused = divide(evidence, label, most=10)
    assert np.array_equal(divided, label)
    for one in refused:
        assert one.chance < 0.5
        both = np.concatenate([one.rows, one.others])
        assert sorted(both.tolist()) == list(range(12))


def test_merge_chances():
    _, asked, label, strength = random_case(1)
    evidence = Evidence(asked, label >= 0, strength, 0.4)
    chance = merge_chances(evidence, label)
    assert np.array_equal(chance, chance.T)
    assert not chance.diagonal().any()
    one = np.where(label == 2, 0, label)  # groups 0 and 2 are one
    odds = np.exp(evidence.value(one) - evidence.value(label))
    assert chance[0, 2] == pytest.approx(odds / (1.0 + odds))


def two_halves(seed, pairs, says):
    """Evidence of two groups with six rows each of one cluster, and a third group of another cluster."""
    X, _ = blobs(seed, [[0, 0], [6, 0]])
    inside = [(i, i + 1) for i in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14)]
    answers = answers_of([*inside, (12, 0), (12, 6), *pairs], [1] * len(inside) + [-1, -1, *says])
    asked = asked_landmarks(survey(X, seed=seed), answers)
    label = np.select([asked.places < 6, asked.places < 12], [0, 1], 2)
    return Evidence(asked, label >= 0, asked.strength(0.05), 0.1), label


@pytest.mark.parametrize("seed", range(5))
def test_two_groups_that_are_one_are_united(seed):
    """As many answers "same" as "different" between them, and rows that are alike."""
    evidence, label = two_halves(seed, [(2, 8), (3, 9)], [1, -1])
    united, unions, chance = unite(evidence, label)
    assert np.array_equal(united, np.where(label == 2, 1, 0))
    (one,) = unions
    assert one.group == 0
    assert one.chance == pytest.approx(1.0 - merge_chances(evidence, label)[0, 1])
    assert set(one.rows.tolist()) == set(range(6))
    assert set(one.others.tolist()) == set(range(6, 12))
    assert chance.shape == (2, 2)
    assert chance.max() < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_alike_are_not_united_against_the_answers(seed):
    """One answer "different" speaks against all rows: whether it is right is asked, not decided."""
    evidence, label = two_halves(seed, [(2, 8)], [-1])
    assert merge_chances(evidence, label)[0, 1] > 0.5
    united, unions, chance = unite(evidence, label)
    assert united is label
    assert not unions
    assert chance[0, 1] == chance[1, 0] == 0.5


def test_logarithm_of_a_sum():
    scores = np.array([[0.0, np.log(3.0)], [-2000.0, -2000.0], [5.0, -np.inf]])
    assert log_total(scores) == pytest.approx([np.log(4.0), -2000.0 + np.log(2.0), 5.0])
