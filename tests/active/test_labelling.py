"""Labels from a posterior that is written down."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from linkwise.active.labelling import keep_facts, label_landmarks, label_rows


def told(prob, start, nearest=None, known=(), kept=0.0, held_out=None):
    """A landscape and a posterior with nothing but what labels are made of."""
    prob = np.array(prob)
    nearest = np.arange(len(prob)) if nearest is None else np.array(nearest)
    landscape = SimpleNamespace(start=np.array(start), nearest=nearest)
    asked, group = np.array(known, dtype=int).reshape(-1, 2).T
    n_groups = prob.shape[1] - 1
    return landscape, SimpleNamespace(
        prob=prob, n_groups=n_groups, asked=asked, group=group, start_kept=kept, held_out=np.array(held_out)
    )


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


# Six landmarks in two groups, three of them known; the first clusters are {0, 1, 2}, {3, 4} and {5}.
FEW_START = [0, 0, 0, 1, 1, 2]
FEW_PROB = [
    [0.9, 0.1, 0.0],
    [0.9, 0.1, 0.0],
    [0.2, 0.8, 0.0],
    [0.1, 0.9, 0.0],
    [0.9, 0.1, 0.0],
    [0.6, 0.4, 0.0],
]
FEW_KNOWN = [(0, 0), (1, 0), (3, 1)]


def test_clusters_stay_whole_while_few_answers_contradict_them():
    """Row 2 has the group of its cluster, row 4 too; cluster {5} has no known row and stays for itself."""
    few = {"known": FEW_KNOWN, "held_out": np.full((3, 2), 0.5)}
    labels = label_landmarks(*told(FEW_PROB, FEW_START, kept=0.6, **few))
    assert labels.tolist() == [0, 0, 0, 1, 1, 4]
    # The answers contradict the clusters: the predictors have their way.
    assert label_landmarks(*told(FEW_PROB, FEW_START, kept=0.59, **few)).tolist() == [0, 0, 1, 1, 0, 0]
    # There is no third cluster.
    assert label_landmarks(*told(FEW_PROB, FEW_START, kept=1.0, **few), 2).tolist() == [0, 0, 1, 1, 0, 0]


def test_a_cluster_without_known_rows_is_part_of_a_group_that_predictors_are_sure_of():
    """Row 5 is a cluster of its own; the chance that its group was not found yet does not count."""
    few = {"known": FEW_KNOWN, "held_out": np.full((3, 2), 0.5), "kept": 1.0}
    for row, expected in (([0.26, 0.14, 0.6], 4), ([0.27, 0.13, 0.6], 0), ([0.1, 0.3, 0.6], 1)):
        labels = label_landmarks(*told([*FEW_PROB[:5], row], FEW_START, **few))
        assert labels.tolist() == [0, 0, 0, 1, 1, expected]
    # A single group has nothing beside it that the cluster could be likelier in.
    alone = told([[1.0, 0.0], [1.0, 0.0], [0.4, 0.6]], [0, 0, 1], known=[(0, 0), (1, 0)], kept=1.0,
                 held_out=np.ones((2, 1)))  # fmt: skip
    assert label_landmarks(*alone).tolist() == [0, 0, 2]


def test_clusters_give_way_to_predictors_that_are_much_better():
    """Rows 0 and 1 are each other's votes: 1 of 1, with .5 that all groups share, 1 + 1/2 of 2 + 1."""
    votes = 2.0 * np.log((1.0 + 0.5 * (1.5 / 3.0)) / 1.5)
    for ahead, expected in ((1.9, [0, 0, 0, 1, 1, 4]), (2.1, [0, 0, 1, 1, 0, 0])):
        guessed = np.exp((votes + ahead) / 2.0)  # above 1 here, so that the limit can be met
        held_out = np.full((3, 2), guessed)
        found = label_landmarks(*told(FEW_PROB, FEW_START, known=FEW_KNOWN, kept=1.0, held_out=held_out))
        assert found.tolist() == expected


def test_a_group_that_was_found_does_not_vanish():
    """Groups 1 and 2 share cluster {3, 4, 5, 6}, in which most known rows are of group 1: they divide it."""
    start = [0, 0, 0, 1, 1, 1, 1]
    known = [(0, 0), (1, 0), (3, 1), (4, 1), (5, 2)]
    prob = [
        [0.9, 0.1, 0.0, 0.0],
        [0.9, 0.1, 0.0, 0.0],
        [0.1, 0.1, 0.8, 0.0],  # cluster 0 has a group of its own alone, and stays whole
        [0.1, 0.8, 0.1, 0.0],
        [0.1, 0.8, 0.1, 0.0],
        [0.1, 0.1, 0.8, 0.0],
        [0.5, 0.2, 0.3, 0.0],  # likeliest in group 0, which has no known row in the cluster
    ]
    few = {"kept": 0.9, "held_out": np.full((5, 3), 1 / 3)}
    assert label_landmarks(*told(prob, start, known=known, **few)).tolist() == [0, 0, 0, 1, 1, 2, 2]
    prob[6] = [0.5, 0.3, 0.2, 0.0]
    assert label_landmarks(*told(prob, start, known=known, **few)).tolist() == [0, 0, 0, 1, 1, 2, 1]
    # Where group 2 has most known rows of a third cluster, a single row of it divides nothing.
    start[2], known[1] = 2, (2, 2)
    assert label_landmarks(*told(prob, start, known=known, **few))[6] == 1
    prob[6] = [0.5, 0.2, 0.3, 0.0]
    assert label_landmarks(*told(prob, start, known=known, **few))[6] == 1


def test_clusters_count_only_while_few_rows_are_known():
    start, known = [0] * 13 + [1, 0], [(row, 0) for row in range(12)] + [(13, 1)]
    prob = np.tile([0.9, 0.1, 0.0], (15, 1))
    prob[13:] = [0.1, 0.9, 0.0]
    held_out = np.full((13, 2), 0.5)
    # Row 14 is in the cluster of rows that are known to be in group 0; the predictors say 1.
    more = told(prob, start, known=known, kept=1.0, held_out=held_out)
    assert label_landmarks(*more)[14] == 1
    fewer = told(prob, start, known=known[1:], kept=1.0, held_out=held_out[1:])
    assert label_landmarks(*fewer)[14] == 0
