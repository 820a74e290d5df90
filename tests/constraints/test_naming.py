"""Names of clusters after labelled rows, against a slow rule, and what they must promise for any labels."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise
from linkwise import Constraints
from linkwise._exports import ESTIMATORS
from linkwise.constraints.naming import name_clusters
from linkwise.exceptions import SharedClusterWarning
from tests.repeats import examples

LINKED = sorted(set(ESTIMATORS) - {"CPPC"})  # CPPC takes classes, not links


def named(labels, codes, classes, n_clusters):
    return name_clusters(np.array(labels), np.array(codes), np.array(classes), n_clusters)


def test_a_cluster_has_the_name_of_its_commonest_class():
    found = named([0, 0, 0, 1, 2, 2], [0, 0, 1, 1, -1, -1], ["rice", "wheat"], 4)
    assert found.names.tolist() == ["rice", "wheat", "cluster 2", "cluster 3"]
    assert found.contingency.tolist() == [[2, 0, 0, 0], [1, 1, 0, 0]]
    assert found.shared == {0: ["rice", "wheat"]}
    assert found.split == {"wheat": [0, 1]}
    assert found.shared_sentence() == "cluster 0 (rice) has 2 of rice, 1 of wheat"


def test_a_class_in_two_clusters_is_numbered():
    found = named([0, 1, 2], [0, 1, 0], ["rice", "wheat"], 3)
    assert found.names.tolist() == ["rice (1)", "wheat", "rice (2)"]
    assert found.split == {"rice": [0, 2]}
    assert found.shared == {}


def test_a_class_without_a_cluster_of_its_own_is_in_the_name_of_another():
    found = named([0, 0, 0, 1], [0, 0, 1, 0], ["rice", "wheat"], 2)
    assert found.names.tolist() == ["rice (1) + wheat", "rice (2)"]


@pytest.mark.parametrize(
    ("labels", "codes", "classes", "names"),
    [
        ([0, 1, 2], [0, 0, 1], ["rice", "rice (1)"], ["rice (1)", "rice (2)", "rice (1) [2]"]),
        ([0, 1], [-1, 0], ["cluster 0"], ["cluster 0 [0]", "cluster 0"]),
        ([0, 0, 1], [0, 1, 2], ["a", "b", "a + b"], ["a + b", "a + b [1]"]),
        ([0, 1], [0, 1], np.array([1, "1"], dtype=object), ["1", "'1'"]),
        ([0, 1], [0, 1], np.array(["2024-01", "2024-02"], dtype="M8[M]"), ["2024-01", "2024-02"]),
        ([0, 1], [0, 1], [False, True], ["False", "True"]),
        ([0, 1], [-1, -1], [], ["cluster 0", "cluster 1"]),
    ],
)
def test_names_always_differ(labels, codes, classes, names):
    assert named(labels, codes, classes, 3).names.tolist()[: len(names)] == names


@st.composite
def labellings(draw):
    n_clusters, n_classes = draw(st.integers(1, 5)), draw(st.integers(0, 5))
    n_rows = draw(st.integers(0, 30))
    labels = draw(st.lists(st.integers(0, n_clusters - 1), min_size=n_rows, max_size=n_rows))
    codes = draw(st.lists(st.integers(-1, n_classes - 1), min_size=n_rows, max_size=n_rows))
    classes = draw(
        st.lists(
            st.sampled_from(["a", "b", "a (1)", "a + b", "cluster 0", "", "1"]), unique=True,
            min_size=n_classes, max_size=n_classes,
        )
    )  # fmt: skip
    return labels, codes, classes, n_clusters


@given(labellings())
def test_the_rule_against_a_slow_one(case):
    labels, codes, classes, n_clusters = case
    found = name_clusters(
        np.array(labels, dtype=int), np.array(codes, dtype=int), np.array(classes), n_clusters
    )
    assert len(set(found.names.tolist())) == n_clusters
    inside = [
        Counter(c for z, c in zip(labels, codes, strict=True) if z == k and c >= 0) for k in range(n_clusters)
    ]
    heads = [min(counts, key=lambda c: (-counts[c], c)) if counts else None for counts in inside]
    for k in range(n_clusters):
        assert found.contingency[:, k].tolist() == [inside[k][c] for c in range(len(classes))]
        if heads[k] is None:
            assert found.names[k].startswith(f"cluster {k}")
        else:
            assert found.names[k].startswith(classes[heads[k]])
            assert (f"{classes[heads[k]]} (" in found.names[k]) >= (heads.count(heads[k]) > 1)
    for c in {c for c in codes if c >= 0}:
        assert any(classes[c] in name for name in found.names), "every class is in some name"
    assert found.shared == {
        k: [classes[c] for c in sorted(counts, key=lambda c: (-counts[c], c))]
        for k, counts in enumerate(inside)
        if len(counts) > 1
    }
    homes = {
        c: sorted({z for z, code in zip(labels, codes, strict=True) if code == c})
        for c in range(len(classes))
    }
    assert found.split == {classes[c]: clusters for c, clusters in homes.items() if len(clusters) > 1}


def blobs(seed, n_rows=40, n_classes=3, spread=2.0):
    """Overlapping groups, so that the data contradict some labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n_rows, 2)) + spread * np.eye(n_classes, 2)[y] * 2, y


def few_labels(y, n_labelled, seed):
    """Names of some rows, at least one of each class; the others are unknown."""
    names = np.array(["maize", "rice", "wheat"])[y].astype(object)
    shown = np.random.default_rng(seed).permutation(len(y))[:n_labelled]
    hidden = np.setdiff1d(np.arange(len(y)), [*shown, 0, 1, 2])
    names[hidden] = None
    return names


def fitted(name, X, links, n_clusters=3, **options):
    """One start, with the options that this estimator has."""
    kind = getattr(linkwise, name)
    given = {key: value for key, value in {"n_init": 1, **options}.items() if key in kind().get_params()}
    model = kind(n_clusters, random_state=0, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, constraints=links)


@st.composite
def labelled_rows(draw):
    """Rows on a coarse grid, so that some coincide, and labels that may have nothing to do with them."""
    n_rows, n_classes = draw(st.integers(8, 24)), draw(st.integers(1, 3))
    grid = st.integers(0, 6)
    X = np.array(draw(st.lists(st.tuples(grid, grid), min_size=n_rows, max_size=n_rows)), dtype=float)
    codes = st.lists(st.integers(-1, n_classes - 1), min_size=n_rows, max_size=n_rows)
    names = [[None, "maize", "rice", "wheat"][code + 1] for code in draw(codes)]
    return X, np.array(names, dtype=object), draw(st.integers(0, 2))


@pytest.mark.parametrize("name", LINKED)
@settings(max_examples=examples(12, 5))
@given(case=labelled_rows())
def test_a_sure_label_is_never_contradicted(name, case):
    X, names, extra = case
    known = np.array([label is not None for label in names])
    classes = sorted(set(names[known]))
    n_clusters = max(1, len(classes)) + extra
    # A short run: hard links hold in every step.
    model = fitted(name, X, Constraints.from_labels(names), n_clusters, max_iter=15)
    assert model.cluster_names_[model.labels_][known].tolist() == names[known].tolist()
    assert model.classes_.tolist() == classes
    assert model.split_classes_ == model.shared_clusters_ == {}
    assert len(model.cluster_names_) == n_clusters
    assert sum(label.startswith("cluster ") for label in model.cluster_names_) == n_clusters - len(classes)
    assert model.contingency_.sum() == known.sum()


@pytest.mark.parametrize(("name", "extra"), product(LINKED, [0, 2]))
def test_also_where_the_labels_contradict_the_data(name, extra):
    X, y = blobs(5, n_rows=60, spread=3.0)
    y = np.random.default_rng(5).permutation(y)
    y[:3] = np.arange(3)
    names = few_labels(y, 40, 5)
    model = fitted(name, X, Constraints.from_labels(names), 3 + extra)
    known = np.array([label is not None for label in names])
    assert model.cluster_names_[model.labels_][known].tolist() == names[known].tolist()


@pytest.mark.parametrize("name", LINKED)
def test_also_together_with_other_hard_links(name):
    X, y = blobs(7, n_rows=60)
    names = few_labels(y, 10, 7)
    links = Constraints.from_labels(names) + Constraints.sample(y, 25, random_state=7)
    model = fitted(name, X, links)
    known = np.array([label is not None for label in names])
    assert model.cluster_names_[model.labels_][known].tolist() == names[known].tolist()
    assert not model.violations_.any()


@pytest.mark.parametrize("name", LINKED)
def test_every_estimator_names_its_clusters(name):
    X, y = blobs(1, n_rows=60, spread=5.0)
    links = Constraints.from_labels(few_labels(y, 12, 1))
    model = fitted(name, X, links)
    found = name_clusters(model.labels_, links.row_classes, links.classes, 3)
    assert model.cluster_names_.tolist() == found.names.tolist()
    np.testing.assert_array_equal(model.contingency_, found.contingency)
    assert model.split_classes_ == found.split
    assert model.shared_clusters_ == found.shared
    assert model.labels_.dtype == np.int64
    assert model.predict(X).dtype == np.int64
    model.fit(X)  # without labels nothing is left of the names
    assert not {"classes_", "cluster_names_", "contingency_"} & set(vars(model))
    with pytest.raises(AttributeError):
        _ = model.shared_clusters_


@pytest.mark.parametrize("name", LINKED)
def test_one_labelled_row_makes_no_link_and_names_its_cluster(name):
    X, y = blobs(2)
    links = Constraints.from_labels([None, "rice", *[None] * (len(y) - 2)])
    assert links.n_pairs == 0
    model = fitted(name, X, links)
    assert model.cluster_names_[model.labels_[1]] == "rice"


@pytest.mark.parametrize("name", [name for name in LINKED if name not in ("COPKMeans", "ConstrainedEM")])
def test_doubtful_labels_that_share_a_cluster_are_reported(name):
    X = np.repeat([[0.0], [9.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 1))
    names = np.array(["rice"] * 20 + ["wheat"] * 20, dtype=object)
    names[3] = "wheat"
    links = Constraints.from_labels(names, certainty=0.6)
    with pytest.warns(SharedClusterWarning, match=r"\(rice\) has 19 of rice, 1 of wheat"):
        model = getattr(linkwise, name)(2, random_state=0).fit(X, constraints=links)
    assert list(model.shared_clusters_.values()) == [["rice", "wheat"]]
    assert list(model.split_classes_) == ["wheat"]
    assert sorted(model.cluster_names_.tolist()) == ["rice", "wheat"]


def test_names_follow_ids():
    pandas = pytest.importorskip("pandas")
    X, y = blobs(3, spread=5.0)
    names = few_labels(y, 12, 3)
    ids = [f"plot {row}" for row in range(len(y))]
    links = Constraints.from_labels(names).with_index(ids)
    order = np.random.default_rng(0).permutation(len(y))
    frame = pandas.DataFrame(X, index=ids, columns=["u", "v"]).iloc[order]
    model = fitted("PPC", frame, links)
    known = np.array([label is not None for label in names])[order]
    assert model.cluster_names_[model.labels_][known].tolist() == names[order][known].tolist()
