"""MinMax against the paper's definition with similarities, and on a line that is easy to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, Knowledge, append
from linkwise.active.strategies.min_max import min_max
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


def transcription(X, person, k, seed):
    """Mallapragada, Jin & Jain 2008: Explore, then the least similar row by a Gaussian kernel."""
    n = len(X)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    width = np.percentile(distances[np.triu_indices(n, 1)], 20)
    similarity = np.exp(-(distances**2) / (2.0 * width**2)).tolist()
    distances = distances.tolist()  # numbers of Python, for loops
    neighbourhoods = [[int(rng_at(seed, 0).choice(n))]]
    used = {neighbourhoods[0][0]}
    try:
        while len(used) < n:
            free = [row for row in range(n) if row not in used]
            skeleton = [row for N in neighbourhoods for row in N]
            if k is not None and len(neighbourhoods) < k:
                row = max(free, key=lambda row: min(distances[row][y] for y in skeleton))
            else:
                row = min(free, key=lambda row: max(similarity[row][y] for y in skeleton))
            used.add(row)
            answers = []
            for h in sorted(
                range(len(neighbourhoods)), key=lambda h: -max(similarity[row][y] for y in neighbourhoods[h])
            ):
                answers.append(person(row, nearest(X, row, neighbourhoods[h])))
                if answers[-1] == SAME:
                    neighbourhoods[h].append(row)
                    break
            if all(answer == DIFFERENT for answer in answers) and (k is None or len(neighbourhoods) < k):
                neighbourhoods.append([row])
    except Budget:
        pass
    return person.asked


@pytest.mark.parametrize("given", [True, False], ids=["K known", "K unknown"])
@pytest.mark.parametrize("seed", range(examples(12, 6)))
def test_asks_what_the_definition_asks(seed, given):
    X, y, k = small_set(seed)
    for answer in (truth(y), faulty(y, seed)):
        wanted = transcription(X, Person(answer, 60), k if given else None, seed)
        asked = asked_by(
            min_max, X, answer, len(wanted), n_clusters=k if given else None, seed=seed
        )  # fmt: skip
        assert asked == wanted
        assert len(wanted) >= len(X) - 1


def test_far_rows_have_no_ties():
    # With a Gaussian kernel rows 2 and 3 have similarity 0 to all others in floating point.
    X = np.array([[0.0], [0.1], [1e4], [3e4]])
    answers = append(NO_ANSWERS, 1, 0, SAME)
    assert min_max(Knowledge(X, answers, 2), 1, rng_at(0, 1)).tolist() == [[3, 1]]


def test_the_nearest_member_decides_the_order():
    # {0, 1, 2} reaches from 0 to 6 (mean 2), {3} is at 10. Row 4 at 7: nearest member 6, nearest mean 10.
    X = np.array([[0.0], [0.0], [6.0], [10.0], [7.0]])
    answers = append(append(NO_ANSWERS, 1, 0, SAME), 2, 0, SAME)
    answers = append(append(answers, 3, 2, DIFFERENT), 4, 2, DIFFERENT)
    assert min_max(Knowledge(X, answers, None), 1, rng_at(0, 4)).tolist() == [[4, 3]]
    answers = append(append(append(NO_ANSWERS, 1, 0, SAME), 2, 0, SAME), 3, 2, DIFFERENT)
    assert min_max(Knowledge(X, answers, None), 2, rng_at(0, 3)).tolist() == [[4, 2], [4, 3]]
