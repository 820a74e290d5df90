from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import contract
from linkwise.graph.contraction import DROPPED_EDGE, INSIDE_GROUP
from tests.graph.oracle import components, distance, random_links


def naive_contract(n, pairs, weights):
    """The merged links as a dict, or the rows that contradict the must-links."""
    groups = components(n, pairs[weights == np.inf])
    merged, clashes = {}, []
    for row, (i, j) in enumerate(pairs.tolist()):
        ends = tuple(sorted((groups[i], groups[j])))
        if ends[0] != ends[1]:
            merged[ends] = merged.get(ends, 0.0) + weights[row]
        elif weights[row] == -np.inf:
            clashes.append(row)
    return groups, merged, clashes


def check(n, pairs, weights):
    groups, merged, clashes = naive_contract(n, pairs, weights)
    if clashes:
        with pytest.raises(InfeasibleConstraints) as caught:
            contract(n, pairs, weights)
        witness = caught.value.witness
        assert witness.kind == "path"
        must = set(map(tuple, pairs[weights == np.inf].tolist()))
        assert set(witness.must_link) <= must
        (apart,) = witness.cannot_link
        assert list(apart) in pairs[clashes].tolist()
        assert len(witness.must_link) == distance(n, pairs[weights == np.inf], *apart)
        return "clash"
    found = contract(n, pairs, weights)
    assert found.groups.tolist() == groups
    assert found.n_groups == len(set(groups))
    kept = {ends: weight for ends, weight in merged.items() if weight != 0}
    assert found.pairs.tolist() == [list(ends) for ends in sorted(kept)]
    assert found.weights.tolist() == [kept[ends] for ends in sorted(kept)]
    row_of = {ends: row for row, ends in enumerate(sorted(kept))}
    for row, (i, j) in enumerate(pairs.tolist()):
        ends = tuple(sorted((groups[i], groups[j])))
        expected = INSIDE_GROUP if ends[0] == ends[1] else row_of.get(ends, DROPPED_EDGE)
        assert found.edge_of[row] == expected
    return "dropped" if len(kept) < len(merged) else "kept"


def test_random_links():
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(600):
        n = int(rng.integers(1, 15))
        pairs, weights = random_links(rng, n, 0.8 * rng.random(), must=0.25, cannot=rng.choice([0, 0.3]))
        weights[weights == 0.5] = 1.0
        weights[weights == -0.5] = -1.0
        outcomes.append(check(n, pairs, weights))
    assert all(outcomes.count(kind) > 50 for kind in ("clash", "dropped", "kept")), outcomes


@given(
    st.integers(2, 7).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.dictionaries(
                st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
                    lambda pair: pair[0] < pair[1]
                ),
                st.sampled_from([np.inf, -np.inf, 1.0, -1.0, 0.25, 0.0]),
            ),
        )
    )
)
def test_any_links(case):
    n, links = case
    pairs = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
    check(n, pairs, np.array([links[tuple(pair)] for pair in pairs.tolist()], dtype=float))


def test_hard_cannot_link_absorbs_soft_links_of_either_sign():
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    found = contract(3, pairs, np.array([np.inf, -np.inf, 5.0]))
    assert found.weights.tolist() == [-np.inf]
    assert found.edge_of.tolist() == [INSIDE_GROUP, 0, 0]


def test_soft_links_are_not_closed():
    pairs = np.array([[0, 1], [1, 2]])
    found = contract(3, pairs, np.array([1.0, 1.0]))
    assert found.n_groups == 3
    assert found.pairs.tolist() == pairs.tolist()


def test_nothing_to_contract():
    found = contract(3, np.empty((0, 2), dtype=np.int64), np.empty(0))
    assert found.groups.tolist() == [0, 1, 2]
    assert found.pairs.shape == (0, 2)
    assert found.pairs.dtype == np.int64
    assert found.weights.dtype == np.float64
    empty = contract(0, np.empty((0, 2), dtype=np.int64), np.empty(0))
    assert empty.n_groups == 0


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_million_must_links(shape):
    n = 1_000_000
    later = np.arange(1, n)
    pairs = np.column_stack((later - 1 if shape == "chain" else np.zeros_like(later), later))
    weights = np.full(n - 1, np.inf)
    weights[-1] = -1.0
    found = contract(n, pairs, weights)
    assert found.n_groups == 2
    assert found.pairs.tolist() == [[0, 1]]
    assert found.weights.tolist() == [-1.0]
    assert found.edge_of[-1] == 0
    assert np.all(found.edge_of[:-1] == INSIDE_GROUP)


def test_a_million_parallel_links():
    rng = np.random.default_rng(0)
    n = 400_000
    pairs = np.unique(np.sort(rng.integers(n, size=(1_000_000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    # Must-links make 1000 groups of 400 points; all else is soft.
    hub = np.arange(n) // 400 * 400
    must = np.column_stack((hub, np.arange(n)))[hub < np.arange(n)]
    soft = pairs[pairs[:, 0] % 400 != 0]
    weights = np.concatenate((np.full(len(must), np.inf), rng.normal(size=len(soft))))
    found = contract(n, np.concatenate((must, soft)), weights)
    assert found.n_groups == 1000
    assert found.groups.tolist() == (np.arange(n) // 400).tolist()
    dense = np.zeros((1000, 1000))
    np.add.at(dense, tuple((soft // 400).T), weights[len(must) :])
    np.fill_diagonal(dense, 0.0)
    np.testing.assert_allclose(found.weights, dense[tuple(found.pairs.T)], atol=1e-12)
    assert len(found.pairs) == np.count_nonzero(dense)
