"""Part of the rows of labelled data: the links say what the labels of these rows say, whoever is left out."""

from __future__ import annotations

import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from linkwise import Constraints, COPKMeans
from tests.strategies import size


def meaning(links, codes, sure):
    """Weights between groups of rows; sure rows of a class are one group, which must hold together."""
    group = [
        ("sure", c) if c >= 0 and s == 1.0 else (row, row)
        for row, (c, s) in enumerate(zip(codes, sure, strict=True))
    ]
    chunklets = links.chunklets()
    for name in {name for name in group if name[0] == "sure"}:
        assert len({chunklets[row] for row, other in enumerate(group) if other == name}) == 1
    found = defaultdict(float)
    for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
        if group[i] != group[j]:
            found[frozenset([group[i], group[j]])] = weight
    return found


def labels_and_rows(random, certainties):
    n_rows = size(random, 1, 14)
    codes = np.array(random.choices(range(-1, random.randint(0, 4)), k=n_rows))
    sure = np.array(random.choices(certainties, k=n_rows))
    kept = np.arange(n_rows) if random.random() < 0.2 else subset(random, n_rows)
    return codes, sure, kept


def subset(random, n_rows):
    return np.array([row for row in range(n_rows) if random.random() < 0.5], dtype=int)


@pytest.mark.parametrize("certainties", [[1.0], [0.9], [0.6, 0.75, 0.9], [0.7, 0.9, 1.0]], ids=str)
@given(random=st.randoms(use_true_random=True))
def test_a_part_of_the_links_is_the_links_of_a_part(certainties, random):
    codes, sure, rows = labels_and_rows(random, certainties)
    part = Constraints.from_labels(codes, certainty=sure)[rows]
    alone = Constraints.from_labels(codes[rows], certainty=sure[rows])
    expected, found = (meaning(links, codes[rows], sure[rows]) for links in (alone, part))
    assert found.keys() == expected.keys()
    for pair, weight in expected.items():
        assert found[pair] == pytest.approx(weight)
    if len(rows) == len(codes):
        assert part == Constraints.from_labels(codes, certainty=sure)


@given(st.randoms(use_true_random=True))
def test_also_of_a_part_of_a_part(random):
    codes, sure, rows = labels_and_rows(random, [0.7, 0.9, 1.0])
    links = pickle.loads(pickle.dumps(Constraints.from_labels(codes, certainty=sure)))[rows]
    again = subset(random, len(rows))
    last = rows[again]
    expected = meaning(Constraints.from_labels(codes[last], certainty=sure[last]), codes[last], sure[last])
    found = meaning(links.with_index(None)[again], codes[last], sure[last])
    assert found.keys() == expected.keys()


@given(st.randoms(use_true_random=True))
def test_sure_labels_of_repeated_rows_in_any_order(random):
    codes = np.array(random.choices(range(-1, 3), k=size(random, 1, 8)))
    rows = np.array(random.choices(range(len(codes)), k=size(random, 0, 10)), dtype=int)
    part = Constraints.from_labels(codes)[rows]
    known = np.flatnonzero(codes[rows] >= 0)
    chunklets, truth = part.chunklets(), codes[rows]
    apart = {frozenset(ends) for ends in chunklets[part.cannot_link].tolist()}
    for i in known:
        for j in known:
            assert (chunklets[i] == chunklets[j]) == (truth[i] == truth[j])
            assert (frozenset([chunklets[i], chunklets[j]]) in apart) == (truth[i] != truth[j])


def test_other_links_move_with_the_labels():
    """Row 4 is linked to row 1, which is of the class of row 0: without row 1 it is linked to row 0."""
    labels = Constraints.from_labels(["oak", "oak", "ash", "ash", None])
    both = labels + Constraints(5, must_link=[(1, 4)], certainty=0.8, source="Ann")
    part = both[[0, 3, 4]]
    assert part.pairs.tolist() == [[0, 1], [0, 2]]
    assert part.weights.tolist() == [-np.inf, both.weights[2]]
    assert part.source.tolist() == ["", "Ann"]


def test_links_without_labels_stay_as_they_were():
    assert Constraints(3, must_link=[(0, 1), (1, 2)])[[0, 2]].n_pairs == 0


def test_every_fold_knows_its_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 2)) + 3.0 * np.eye(3, 2)[y]
    names = np.where(rng.random(90) < 0.3, np.array(["maize", "rice", "wheat"])[y], None)
    links = Constraints.from_labels(names)
    for train, _ in KFold(5).split(X):
        model = COPKMeans(3, random_state=0).fit(X[train], constraints=links[train])
        known = np.flatnonzero(names[train] != None)  # noqa: E711
        assert model.cluster_names_[model.labels_][known].tolist() == names[train][known].tolist()
