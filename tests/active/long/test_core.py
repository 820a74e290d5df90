"""The core of a long session: contraction against its definition, and long sessions against short ones."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.active import ActiveClustering, LabelOracle
from linkwise.active import posterior as module
from linkwise.active.evidence import Told
from linkwise.active.knowledge import Knowledge
from linkwise.active.long.core import choose_core, contract, hand_on
from tests.repeats import LONG, for_seeds


def random_told(seed, t=30, q=60):
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(t, 2, replace=False) for _ in range(q)])
    told = Told(np.arange(t), pairs, rng.choice([-1, 1], size=q), np.full(q, np.nan), np.arange(q))
    group = rng.integers(-1, 4, size=t)
    group[:4] = np.arange(4)
    return rng, told, group


@for_seeds(20)
def test_the_core_has_recent_rows_first_rows_and_the_least_sure(seed):
    rng, _, group = random_told(seed, t=80)
    sure, recent = rng.random(80), rng.random(80) < 0.1
    inside = choose_core(group, sure, recent, seed, n_rows=40)
    assert inside[recent].all()
    assert all(inside[np.flatnonzero(group == one)[0]] for one in range(4))
    assert int(inside.sum()) <= max(40, int(recent.sum()) + 4 + 4 * 5)
    assert np.array_equal(inside, choose_core(group, sure, recent, seed, n_rows=40))
    left = ~inside & (sure < 0.99) & ~recent
    taken = inside & ~recent & (sure < 0.99)
    n_doubtful = 20 - int((recent | np.isin(np.arange(80), [0, 1, 2, 3])).sum())
    if left.any() and n_doubtful > 0:  # the least sure rows come before any other
        order = np.flatnonzero(~recent & (np.arange(80) > 3))
        order = order[np.argsort(sure[order], kind="stable")][:n_doubtful]
        assert taken[order].all()


@for_seeds(30)
def test_contraction_against_its_definition(seed):
    rng, told, group = random_told(seed)
    inside = rng.random(30) < 0.4
    inside[:4] = True  # the first rows of the groups
    found = contract(told, inside, group)
    core = np.flatnonzero(inside)
    kept, dropped = {}, []
    for place, pair in enumerate(told.pairs.tolist()):
        ends = [row if inside[row] else int(group[row]) if group[row] >= 0 else None for row in pair]
        if None in ends:
            continue
        if ends[0] == ends[1]:
            dropped.append(place)
        else:
            kept[place] = ends
    assert dict(zip(found.kept.tolist(), core[found.pairs].tolist(), strict=True)) == kept
    assert found.dropped.tolist() == dropped


def test_rows_outside_follow_their_group():
    old = np.array([0, 0, 0, 1, 1, 1, -1, 0, 1, -1, 2])
    inside = np.array([True] * 7 + [False] * 4)
    predicted = np.array([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    # Group 0 is group 1 now; group 1 is in two pieces; nothing is left of group 2.
    group = hand_on(old, inside, np.array([1, 1, 1, 0, 1, 1, -1]), predicted)
    assert group.tolist() == [1, 1, 1, 0, 1, 1, -1, 1, 0, -1, -1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_a_small_core_finds_nearly_what_all_rows_find(monkeypatch, seed, error_rate):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=160)
    X = 6.0 * np.eye(4)[y] + rng.normal(size=(160, 4))
    # Any questions will do, and those of min_max take no time.
    with ActiveClustering(X, strategy="auto" if LONG else "min_max", random_state=seed) as session:
        person = LabelOracle(y, error_rate=error_rate, random_state=seed)
        for _ in range(120):
            i, j = session.ask()
            session.tell(i, j, person(i, j))
        whole = session._knowledge
    monkeypatch.setattr(module, "N_EXACT", 60)
    monkeypatch.setattr(module, "N_ROWS", 40)
    whole.surveyed.earlier.clear()
    short = Knowledge(whole.X, whole.answers, None, whole.surveyed)
    found, expected = short.posterior, whole.posterior
    assert np.array_equal(found.asked, expected.asked)
    assert found.n_groups == expected.n_groups
    np.testing.assert_allclose(found.prob.sum(axis=1), 1.0, atol=1e-6)
    same = found.prob.argmax(axis=1) == expected.prob.argmax(axis=1)
    assert same.mean() > 0.95
    assert len(found.wrong) == 120
    assert ((found.wrong > 0.5) == (expected.wrong > 0.5)).mean() > 0.95
