from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.graph import group_labels
from tests.graph.oracle import components


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20)
        )
    )
)
def test_groups_are_the_components(case):
    n_nodes, pairs = case
    expected = components(n_nodes, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    labels, n_groups = group_labels(n_nodes, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    assert labels.tolist() == expected
    assert n_groups == max(expected) + 1


def test_no_nodes():
    labels, n_groups = group_labels(0, np.empty((0, 2), dtype=np.int64))
    assert labels.size == 0
    assert n_groups == 0


@pytest.mark.parametrize("shape", ["chain", "reversed chain", "star", "late star", "binary joins"])
def test_many_points(shape):
    n = 400_000
    later = np.arange(1, n)
    pairs = {
        "chain": np.column_stack((later - 1, later)),
        "reversed chain": np.column_stack((later, later - 1))[::-1].copy(),
        "star": np.column_stack((np.zeros_like(later), later)),
        "late star": np.column_stack((later - 1, np.full_like(later, n - 1))),
        "binary joins": np.column_stack((later & (later - 1), later)),
    }[shape]
    labels, n_groups = group_labels(n, pairs)
    assert n_groups == 1
    assert not labels.any()
    labels, n_groups = group_labels(n, pairs[: n // 2])
    assert n_groups == n - n // 2
