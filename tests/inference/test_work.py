"""Limits of work: counted in entries, kept to, harmless where they are not reached, said where they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.graph import adjacency
from linkwise.graph import colourability as annealing_module
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.exact import junction_tree as junction_module
from linkwise.inference.messages.sweeps import LOGARITHMIC_ENTRY, sweep_work
from linkwise.inference.problem import reduce_field
from tests.inference.oracle import random_field
from tests.repeats import examples


def clique(n_points, n_labels, scale=3.0):
    """Points that all differ."""
    unary = scale * np.random.default_rng(0).normal(size=(n_points, n_labels))
    pairs = list(itertools.combinations(range(n_points), 2))
    return PottsField(unary, pairs, np.full(len(pairs), -np.inf))


def colourable(n_points, n_labels, n_links, seed=0):
    """Random hard links that a hidden labelling keeps."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_labels, size=n_points)
    everything = [p for p in itertools.combinations(range(n_points), 2) if hidden[p[0]] != hidden[p[1]]]
    pairs = [everything[row] for row in rng.choice(len(everything), n_links, replace=False)]
    return PottsField(rng.normal(size=(n_points, n_labels)), pairs, np.full(n_links, -np.inf))


FIELDS = [clique(20, 20), clique(12, 12, 300.0), colourable(60, 3, 180), colourable(60, 4, 260, seed=1)]


def per_sweep(field):
    return sweep_work(reduce_field(field, keep_zero_in_component=True).problem)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("n_sweeps", [1, 7, 40])
def test_belief_propagation_keeps_to_its_limit(field, n_sweeps):
    limit = n_sweeps * per_sweep(field)
    found = marginals(field, "belief_propagation", max_work=limit)
    # One sweep is made in any case, also after plain numbers left their range.
    assert found.details["work"] <= limit + LOGARITHMIC_ENTRY * per_sweep(field)
    assert found.details["limited"] == (not found.converged)
    np.testing.assert_allclose(found.prob.sum(axis=1), 1.0)


@pytest.mark.parametrize("field", FIELDS)
def test_auto_leaves_belief_propagation_where_it_is_too_dear(field):
    poor = marginals(field, max_table=1, max_work=per_sweep(field))
    assert poor.parts == {"mean_field": field.n_points}
    assert poor.details["limited"]
    assert not poor.exact
    labels = poor.prob.argmax(axis=1)
    assert field.score(labels) > -np.inf
    rich, unlimited = marginals(field, max_table=1, max_work=1e12), marginals(field, max_table=1)
    assert rich.parts == unlimited.parts == {"belief_propagation": field.n_points}
    assert not rich.details["limited"]
    np.testing.assert_array_equal(rich.prob, unlimited.prob)


def test_tables_are_counted_and_given_up_beyond_the_limit():
    rng = np.random.default_rng(0)
    for _ in range(examples(50)):
        field = random_field(rng, n=6, n_labels=3, shape="clique", hard=0.0)
        exact = marginals(field)
        assert exact.exact
        assert exact.details["work"] >= 3**6
        assert marginals(field, max_work=exact.details["work"]).exact
        limited = marginals(field, max_work=exact.details["work"] - 1)
        assert not limited.exact
        assert limited.details["limited"]


def test_trees_need_no_limit():
    field = random_field(np.random.default_rng(0), n=7, n_labels=2, shape="tree", hard=0.0)
    assert marginals(field, max_work=1.0).exact


def test_labels_of_a_dense_field_are_not_waited_for(monkeypatch):
    """Few sweeps, and the polish finds labels that keep the links."""
    dense, sparse = clique(60, 60), colourable(60, 3, 60)
    monkeypatch.setattr("linkwise.inference.auto._HARD_WORK", 1.0)
    found = best_labels(dense, max_table=1, random_state=0)
    assert found.n_iter <= 1000 * 60 * 60 // per_sweep(dense)
    assert found.score > -np.inf
    # Where links are as many as points, the limit is above the 300 sweeps of the engine.
    assert 1000 * sparse.unary.size / per_sweep(sparse) > 300


def test_exact_refuses_before_it_starts():
    with pytest.raises(InferenceBudgetExceeded) as refused:
        marginals(clique(200, 200), "exact")
    assert refused.value.width >= 199 or 200.0 ** (refused.value.width + 1) > 2**22


def test_portions_of_tables_give_the_same_numbers(monkeypatch):
    """Kernels run in portions so that Ctrl-C gets through between them."""
    rng = np.random.default_rng(1)
    fields = [random_field(rng, n=6, n_labels=3, shape="two_parts", hard=0.0) for _ in range(30)]
    whole = [(marginals(field, "exact"), best_labels(field, "exact")) for field in fields]
    monkeypatch.setattr(junction_module, "_ENTRIES_AT_ONCE", 1)
    for field, (prob, labels) in zip(fields, whole, strict=True):
        np.testing.assert_array_equal(marginals(field, "exact").prob, prob.prob)
        np.testing.assert_array_equal(best_labels(field, "exact").labels, labels.labels)


def test_portions_of_annealing_give_the_same_colours(monkeypatch):
    field = colourable(80, 4, 300)
    graph = adjacency(80, reduce_field(field, keep_zero_in_component=True).problem.pairs)
    whole = annealing_module.anneal_colouring(graph, 4, n_moves=200_000)
    monkeypatch.setattr(annealing_module, "_STEPS_AT_ONCE", 1)
    np.testing.assert_array_equal(annealing_module.anneal_colouring(graph, 4, n_moves=200_000), whole)
