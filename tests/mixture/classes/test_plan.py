"""Plans of CPPC: what beliefs forbid never happens, what they ask for does, the rest is left to the data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from linkwise import CPPC
from linkwise.mixture.classes import evidence
from linkwise.mixture.classes.e_step import pair_weights
from linkwise.mixture.classes.plan import make_plan
from tests.repeats import LONG


@pytest.fixture(autouse=True, scope="module")
def shared_divisions():
    """Fit the mixture of the same rows and seed once: many plans differ in beliefs or numbers only."""
    known = {}
    original = evidence._division

    def division(X, rows, half, *others):
        key = (X.shape, X.tobytes(), rows.tobytes(), None if half is None else half.tobytes(), others)
        if key not in known:
            known[key] = original(X, rows, half, *others)
            known[key].labels.setflags(write=False)
        return known[key]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(evidence, "_division", division)
        yield


def plan(X, codes, beliefs, n_clusters=None, *, seed=0, covariance_type="full", shrinkage=3.0):
    beliefs = np.asarray(beliefs, dtype=float)
    weights = pair_weights(beliefs, 1.0, np.bincount(codes[codes >= 0]), "class")
    return make_plan(
        X, codes, beliefs, weights, n_clusters, covariance_type=covariance_type, reg_covar=1e-6,
        shrinkage=shrinkage, random_state=np.random.RandomState(seed),
    )  # fmt: skip


def blobs(centres, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n * len(centres), 2)) + np.repeat(np.asarray(centres, dtype=float), n, axis=0)


def keep(n_classes):
    return 2.0 * np.eye(n_classes) - 1.0


TWO_MODES = blobs([[0, 0], [9, 0], [0, 30]])
TWO_MODES_CODES = np.repeat([0, 0, 1], 40)


@pytest.mark.parametrize(
    ("diagonal", "parts"), [(1.0, 1), (0.5, 2), (0.1, 2), (0.0, 2), (-0.5, 2), (-1.0, 2)]
)
def test_a_class_of_two_modes(diagonal, parts):
    beliefs = keep(2)
    beliefs[0, 0] = diagonal
    found = plan(TWO_MODES, TWO_MODES_CODES, beliefs)
    assert len(set(found.labels[:80])) == parts
    assert found.n_clusters == parts + 1
    splits = [one for one in found.evidence if one.kind == "split"]
    if diagonal == 1.0:
        assert splits == []
    else:
        (one,) = splits
        assert one.accepted
        assert (one.classes, one.n_parts, one.n_rows) == ((0,), 2, 40)
        assert one.stability == 1.0
        assert one.data_gain > 50.0
        # A belief above 0 wants the class whole and takes from the gain of the data, one below 0 adds.
        assert np.sign(one.data_gain - one.gain) == np.sign(diagonal)
    as_is, proposal = (found.alternatives[name] for name in ("classes as they are", "proposal"))
    assert as_is["n_clusters"] == 2
    assert proposal["n_clusters"] == parts + 1
    assert (proposal["icl"] < as_is["icl"]) == (parts == 2)


def test_a_sample_speaks_for_all_rows(monkeypatch):
    """The belief of .5 counts all 400 rows of the class, so the sample of 60 must do so as well."""
    X = blobs([[0, 0], [9, 0], [0, 30]], n=200)
    beliefs = [[0.5, -1], [-1, 1]]
    codes = np.repeat([0, 0, 1], 200)
    (of_all,) = plan(X, codes, beliefs).evidence
    monkeypatch.setattr(evidence, "_ROWS", 60)
    (of_sample,) = plan(X, codes, beliefs).evidence
    assert of_all.accepted
    assert of_sample.accepted
    assert of_sample.data_gain == pytest.approx(of_all.data_gain, rel=0.2)
    assert of_all.data_gain - of_all.gain == pytest.approx(of_sample.data_gain - of_sample.gain, rel=0.05)


def test_only_a_sure_wish_divides_what_is_one():
    X = blobs([[0, 0], [0, 30]], n=80)
    codes = np.repeat([0, 1], 80)
    for diagonal, parts in ((0.1, 1), (-0.3, 1), (-1.0, 2)):
        beliefs = keep(2)
        beliefs[0, 0] = diagonal
        assert plan(X, codes, beliefs).n_clusters == parts + 1, diagonal
    (one,) = [e for e in plan(X, codes, np.diag([0.1, 1]) - np.eye(2)[::-1]).evidence if e.kind == "split"]
    assert not one.accepted
    assert one.reason == "one Gaussian is enough"


@pytest.mark.parametrize(("belief", "merged"), [(-1, 0), (-0.5, 0), (-0.01, 0), (0, 1), (0.1, 1), (1, 1)])
def test_two_names_of_one_class(belief, merged):
    X = blobs([[0, 0], [0, 30]], n=80)
    codes = np.concatenate([np.arange(80) % 2, np.full(80, 2)])
    beliefs = keep(3)
    beliefs[0, 1] = beliefs[1, 0] = belief
    found = plan(X, codes, beliefs)
    assert found.n_clusters == 3 - merged
    assert (len(set(found.labels[:80])) == 1) == bool(merged)
    assert [one.classes for one in found.evidence if one.accepted] == [(0, 1)] * merged
    assert found.alternatives["classes as they are"]["n_clusters"] == 3


@pytest.mark.parametrize(("belief", "merged"), [(0, 0), (0.1, 0), (1, 1)])
def test_classes_that_the_data_tell_apart_are_joined_only_if_it_is_sure(belief, merged):
    X = blobs([[0, 0], [9, 0], [0, 30]])
    codes = np.repeat([0, 1, 2], 40)
    beliefs = keep(3)
    beliefs[0, 1] = beliefs[1, 0] = belief
    found = plan(X, codes, beliefs)
    assert found.n_clusters == 3 - merged
    (one,) = [e for e in found.evidence if e.kind == "merge"][:1]
    assert one.data_gain < 0.0
    assert one.accepted == bool(merged)
    assert one.reason == ("" if merged else "the data tell them apart")


def test_a_part_that_two_classes_share_is_one_cluster():
    """Crops and pasture: both names cover meadows, crops are fields as well."""
    X = blobs([[0, 0], [20, 0], [20, 0]], n=60)
    codes = np.repeat([0, 0, 1], 60)
    found = plan(X, codes, [[0.1, 0.0], [0.0, 1.0]])
    assert found.n_clusters == 2
    assert found.labels[70] == found.labels[130] != found.labels[0]


@pytest.mark.parametrize(
    ("n_clusters", "covariance_type"),
    [*product(range(1, 9), ["full"]), *product([2, 4, 7], ["tied", "diag", "spherical"])],
)
def test_a_given_number_is_kept_to(n_clusters, covariance_type):
    X = blobs([[0, 0], [9, 0], [0, 9], [9, 9]])
    codes = np.repeat([0, 0, 1, 2], 40)
    codes[::7] = -1
    found = plan(X, codes, keep(3), n_clusters, covariance_type=covariance_type)
    assert found.n_clusters == n_clusters
    np.testing.assert_array_equal(np.unique(found.labels[codes >= 0]), np.arange(n_clusters))
    assert (found.labels[codes < 0] == -1).all()


def test_a_given_number_divides_where_the_data_do():
    found = plan(TWO_MODES, TWO_MODES_CODES, [[0.1, -1], [-1, 0.1]], 3)
    assert len(set(found.labels[:40])) == len(set(found.labels[40:80])) == len(set(found.labels[80:])) == 1


def test_a_given_number_joins_what_is_believed_together_and_divides_others():
    X = blobs([[0, 0], [9, 0], [0, 30], [0, 30]])
    codes = np.repeat([0, 0, 1, 2], 40)
    found = plan(X, codes, [[0.1, -1, -1], [-1, 1, 0.5], [-1, 0.5, 1]], 3)
    assert len(set(found.labels[:80])) == 2
    assert len(set(found.labels[80:])) == 1


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    X = np.concatenate([TWO_MODES, rng.normal(size=(40, 2)) + 15])
    codes = np.concatenate([TWO_MODES_CODES, np.full(40, 2)])
    beliefs = np.full((3, 3), -1.0)
    np.fill_diagonal(beliefs, 0.1)
    for n_clusters in (None, 2, 4) if LONG else (None, 4):
        one = plan(X, codes, beliefs, n_clusters)
        other = plan(X * [2.0**20, 2.0**-6] + [3.0, -5.0], codes, beliefs, n_clusters)
        assert one.n_clusters == other.n_clusters
        np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize(
    ("n_clusters", "n_features"),
    [("auto", 30), ("auto", 70), (3, 4), (5, 30), *([("auto", 4), (3, 70), (5, 70)] if LONG else [])],
)
def test_classes_believed_apart_stay_apart_in_any_dimension(n_clusters, n_features):
    """Overlapping classes: densities alone would move hundreds of rows."""
    rng = np.random.default_rng(n_features)
    y = np.repeat([0, 1, 2], 60)
    X = rng.normal(size=(180, n_features)) + 0.3 * y[:, np.newaxis]
    beliefs = np.full((3, 3), -1.0)
    np.fill_diagonal(beliefs, 0.1)
    model = CPPC(n_clusters=n_clusters, beliefs=beliefs, random_state=0).fit(X, y)
    assert (np.count_nonzero(model.contingency_, axis=0) == 1).all()
    if n_clusters == "auto":
        assert model.n_occupied_ == 3
        assert [one["accepted"] for one in model.evidence_] == [False] * len(model.evidence_)


def test_a_class_that_must_be_split_falls_where_the_data_do():
    """Parts of 90 and 30 rows stay so, in any order of the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2)) + np.repeat([[0, 0], [12, 0], [0, 30]], [90, 30, 40], axis=0)
    y = np.repeat(["crops", "forest"], [120, 40])
    for belief in (-1.0, -0.9, 0.1):
        for order in (np.arange(160), rng.permutation(160)) if belief == -1.0 or LONG else (np.arange(160),):
            beliefs = [[belief, -1], [-1, 1]]
            model = CPPC(beliefs=beliefs, random_state=0).fit(X[order], y[order])
            assert sorted(model.contingency_[0].tolist()) == [0, 30, 90], belief
