"""Fields that share links give the numbers of fields that do not, and their links are analysed once."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.exceptions import InfeasibleConstraints
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference import auto as auto_engine
from linkwise.inference.exact import junction_tree as junction_plan
from tests.repeats import examples, for_seeds


def random_links(rng, n, m, n_labels):
    """Links of every kind, with repeated pairs, couplings of zero and hard must-links."""
    pairs = np.array([rng.choice(n, size=2, replace=False) for _ in range(m)])
    coupling = rng.normal(scale=2.0, size=m)
    coupling[rng.random(m) < 0.1] = 0.0
    coupling[rng.random(m) < 0.1] = np.inf
    return pairs, coupling


def assert_same(found, expected):
    for name in ("prob", "agreement"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("log_partition", "exact", "converged", "n_iter", "method", "log_partition_kind", "parts"):
        assert getattr(found, name) == getattr(expected, name), name


def assert_same_numbers(found, expected):
    """As ``assert_same``, where a log partition may be NaN."""
    np.testing.assert_array_equal(found.prob, expected.prob)
    np.testing.assert_array_equal(found.agreement, expected.agreement)
    np.testing.assert_equal(found.log_partition, expected.log_partition)


@for_seeds(examples(15, 6))
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("auto", {}),
        ("auto", {"max_table": 8}),
        ("exact", {}),
        ("belief_propagation", {"max_iter": 20}),
        ("mean_field", {}),
    ],
)
def test_same_numbers_as_without_sharing(seed, method, options):
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, 12)), int(rng.integers(2, 4))
    pairs, coupling = random_links(rng, n, int(rng.integers(1, 2 * n)), n_labels)
    links = PottsField(np.zeros((n, 1)), pairs, coupling)
    for _ in range(3):
        unary = rng.normal(scale=2.0, size=(n, n_labels))
        shared = marginals(links.with_unary(unary), method, 0, **options)
        assert_same(shared, marginals(PottsField(unary, pairs, coupling), method, 0, **options))


def test_numbers_of_labels_and_labellings_are_kept_apart():
    rng = np.random.default_rng(0)
    pairs, coupling = random_links(rng, 12, 20, 3)
    links = PottsField(np.zeros((12, 1)), pairs, coupling)
    for n_labels in (2, 3, 2, 3):
        unary = rng.normal(size=(12, n_labels))
        alone = PottsField(unary, pairs, coupling)
        found = marginals(links.with_unary(unary), "belief_propagation")
        assert_same(found, marginals(alone, "belief_propagation"))
        np.testing.assert_array_equal(
            best_labels(links.with_unary(unary), random_state=0).labels,
            best_labels(alone, random_state=0).labels,
        )


def test_costs_per_label():
    rng = np.random.default_rng(1)
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3)]
    coupling = rng.normal(size=(4, 3))
    links = PottsField(np.zeros((4, 3)), pairs, coupling)
    for _ in range(3):
        unary = rng.normal(size=(4, 3))
        assert_same(marginals(links.with_unary(unary)), marginals(PottsField(unary, pairs, coupling)))
    with pytest.raises(ValueError, match="the links need"):
        links.with_unary(np.zeros((4, 2)))


def test_links_are_analysed_once(monkeypatch):
    plans = []

    def counted(problem, max_table):
        plans.append(problem)
        return junction_plan.plan(problem, max_table)

    monkeypatch.setattr(auto_engine, "plan", counted)
    ring = [(i, (i + 1) % 6) for i in range(6)]
    links = PottsField(np.zeros((6, 1)), ring, np.ones(6))
    for step in range(5):
        marginals(links.with_unary(np.full((6, 3), float(step))))
    assert len(plans) == 1
    marginals(PottsField(np.zeros((6, 3)), ring, np.ones(6)))
    assert len(plans) == 2


def test_does_not_keep_the_scores():
    links = PottsField(np.zeros((3, 1)), [(0, 1)], [1.0])
    marginals(links.with_unary(np.ones((3, 2))))
    for reduction in links.link_cache.values():
        assert reduction.problem.unary.size == 0
        assert reduction.problem.unary.base is None


def test_the_graph_is_freed_and_made_again():
    """Message passing keeps its own layout; engines that come later need the graph once more."""
    rng = np.random.default_rng(2)
    ring = np.array([(i, (i + 1) % 6) for i in range(6)])
    coupling = rng.normal(size=6)
    links = PottsField(np.zeros((8, 1)), ring + 1, coupling)
    for method in ("belief_propagation", "auto", "mean_field", "belief_propagation", "gibbs", "exact"):
        unary = rng.normal(size=(8, 3))
        options = {"max_table": 1} if method == "auto" else {}
        alone = marginals(PottsField(unary, ring + 1, coupling), method, 0, **options)
        assert_same_numbers(marginals(links.with_unary(unary), method, 0, **options), alone)
        (reduction,) = links.link_cache.values()
        kept = [reduction.problem.cache, reduction.problem.cache["linked part"].cache]
        if method in ("belief_propagation", "auto"):
            assert all("graph" not in cache for cache in kept)


def test_refuses_scores_of_other_points_and_forbidden_groups():
    links = PottsField(np.zeros((3, 1)), [(0, 1)], [np.inf])
    marginals(links.with_unary(np.zeros((3, 2))))
    with pytest.raises(ValueError, match=r"unary has shape \(2, 2\)"):
        links.with_unary(np.zeros((2, 2)))
    with pytest.raises(InfeasibleConstraints):
        marginals(links.with_unary([[0.0, -np.inf], [-np.inf, 0.0], [0.0, 0.0]]))
