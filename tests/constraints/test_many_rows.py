"""Links among a billion rows take memory for the links, not for the rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.constraints import builders as module
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import check_feasibility, feasibility, unique_pairs
from linkwise.mixture.links.rows import select_linked_rows

MANY = 10**9
RNG = np.random.default_rng(0)
#: Chains of three, so that chunklets are more than pairs.
ROWS = np.sort(RNG.choice(MANY, size=3000, replace=False)).reshape(-1, 3)
MUST = np.concatenate([ROWS[:, :2], ROWS[:, 1:]])
CANNOT = np.column_stack([ROWS[:-1, 0], ROWS[1:, 2]])


def peak(call):
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def build():
    return Constraints(MANY, MUST, CANNOT)


LINKS = build()


@pytest.mark.parametrize(
    "call",
    [
        build,
        lambda: Constraints(MANY, MUST, CANNOT, certainty=0.9, source="Ann"),
        lambda: LINKS.check(2),
        lambda: LINKS.check(5),
        lambda: repr(LINKS),
        lambda: LINKS._repr_html_(),
        lambda: LINKS[ROWS.ravel()],
        lambda: LINKS + LINKS,
        lambda: select_linked_rows(LINKS, np.arange(3), chunklets_once=True),
    ],
)
def test_memory_is_that_of_the_links(call):
    assert peak(call) < 4e6


def test_few_rows_of_many_are_those_of_the_same_links_among_few():
    """The same links, numbered densely, and 3000 rows in a shuffled order."""
    dense = np.searchsorted(ROWS.ravel(), MUST), np.searchsorted(ROWS.ravel(), CANNOT)
    small = Constraints(ROWS.size, *dense)
    order = RNG.permutation(ROWS.size)[:2000]
    assert LINKS[ROWS.ravel()[order]] == small[order]
    assert LINKS[ROWS.ravel()[order] - MANY] == small[order]
    assert LINKS[np.array([1, 2, 3])].n_pairs == 0
    assert LINKS[[]].n_samples == 0


def test_repeated_rows_are_copied_as_ever(monkeypatch):
    links = Constraints(50, [(3, 9)], [(9, 20)], weight=2.0)
    expected = links[[9, 3, 9]]
    monkeypatch.setattr(module, "_MANY_ROWS", 10)
    assert links[[9, 3, 9]] == expected
    assert links[[20, 9]] == Constraints(2, [], [(0, 1)], weight=2.0)


CONTRADICTIONS = {
    "path": (1, 3, [(0, 5), (5, 9), (20, 21)], [(0, 9)]),
    "one cluster": (2, 1, [(0, 5)], [(5, 9)]),
    "ring of three": (3, 2, [(0, 5)], [(0, 9), (5, 13), (9, 13)]),
    "ring of five": (3, 2, [(0, 5)], [(0, 9), (9, 13), (13, 17), (17, 30), (30, 5)]),
    "clique": (4, 3, [(0, 5)], [(0, 9), (5, 13), (9, 13), (0, 17), (9, 17), (13, 17)]),
    "subgraph": (4, 3, [(0, 5)], [
        (a, b) for a, b in [(0, 9), (9, 13), (13, 17), (17, 30), (30, 5)]
    ] + [(a, 40) for a in (0, 9, 13, 17, 30)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_witnesses_name_the_users_rows(case, monkeypatch):
    """Whether all nodes are looked at or those with links alone, the proof is the same, to the letter."""
    _, k, must, cannot = CONTRADICTIONS[case]
    pairs = np.array(sorted([tuple(sorted(pair)) for pair in must + cannot]))
    signs = {tuple(sorted(pair)): np.inf for pair in must} | {tuple(sorted(p)): -np.inf for p in cannot}
    weights = np.array([signs[tuple(pair)] for pair in pairs.tolist()])
    expected = check_feasibility(500, pairs, weights, k, labelling=False)
    assert expected.status == "infeasible"
    monkeypatch.setattr(feasibility, "_MANY_NODES", 1)
    assert check_feasibility(500, pairs, weights, k, labelling=False) == expected


def test_contradictions_among_many_rows():
    with pytest.raises(InfeasibleConstraints, match=r"5 and 999999999 must be together \(5-70-999999999\)"):
        Constraints(MANY, [(5, 70), (70, MANY - 1)], [(5, MANY - 1)])


def test_pairs_beyond_what_one_number_tells_apart():
    """Row numbers of 1e10 rows: their products leave 64 bits."""
    n = 10**10
    pairs = np.array([[n - 1, 3], [3, n - 1], [2, n - 2], [2, n - 2 - 2**33]])
    found, row_of = unique_pairs(n, pairs)
    np.testing.assert_array_equal(found, [[2, n - 2 - 2**33], [2, n - 2], [3, n - 1]])
    np.testing.assert_array_equal(row_of, [2, 2, 1, 0])
    assert Constraints(n, pairs[:1], pairs[2:]).n_pairs == 3
