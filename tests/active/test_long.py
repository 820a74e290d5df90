"""The core of a long session: contraction against its definition, and long sessions against short ones."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.active import ActiveClustering, LabelOracle, long
from linkwise.active import posterior as module
from linkwise.active.evidence import Told
from linkwise.active.knowledge import Answers, Knowledge, as_constraints
from linkwise.active.long import N_EXACT, choose_core, contract, hand_on, last_look, steps, summarise
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


def slow_last_look(n_answers):
    first, n_pairs = 0, 1
    while first + n_pairs <= n_answers:
        first += n_pairs
        n_pairs = 1 + first // 25
    return first, n_pairs


def test_last_look_is_the_last_one_before_so_many_answers():
    for n_answers in range(1200):
        assert last_look(n_answers) == slow_last_look(n_answers)


@pytest.mark.parametrize("n_given", [0, 3, 10, 57, 300])
def test_steps_are_every_ten_and_then_the_looks(n_given):
    for n_answers in range(n_given, n_given + N_EXACT):
        expected = range(max(10, n_given), n_answers + 1, 10)
        assert list(steps(n_given, n_answers)) == list(expected)
    found = list(steps(n_given, n_given + 1000))
    assert found == sorted(set(found))
    late = [step for step in found if step - n_given > N_EXACT + 10]
    assert late
    assert all(last_look(step - n_given)[0] == step - n_given for step in late)
    # Every look after the exact part is a step, so that a look is settled once.
    looks = {last_look(told)[0] for told in range(N_EXACT + 1, 1001)} - {last_look(N_EXACT)[0]}
    assert {n_given + look for look in looks if look > N_EXACT} <= set(found)


def answers_of(links):
    certainty = np.where(np.isinf(links.weights), 1.0, 1.0 / (1.0 + np.exp(-2.0 * np.abs(links.weights))))
    says = np.sign(links.weights).astype(np.int8)
    return Answers(links.pairs, says, certainty, ("",) * links.n_pairs)


def test_few_links_are_taken_as_they_are():
    told = answers_of(Constraints.sample(np.arange(50) % 3, 30, overlap=True, random_state=0))
    assert summarise(told) is told


@pytest.mark.parametrize("seed", range(4))
def test_facts_are_kept_in_short(seed):
    y = np.random.default_rng(seed).integers(4, size=400)
    links = Constraints.sample(y, 500, overlap=True, random_state=seed)
    short = summarise(answers_of(links), 60)
    kept = np.unique(short.pairs)
    assert 30 <= len(kept) <= 60
    assert np.isin(kept, links.pairs).all()
    assert (short.certainty == 1.0).all()
    # Each fact that is kept follows from the facts given: its contrary contradicts them.
    assert ((y[short.pairs[:, 0]] == y[short.pairs[:, 1]]) == (short.says > 0)).all()
    chunklets = links.chunklets()
    between = {frozenset(chunklets[pair].tolist()) for pair in links.cannot_link}
    for pair, says in zip(short.pairs, short.says, strict=True):
        ends = chunklets[pair]
        assert ends[0] == ends[1] if says > 0 else frozenset(ends.tolist()) in between
    # Parts were chosen because links lead from one to the next.
    assert (short.says < 0).sum() > 10


def test_classes_are_kept_in_equal_shares():
    y = np.repeat([0, 1, 2, -1], [500, 300, 8, 50])
    short = summarise(answers_of(Constraints.from_labels(y)), 100)
    counts = np.bincount(y[np.unique(short.pairs)])
    assert counts.tolist() == [46, 46, 8]
    links = as_constraints(short, len(y))
    assert not links.violations(y).any()
    assert len(links.cannot_link) == 3


def test_certainty_of_opinions():
    # A part of three rows with certainties .7 and .9, and two opinions of .8 that set it apart from another.
    links = Constraints(
        9, [(0, 1), (1, 2), (3, 4)], [(0, 3), (2, 4), (5, 6)], certainty=[0.7, 0.9, 0.95, 0.8, 0.8, 0.6]
    )
    short = summarise(answers_of(links), 5)
    found = {}
    for pair, says, certainty in zip(short.pairs.tolist(), short.says.tolist(), short.certainty, strict=True):
        found.setdefault((says, len({0, 1, 2} & set(pair))), []).append(certainty)
    assert found[1, 2] == pytest.approx([0.8, 0.8])
    assert found[1, 0] == pytest.approx([0.95])
    assert found[-1, 1] == pytest.approx([16.0 / 17.0])
    assert sum(map(len, found.values())) == 4


@pytest.mark.usefixtures("fewer_candidates")
def test_session_with_many_links(monkeypatch):
    monkeypatch.setattr(long, "N_ROWS", 30)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    X = 4.0 * rng.standard_normal((3, 2))[y] + rng.standard_normal((150, 2))
    links = Constraints.sample(y, 200, overlap=True, random_state=1)
    session = ActiveClustering(X, links, n_clusters=3, random_state=0)
    assert len(session._knowledge.posterior.asked) <= 30
    asked = {frozenset(pair) for pair in links.pairs.tolist()}
    for _ in range(8):
        i, j = session.ask()
        assert frozenset((i, j)) not in asked
        session.tell(i, j, "same" if y[i] == y[j] else "different")
        # Facts hold in the labels, also those that were left out.
        assert not links.violations(session.labels_).any()
    assert session.constraints.n_pairs == 208
    assert session.doubts(0.0)[0].answer < 8
