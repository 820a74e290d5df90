"""Scores against a double loop over all pairs, against brute-force matching and against scikit-learn."""

from __future__ import annotations

import itertools
import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs
from sklearn.metrics.cluster import contingency_matrix
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from linkwise import PPC, Constraints, COPKMeans, PCKMeans, SpectralLearning
from linkwise import metrics as lm
from linkwise.metrics import LinksScorer, links_scorer
from tests.repeats import examples
from tests.strategies import made_by, size

MIXED = [0, 1, 7, -3, "a", "1", "bb", 2.5]
PAIR_SCORES = [lm.pairwise_f1, lm.rand_score, lm.clustering_accuracy]


def labellings(alphabet=tuple(range(-2, 5)), max_size=12):
    """Two label lists of equal length; they use all of the alphabet or only some."""

    def make(random):
        n = size(random, 1, max_size)
        columns = [random.sample(alphabet, random.randint(1, len(alphabet))) for _ in range(2)]
        return tuple(random.choices(column, k=n) for column in columns)

    return made_by(make)


def pairs_by_loop(y, labels):
    """Pairs together in both, only in labels, only in y, in neither."""
    counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
    for i, j in itertools.combinations(range(len(y)), 2):
        counts[y[i] == y[j], labels[i] == labels[j]] += 1
    return counts[True, True], counts[False, True], counts[True, False], counts[False, False]


def f1_by_loop(y, labels):
    both, only_labels, only_y, _ = pairs_by_loop(y, labels)
    precision = both / (both + only_labels) if both + only_labels else 0.0
    recall = both / (both + only_y) if both + only_y else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def rand_by_loop(y, labels):
    both, only_labels, only_y, neither = pairs_by_loop(y, labels)
    total = both + only_labels + only_y + neither
    return (both + neither) / total if total else 1.0


def accuracy_by_search(y, labels):
    """Best accuracy over every one-to-one map of clusters to classes."""
    classes, clusters = list(dict.fromkeys(y)), list(dict.fromkeys(labels))
    targets = classes + [object()] * max(0, len(clusters) - len(classes))
    best = 0
    for chosen in itertools.permutations(targets, len(clusters)):
        class_of = dict(zip(clusters, chosen, strict=True))
        best = max(best, sum(class_of[label] == truth for label, truth in zip(labels, y, strict=True)))
    return best / len(y)


def separability_by_loop(y, labels):
    """S by its definition, over pairs of distinct labelled rows."""
    rows = [i for i, value in enumerate(y) if value not in (-1, None) and value == value]
    classes = sorted({y[i] for i in rows})
    matrix = np.full((len(classes), len(classes)), np.nan)
    for a, b in itertools.product(range(len(classes)), repeat=2):
        pairs = [(i, j) for i in rows for j in rows if i != j and y[i] == classes[a] and y[j] == classes[b]]
        if pairs:
            matrix[a, b] = 2 * sum(labels[i] == labels[j] for i, j in pairs) / len(pairs) - 1
    return matrix


@settings(max_examples=examples(60, 15))
@given(labellings())
def test_pair_scores_equal_the_double_loop(case):
    y, labels = case
    assert lm.pairwise_f1(y, labels) == pytest.approx(f1_by_loop(y, labels), abs=1e-14)
    assert lm.rand_score(y, labels) == pytest.approx(rand_by_loop(y, labels), abs=1e-14)


@settings(max_examples=examples(60, 15))
@given(st.randoms(use_true_random=True), st.integers(20, 40))
def test_pair_scores_with_more_cells_than_a_dense_table_would_pay_for(random, n):
    y, labels = random.choices(range(10), k=n), random.choices(range(61), k=n)
    assert lm.pairwise_f1(y, labels) == pytest.approx(f1_by_loop(y, labels), abs=1e-14)
    assert lm.rand_score(labels, y) == pytest.approx(rand_by_loop(y, labels), abs=1e-14)


@settings(max_examples=examples(60, 15))
@given(labellings(alphabet=tuple(MIXED)))
def test_mixed_labels_keep_numbers_and_strings_apart(case):
    y, labels = case
    assert lm.pairwise_f1(y, labels) == pytest.approx(f1_by_loop(y, labels), abs=1e-14)
    classes, clusters, table = lm.contingency_table(y, labels)
    assert set(classes) == set(y)
    assert set(clusters) == set(labels)
    for (a, value), (k, cluster) in itertools.product(enumerate(classes), enumerate(clusters)):
        assert table[a, k] == sum(u == value and v == cluster for u, v in zip(y, labels, strict=True))


@settings(max_examples=examples(60, 15))
@given(labellings(alphabet=(0, 1, 2, 3, 4), max_size=9))
def test_accuracy_equals_the_best_of_all_matches(case):
    y, labels = case
    assert lm.clustering_accuracy(y, labels) == pytest.approx(accuracy_by_search(y, labels), abs=1e-14)


@settings(max_examples=examples(60, 15))
@given(labellings(), st.randoms(use_true_random=True))
def test_scores_ignore_names_and_row_order(case, random):
    y, labels = map(np.array, case)
    rows = np.array(random.sample(range(len(y)), len(y)))
    names = np.array(random.sample(["p", "q", "r", "s", "t", "u", "v"], 7))
    for score in PAIR_SCORES:
        expected = score(y, labels)
        assert score(y[rows], labels[rows]) == pytest.approx(expected)
        assert score(names[y + 2], labels * 1000) == pytest.approx(expected)
    assert lm.pairwise_f1(labels, y) == pytest.approx(lm.pairwise_f1(y, labels))
    assert lm.rand_score(labels, y) == pytest.approx(lm.rand_score(y, labels))


@settings(max_examples=examples(60, 15))
@given(labellings(max_size=30))
def test_agrees_with_scikit_learn(case):
    y, labels = case
    assert lm.rand_score(y, labels) == sklearn.metrics.rand_score(y, labels)
    np.testing.assert_array_equal(lm.contingency_table(y, labels)[2], contingency_matrix(y, labels))
    (_, only_labels), (only_y, both) = sklearn.metrics.cluster.pair_confusion_matrix(y, labels)
    expected = 2 * both / (2 * both + only_labels + only_y) if both + only_labels + only_y else 0.0
    assert lm.pairwise_f1(y, labels) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("y", "labels", "f1", "rand", "accuracy"),
    [
        ([3], ["x"], 0.0, 1.0, 1.0),
        ([0, 0, 0, 0], [1, 1, 1, 1], 1.0, 1.0, 1.0),
        ([0, 1, 2, 3], [3, 2, 1, 0], 0.0, 1.0, 1.0),
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.0, 0.0, 0.25),
        ([0, 1, 2, 3], [0, 0, 0, 0], 0.0, 0.0, 0.25),
        ([0, 0, 1, 1], [0, 1, 0, 1], 0.0, 1 / 3, 0.5),
    ],
)
def test_degenerate_partitions(y, labels, f1, rand, accuracy):
    assert lm.pairwise_f1(y, labels) == pytest.approx(f1)
    assert lm.rand_score(y, labels) == pytest.approx(rand)
    assert lm.clustering_accuracy(y, labels) == pytest.approx(accuracy)


def test_pair_counts_are_exact_beyond_int64():
    assert lm._pairs_within(np.array([5_000_000_001, 3])) == 5_000_000_001 * 5_000_000_000 // 2 + 3
    largest = lm._INT64_SAFE_TOTAL
    assert lm._pairs_within(np.array([largest])) == largest * (largest - 1) // 2


def test_a_million_rows():
    rng = np.random.default_rng(0)
    n = 1_000_000
    y = rng.integers(0, 30, n)
    noisy = np.where(rng.random(n) < 0.1, rng.integers(0, 30, n), y)
    assert lm.clustering_accuracy(y, noisy + 5) == np.mean(y == noisy)
    assert lm.rand_score(y, noisy) == sklearn.metrics.rand_score(y, noisy)
    assert 0.8 < lm.pairwise_f1(y, noisy) < 0.9
    assert lm.separability(y, noisy).shape == (30, 30)
    singletons = rng.permutation(n)
    assert lm.rand_score(singletons, singletons[::-1]) == 1.0
    assert lm.pairwise_f1(singletons, y) == 0.0


@pytest.mark.parametrize(
    "values",
    [
        np.array([-128, 127, 0, -128], dtype=np.int8),
        np.array([0, 2**64 - 1, 2**63, 0], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 0, -(2**63)]),
        np.array([2**63, 2**63 + 1, 2**63 + 3, 2**63], dtype=np.uint64),
        np.array([True, False, True, True]),
        np.array([0.5, -1.0, np.inf, 0.5]),
        np.array([b"x", b"y", b"z", b"x"]),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01", "2020-01-01"], dtype="datetime64[ns]"),
        pd.Series(["x", "y", "z", "x"], index=[4, 3, 2, 1], dtype="category"),
        pd.array([1, 2, 3, 1], dtype="Int64"),
        ("x", 1, 1.5, "x"),
    ],
    ids=lambda v: str(getattr(v, "dtype", type(v).__name__)),
)
def test_label_types(values):
    labels = [0, 1, 2, 0]
    classes, clusters, table = lm.contingency_table(values, labels)
    assert set(classes) == set(values)
    for (a, value), (k, cluster) in itertools.product(enumerate(classes), enumerate(clusters)):
        assert table[a, k] == sum(u == value and v == cluster for u, v in zip(values, labels, strict=True))
    assert classes.tolist() == sorted(classes.tolist(), key=lambda v: (isinstance(v, str), v))


@pytest.mark.parametrize("score", [*PAIR_SCORES, lm.contingency_table, lm.match_clusters, lm.separability])
class TestRefusals:
    def test_lengths(self, score):
        with pytest.raises(ValueError, match="y has 3 samples but labels has 2"):
            score([0, 1, 1], [0, 1])

    def test_empty(self, score):
        with pytest.raises(ValueError, match="y is empty"):
            score([], [])

    @pytest.mark.parametrize("shape", [(2, 2), (4, 1), ()])
    def test_shape(self, score, shape):
        with pytest.raises(ValueError, match="labels has shape"):
            score([0, 1, 0, 1], np.zeros(shape, dtype=int))

    @pytest.mark.parametrize("gap", [np.nan, None, pd.NA, float("nan")])
    def test_missing_clusters(self, score, gap):
        with pytest.raises(ValueError, match=r"labels\[1\] is .*drop unlabelled rows"):
            score(["a", "b", "b"], [1, gap, "x"])

    def test_unhashable(self, score):
        labels = np.empty(2, dtype=object)
        labels[:] = [{}, {}]
        with pytest.raises(ValueError, match="numbers or strings"):
            score([0, 1], labels)


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_missing_classes_are_refused_and_minus_one_is_a_class(score):
    with pytest.raises(ValueError, match=r"y\[2\] is nan"):
        score([0.0, 1.0, np.nan], [0, 1, 1])
    assert score([-1, -1, 1, 1], [0, 0, 1, 1]) == 1.0


class TestClusterMatching:
    def test_held_out_rows_keep_the_training_match(self):
        train = lm.match_clusters(["a", "a", "b", "b"], [0, 0, 1, 1])
        y, labels = ["a", "a", "b", "b"], [1, 1, 0, 0]
        assert lm.clustering_accuracy(y, labels) == 1.0
        assert train.score(y, labels) == 0.0
        assert list(train.apply(labels)) == ["b", "b", "a", "a"]

    @settings(max_examples=examples(60, 15))
    @given(labellings(alphabet=(0, 1, 2, "u", "v")), labellings(alphabet=(0, 1, 2, 9, "u", "w")))
    def test_score_is_the_share_of_equal_translated_labels(self, train, test):
        matching = lm.match_clusters(*train)
        assert matching.score(*train) == pytest.approx(matching.accuracy)
        assert len(set(matching.mapping.values())) == len(matching.mapping)
        assert len(matching.mapping) == min(len(set(train[0])), len(set(train[1])))
        translated = [matching.mapping.get(cluster) for cluster in test[1]]
        expected = np.mean([a == b for a, b in zip(translated, test[0], strict=True)])
        assert matching.score(*test) == pytest.approx(expected)

    def test_more_clusters_than_classes(self):
        matching = lm.match_clusters([0, 0, 0, 1, 1], [4, 4, 6, 5, 5])
        assert matching.mapping == {4: 0, 5: 1}
        assert matching.accuracy == 0.8
        np.testing.assert_array_equal(matching.apply([6, 5, 4, 99]), [-1, 1, 0, -1])

    def test_more_classes_than_clusters(self):
        matching = lm.match_clusters(["a", "b", "c", "c"], [0, 0, 1, 1])
        assert matching.accuracy == 0.75
        assert matching.classes == ("a", "b", "c")
        assert matching.score(["b", "a", "new"], [0, 0, 1]) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("classes", [["a", "b"], [-1, 1], [0.5, 1.5], [False, True]])
    def test_unmatched_clusters_become_none_where_minus_one_would_be_a_class(self, classes):
        matching = lm.match_clusters(classes, [0, 1])
        assert list(matching.apply([1, 2])) == [classes[1], None]

    def test_integer_classes_of_object_arrays_are_still_integers(self):
        matching = lm.match_clusters(np.array([np.int64(3), np.int64(4)], dtype=object), [0, 1])
        assert matching.apply([1, 2]).tolist() == [4, -1]

    def test_is_frozen_and_survives_pickling(self):
        matching = lm.match_clusters([0, 1], [1, 0])
        with pytest.raises(AttributeError):
            matching.accuracy = 0.0
        assert pickle.loads(pickle.dumps(matching)) == matching


class TestConstraintSatisfaction:
    @settings(max_examples=examples(60, 15))
    @given(labellings(alphabet=tuple(MIXED)), st.integers(0, 10**6))
    def test_counts_respected_links(self, case, seed):
        kinds, labels = case
        pairs = list(itertools.combinations(range(len(labels)), 2))
        generator = np.random.default_rng(seed)
        keep = [pair for pair in pairs if generator.random() < 0.5]
        # Links from a second labelling cannot contradict each other.
        must = [(i, j) for i, j in keep if kinds[i] == kinds[j]]
        cannot = [(i, j) for i, j in keep if kinds[i] != kinds[j]]
        links = Constraints(len(labels), must_link=must, cannot_link=cannot)
        good = [labels[i] == labels[j] for i, j in must] + [labels[i] != labels[j] for i, j in cannot]
        assert lm.constraint_satisfaction(labels, links) == pytest.approx(np.mean(good) if good else 1.0)

    def test_refusals(self):
        links = Constraints(3, must_link=[(0, 1)])
        with pytest.raises(ValueError, match="labels has 2 samples but constraints has 3"):
            lm.constraint_satisfaction([0, 1], links)
        with pytest.raises(ValueError, match=r"pass a linkwise\.Constraints"):
            lm.constraint_satisfaction([0, 1], [(0, 1)])
        with pytest.raises(ValueError, match=r"labels\[2\] is nan"):
            lm.constraint_satisfaction([0, 1, np.nan], links)


class TestSeparability:
    @settings(max_examples=examples(60, 15))
    @given(labellings(alphabet=(-1, 0, 1, 2, 3)))
    def test_equals_the_double_loop(self, case):
        y, labels = case
        if set(y) == {-1}:
            with pytest.raises(ValueError, match="no labelled sample"):
                lm.separability(y, labels)
            return
        np.testing.assert_allclose(lm.separability(y, labels), separability_by_loop(y, labels), atol=1e-14)

    @pytest.mark.parametrize(
        "y",
        [
            ["b", "a", None, "b", "b"],
            ["b", "a", np.nan, "b", "b"],
            ["b", "a", -1, "b", "b"],
            np.array([2, 1, -1, 2, 2]),
            np.array([2.0, 1.0, np.nan, 2.0, 2.0]),
            np.array([2.0, 1.0, -1.0, 2.0, 2.0]),
            pd.Series([2, 1, pd.NA, 2, 2], dtype="Int64"),
        ],
        ids=["None", "nan", "mixed -1", "int -1", "float nan", "float -1", "pandas.NA"],
    )
    def test_unlabelled_rows_and_single_sample_classes(self, y):
        # Class 2 / "b" has pairs (0,3) together, (0,4) and (3,4) apart; class 1 / "a" has none.
        observed = lm.separability(y, [0, 0, 0, 0, 1])
        np.testing.assert_allclose(observed, [[np.nan, 1 / 3], [1 / 3, -1 / 3]])

    def test_text_minus_one_is_a_class(self):
        assert lm.separability(["-1", "a"], [0, 0]).shape == (2, 2)

    def test_extremes(self):
        kept = lm.separability([0, 0, 1, 1], [5, 5, 9, 9])
        np.testing.assert_array_equal(kept, [[1, -1], [-1, 1]])
        merged = lm.separability([0, 0, 1, 1], [5, 5, 5, 5])
        np.testing.assert_array_equal(merged, np.ones((2, 2)))


class TestBeliefAdherence:
    @settings(max_examples=examples(60, 15))
    @given(st.integers(1, 5), st.integers(0, 10**6))
    def test_equals_the_sum_over_entries(self, n_classes, seed):
        generator = np.random.default_rng(seed)
        beliefs = generator.uniform(-1, 1, (n_classes, n_classes))
        observed = generator.uniform(-1, 1, (n_classes, n_classes))
        observed[np.diag_indices(n_classes)] = np.where(
            generator.random(n_classes) < 0.3, np.nan, observed.diagonal()
        )
        expected = 0.0
        for a, b in itertools.product(range(n_classes), repeat=2):
            if not np.isnan(observed[a, b]):
                expected += (beliefs[a, b] - observed[a, b]) ** 2
        assert lm.belief_adherence(beliefs, observed) == pytest.approx(expected)
        share = lm.belief_adherence(beliefs, observed, normalize=True)
        assert share == pytest.approx(expected / (4 * n_classes**2))
        assert 0.0 <= share <= 1.0

    def test_worst_case_is_one(self):
        assert lm.belief_adherence(np.ones((3, 3)), -np.ones((3, 3)), normalize=True) == 1.0

    def test_takes_anything_numpy_can_read(self):
        class Beliefs:
            def __array__(self, dtype=None, copy=None):
                return np.eye(2, dtype=dtype)

        assert lm.belief_adherence(Beliefs(), np.zeros((2, 2))) == 2.0

    @pytest.mark.parametrize(
        ("beliefs", "observed", "message"),
        [
            (np.eye(2), np.eye(3), "beliefs is about 2 classes but separability about 3"),
            (np.ones(4), np.eye(2), r"beliefs has shape \(4,\)"),
            (np.eye(2), np.ones((2, 3)), r"separability has shape \(2, 3\)"),
            ([[np.nan]], [[1.0]], "write 0 where there is no opinion"),
        ],
    )
    def test_refusals(self, beliefs, observed, message):
        with pytest.raises(ValueError, match=message):
            lm.belief_adherence(beliefs, observed)


class Fixed(BaseEstimator):
    """Predicts column ``column`` of X."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y=None, *, constraints=None):
        self.fitted_ = True
        return self

    __metadata_request__fit: ClassVar = {"constraints": True}

    def predict(self, X):
        return np.asarray(X)[:, self.column].astype(int)


class TestLinksScorer:
    y = np.arange(60) % 3
    X = np.column_stack([y, np.zeros(60), np.arange(60), np.arange(60) % 2])
    links = Constraints.sample(y, 300, overlap=True, certainty=0.9, random_state=0)

    @pytest.mark.parametrize(("column", "score"), [(0, 1.0), (1, 0.5), (2, 0.5)])
    def test_right_clusters_one_cluster_and_single_rows(self, column, score):
        assert links_scorer(Fixed(column), self.X, constraints=self.links) == score

    def test_by_hand(self):
        links = Constraints(
            4, must_link=[(0, 1), (0, 2)], cannot_link=[(0, 3), (1, 3)], certainty=[0.9, 0.6, 1.0, 0.75]
        )
        labels = np.array([[0.0], [0.0], [1.0], [0.0]])
        # Worth 2 g - 1: of 0.8 + 0.2 must-links 0.8 are kept, of 1.0 + 0.5 cannot-links none.
        assert links_scorer(Fixed(), labels, constraints=links) == pytest.approx(0.4)
        only = Constraints(4, must_link=[(0, 1), (0, 2)], certainty=[0.9, 0.6])
        assert links_scorer(Fixed(), labels, constraints=only) == pytest.approx(0.8)

    def test_with_routing_every_fold_is_scored_by_its_links(self):
        folds = KFold(3, shuffle=True, random_state=0)
        with sklearn.config_context(enable_metadata_routing=True):
            found = cross_validate(
                Fixed(3), self.X, cv=folds, scoring=links_scorer, params={"constraints": self.links},
                error_score="raise",
            )  # fmt: skip
            search = GridSearchCV(Fixed(), {"column": [1, 2, 0, 3]}, scoring=links_scorer, cv=folds)
            search.fit(self.X, constraints=self.links)
            pipeline = make_pipeline(FunctionTransformer(), Fixed())
            grid = {"fixed__column": [1, 0]}
            piped = GridSearchCV(pipeline, grid, scoring={"links": links_scorer}, cv=folds, refit="links")
            piped.fit(self.X, constraints=self.links)
        for (_, test), score in zip(folds.split(self.X), found["test_score"], strict=True):
            mine = self.links[test]
            kept = ~mine.violations(self.X[test, 3].astype(int))
            expected = 0.5 * (kept[mine.weights > 0].mean() + kept[mine.weights < 0].mean())
            assert score == pytest.approx(expected)
        assert search.best_params_ == {"column": 0}
        assert search.best_score_ == 1.0
        assert piped.best_params_ == {"fixed__column": 0}

    def test_without_routing_rows_are_found_by_their_index(self):
        frame = pd.DataFrame(self.X, index=[f"row {i}" for i in range(60)])
        links = self.links.with_index(frame.index)
        mixed = frame.sample(frac=1.0, random_state=0)
        search = GridSearchCV(Fixed(), {"column": [1, 0, 3]}, scoring=LinksScorer(links), cv=3)
        search.fit(mixed)
        assert search.best_params_ == {"column": 0}
        by_hand = links_scorer(Fixed(3), self.X, constraints=self.links)
        assert LinksScorer(links)(Fixed(3), mixed) == pytest.approx(by_hand)
        assert LinksScorer(self.links)(Fixed(3), self.X) == pytest.approx(by_hand)

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"got no links: call sklearn.set_config.*LinksScorer\(links\)"):
            links_scorer(Fixed(), self.X)
        with pytest.raises(ValueError, match="links of 60 rows, but 10 are to be scored: give the links an"):
            LinksScorer(self.links)(Fixed(), self.X[:10])
        with pytest.raises(ValueError, match="no two of the rows to score are linked"):
            links_scorer(Fixed(), self.X[:10], constraints=Constraints(10))

    @pytest.mark.parametrize("estimator", [PCKMeans(3), SpectralLearning(3), PPC(3), COPKMeans(3)])
    def test_estimators(self, estimator):
        X, y = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.8, random_state=0)
        links = Constraints.sample(y, 200, overlap=True, random_state=0)
        with sklearn.config_context(enable_metadata_routing=True):
            found = cross_validate(
                clone(estimator).set_params(random_state=0), X, cv=3, scoring=links_scorer,
                params={"constraints": links}, error_score="raise",
            )  # fmt: skip
        assert (found["test_score"] == 1.0).all()
