"""Groups that answers find: on clusters far apart, with wrong answers, and with groups found before."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.evidence import asked_landmarks
from linkwise.active.groups import _parts, find_groups, join
from linkwise.active.landscape import survey
from linkwise.graph import group_labels
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


def slow_contraction(n, pairs, strength, least=0.0):
    """Join the two parts with the largest sum of strengths between them while it is above ``least``."""
    parts = [{row} for row in range(n)]
    while True:
        best, chosen = least, None
        for a in range(len(parts)):
            for b in range(a + 1, len(parts)):
                total = sum(
                    value
                    for (i, j), value in zip(pairs, strength, strict=True)
                    if (i in parts[a] and j in parts[b]) or (i in parts[b] and j in parts[a])
                )
                if total > best + 1e-12:
                    best, chosen = total, (a, b)
        if chosen is None:
            break
        parts[chosen[0]] |= parts.pop(chosen[1])
    parts.sort(key=min)
    return [next(number for number, part in enumerate(parts) if row in part) for row in range(n)]


def random_pairs(rng, n, m):
    return np.array([rng.choice(n, size=2, replace=False) for _ in range(m)], dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_without_contradictions_parts_are_components(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=30)
    pairs = random_pairs(rng, 30, 40)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    strength = np.where(same, 1.0, -1.0) * rng.uniform(0.1, 30.0, size=40)
    expected, _ = group_labels(30, pairs[same])
    np.testing.assert_array_equal(join(30, pairs, strength), expected)


@pytest.mark.parametrize("seed", range(25))
def test_contradictions_against_slow_contraction(seed):
    least = 0.5 * (seed % 3)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    # More answers than pairs of rows, so that pairs repeat, and no agreement among them.
    pairs = random_pairs(rng, n, int(rng.integers(1, 4 * n)))
    strength = rng.standard_normal(len(pairs)) + 0.3
    found = join(n, pairs, strength, least).tolist()
    assert found == slow_contraction(n, pairs.tolist(), strength.tolist(), least)


def test_order_of_answers_and_of_their_rows_does_not_matter():
    rng = np.random.default_rng(7)
    pairs = random_pairs(rng, 20, 70)
    strength = rng.standard_normal(70)
    found = join(20, pairs, strength)
    for _ in range(5):
        order = rng.permutation(70)
        turned = pairs[order]
        turned[::2] = turned[::2, ::-1]
        np.testing.assert_array_equal(join(20, turned, strength[order]), found)


def test_numbers_of_rows_do_not_matter_but_for_the_numbers_of_parts():
    rng = np.random.default_rng(8)
    pairs = random_pairs(rng, 20, 70)
    strength = rng.standard_normal(70)
    found = join(20, pairs, strength)
    new_number = rng.permutation(20)
    renamed = join(20, new_number[pairs], strength)[new_number]
    np.testing.assert_array_equal(renamed[:, None] == renamed, found[:, None] == found)


def test_by_hand():
    # 0 = 1 (strength 3), 1 = 2 (2), 0 differs from 2 (1): the sum of {0, 1} and 2 is 1 > 0, so all are one.
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    assert join(4, pairs, np.array([3.0, 2.0, -1.0])).tolist() == [0, 0, 0, 1]
    # With a stronger "different" only the strongest "same" holds.
    assert join(4, pairs, np.array([3.0, 2.0, -2.5])).tolist() == [0, 0, 1, 2]
    assert join(4, pairs, np.array([2.0, 3.0, -2.5])).tolist() == [0, 1, 1, 2]
    # Answers that are as strong for as against do not join.
    assert join(2, np.array([[0, 1], [1, 0]]), np.array([1.0, -1.0])).tolist() == [0, 1]
    assert join(3, np.empty((0, 2), dtype=np.int64), np.empty(0)).tolist() == [0, 1, 2]


def test_what_it_takes_to_join_counts_once_for_two_parts():
    # Two answers of 1.5 together are above 2, however many they are; each alone, or against a third, is not.
    assert join(2, np.array([[0, 1], [1, 0]]), np.array([1.5, 1.5]), 2.0).tolist() == [0, 0]
    assert join(2, np.array([[0, 1]]), np.array([1.5]), 2.0).tolist() == [0, 1]
    assert join(2, np.array([[0, 1], [1, 0], [0, 1]]), np.array([1.5, 1.5, -1.5]), 2.0).tolist() == [0, 1]
    # 0 = 1 is joined first; what is said of either holds for both: 1.2 + 1.2 for row 2.
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    assert join(3, pairs, np.array([3.0, 1.2, 1.2]), 2.0).tolist() == [0, 0, 0]
