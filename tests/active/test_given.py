"""Many given links in short: what is kept follows from what was given."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import Constraints
from linkwise.active import ActiveClustering, given
from linkwise.active.given import summarise
from linkwise.active.knowledge import Answers, as_constraints


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
    monkeypatch.setattr(given, "N_ROWS", 30)
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
