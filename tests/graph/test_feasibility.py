from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.graph import check_feasibility
from tests.graph.oracle import (
    complete,
    components,
    cycle,
    has_labelling,
    mycielski,
    planted_pairs,
    random_links,
    satisfies,
)
from tests.repeats import LONG, examples, share


def hard(pairs, weights):
    must = [tuple(pair) for pair in pairs[weights == np.inf].tolist()]
    cannot = [tuple(pair) for pair in pairs[weights == -np.inf].tolist()]
    return must, cannot


def check_answer(n, pairs, weights, n_clusters, found):
    """What is claimed is true: the labels satisfy the links, the witness cannot be satisfied."""
    must, cannot = hard(pairs, weights)
    if found.status == "feasible":
        assert found.witness is None
        assert found.labels.shape == (n,)
        assert found.labels.dtype == np.int64
        assert np.all((found.labels >= 0) & (found.labels < n_clusters))
        assert satisfies(found.labels, must, cannot)
    elif found.status == "infeasible":
        assert found.labels is None
        witness = found.witness
        assert set(witness.must_link) <= set(must)
        assert set(witness.cannot_link) <= set(cannot)
        assert len(set(witness.cannot_link)) == len(witness.cannot_link)
        assert list(witness.must_link) == sorted(set(witness.must_link))
        assert set(witness.points) == {
            end for link in witness.must_link + witness.cannot_link for end in link
        }
        assert not has_labelling(witness.must_link, witness.cannot_link, n_clusters)
        assert witness.n_clusters == (None if witness.kind == "path" else n_clusters)
    else:
        assert found == ("unknown", None, None)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4])
def test_agrees_with_exhaustive_search(n_clusters):
    rng = np.random.default_rng(n_clusters)
    kinds = []
    for _ in range(250 if LONG or n_clusters == 1 else 120):
        n = int(rng.integers(2, 10))
        # Densities at which feasible and infeasible cases are about equally frequent.
        density = (0.2 + 0.3 * n_clusters) * rng.random()
        pairs, weights = random_links(rng, n, density, must=rng.choice([0.0, 0.1]), cannot=0.85)
        found = check_feasibility(n, pairs, weights, n_clusters)
        check_answer(n, pairs, weights, n_clusters, found)
        assert found.status == (
            "feasible" if has_labelling(*hard(pairs, weights), n_clusters) else "infeasible"
        )
        kinds.append("feasible" if found.witness is None else found.witness.kind)

        small = check_feasibility(n, pairs, weights, n_clusters, node_budget=1)
        check_answer(n, pairs, weights, n_clusters, small)
        assert small.status in (found.status, "unknown")
    expected = {1: "single_cluster", 2: "odd_ring", 3: "clique", 4: "clique"}[n_clusters]
    assert kinds.count("feasible") > (50 if LONG else 25)
    assert kinds.count(expected) > (15 if LONG else 7)
    assert kinds.count("path") > (1 if LONG else 0)


@given(
    st.integers(2, 8).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.dictionaries(
                st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
                    lambda pair: pair[0] < pair[1]
                ),
                st.sampled_from([np.inf, -np.inf, -np.inf, 1.5]),
            ),
            st.integers(1, 5),
            st.integers(0, 30),
        )
    )
)
def test_any_links_any_budget(case):
    n, links, n_clusters, budget = case
    pairs = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
    weights = np.array([links[tuple(pair)] for pair in pairs.tolist()], dtype=float)
    found = check_feasibility(n, pairs, weights, n_clusters, node_budget=budget)
    check_answer(n, pairs, weights, n_clusters, found)
    if found.status != "unknown":
        assert (found.status == "feasible") == has_labelling(*hard(pairs, weights), n_clusters)


def test_without_a_number_of_clusters_only_paths_count():
    rng = np.random.default_rng(9)
    statuses = []
    for _ in range(300):
        n = int(rng.integers(2, 10))
        pairs, weights = random_links(rng, n, rng.random(), must=0.3, cannot=0.3)
        found = check_feasibility(n, pairs, weights)
        groups = components(n, pairs[weights == np.inf])
        clash = any(groups[i] == groups[j] for i, j in pairs[weights == -np.inf].tolist())
        assert found.status == ("infeasible" if clash else "feasible")
        assert found.labels is None
        assert (found.witness is not None) == clash
        statuses.append(found.status)
    assert statuses.count("infeasible") > 50


@pytest.mark.parametrize(
    ("n", "cannot", "n_clusters", "status", "kind"),
    [
        (3, cycle(3), 2, "infeasible", "odd_ring"),
        (5, cycle(5), 2, "infeasible", "odd_ring"),
        (4, cycle(4), 2, "feasible", None),
        (5, cycle(5), 3, "feasible", None),
        (4, complete(4), 3, "infeasible", "clique"),
        (4, complete(4), 4, "feasible", None),
        (*mycielski(5, cycle(5)), 3, "infeasible", "subgraph"),
        (*mycielski(5, cycle(5)), 4, "feasible", None),
        (*mycielski(*mycielski(5, cycle(5))), 4, "infeasible", "subgraph"),
        (*mycielski(*mycielski(5, cycle(5))), 5, "feasible", None),
    ],
)
def test_known_graphs(n, cannot, n_clusters, status, kind):
    weights = np.full(len(cannot), -np.inf)
    found = check_feasibility(n, cannot, weights, n_clusters)
    assert found.status == status
    if status == "feasible":
        assert satisfies(found.labels, [], cannot)
    else:
        assert found.witness.kind == kind
        # Mycielski graphs, odd rings and cliques are critical: no link can be spared.
        assert found.witness.cannot_link == tuple(map(tuple, cannot.tolist()))


def test_link_and_path_of_three_cannot_links():
    pairs = np.array([[0, 1], [0, 3], [1, 2], [2, 3]])
    found = check_feasibility(4, pairs, np.array([-np.inf, np.inf, -np.inf, -np.inf]), 2)
    assert found.status == "infeasible"
    assert found.witness.must_link == ((0, 3),)
    assert found.witness.cannot_link == ((0, 1), (1, 2), (2, 3))


def test_soft_links_are_ignored():
    pairs = cycle(3)
    for weights in (np.full(3, -50.0), np.array([-np.inf, -50.0, -np.inf]), np.array([-np.inf, 50.0, 50.0])):
        assert check_feasibility(3, pairs, weights, 2).status == "feasible"


def test_number_of_clusters_is_checked():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        check_feasibility(3, cycle(3), np.full(3, -np.inf), 0)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, None])
def test_no_links_and_no_points(n_clusters):
    for n in (0, 4):
        found = check_feasibility(n, np.empty((0, 2), dtype=np.int64), np.empty(0), n_clusters)
        assert found.status == "feasible"
        assert found.labels is None if n_clusters is None else found.labels.tolist() == [0] * n


def test_more_clusters_than_points():
    found = check_feasibility(3, cycle(3), np.full(3, -np.inf), 1000)
    assert sorted(found.labels.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_many_must_links(shape):
    n = 400_000
    later = np.arange(1, n)
    pairs = np.column_stack((later - 1 if shape == "chain" else np.zeros_like(later), later))
    weights = np.full(n - 1, np.inf)
    weights[n // 2] = -np.inf
    found = check_feasibility(n, pairs, weights, 3)
    assert found.status == "feasible"
    assert satisfies_at_once(found.labels, pairs, weights)

    # Closing the chain (or a corner of the star) with a cannot-link contradicts all of it.
    row = np.array([[0, n - 1]] if shape == "chain" else [[1, n - 1]])
    found = check_feasibility(
        n, np.concatenate((row, pairs)), np.concatenate(([-np.inf], np.full(n - 1, np.inf)))
    )
    assert found.status == "infeasible"
    assert len(found.witness.must_link) == (n - 1 if shape == "chain" else 2)
    assert len(found.witness.message) < 200


def satisfies_at_once(labels, pairs, weights) -> bool:
    equal = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return bool(np.all(equal[weights == np.inf]) and not np.any(equal[weights == -np.inf]))


def test_a_ring_of_many_points():
    for n, status in ((400_000, "feasible"), (399_999, "infeasible")):
        pairs = np.concatenate(([[0, n - 1]], np.column_stack((np.arange(n - 1), np.arange(1, n)))))
        found = check_feasibility(n, pairs, np.full(n, -np.inf), 2)
        assert found.status == status
    assert len(found.witness.cannot_link) == n
    assert found.witness.message.startswith("399999 groups of points stand in a ring")


@pytest.mark.parametrize(("n", "n_pairs"), [(200, 500), (20_000, 35_000), (20_000, 39_000), (8_000, 120_000)])
def test_hidden_labels_of_three_clusters(n, n_pairs):
    pairs = planted_pairs(np.random.default_rng(0), n, 3, n_pairs)
    weights = np.full(len(pairs), -np.inf)
    found = check_feasibility(n, pairs, weights, 3)
    assert found.status == "feasible"
    assert satisfies_at_once(found.labels, pairs, weights)


@pytest.mark.parametrize(("n", "n_clusters"), [(300, 3), (3000, 5), (30_000, 10)])
def test_true_labels_of_random_pairs(n, n_clusters):
    """What an annotator says about random pairs: must-links contract, and the rest is easy."""
    for per_point in (0.5, 1.0, 2.0, 5.0):
        rng = np.random.default_rng(n)
        truth = rng.integers(n_clusters, size=n)
        pairs = np.unique(np.sort(rng.integers(n, size=(int(per_point * n), 2)), axis=1), axis=0)
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        weights = np.where(truth[pairs[:, 0]] == truth[pairs[:, 1]], np.inf, -np.inf)
        found = check_feasibility(n, pairs, weights, n_clusters)
        assert found.status == "feasible"
        assert satisfies_at_once(found.labels, pairs, weights)


def test_answers_do_not_change_from_call_to_call():
    pairs = planted_pairs(np.random.default_rng(1), 500, 3, 1500)
    weights = np.full(len(pairs), -np.inf)
    one, two = (check_feasibility(500, pairs, weights, 3) for _ in range(2))
    assert one.labels.tolist() == two.labels.tolist()


def test_without_a_labelling_the_status_is_the_same():
    rng = np.random.default_rng(4)
    statuses = []
    for _ in range(examples(300)):
        n = int(rng.integers(1, 14))
        pairs, weights = random_links(rng, n, 0.9 * rng.random(), must=0.1, cannot=0.7)
        for n_clusters in (2, 3, 4):
            wanted = check_feasibility(n, pairs, weights, n_clusters)
            found = check_feasibility(n, pairs, weights, n_clusters, labelling=False)
            assert found.status == wanted.status
            assert found.witness == wanted.witness
            statuses.append(found.status)
    assert statuses.count("feasible") > 100
    assert statuses.count("infeasible") > share(100)
