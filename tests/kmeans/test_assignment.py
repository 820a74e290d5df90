"""The assignment step against enumeration of all labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.kmeans.assignment import assign_linked, link_costs, violation_costs, weighted_links
from linkwise.kmeans.distortions import make_distortion
from tests.kmeans import kmeans_oracle as oracle
from tests.kmeans.kmeans_cases import COMBINATIONS, random_data, random_links
from tests.repeats import examples, for_seeds


def problem(name, kind, seed, penalty, bound="box"):
    """A small problem where every row is linked, and its tables from the oracle."""
    rng = np.random.default_rng(seed)
    n, k = 6, 3
    X, _ = random_data(rng, name, n, 3, k)
    links = random_links(rng, n, 9)
    distortion = make_distortion(name, kind, k, penalty_bound=bound)
    rows = distortion.rows(X)
    metric = distortion.start_metric(rows)
    if kind == "full":
        root = rng.normal(size=(3, 3))
        metric = root @ root.T + 0.3 * np.eye(3)
    elif kind is not None:
        metric = metric * rng.uniform(0.4, 2.0, size=metric.shape)
    centres = distortion.group_centres(rows, np.arange(n) % k, k)
    weighted = weighted_links(links, 1.5, 0.5)
    seen = oracle.prepared(X, name)
    signed = [
        (tuple(pair), 1.5 * w if w > 0 else 0.5 * w)
        for pair, w in zip(links.pairs, links.weights, strict=True)
    ]
    tables = oracle.link_tables(seen, signed, metric, kind, name, penalty, k, bound)
    unary = oracle.unary_table(seen, centres, metric, kind, name)
    return distortion, rows, metric, centres, weighted, (unary, tables, signed), rng


@pytest.mark.parametrize("penalty", ["distance", "constant"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "kind"), COMBINATIONS)
def test_exact_equals_enumeration(name, kind, seed, penalty):
    distortion, rows, metric, centres, links, tables, rng = problem(name, kind, seed, penalty)
    coupling = link_costs(links, distortion, rows, metric, penalty)
    unary = distortion.distances(rows.take(links.rows), centres, metric)
    answer = assign_linked(links, unary, coupling, "exact", None, rng)
    assert answer.optimal
    assert answer.gap == pytest.approx(0.0, abs=1e-9)
    labels = np.full(6, -1)
    labels[links.rows] = answer.labels
    assert (labels >= 0).all()
    cost = oracle.objective(*tables, labels)
    best = min(oracle.objective(*tables, z) for z in itertools.product(range(3), repeat=6))
    assert cost == pytest.approx(best, rel=1e-9, abs=1e-9)


@for_seeds(20)
@pytest.mark.parametrize("kind", ["diag", "per_cluster"])
def test_costs_of_labels_equal_the_tables(kind, seed):
    distortion, rows, metric, _, links, (_, tables, signed), rng = problem(
        "euclidean", kind, seed, "distance", "diameter"
    )
    coupling = link_costs(links, distortion, rows, metric, "distance")
    labels = rng.integers(3, size=6)
    costs = violation_costs(coupling, links.violated(labels), labels[links.pairs])
    expected = [table[labels[i], labels[j]] for ((i, j), _), table in zip(signed, tables, strict=True)]
    np.testing.assert_allclose(costs, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "icm", "belief_propagation", "lp", "exact"])
def test_never_worse_than_the_previous_labels_and_bounded(method):
    for seed in range(examples(15, 6)):
        distortion, rows, metric, centres, links, tables, rng = problem("euclidean", "diag", seed, "distance")
        coupling = link_costs(links, distortion, rows, metric, "distance")
        unary = distortion.distances(rows.take(links.rows), centres, metric)
        previous = rng.integers(3, size=6)
        answer = assign_linked(links, unary, coupling, method, previous, rng, want_bound=True)
        cost = oracle.objective(*tables, answer.labels)
        assert cost <= oracle.objective(*tables, previous) + 1e-9
        best = min(oracle.objective(*tables, z) for z in itertools.product(range(3), repeat=6))
        assert cost - answer.gap <= best + 1e-6  # the bound is a bound


def test_hard_links_cost_everything_and_weights_multiply():
    links = weighted_links(Constraints(4, [(0, 1), (1, 2)], [(2, 3)], weight=[np.inf, 2.0, 3.0]), 0.0, 2.0)
    distortion = make_distortion("euclidean", None, 2)
    rows = distortion.rows(np.array([[0.0], [0.0], [1.0], [3.0]]))
    np.testing.assert_array_equal(link_costs(links, distortion, rows, None, "constant"), [np.inf, 0.0, -6.0])
    # The hard link joins two equal points: its cost is not 0 times infinity.
    np.testing.assert_array_equal(
        link_costs(links, distortion, rows, None, "distance"), [np.inf, 0.0, -6.0 * 5.0]
    )
