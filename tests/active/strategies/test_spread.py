"""Spread against its formula written as loops, and on two chains that are easy to follow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise.active.knowledge import DIFFERENT, NO_ANSWERS, SAME, Knowledge, append
from linkwise.active.landscape import survey
from linkwise.active.strategies.spread import spread
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


def transcription(X, person, k):
    """The definition of the module, with loops."""
    n = len(X)
    kernel = survey(X).kernels[4]
    neighbourhoods = [[max(range(n), key=lambda row: sum(kernel[row]))]]
    used = {neighbourhoods[0][0]}
    try:
        while len(used) < n:
            best, score, order = -1, -1.0, []
            for row in range(n):
                if row in used:
                    continue
                reached = [sum(kernel[row, other] for other in N) for N in neighbourhoods]
                share = [one / sum(reached) for one in reached]
                entropy = -sum(p * math.log(p) for p in share if p > 0)
                cover = max(kernel[row, other] for N in neighbourhoods for other in N)
                value = (entropy + 0.7 * (1 - cover)) * math.sqrt(sum(kernel[row]))
                if value > score + 1e-12:
                    best, score, order = row, value, sorted(range(len(share)), key=lambda h: -share[h])
            used.add(best)
            answers = []
            for h in order:
                answers.append(person(best, nearest(X, best, neighbourhoods[h])))
                if answers[-1] == SAME:
                    neighbourhoods[h].append(best)
                    break
            if all(answer == DIFFERENT for answer in answers) and (k is None or len(neighbourhoods) < k):
                neighbourhoods.append([best])
    except Budget:
        pass
    return person.asked


@pytest.mark.parametrize("given", [True, False], ids=["K known", "K unknown"])
@pytest.mark.parametrize("seed", range(examples(6, 4)))
def test_asks_what_the_formula_says(seed, given):
    X, y, k = small_set(seed)
    landscape = survey(X)

    def with_landscape(knowledge, n_pairs, rng):
        known = Knowledge(knowledge.X, knowledge.answers, knowledge.n_clusters, landscape)
        return spread(known, n_pairs, rng)

    for answer in (truth(y), faulty(y, seed)):
        wanted = transcription(X, Person(answer, 25), k if given else None)
        asked = asked_by(with_landscape, X, answer, len(wanted), n_clusters=k if given else None, seed=seed)
        assert asked == wanted


def test_the_other_chain_comes_before_the_rest_of_the_first():
    X = np.concatenate([np.c_[np.arange(20.0), np.zeros(20)], np.c_[np.arange(20.0), np.full(20, 50.0)]])
    answers = append(NO_ANSWERS, 9, 10, SAME)
    (pair,) = spread(Knowledge(X, answers), 1, rng_at(0, 1))
    assert pair[0] >= 20  # nothing known reaches the second chain


def test_several_rows_are_spread_out():
    X = np.concatenate([np.c_[np.arange(20.0), np.full(20, 50.0 * chain)] for chain in range(4)])
    pairs = spread(Knowledge(X, append(NO_ANSWERS, 9, 10, SAME)), 3, rng_at(0, 1))
    assert sorted(pairs[:, 0] // 20) == [1, 2, 3]  # one row of each chain that nothing reaches
