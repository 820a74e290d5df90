"""Decisions read from contingency tables, against a reading of the rule one class at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from linkwise.mixture.classes.decisions import count_decisions, find_decisions, name_clusters

tables = st.tuples(st.integers(1, 6), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 9)).filter(
        lambda t: (t.sum(axis=1) > 0).all()
    )
)


def plain_reading(table, threshold):
    """Holders of each class by loops over its rows; then the rule as the spec words it."""
    n_classes, n_clusters = table.shape
    holders = []
    for a in range(n_classes):
        total = sum(int(count) for count in table[a])
        holders.append(
            {k for k in range(n_clusters) if table[a, k] and table[a, k] >= threshold * total - 1e-12}
        )
    found = set()
    for a in range(n_classes):
        if len(holders[a]) >= 2:
            found.add(("split", (a,), frozenset(holders[a])))
        apart = all(not holders[a] & holders[b] for b in range(n_classes) if b != a)
        if len(holders[a]) == 1 and apart:
            found.add(("kept", (a,), frozenset(holders[a])))
        if not holders[a]:
            found.add(("scattered", (a,), frozenset()))
        for b in range(a + 1, n_classes):
            if holders[a] & holders[b]:
                found.add(("merged", (a, b), frozenset(holders[a] & holders[b])))
    return found


@given(tables, st.sampled_from([0.05, 0.15, 0.3, 0.5]))
def test_decisions_follow_the_rule(table, threshold):
    found = find_decisions(table, range(len(table)), threshold)
    assert {(d.kind, d.classes, frozenset(d.clusters)) for d in found} == plain_reading(table, threshold)
    assert len(found) == len({d.key for d in found})
    for decision in found:
        counts = [table[list(decision.classes), k].sum() for k in decision.clusters]
        assert counts == sorted(counts, reverse=True)


@given(tables)
def test_every_class_has_an_outcome_and_every_cluster_its_own_name(table):
    decided = {name for d in find_decisions(table, range(len(table))) for name in d.classes}
    assert decided == set(range(len(table)))
    names = name_clusters(table, [f"c{a}" for a in range(len(table))])
    occupied = [name for k, name in enumerate(names) if table[:, k].any()]
    assert len(set(occupied)) == len(occupied)
    assert all(names[k] == "(none)" for k in range(table.shape[1]) if not table[:, k].any())


def test_the_threshold_itself_counts():
    table = np.array([[85, 15]])
    assert find_decisions(table, ["a"])[0].kind == "split"
    assert find_decisions(np.array([[86, 14]]), ["a"])[0].kind == "kept"
    for bad in (0.0, 0.6, float("nan")):
        with pytest.raises(ValueError, match="threshold must lie in"):
            find_decisions(table, ["a"], bad)


def test_a_class_can_be_split_and_merged():
    found = find_decisions(np.array([[50, 50], [0, 80]]), ["a", "b"])
    assert [d.key for d in found] == [("split", ("a",)), ("merged", ("a", "b"))]


def test_names_of_clusters():
    table = np.array([[30, 70, 0, 0, 1], [0, 0, 50, 50, 0], [0, 0, 45, 45, 1]])
    assert name_clusters(table, ["x", "y", "z"]) == ("x (b)", "x (a)", "y + z (a)", "y + z (b)", "rest")
    # A class may be called as a part of another one would be.
    assert name_clusters(np.array([[6, 5, 0], [0, 0, 9]]), ["x", "x (a)"]) == ("x (b)", "x (c)", "x (a)")
    many = name_clusters(np.full((1, 30), 1), ["x"], 0.01)
    assert many[0] == "x (a)"
    assert many[29] == "x (30)"


def test_shares_of_runs():
    runs = [np.array([[5, 5, 0], [0, 0, 8]]), np.array([[10, 0], [0, 8]]), np.array([[10, 0], [8, 0]])]
    found = count_decisions(runs, ["a", "b"], source="repeats")
    assert found.n_runs == 3
    assert found.shares == pytest.approx(
        {
            ("split", ("a",)): 1 / 3,
            ("kept", ("a",)): 1 / 3,
            ("kept", ("b",)): 2 / 3,
            ("merged", ("a", "b")): 1 / 3,
        }
    )
    assert next(iter(found.shares)) == ("kept", ("b",))
    assert found.share(find_decisions(runs[2], ["a", "b"])[0]) == pytest.approx(1 / 3)
    assert found.share(find_decisions(np.array([[5, 5], [3, 3]]), ["a", "b"])[1]) == 0.0
    with pytest.raises(ValueError, match="no runs"):
        count_decisions([], ["a"])
