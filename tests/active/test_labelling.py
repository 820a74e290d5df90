"""Labels from a posterior that is written down."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from linkwise.active.labelling import keep_facts, label_landmarks, label_rows


def told(prob, start, nearest=None, known=()):
    """A landscape and a posterior with nothing but what labels are made of."""
    prob = np.array(prob)
    nearest = np.arange(len(prob)) if nearest is None else np.array(nearest)
    landscape = SimpleNamespace(start=np.array(start), nearest=nearest)
    asked, group = np.array(known, dtype=int).reshape(-1, 2).T
    return landscape, SimpleNamespace(prob=prob, n_groups=prob.shape[1] - 1, asked=asked, group=group)


# Two groups, and last a group that was not found.
PROB = [
    [0.9, 0.1, 0.0],
    [0.2, 0.7, 0.1],
    [0.3, 0.1, 0.6],
    [0.1, 0.1, 0.8],
    [0.4, 0.15, 0.45],
    [0.0, 0.0, 1.0],
]
START = [0, 1, 2, 2, 0, 1]


def test_number_of_clusters_unknown():
    # Rows 2, 3 and 5 are likelier in no group: they keep their clusters 2, 2 and 1, behind the two groups.
    assert label_landmarks(*told(PROB, START)).tolist() == [0, 1, 4, 4, 0, 3]


def test_a_cluster_whose_known_rows_are_in_one_group_is_that_group():
    # Row 3 of cluster 2 is known to be in group 1; in cluster 1 the known rows are in different groups.
    known = [(3, 1), (1, 1), (5, 0)]
    assert label_landmarks(*told(PROB, START, known=known)).tolist() == [0, 1, 1, 1, 0, 3]
    # An open row tells nothing.
    assert label_landmarks(*told(PROB, START, known=[(3, -1)])).tolist() == [0, 1, 4, 4, 0, 3]


@pytest.mark.parametrize(
    ("n_clusters", "expected"),
    [(2, [0, 1, 0, 0, 0, 0]), (3, [0, 1, 4, 4, 0, 0]), (4, [0, 1, 4, 4, 0, 3]), (9, [0, 1, 4, 4, 0, 3])],
)
def test_number_of_clusters_known(n_clusters, expected):
    """One place is left for the larger cluster; the other rows take their likeliest group, of equals 0."""
    assert label_landmarks(*told(PROB, START), n_clusters).tolist() == expected


def test_rows_take_the_label_of_the_nearest_landmark_without_gaps():
    nearest = [5, 5, 2, 0, 3]
    # Labels 3, 3, 4, 0, 4 without gaps.
    assert label_rows(*told(PROB, START, nearest)).tolist() == [1, 1, 2, 0, 2]
    # Cluster 1 of row 5 has no place with three clusters.
    assert label_rows(*told(PROB, START, nearest), 3).tolist() == [0, 0, 1, 0, 1]


def test_one_group():
    assert label_landmarks(*told([[1.0, 0.0], [0.3, 0.7]], [0, 0])).tolist() == [0, 1]
    assert label_landmarks(*told([[1.0, 0.0], [0.3, 0.7]], [0, 0]), 1).tolist() == [0, 0]


def test_facts_are_kept_with_few_changes():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    pairs, says = np.array([[0, 1], [3, 5]]), np.array([1, -1])
    assert keep_facts(labels, pairs, says) is labels
    # Row 3 is one of three that must be together; rows 5 and 6 must be apart.
    pairs = np.array([[0, 1], [1, 3], [5, 6], [5, 0]])
    says = np.array([1, 1, -1, -1])
    found = keep_facts(labels, pairs, says)
    assert ((found[pairs[:, 0]] == found[pairs[:, 1]]) == (says > 0)).all()
    assert (found != labels).sum() == 2
    assert found[3] == 0
    # Four rows that are all different need more than three labels.
    pairs = np.array([[i, j] for i in range(4) for j in range(i)])
    found = keep_facts(labels, pairs, np.full(6, -1))
    assert len(set(found[:4])) == 4
    assert np.array_equal(found[4:], labels[4:])
