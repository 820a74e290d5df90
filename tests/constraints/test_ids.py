"""Ids of rows, sources of judgements and names of classes travel with the links."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import (
    PPC,
    ConstrainedEM,
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    DiscriminativeClustering,
    HMRFKMeans,
    LinkedClustering,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)
from linkwise.exceptions import InfeasibleConstraints
from linkwise.model_selection import ConstraintKFold, sweep_components
from tests.repeats import examples

NAMES = st.one_of(st.text(min_size=1, max_size=4), st.integers(-5, 2**70), st.tuples(st.integers(0, 3)))


def soft(certainty):
    return 0.5 * math.log(certainty / (1 - certainty))


@st.composite
def judged_links(draw, ids=NAMES):
    """Links by id with sources, and the same judgements as a list [(id, id, signed weight, source)]."""
    index = draw(st.lists(ids, min_size=2, max_size=7, unique=True))
    ends = st.lists(st.sampled_from(index), min_size=2, max_size=2, unique=True)
    said = draw(
        st.lists(st.tuples(ends, st.booleans(), st.floats(0.1, 3), st.sampled_from(["", "Ann", "Bö"])))
    )
    must = [(tuple(pair), weight, name) for pair, same, weight, name in said if same]
    cannot = [(tuple(pair), weight, name) for pair, same, weight, name in said if not same]
    links = Constraints(
        len(index),
        [pair for pair, *_ in must],
        [pair for pair, *_ in cannot],
        weight=[weight for _, weight, _ in must + cannot],
        source=[name for *_, name in must + cannot],
        index=index,
    )
    signed = [(*pair, weight, name) for pair, weight, name in must]
    signed += [(*pair, -weight, name) for pair, weight, name in cannot]
    return links, index, signed


def judgements_of(links):
    """What is in the links, as a sorted list that does not depend on the order of rows."""
    ids = links.index.tolist()
    said = zip(*(part.tolist() for part in links.judgements), strict=True)
    return sorted(
        ((sorted([repr(ids[i]), repr(ids[j])]), weight, name) for (i, j), weight, name in said), key=repr
    )


def expected_of(signed):
    return sorted(((sorted([repr(i), repr(j)]), weight, name) for i, j, weight, name in signed), key=repr)


class TestSources:
    @settings(max_examples=15, deadline=None)
    @given(judged_links())
    def test_every_judgement_is_kept_and_weights_add_up(self, case):
        links, index, signed = case
        assert judgements_of(links) == expected_of(signed)
        total: dict = {}
        for i, j, weight, _ in signed:
            pair = tuple(sorted((index.index(i), index.index(j))))
            total[pair] = total.get(pair, 0.0) + weight
        found = {
            tuple(pair): weight for pair, weight in zip(links.pairs.tolist(), links.weights, strict=True)
        }
        for pair, weight in total.items():
            assert found.get(pair, 0.0) == pytest.approx(weight, abs=1e-9)

    def test_two_sources_that_disagree(self):
        links = Constraints(2, [(0, 1)], [(1, 0)], certainty=[0.9, 0.6], source=pd.Series(["Ann", "Bob"]))
        assert links.weights.tolist() == pytest.approx([soft(0.9) - soft(0.6)])
        assert links.source.tolist() == ["Bob", "Ann"] or links.source.tolist() == ["Ann", "Bob"]
        assert len(links.judgements.pairs) == 2
        even = Constraints(2, [(0, 1)], [(1, 0)], certainty=0.8, source=["Ann", "Bob"])
        assert even.n_pairs == 0
        assert even.judgements.weights.tolist() == [soft(0.8), -soft(0.8)]
        with pytest.raises(InfeasibleConstraints):
            Constraints(2, [(0, 1)], [(1, 0)], source=["Ann", "Bob"])

    def test_one_name_numbers_and_gaps(self):
        assert Constraints(3, [(0, 1), (1, 2)], source="Ann").source.tolist() == ["Ann", "Ann"]
        links = Constraints(4, [(0, 1), (1, 2), (2, 3)], weight=1.0, source=[7.0, None, math.nan])
        assert links.source.tolist() == ["7", "", ""]
        with pytest.raises(ValueError, match=r"source has shape \(2,\); give one name, or one per pair"):
            Constraints(3, [(0, 1)], source=["Ann", "Bob"])

    def test_without_sources_nothing_changes(self):
        links = Constraints(3, [(0, 1)], weight=1.0)
        assert links.source is None
        assert links.judgements.pairs is links.pairs

    def test_union_with_links_of_nobody(self):
        both = Constraints(3, [(0, 1)], weight=1.0, source="Ann") + Constraints(3, [(0, 1)], weight=0.5)
        assert both.weights.tolist() == [1.5]
        assert sorted(zip(both.source.tolist(), both.judgements.weights.tolist(), strict=True)) == [
            ("", 0.5), ("Ann", 1.0),
        ]  # fmt: skip


class TestTravelling:
    @settings(max_examples=examples(30, 12), deadline=None)
    @given(case=judged_links(), data=st.data())
    def test_any_rows_in_any_order(self, case, data):
        links, index, signed = case
        rows = data.draw(st.lists(st.integers(0, len(index) - 1), unique=True))
        part = links[rows]
        chosen = {repr(index[row]) for row in rows}
        assert part.index.tolist() == [index[row] for row in rows]
        assert judgements_of(part) == expected_of(
            [line for line in signed if {repr(line[0]), repr(line[1])} <= chosen]
        )
        assert part == links.align([index[row] for row in rows])

    @settings(max_examples=examples(30, 12), deadline=None)
    @given(case=judged_links(), data=st.data())
    def test_order_of_rows_comes_back(self, case, data):
        links, index, _ = case
        order = data.draw(st.permutations(range(len(index))))
        there = links[list(order)]
        assert there.align(index) == links
        assert (there + Constraints(len(index))).align(index) == links

    @settings(max_examples=examples(30, 12), deadline=None)
    @given(judged_links())
    def test_pickle_equality_and_hash(self, case):
        links, index, _ = case
        again = pickle.loads(pickle.dumps(links))
        assert again == links
        assert hash(again) == hash(links)
        assert links.with_index(None) != links
        assert links.with_index(None).with_index(index) == links
        assert (links.with_index(range(len(index))) == links) == (index == list(range(len(index))))

    @settings(max_examples=examples(30, 12), deadline=None)
    @given(judged_links(ids=st.one_of(st.integers(), st.text("ab ,;\t\"'\n\rü=", min_size=1, max_size=3))))
    def test_file_and_frame_round_trip(self, tmp_path_factory, case):
        links, index, signed = case
        texts = [str(name) for name in index]
        if len(set(texts)) < len(texts) or not all(text.strip() for text in texts):
            return
        path = tmp_path_factory.mktemp("csv") / "links.csv"
        links.to_csv(path)
        found = Constraints.read_csv(path, index=index)
        if signed:
            assert found == links
        frame = pd.DataFrame(
            {
                "one": [index[i] for i in links.judgements.pairs[:, 0]],
                "other": [index[j] for j in links.judgements.pairs[:, 1]],
                "kind": np.where(links.judgements.weights > 0, "same", "different"),
                "weight": np.abs(links.judgements.weights),
                "source": links.source,
            }
        )
        tables = [frame, {name: frame[name].tolist() for name in frame}, frame.sample(frac=1, random_state=0)]
        for table in tables:
            if signed:
                assert Constraints.from_frame(table, index=index) == links

    def test_repeated_rows_keep_their_ids(self):
        links = Constraints(2, [("a", "b")], weight=1.0, source="Ann", index=["a", "b"])[[0, 1, 1]]
        assert links.index.tolist() == ["a", "b", "b"]
        assert links.source.tolist() == ["Ann", "Ann"]
        with pytest.raises(ValueError, match="the id 'b' stands for rows 1 and 2"):
            links.align(["a", "b"])

    def test_union_by_id(self):
        one = Constraints(3, [("a", "b")], index=["a", "b", "c"])
        two = Constraints(3, [("c", "b")], index=["c", "b", "a"])
        assert (one + two) == Constraints(3, [("a", "b"), ("b", "c")], index=["a", "b", "c"])
        assert (one + Constraints(3)).index.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="the first links holds 'c', about which the links know nothing"):
            one + Constraints(3, index=["a", "b", "x"])

    def test_repr(self):
        links = Constraints(3, [("a", "b")], weight=1.0, source="Ann", index=["a", "b", "c"])
        assert repr(links) == (
            "Constraints(3 samples by id, 1 must-link, 0 cannot-links; 0 chunklets; 1 judgement of 1 source)"
        )
        assert "<td>a</td>" in links._repr_html_()
        assert repr(Constraints.from_labels(["x", None, "y"])).endswith("; 0 chunklets; 2 classes)")


class TestIndex:
    @pytest.mark.parametrize(
        ("index", "message"),
        [
            (["a", "b"], "index has 2 ids, but n_samples is 3; give one id for each row"),
            (["a", "b", "a"], "the id 'a' stands for rows 0 and 2; give every row its own id"),
            (["a", None, "b"], r"index\[1\] is None: the id is missing; give every row an id"),
            (["a", math.nan, "b"], r"index\[1\] is nan: the id is missing"),
            (["a", [1], "b"], r"index\[1\] is \[1\], a list; pass text or numbers as ids"),
            ("abc", "index is 'abc'; pass a list of ids"),
            (np.ones((3, 2)), r"index has shape \(3, 2\); pass one id for each row"),
            (7, "index is 7; pass a list of ids"),
        ],
    )
    def test_bad_index(self, index, message):
        with pytest.raises(ValueError, match=message):
            Constraints(3, index=index)

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([("a", "z")], r"must_link pair 0 is \('a', 'z'\): 'z' is no id in index; correct it"),
            ([("a", "b"), ("a", 7)], "must_link pair 1 .*: 7 is no id in index"),
            ([("a", "7 ")], "'7 ' is no id in index; the index has '7': they differ in blanks"),
            ([("a", "a")], "a point cannot be linked to itself; remove it"),
            ([("a", "b", "7")], "a pair has two ends"),
            (["ab"], "must_link pair 0 is 'ab': a pair has two ends"),
            ([("a", ["b"])], "is no id in index"),
        ],
    )
    def test_bad_pairs(self, pairs, message):
        with pytest.raises(ValueError, match=message):
            Constraints(3, pairs, index=["a", "b", "7"])

    def test_an_id_of_another_type(self):
        with pytest.raises(ValueError, match="the index has 7, of type int: convert one of them"):
            Constraints(2, [("7", "8")], index=[7, 8])

    @pytest.mark.parametrize(
        "index",
        [
            pd.Index([10, 20, 30]), pd.Series([10, 20, 30]), np.array([10, 20, 30]), pl.Series([10, 20, 30]),
            range(10, 40, 10), (10, 20, 30), pd.date_range("2020", periods=3), pd.Index([1.5, 2.5, 3.5]),
            pd.MultiIndex.from_tuples([(0, "a"), (0, "b"), (1, "a")]), pd.Categorical(["x", "y", "z"]),
        ],
    )  # fmt: skip
    def test_kinds_of_index(self, index):
        names = list(index)
        links = Constraints(3, [(names[2], names[0])], index=index)
        assert links.pairs.tolist() == [[0, 2]]
        assert links.align(names[::-1]).pairs.tolist() == [[0, 2]]
        assert links.align(names[1:]).n_pairs == 0

    def test_contradictions_name_ids(self):
        with pytest.raises(InfeasibleConstraints, match=r"row 0 is 'a', row 2 is 'c'"):
            Constraints(3, [("a", "c")], [("c", "a")], index=["a", "b", "c"])
        with pytest.raises(InfeasibleConstraints, match=r"row 0 is 'a', row 1 is 'b'"):
            Constraints(2, cannot_link=[("a", "b")], index=["a", "b"]).check(1)

    def test_align_without_index(self):
        with pytest.raises(ValueError, match="the links have no index"):
            Constraints(3).align([0, 1, 2])


class TestLabels:
    def test_classes_travel(self):
        links = Constraints.from_labels(["oak", None, "ash", "oak"])
        assert links.classes.tolist() == ["ash", "oak"]
        assert links.row_classes.tolist() == [1, -1, 0, 1]
        part = pickle.loads(pickle.dumps(links[[3, 1]]))
        assert part.classes.tolist() == ["ash", "oak"]
        assert part.row_classes.tolist() == [1, -1]
        assert (part + Constraints(2)).row_classes.tolist() == [1, -1]
        both = links + Constraints.from_labels([None, "elm", None, "oak"])
        assert both.classes.tolist() == ["ash", "elm", "oak"]
        assert both.row_classes.tolist() == [2, 1, 0, 2]
        with pytest.raises(ValueError, match="row 0 is of class 'oak' in one and 'elm' in the other"):
            links + Constraints.from_labels(["elm", None, None, None])

    @pytest.mark.parametrize("names", [["oak", "ash, the tree", "elm\r\n"], [3, 1, 20], ["007", "2", "1"]])
    def test_classes_in_a_file(self, tmp_path, names):
        y = [names[0], None, names[1], names[0], names[2], names[1]]
        links = Constraints.from_labels(y, certainty=[0.9, 1, 1, 1, 1, 0.7]).with_index(list("abcdef"))
        links.to_csv(tmp_path / "links.csv")
        found = Constraints.read_csv(tmp_path / "links.csv", index=list("abcdef"))
        assert found.row_classes.tolist() == links.row_classes.tolist()
        assert found == links

    def test_two_classes_of_one_row(self, tmp_path):
        path = tmp_path / "links.csv"
        path.write_text("i,j,kind,class_i,class_j\n0,1,no,a,b\n1,2,no,c,\n")
        with pytest.raises(ValueError, match="line 3: class_i is 'c', but above the same row is 'b'"):
            Constraints.read_csv(path, 3)

    @settings(max_examples=examples(10, 3), deadline=None)
    @given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=45, max_size=45))
    def test_sure_labels_are_never_contradicted(self, flowers, y):
        """Whatever the labels are: wrong ones as well."""
        frame, *_ = flowers
        links = Constraints.from_labels(y)
        known = np.flatnonzero(links.row_classes >= 0)
        for name in ("PPC", "ConstrainedEM", "HMRFKMeans", "COPKMeans"):
            # One short run: hard links hold in every step.
            model = ESTIMATORS[name]().set_params(n_init=1, max_iter=15)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                labels = model.fit(frame, constraints=links).labels_
            found = {(y[row], labels[row]) for row in known.tolist()}
            assert len(found) == len({label for label, _ in found}) == len({label for _, label in found})

    def test_a_doubtful_label_keeps_its_own_certainty(self):
        y = ["a", "a", "a", "a", "b", "b"]
        links = Constraints.from_labels(y, certainty=[0.9, 1.0, 0.6, 1.0, 0.8, 0.7])
        found = {tuple(p): w for p, w in zip(links.pairs.tolist(), links.weights.tolist(), strict=True)}
        agree = 0.8 * 0.7 + 0.2 * 0.3
        assert found == {
            (0, 1): pytest.approx(soft(0.9)),
            (1, 2): pytest.approx(soft(0.6)),
            (1, 3): math.inf,
            (4, 5): pytest.approx(soft(agree)),
            (1, 4): pytest.approx(-soft(0.8)),
        }

    @settings(max_examples=examples(30, 12), deadline=None)
    @given(data=st.data(), y=st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=12))
    def test_sure_labels_are_hard_and_others_never(self, data, y):
        sure = data.draw(st.lists(st.sampled_from([0.5, 0.75, 1.0]), min_size=len(y), max_size=len(y)))
        links = Constraints.from_labels(y, certainty=sure)
        hard = Constraints.from_labels([label if g == 1 else -1 for label, g in zip(y, sure, strict=True)])
        for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
            assert (weight > 0) == (y[i] == y[j])
            assert math.isinf(weight) == (sure[i] == sure[j] == 1.0)
        assert np.array_equal(links.chunklets(), hard.chunklets())

    def test_all_sure_is_the_default(self):
        y = np.random.default_rng(0).integers(-1, 4, 60)
        assert Constraints.from_labels(y, certainty=1.0) == Constraints.from_labels(y)
        unknown = np.where(y < 0, np.nan, 0.9)
        assert Constraints.from_labels(y, certainty=unknown) == Constraints.from_labels(y, certainty=0.9)

    @pytest.mark.parametrize("certainty", [0.4, 90, [0.9, 0.2, 0.9], [0.9, 0.9], [math.nan] * 3])
    def test_bad_certainty(self, certainty):
        with pytest.raises(ValueError, match=r"certainty .*; (correct it|give one value)"):
            Constraints.from_labels([0, 1, 0], certainty=certainty)


ESTIMATORS = {
    "PPC": lambda: PPC(3, n_init=1, random_state=0),
    "ConstrainedEM": lambda: ConstrainedEM(3, n_init=1, random_state=0),
    "HMRFKMeans": lambda: HMRFKMeans(3, n_init=1, random_state=0),
    "PCKMeans": lambda: PCKMeans(3, n_init=1, random_state=0),
    "MPCKMeans": lambda: MPCKMeans(3, n_init=1, random_state=0),
    "COPKMeans": lambda: COPKMeans(3, n_init=1, random_state=0),
    "ConstrainedSpectralClustering": lambda: ConstrainedSpectralClustering(3, random_state=0),
    "SpectralLearning": lambda: SpectralLearning(3, random_state=0),
}


@pytest.fixture(scope="module")
def flowers():
    """Three groups that only links tell apart from each other, with ids, and links by id."""
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], 15)
    frame = pd.DataFrame(rng.normal(truth[:, None] * 3.0, 1.0, (45, 2)), columns=["x", "y"])
    frame.index = pd.Index([f"flower {number}" for number in range(45)])
    drawn = Constraints.sample(truth, 18, random_state=0)
    ids = frame.index.to_numpy()
    links = Constraints(45, ids[drawn.must_link], ids[drawn.cannot_link], index=frame.index)
    return frame, links, drawn


def partition(labels, names):
    """Which names share a label."""
    groups: dict = {}
    for label, name in zip(labels, names, strict=True):
        groups.setdefault(label, set()).add(name)
    return {frozenset(group) for group in groups.values()}


OTHERS = {
    "DiscriminativeClustering": lambda: DiscriminativeClustering(3, random_state=0),
    "LinkedClustering": lambda: LinkedClustering(3, random_state=0),
}


@pytest.mark.parametrize("name", [*ESTIMATORS, *OTHERS])
class TestContradictions:
    def test_name_ids(self, name, flowers):
        frame, _, _ = flowers
        four = [f"flower {row}" for row in range(4)]
        apart = Constraints(45, cannot_link=[*itertools.combinations(four, 2)], index=frame.index)
        with pytest.raises(InfeasibleConstraints, match=r"row 0 is 'flower 0', .*; use n_clusters >= 4"):
            {**ESTIMATORS, **OTHERS}[name]().fit(frame, constraints=apart)

    def test_name_classes_that_are_too_many(self, name, flowers):
        links = Constraints.from_labels(["ash", "elm", "fir", "oak", *[None] * 41])
        with pytest.raises(InfeasibleConstraints, match=r"^the labels have 4 classes \(ash, elm, fir, oak\)"):
            {**ESTIMATORS, **OTHERS}[name]().fit(flowers[0].to_numpy(), constraints=links)


@pytest.mark.parametrize("name", ESTIMATORS)
class TestAlignment:
    def test_links_by_id_equal_links_by_position(self, name, flowers):
        frame, links, drawn = flowers
        by_position = ESTIMATORS[name]().fit(frame.to_numpy(), constraints=drawn).labels_
        assert np.array_equal(ESTIMATORS[name]().fit(frame, constraints=links).labels_, by_position)

    def test_shuffled_rows(self, name, flowers):
        """A shuffled frame is fitted as if the links had been written for the shuffled rows."""
        frame, links, _ = flowers
        order = np.random.default_rng(0).permutation(45)
        shuffled = frame.iloc[order]
        expected = ESTIMATORS[name]().fit(shuffled.to_numpy(), constraints=links[order].with_index(None))
        found = ESTIMATORS[name]().fit(shuffled, constraints=links)
        assert np.array_equal(found.labels_, expected.labels_)
        if not name.startswith(("ConstrainedSpectral", "Spectral")):
            assert links.align(shuffled.index).satisfaction(found.labels_) == 1.0

    def test_id_column_of_polars_and_pandas(self, name, flowers):
        frame, links, drawn = flowers
        table = frame.reset_index(names="flower").iloc[::-1].reset_index(drop=True)
        by_column = links.with_index(pd.Series(frame.index, name="flower"))
        expected = ESTIMATORS[name]().fit(
            frame.to_numpy()[::-1].copy(), constraints=drawn[np.arange(45)[::-1]]
        )
        for X in (table, pl.from_pandas(table)):
            model = ESTIMATORS[name]().fit(X, constraints=by_column)
            assert np.array_equal(model.labels_, expected.labels_)
            assert model.feature_names_in_.tolist() == ["x", "y"]
            assert model.n_features_in_ == 2

    def test_ids_that_do_not_fit(self, name, flowers):
        frame, links, _ = flowers
        model = ESTIMATORS[name]()
        with pytest.raises(ValueError, match=r"X has no rows 'flower 44', .*constraints\.align\(X\.index\)"):
            model.fit(frame.iloc[:44], constraints=links)
        with pytest.raises(ValueError, match="'rose', about which the links know nothing"):
            model.fit(frame.rename(index={"flower 7": "rose"}), constraints=links)
        with pytest.raises(ValueError, match="the id 'flower 8' stands for rows 7 and 8"):
            model.fit(frame.rename(index={"flower 7": "flower 8"}), constraints=links)
        with pytest.raises(ValueError, match="0, 1, 2, 3, 4 and 40 more, about which the links know nothing"):
            model.fit(frame.reset_index(drop=True), constraints=links)
        model.fit(frame.iloc[:44], constraints=links.align(frame.index[:44]))

    def test_data_without_ids(self, name, flowers):
        frame, links, drawn = flowers
        expected = ESTIMATORS[name]().fit(frame.to_numpy(), constraints=drawn).labels_
        for X in (frame.to_numpy(), pl.from_pandas(frame)):
            with pytest.warns(UserWarning, match=r"the links have ids, but X, a \w+, has none"):
                model = ESTIMATORS[name]().fit(X, constraints=links)
            assert np.array_equal(model.labels_, expected)

    def test_repeated_rows_in_the_same_order(self, name, flowers):
        frame, links, _ = flowers
        rows = np.sort(np.random.default_rng(0).integers(45, size=60))
        if name == "COPKMeans":
            pytest.skip("copies of a row may need more clusters")
        model = ESTIMATORS[name]().fit(frame.iloc[rows], constraints=links[rows])
        assert len(model.labels_) == 60


@settings(max_examples=examples(6, 3), deadline=None)
@given(order=st.permutations(range(45)))
def test_any_permutation_gives_the_same_labels_by_id(flowers, order):
    """From given starts; random ones depend on the order of rows."""
    frame, links, _ = flowers
    for model in (
        PPC(3, means_init=[[0, 0], [3, 3], [6, 6]], random_state=0),
        PCKMeans(3, init=np.array([[0.0, 0], [3, 3], [6, 6]]), n_init=1, random_state=0),
    ):
        shuffled = frame.iloc[list(order)]
        straight = partition(model.fit(frame, constraints=links).labels_, frame.index)
        assert partition(model.fit(shuffled, constraints=links).labels_, shuffled.index) == straight


def test_pipelines_keep_ids_or_warn(flowers):
    frame, links, _ = flowers
    shuffled = frame.sample(frac=1, random_state=0)
    pipeline = make_pipeline(StandardScaler(), PPC(3, n_init=1, random_state=0))
    with pytest.warns(UserWarning, match=r"in a pipeline: set_output\(transform='pandas'\)"):
        pipeline.fit(shuffled, ppc__constraints=links)
    pipeline.set_output(transform="pandas").fit(shuffled, ppc__constraints=links)
    assert links.align(shuffled.index).satisfaction(pipeline["ppc"].labels_) == 1.0


def test_cross_validation_of_a_frame(flowers):
    """Rows and links are cut by position and then matched by id, which finds links in another order."""
    frame, links, _ = flowers
    scores = cross_val_score(PPC(3, n_init=1, random_state=0), frame, params={"constraints": links}, cv=3)
    assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="about which the links know nothing"):
        cross_val_score(
            PPC(3, random_state=0), frame[::-1], params={"constraints": links}, cv=3, error_score="raise"
        )


def test_folds_and_sweeps_align(flowers):
    frame, links, _ = flowers
    order = np.random.default_rng(1).permutation(45)
    shuffled = frame.iloc[order]
    found = list(ConstraintKFold(3, constraints=links).split(shuffled))
    expected = list(ConstraintKFold(3, constraints=links[order].with_index(None)).split(shuffled.to_numpy()))
    assert [test.tolist() for _, test in found] == [test.tolist() for _, test in expected]
    table = pl.from_pandas(shuffled.reset_index(names="flower"))
    by_column = links.with_index(pd.Series(frame.index, name="flower"))
    wanted = {"n_components": [2, 3], "criterion": "bic", "n_repeats": 1, "random_state": 0}
    bare = links[order].with_index(None)
    with pytest.warns(UserWarning, match="edge of the range"):
        sweep = sweep_components(PPC(n_init=1), table, constraints=by_column, **wanted)
    with pytest.warns(UserWarning, match="edge of the range"):
        plain = sweep_components(PPC(n_init=1), shuffled.to_numpy(), constraints=bare, **wanted)
    # The table of Polars has columns where NumPy has rows, so that sums are added in another order.
    assert [run.criterion for run in sweep.runs] == pytest.approx(
        [run.criterion for run in plain.runs], rel=1e-12
    )
