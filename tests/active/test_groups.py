"""Groups that answers find: on clusters far apart, with wrong answers, and with groups found before."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.evidence import asked_landmarks
from linkwise.active.groups import _parts, find_groups
from linkwise.active.landscape import survey
from tests.active.test_evidence import answers_of, blobs

CENTRES = [[0, 0], [8, 0], [0, 8]]


def found(X, pairs, says, *, seed=0, error=0.02, n_clusters=None, others=(), n_likely=2):
    """Groups by row: -1 for rows that were not asked about, or are open."""
    landscape = survey(X, seed=seed)
    asked = asked_landmarks(landscape, answers_of(pairs, says))
    groups = find_groups(asked, asked.strength(error), n_clusters, others, n_likely)
    label = np.full(len(X), -1)
    label[asked.places] = groups.label
    return label, groups


@pytest.mark.parametrize("seed", range(10))
def test_right_answers_find_all_clusters(seed):
    """Each row is compared with the first of each group until one is the same."""
    X, y = blobs(seed, CENTRES)
    rows = np.random.default_rng(seed).permutation(len(X))[:15]
    firsts, pairs, says = [rows[0]], [], []
    for row in rows[1:]:
        for first in firsts:
            pairs.append((row, first))
            says.append(1 if y[row] == y[first] else -1)
            if says[-1] == 1:
                break
        else:
            firsts.append(row)
    label, groups = found(X, pairs, says, seed=seed)
    assert len(set(zip(label[rows], y[rows], strict=True))) == len(firsts)
    assert groups.label.max() + 1 == len(firsts)
    assert (label[rows] >= 0).all()


def test_no_more_groups_than_clusters():
    X, _ = blobs(0, CENTRES)
    pairs, says = [(12, 0), (24, 0), (24, 12), (1, 0), (13, 12)], [-1, -1, -1, 1, 1]
    assert set(found(X, pairs, says)[0]) == {-1, 0, 1, 2}
    label, _ = found(X, pairs, says, n_clusters=2)
    assert label.max() == 1
    assert label[24] == -1


def test_what_answers_leave_open_is_open():
    """A row between two clusters that was found different from one of them founds nothing by itself."""
    X, _ = blobs(0, [[0, 0], [8, 0]])
    X = np.vstack([X, X[13]])
    label, groups = found(X, [(1, 0), (12, 0), (13, 12), (24, 0)], [1, -1, 1, -1])
    assert label[24] == -1
    assert groups.open_prob[-1].argmax() == 1  # it equals a row of the second cluster


def test_groups_found_before_stand_against_wrong_joins():
    """Two wrong answers would join two groups; with the groups of earlier answers they do not."""
    X, y = blobs(1, [[0, 0], [4, 0]], spread=0.4)
    chain = [(i, i + 1) for i in range(5)] + [(i, i + 1) for i in range(12, 17)]
    pairs = [*chain, (8, 13), (9, 14), (20, 3), (21, 4), (2, 15), (4, 12)]
    says = [1] * 10 + [-1] * 4 + [1, 1]
    before = np.full(24, -1)
    before[:6], before[12:18] = 0, 1
    label, _ = found(X, pairs, says, others=[before])
    for cluster in (0, 1):
        assert len(set(label[(y == cluster) & (label >= 0)])) == 1
    assert label[0] != label[12]


def test_chance_that_two_groups_are_one_is_between_them():
    X, _ = blobs(0, CENTRES)
    _, groups = found(X, [(12, 0), (24, 0), (24, 12)], [-1, -1, -1], error=0.2)
    assert np.array_equal(groups.merge_chance, groups.merge_chance.T)
    assert not groups.merge_chance.diagonal().any()
    _, surer = found(X, [(12, 0), (24, 0), (24, 12)], [-1, -1, -1], error=0.01)
    assert surer.merge_chance.max() < groups.merge_chance.max()


def test_among_many_clusters_a_doubtful_same_joins_nothing():
    """Of ten clusters nine of ten pairs are different, and one doubtful answer does not change that."""
    X, _ = blobs(0, CENTRES)
    pairs, says = [(1, 0), (13, 12), (12, 0)], [1, 1, 1]
    assert found(X, pairs, says, error=0.2)[0][12] == 0
    assert found(X, pairs, says, error=0.2, n_likely=10)[0][12] != 0
    assert found(X, pairs, says, error=0.02, n_likely=10)[0][12] == 0


def test_open_rows_found_groups_beside_those_found_before():
    """Groups found before leave a second cluster open; it is found beside them, and they are kept."""
    X, y = blobs(0, CENTRES)
    pairs, says = [(1, 0), (2, 1), (12, 0), (13, 12), (24, 0), (24, 12)], [1, 1, -1, 1, -1, -1]
    before = np.full(36, -1)
    before[:3] = 0
    label, _ = found(X, pairs, says, others=[before])
    rows = [0, 1, 2, 12, 13, 24]
    assert np.array_equal(label[rows][:, None] == label[rows], y[rows][:, None] == y[rows])


def test_parts_keep_groups_and_join_others_to_them():
    """By hand: groups {0, 1} and {2}, which an answer says are one; 3 = 1 and 4 = 5 join as always."""
    X, _ = blobs(0, CENTRES)
    answers = answers_of([(1, 0), (2, 1), (3, 1), (4, 5)], [-1, 1, 1, 1])
    asked = asked_landmarks(survey(X), answers)
    first = np.full(6, -1)
    rank = {int(row): number for number, row in enumerate(asked.places)}
    first[[rank[0], rank[1]]], first[rank[2]] = 0, 1
    part = _parts(asked, asked.strength(0.02), 2, first)
    assert [part[rank[row]] for row in range(6)] == [0, 0, 1, 0, 2, 2]
    # Without groups the answers alone decide: 0 differs from 1 = 2 = 3.
    alone = np.where(np.arange(6) == 0, 0, -1)
    part = _parts(asked, asked.strength(0.02), 2, alone)
    assert [part[rank[row]] for row in range(6)] == [0, 1, 1, 1, 2, 2]
