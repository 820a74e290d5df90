"""NPU against the paper's algorithms 1 and 2 written as loops, and its numbers worked out by hand."""

from __future__ import annotations

import math
import sys
from typing import ClassVar

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from linkwise import Constraints, MPCKMeans
from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, Knowledge, append
from linkwise.active.strategies.npu import expected_questions, membership, npu, uncertainty
from tests.active.strategies.sessions import (
    Budget,
    Person,
    asked_by,
    faulty,
    nearest,
    rng_at,
    small_set,
    truth,
)
from tests.repeats import examples

#: Few, since a forest takes nearly all the time; a prime number, so that shares of leaves are seldom equal.
N_TREES = 11


class Forest:
    """scikit-learn's forest, grown once for the strategy and the transcription if both ask for the same."""

    grown: ClassVar[dict] = {}

    def __init__(self, n_trees, random_state):
        self.settings = (n_trees, random_state)

    def fit(self, X, labels):
        key = (*self.settings, np.asarray(X).tobytes(), np.asarray(labels).tobytes())
        if key not in self.grown:
            self.grown[key] = RandomForestClassifier(self.settings[0], random_state=self.settings[1])
            self.grown[key].fit(X, labels)
        return self.grown[key]


@pytest.fixture(autouse=True)
def fewer_trees(monkeypatch):
    module = sys.modules[npu.__module__]
    monkeypatch.setattr(module, "N_TREES", N_TREES)
    monkeypatch.setattr(module, "RandomForestClassifier", Forest)


def test_membership_by_hand():
    # Four trees. Row 0 shares leaves with row 1 in three trees, with row 2 in one, with row 3 in none.
    leaves = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [2, 2, 2, 1], [3, 3, 3, 3]])
    members = [np.array([1, 3]), np.array([2])]
    # Means 3/8 and 1/4: shares 3/5 and 2/5. Row 3 is like itself only.
    np.testing.assert_allclose(membership(leaves, members)[[0, 3]], [[0.6, 0.4], [1.0, 0.0]])
    # A row that shares no leaf is equally likely everywhere.
    np.testing.assert_allclose(membership(leaves, members[1:] * 2)[3], [0.5, 0.5])


def test_uncertainty_and_questions_by_hand():
    prob = np.array([[0.25, 0.5, 0.25], [0.0, 0.0, 1.0], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(uncertainty(prob)[:2], [1.5, 0.0], atol=1e-15)
    # Likeliest first: .5 + 2 * .25 + 3 * .25; 1; .7 + 2 * .2 + 3 * .1.
    np.testing.assert_allclose(expected_questions(prob), [1.75, 1.0, 1.4])


def transcription(X, person, k, seed):
    """Algorithms 1 and 2 of Xiong, Azimi & Fern 2014, with loops."""
    n = len(X)
    neighbourhoods = [[int(rng_at(seed, 0).choice(n))]]
    used = {neighbourhoods[0][0]}
    links = {SAME: [], DIFFERENT: []}
    try:
        while len(used) < n:
            n_answers = len(person.asked)
            free = [row for row in range(n) if row not in used]
            if len(neighbourhoods) == 1:
                # The first draw of a session is the start.
                rng = rng_at(seed, n_answers)
                if n_answers == 0:
                    rng.choice(n)
                best, order = int(rng.choice(free)), [0]
            else:
                constraints = Constraints(n, links[SAME], links[DIFFERENT], weight=1.0)
                labels = (
                    MPCKMeans(k or len(neighbourhoods), n_init=1, random_state=n_answers)
                    .fit(X, constraints=constraints)
                    .labels_
                )
                forest = Forest(N_TREES, random_state=n_answers).fit(X, labels)
                leaves = forest.apply(X)
                best, score, order = -1, -1.0, []
                for row in free:
                    means = []
                    for N in neighbourhoods:
                        shared = [sum(leaves[row] == leaves[other]) / N_TREES for other in N]
                        means.append(sum(shared) / len(N))
                    total = sum(means)
                    prob = [mean / total for mean in means] if total else [1 / len(means)] * len(means)
                    entropy = -sum(p * math.log2(p) for p in prob if p > 0)
                    questions = sum((i + 1) * p for i, p in enumerate(sorted(prob, reverse=True)))
                    if entropy / questions > score + 1e-12:
                        best, score = row, entropy / questions
                        order = sorted(range(len(prob)), key=lambda h: -prob[h])
            used.add(best)
            answers = []
            for h in order:
                other = nearest(X, best, neighbourhoods[h])
                answers.append(person(best, other))
                if answers[-1] in links:
                    links[answers[-1]].append((best, other))
                if answers[-1] == SAME:
                    neighbourhoods[h].append(best)
                    break
            if all(answer == DIFFERENT for answer in answers) and (k is None or len(neighbourhoods) < k):
                neighbourhoods.append([best])
    except Budget:
        pass
    return person.asked


@pytest.mark.parametrize("given", [True, False], ids=["K known", "K unknown"])
@pytest.mark.parametrize("seed", range(examples(8, 4)))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_asks_what_the_algorithms_ask(seed, given):
    X, y, k = small_set(seed)
    answer = faulty(y, seed) if seed % 2 else truth(y)
    wanted = transcription(X, Person(answer, 8), k if given else None, seed)
    asked = asked_by(npu, X, answer, len(wanted), n_clusters=k if given else None, seed=seed)
    assert asked == wanted


def test_settles_rows_between_two_clusters_first(monkeypatch):
    monkeypatch.setattr(sys.modules[npu.__module__], "N_TREES", 50)
    # Two clusters on a line and one row in the middle: only there do the trees disagree.
    X = np.array([[0.0], [0.1], [0.2], [0.3], [1.45], [2.7], [2.8], [2.9], [3.0]])
    answers = append(NO_ANSWERS, 8, 0, DIFFERENT)
    pairs = npu(Knowledge(X, answers, 2), 1, rng_at(0, 1))
    assert pairs[0, 0] == 4
    # The row is compared with the other cluster next, whatever the generator.
    answers = append(answers, *pairs[0].tolist(), DIFFERENT)
    other = 8 if pairs[0, 1] < 4 else 0
    assert npu(Knowledge(X, answers, 2), 1, rng_at(7, 2)).tolist() == [[4, other]]


def test_contradictory_answers_are_no_error():
    X, _, _ = small_set(1)
    answers = append(append(append(NO_ANSWERS, 0, 1, SAME, 1.0), 0, 1, DIFFERENT, 1.0), 2, 0, DIFFERENT, 1.0)
    assert npu(Knowledge(X, answers, 2), 3, rng_at(0, 3)).shape == (3, 2)
