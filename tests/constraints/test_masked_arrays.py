"""What a mask hides is unknown: a label without a class, and an error for pairs, weights and rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from linkwise import CPPC, Constraints, metrics
from linkwise._validation import as_vector, encode, label_codes

HIDDEN = [False, True, False, False, True, False]
LABELS = {
    "int": np.array([3, 3, 5, 3, 5, 5]),
    "float": np.array([0.5, 0.5, 2.0, 0.5, 2.0, 2.0]),
    "text": np.array(["a", "a", "b", "a", "b", "b"]),
    "object": np.array(["a", "a", 7, "a", 7, 7], dtype=object),
    "large": np.array([2**53, 2**53, 2**53 + 1, 2**53, 2**53 + 1, 2**53 + 1]),
}
BUILDERS = {
    "from_labels": lambda y: Constraints.from_labels(y),
    "sample": lambda y: Constraints.sample(y, 6, overlap=True, random_state=0),
    "from_teachers": lambda y: Constraints.from_teachers(y, 2, 3, random_state=0),
    "from_partial_classes": lambda y: Constraints.from_partial_classes(y, per_point=1, random_state=0),
}


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", LABELS)
def test_a_masked_label_is_unknown(builder, kind):
    build, y = BUILDERS[builder], LABELS[kind]
    known = build(np.ma.array(y, mask=HIDDEN))
    plain = [None if hidden else value for value, hidden in zip(y.tolist(), HIDDEN, strict=True)]
    assert known == build(plain)
    assert not np.isin(known.pairs, np.flatnonzero(HIDDEN)).any()
    assert known != build(y)
    assert build(np.ma.array(y, mask=False)) == build(y)
    assert build(np.ma.array(y)) == build(y)


def test_all_masked():
    assert Constraints.from_labels(np.ma.array([1, 2], mask=True)).n_pairs == 0
    assert Constraints.from_labels(np.ma.array([], dtype=int)).n_pairs == 0


def test_estimators_and_metrics():
    X = np.arange(12.0).reshape(6, 2) ** 2
    y = np.ma.array(LABELS["int"], mask=HIDDEN)
    assert CPPC(2).fit(X, y).contingency_.sum() == 4
    with pytest.raises(ValueError, match=r"y\[1\] is None; drop unlabelled rows"):
        metrics.pairwise_f1(y, [0] * 6)


@pytest.mark.parametrize("name", ["must_link", "cannot_link"])
@pytest.mark.parametrize("end", [0, 1])
def test_a_masked_pair_is_refused(name, end):
    pairs = np.ma.array([(0, 1), (2, 3), (1, 4)])
    assert Constraints(5, **{name: pairs}).n_pairs == 3
    pairs[2, end] = np.ma.masked
    with pytest.raises(ValueError, match=f"{name} pair 2 is masked"):
        Constraints(5, **{name: pairs})
    with pytest.raises(ValueError, match=f"{name} pair 2 is masked"):
        Constraints(5, **{name: list(pairs)})


@pytest.mark.parametrize("name", ["weight", "certainty"])
def test_a_masked_strength_is_refused(name):
    def build(values):
        return Constraints(5, [(0, 1), (2, 3)], [(1, 4)], **{name: values})

    plain = [0.6, 0.7, 0.8]
    assert build(np.ma.array(plain)) == build(plain)
    with pytest.raises(ValueError, match=f"{name} of must_link pair 1 is masked"):
        build(np.ma.array(plain, mask=[0, 1, 0]))
    with pytest.raises(ValueError, match=f"{name} of cannot_link pair 0 is masked"):
        build(np.ma.array(plain, mask=[0, 0, 1]))
    with pytest.raises(ValueError, match=f"{name} of must_link pair 0 is masked"):
        build(np.ma.masked)
    for builder in (
        lambda **k: Constraints.from_grid((2, 2), **k),
        lambda **k: Constraints.from_sequence(5, **k),
    ):
        with pytest.raises(ValueError, match=f"{name} of must_link pair 0 is masked"):
            builder(**{name: np.ma.masked})
    if name == "certainty":
        with pytest.raises(ValueError, match="certainty of must_link pair 0 is masked"):
            Constraints.sample([0, 0, 1, 1], 2, certainty=np.ma.masked)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, -1])
@pytest.mark.parametrize("wrap", ["list", "object", "Series", "Int64", "category"])
def test_whole_numbers_beyond_2_53_are_not_rounded(gap, wrap):
    values = [2**53, 2**53 + 1, gap, 2**53, 2**53 + 1]
    if wrap == "list":
        y = values
    elif wrap == "object":
        y = np.array(values, dtype=object)
    elif wrap == "Series":
        y = pd.Series(values, dtype=object)
    else:
        whole = [*values[:2], -1 if isinstance(gap, int) else None, *values[3:]]
        y = pd.Series(whole, dtype="Int64")
        y = y.astype("category") if wrap == "category" else y
    codes, classes = label_codes(y)
    assert codes.tolist() == [0, 1, -1, 0, 1]
    assert classes.tolist() == [2**53, 2**53 + 1]
    links, expected = Constraints.from_labels(y), Constraints(5, [(0, 3), (1, 4)], [(0, 1)])
    assert np.array_equal(links.pairs, expected.pairs)
    assert np.array_equal(links.weights, expected.weights)
    assert links.row_classes.tolist() == [0, 1, -1, 0, 1]


@pytest.mark.parametrize("other", [0.5, -7, 2**63, "a"])
def test_class_names_stay_as_they_are_beside_others(other):
    values = [2**53 + 1, 2**53, other, 2**64 - 1]
    classes, codes = encode(as_vector(values, "y"), "y")
    assert sorted(codes.tolist()) == [0, 1, 2, 3]
    assert [classes.tolist()[code] for code in codes] == values
