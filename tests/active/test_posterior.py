"""What must hold for every posterior, whatever its constants are."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active import posterior as module
from linkwise.active.evidence import asked_landmarks
from linkwise.active.groups import Groups
from linkwise.active.knowledge import NO_ANSWERS, SAYS, append
from linkwise.active.landscape import survey
from linkwise.active.posterior import infer
from tests.repeats import examples


def blobs(n=36, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 5.0 * rng.standard_normal((k, 2))[y] + rng.standard_normal((n, 2)), y


def told(*answers):
    found = NO_ANSWERS
    for i, j, word, *rest in answers:
        found = append(found, i, j, SAYS[word], *rest)
    return found


def random_answers(y, n_answers, seed, wrong=0.1):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_answers):
        i, j = rng.choice(len(y), size=2, replace=False).tolist()
        same = (y[i] == y[j]) != (rng.random() < wrong)
        word = "unsure" if rng.random() < 0.1 else "same" if same else "different"
        found.append((i, j, word))
    return found


@pytest.mark.parametrize("n_clusters", [None, 1, 3])
@pytest.mark.parametrize("n_answers", [0, 1, 5, 25])
def test_probabilities(n_answers, n_clusters):
    X, y = blobs()
    landscape = survey(X, n_clusters=n_clusters)
    answers = told(*random_answers(y, n_answers, seed=n_answers))
    found = infer(landscape, answers, n_clusters)
    assert found.prob.shape == (36, found.n_groups + 1)
    assert found.prob.min() >= 0.0
    np.testing.assert_allclose(found.prob.sum(axis=1), 1.0, atol=1e-6)
    assert found.wrong.shape == (n_answers,)
    assert ((found.wrong >= 0.0) & (found.wrong <= 1.0)).all()
    assert (found.wrong[answers.says == 0] == 0.0).all()
    assert 0.0 < found.error_rate < 0.5
    assert ((found.trust >= 0.0) & (found.trust <= 1.0)).all()
    if n_clusters is not None:
        assert found.n_groups <= n_clusters
    if found.n_groups == n_clusters:
        # All groups were found, so no row is in another one.
        assert found.prob[:, -1].max() < 1e-6


def test_unsure_answers_say_nothing():
    X, y = blobs()
    landscape = survey(X)
    answers = [one for one in random_answers(y, 12, seed=3) if one[2] != "unsure"][:8]
    plain = infer(landscape, told(*answers))
    more = infer(landscape, told(*answers, (0, 7, "unsure")))
    np.testing.assert_allclose(more.prob, plain.prob)
    only = infer(landscape, told((0, 7, "unsure")))
    np.testing.assert_allclose(only.prob, infer(landscape, NO_ANSWERS).prob)


def test_the_answer_against_all_others_is_doubted():
    X, y = blobs()
    a, b = np.flatnonzero(y == 0)[:6].tolist(), np.flatnonzero(y == 1)[:6].tolist()
    right = (
        [(i, a[0], "same") for i in a[1:]] + [(i, b[0], "same") for i in b[1:]] + [(a[0], b[0], "different")]
    )
    right += [(i, j, "different") for i, j in zip(a[1:], b[1:], strict=True)]
    found = infer(survey(X), told(*right, (a[3], b[2], "same")))
    assert found.wrong.argmax() == len(right)
    assert found.wrong[-1] > 0.9
    assert found.wrong[:-1].max() < 0.1


def test_order_of_the_rows_of_an_answer_does_not_change_groups():
    """Where every two groups were compared; parts that were not may be one group or two."""
    X, y = blobs()
    X = X + 30.0 * np.eye(3)[y][:, :2]
    answers = [(1, 0, "different"), (2, 0, "different"), (1, 2, "different")]
    answers += [(row, row % 3, "same") for row in range(3, 18)]
    landscape = survey(X)
    found = infer(landscape, told(*answers))
    turned = infer(landscape, told(*[(j, i, word) for i, j, word in answers]))
    labels = [one.prob.argmax(axis=1) for one in (found, turned)]
    np.testing.assert_array_equal(labels[0][:, None] == labels[0], labels[1][:, None] == labels[1])


@pytest.mark.parametrize("n_clusters", [None, 3])
def test_right_answers_make_right_groups(n_clusters):
    X, y = blobs(48)
    X = X + 30.0 * np.eye(3)[y][:, :2]  # far apart
    first = [int(np.flatnonzero(y == k)[0]) for k in range(3)]
    answers = [(first[1], first[0], "different"), (first[2], first[0], "different")]
    answers.append((first[2], first[1], "different"))
    answers += [(row, first[y[row]], "same") for row in range(3, 18)]
    found = infer(survey(X), told(*answers), n_clusters)
    assert found.n_groups == 3
    labels = found.prob.argmax(axis=1)
    np.testing.assert_array_equal(labels[:, None] == labels, y[:, None] == y)


@pytest.mark.parametrize("seed", range(examples(6, 3)))
def test_groups_of_two_unlike_rows_keep_their_names(seed):
    """Six clusters on a circle, of which two and two are one group: no row says which group is which."""
    angle = np.arange(6) * np.pi / 3.0
    X = np.repeat(20.0 * np.column_stack([np.cos(angle), np.sin(angle)]), 12, axis=0)
    X += np.random.default_rng(seed).standard_normal(X.shape)
    row = [12 * k for k in range(6)]
    apart = [(1, 0), (2, 1), (2, 0), (3, 2), (3, 0), (3, 1), (4, 2)]
    answers = [(row[i], row[j], "different") for i, j in apart]
    answers += [(row[4], row[3], "same"), (row[5], row[2], "same")]
    landscape = survey(X, seed=seed)
    found = infer(landscape, told(*answers))
    assert landscape.rows[found.asked].tolist() == row
    assert found.group.tolist() == [0, 1, 2, 3, 3, 2]


@pytest.mark.parametrize("word", ["same", "different"])
def test_two_rows_whose_groups_are_not_found_may_be_in_two_groups(word):
    """Two rows are as likely in one of two groups not found as in both: an answer errs as often as any."""
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 12, axis=0)
    X += 0.1 * np.random.default_rng(0).standard_normal(X.shape)
    landscape = survey(X)
    asked = asked_landmarks(landscape, told((1, 0, "same"), (24, 12, word)))
    label = np.where(asked.places < 12, 0, -1)
    groups = Groups(label, np.full((4, 1), 0.01), np.zeros((1, 1)), 1000.0, [])
    targets, trust = module._targets(groups)
    _, prob, agreement, _ = module._believe(landscape, asked, groups, targets, trust, 0.02, None, 2)
    assert prob.shape == (4, 2)
    assert prob.sum(axis=1) == pytest.approx(1.0)
    wrong = agreement[1] if word == "different" else 1.0 - agreement[1]
    assert wrong == pytest.approx(0.02, abs=0.001)


def test_share_of_answers_that_the_first_clusters_keep():
    X, _ = blobs()
    landscape = survey(X)
    start = landscape.start
    i, j = (int(row) for row in np.flatnonzero(start == start[0])[:2])
    k = int(np.flatnonzero(start != start[0])[0])
    assert infer(landscape, NO_ANSWERS).start_kept == 1.0
    found = infer(landscape, told((i, j, "same"), (i, k, "different"), (j, k, "same"), (0, 5, "unsure")))
    assert found.start_kept == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_large_share_of_wrong_answers_does_not_last_if_answers_cannot_contradict_it(seed):
    """All answers are right, and no two of them are about the same rows or chains of rows."""
    X, y = blobs(60, seed=seed)
    X = 0.6 * X + 1.2 * np.random.default_rng(seed).standard_normal(X.shape)
    landscape, answers = survey(X), told(*random_answers(y, 30, seed, wrong=0.0))
    others = [module._first_groups(landscape, answers)]
    asked = asked_landmarks(landscape, answers)
    fresh, raised = (module._settle(landscape, asked, None, others, rate) for rate in (0.0, 0.25))
    assert raised.error_rate <= fresh.error_rate < 0.05


def test_answers_that_close_a_circle():
    landscape = survey(blobs()[0])
    chain = [(0, 1, "same"), (1, 2, "different"), (2, 3, "same"), (7, 8, "different")]
    assert module._circles(asked_landmarks(landscape, told(*chain))) == 0
    more = told(*chain, (3, 0, "same"), (8, 7, "same"), (4, 0, "unsure"))
    assert module._circles(asked_landmarks(landscape, more)) == 2
