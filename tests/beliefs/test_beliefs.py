"""ClassBeliefs: construction, checks that name the entry, edits, CSV, frames and display."""

from __future__ import annotations

import copy
import pickle

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from linkwise.beliefs import ClassBeliefs, check_belief_array
from linkwise.metrics import belief_adherence

matplotlib.use("Agg")

NAMES = ("agriculture", "deciduous", "mixed")


@pytest.fixture
def beliefs():
    return ClassBeliefs.keep(NAMES).split("agriculture", strength=0.3).merge("mixed", "deciduous", 0.5)


@st.composite
def tables(draw):
    """Random beliefs with random names, built entry by entry."""
    n_classes = draw(st.integers(1, 6))
    names = draw(
        st.lists(
            st.text(
                st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8
            ),
            min_size=n_classes, max_size=n_classes, unique=True,
        )
    )  # fmt: skip
    values = np.zeros((n_classes, n_classes))
    for a in range(n_classes):
        for b in range(a + 1):
            values[a, b] = values[b, a] = draw(st.floats(-1, 1, allow_subnormal=False))
    return values, names


class TestConstruction:
    def test_keep_and_unsure(self):
        np.testing.assert_array_equal(ClassBeliefs.keep(["a", "b"]).values, [[1, -1], [-1, 1]])
        np.testing.assert_array_equal(ClassBeliefs.unsure([3, 5, 7]).values, np.zeros((3, 3)))
        assert ClassBeliefs.unsure(np.array([3, 5])).classes == (3, 5)

    def test_names_default_to_numbers(self):
        assert ClassBeliefs(np.eye(3)).classes == (0, 1, 2)

    def test_values_are_copied_and_read_only(self):
        values = np.eye(2)
        beliefs = ClassBeliefs(values)
        values[0, 1] = 0.7
        assert beliefs.values[0, 1] == 0.0
        with pytest.raises(ValueError, match="read-only"):
            beliefs.values[0, 0] = 0.0
        with pytest.raises(AttributeError, match="cannot be changed"):
            beliefs.values = np.eye(2)
        with pytest.raises(AttributeError, match="cannot be changed"):
            beliefs.anything = 1

    def test_pickle_copy_equality(self, beliefs):
        for twin in (pickle.loads(pickle.dumps(beliefs)), copy.deepcopy(beliefs), ClassBeliefs(beliefs)):
            assert twin == beliefs
            assert hash(twin) == hash(beliefs)
            assert not twin.values.flags.writeable
        assert beliefs != beliefs.split("mixed")
        assert beliefs != beliefs.rename({"mixed": "other"})
        assert beliefs != 3

    def test_survives_clone_as_a_parameter(self, beliefs):
        assert clone(GaussianMixture(means_init=beliefs)).means_init == beliefs

    def test_is_an_array_to_numpy(self, beliefs):
        np.testing.assert_array_equal(np.asarray(beliefs), beliefs.values)
        np.asarray(beliefs, dtype=float)[0, 0] = 9
        assert beliefs["agriculture", "agriculture"] == -0.3
        assert belief_adherence(ClassBeliefs.keep([0, 1]), [[1.0, 0.0], [0.0, -1.0]]) == 6.0

    def test_rounding_is_averaged_and_nothing_else(self):
        values = np.array([[1.0, 0.3], [0.1 + 0.2, 1.0]])
        assert values[0, 1] != values[1, 0]
        checked = ClassBeliefs(values).values
        assert checked[0, 1] == checked[1, 0]
        values[0, 1] += 1e-9
        with pytest.raises(ValueError, match="same value in both places"):
            ClassBeliefs(values)


BAD = [
    ([[1, -1], [0.5, 1]], r"\('a', 'b'\) is -1, but about \('b', 'a'\) it is 0.5"),
    ([[1, -1.5], [-1.5, 1]], r"\('a', 'b'\) is -1.5: beliefs lie between"),
    ([[1, np.nan], [np.nan, 1]], r"\('a', 'b'\) is nan: write 0"),
    ([[1, 0], [0, np.inf]], r"\('b', 'b'\) is inf"),
    ([[1, "much"], ["much", 1]], r"\('a', 'b'\) is 'much': write a number"),
    ([[1, None], [None, 1]], r"\('a', 'b'\) is (nan|None)"),
    ([[1, 0, 0], [0, 1, 0]], r"shape \(2, 3\), but there are 2 classes"),
    ([1, 2], r"shape \(2,\)"),
    ([[1, 0], [0]], "square table"),
]


class TestRefusals:
    @pytest.mark.parametrize(("values", "message"), BAD)
    def test_bad_values_are_named(self, values, message):
        with pytest.raises(ValueError, match=message):
            ClassBeliefs(values, ["a", "b"])

    @pytest.mark.parametrize(("values", "message"), BAD)
    def test_bad_arrays_are_named_by_number(self, values, message):
        with pytest.raises(ValueError, match=message.replace("'a'", "0").replace("'b'", "1")):
            check_belief_array(values, 2)

    def test_good_arrays_come_back_as_a_copy(self):
        given = np.eye(2, dtype=np.float32)
        checked = check_belief_array(given, 2)
        assert checked.dtype == np.float64
        checked[0, 0] = 0.0
        assert given[0, 0] == 1.0

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["a", "a"], "classes 0 and 1 are both 'a'"),
            (["a", None], "class 1 is None, which marks unlabelled"),
            (["a", float("nan")], "class 1 is nan"),
            ([-1, 0], "class 0 is -1"),
            (["a", ["b"]], "class 1 is \\['b'\\]"),
            (["a"], r"shape \(2, 2\), but there are 1 classes"),
            ("ab", "single string 'ab'"),
            ([], "no classes"),
        ],
    )
    def test_bad_names(self, names, message):
        with pytest.raises(ValueError, match=message):
            ClassBeliefs(np.eye(2), names)


class TestEdits:
    def test_each_edit_changes_its_entry_only(self, beliefs):
        for changed, entry, value in [
            (beliefs.split("mixed"), ("mixed", "mixed"), -0.5),
            (beliefs.split("mixed", strength=0), ("mixed", "mixed"), 0.0),
            (beliefs.keep_whole("agriculture"), ("agriculture", "agriculture"), 1.0),
            (beliefs.keep_whole("mixed", strength=0.1), ("mixed", "mixed"), 0.1),
            (beliefs.merge("agriculture", "mixed"), ("mixed", "agriculture"), 1.0),
            (beliefs.separate("mixed", "deciduous", 0.2), ("deciduous", "mixed"), -0.2),
        ]:
            assert changed[entry] == changed[entry[::-1]] == value
            differs = changed.values != beliefs.values
            assert differs.sum() == (1 if entry[0] == entry[1] else 2)
        assert beliefs["agriculture", "agriculture"] == -0.3

    def test_edits_without_a_strength_are_sure_but_for_a_split(self):
        plain = ClassBeliefs.unsure(["a", "b"])
        assert plain.merge("a", "b")["a", "b"] == 1.0
        assert plain.separate("a", "b")["a", "b"] == -1.0
        assert plain.keep_whole("a")["a", "a"] == 1.0
        assert plain.split("a")["a", "a"] == -0.5

    def test_several_classes_at_once(self, beliefs):
        np.testing.assert_array_equal(np.diag(beliefs.split(*NAMES, strength=0.2).values), [-0.2] * 3)

    def test_no_negative_zero(self):
        assert not np.signbit(ClassBeliefs.keep(["a"]).split("a", strength=0).values).any()

    def test_bad_edits(self, beliefs):
        with pytest.raises(ValueError, match=r"no class 'forest'; the classes are 'agriculture'"):
            beliefs.split("forest")
        with pytest.raises(ValueError, match="named twice"):
            beliefs.merge("mixed", "mixed")
        with pytest.raises(ValueError, match=r"between 0 and 1, got -0\.5"):
            beliefs.separate("mixed", "deciduous", -0.5)
        with pytest.raises(ValueError, match="between 0 and 1, got nan"):
            beliefs.split("mixed", strength=float("nan"))
        with pytest.raises(ValueError, match="name the class"):
            beliefs.split()
        with pytest.raises(ValueError, match="no class 'forest'"):
            beliefs.rename({"forest": "wood"})
        with pytest.raises(ValueError, match="both 'mixed'"):
            beliefs.rename({"deciduous": "mixed"})
        with pytest.raises(KeyError, match="name two classes"):
            beliefs["mixed"]


class TestForClasses:
    def test_order_is_that_of_the_data(self, beliefs):
        order = ["mixed", "agriculture", "deciduous"]
        table = beliefs.for_classes(np.array(order))
        for a, first in enumerate(order):
            for b, second in enumerate(order):
                assert table[a, b] == beliefs[first, second]
        table[0, 0] = 0.0
        assert beliefs["mixed", "mixed"] == 1.0

    def test_missing_and_extra(self, beliefs):
        with pytest.raises(ValueError, match=r"nothing about 'water'; they are about 'agriculture'.*add it"):
            beliefs.for_classes([*NAMES, "water"])
        with pytest.raises(ValueError, match=r"about 'mixed', but no sample has that class; .*select"):
            beliefs.for_classes(["agriculture", "deciduous"])
        np.testing.assert_array_equal(
            beliefs.select(["deciduous", "agriculture"]).for_classes(["agriculture", "deciduous"]),
            [[-0.3, -1], [-1, 1]],
        )

    def test_numbers_written_as_strings(self):
        with pytest.raises(ValueError, match=r"strings as names: use beliefs.rename\(str\)"):
            ClassBeliefs.keep([1, 2]).for_classes(["1", "2"])
        with pytest.raises(ValueError, match=r"numbers as names: use beliefs.rename\(int\)"):
            ClassBeliefs.keep(["1", "2"]).for_classes([1, 2])
        assert ClassBeliefs.keep(["1", "2"]).rename(int).for_classes(np.array([2.0, 1.0])).shape == (2, 2)


class TestFiles:
    @given(table=tables())
    def test_csv_round_trip(self, table, tmp_path_factory):
        path = tmp_path_factory.mktemp("beliefs") / "beliefs.csv"
        beliefs = ClassBeliefs(*table)
        beliefs.to_csv(path)
        again = ClassBeliefs.from_csv(path)
        assert [str(name) for name in again.classes] == list(beliefs.classes) or all(
            isinstance(name, int) for name in again.classes
        )
        np.testing.assert_array_equal(again.values, beliefs.values)

    def test_whole_numbers_become_integers(self, tmp_path):
        ClassBeliefs.keep([10, 2]).to_csv(tmp_path / "a.csv")
        assert ClassBeliefs.from_csv(tmp_path / "a.csv").classes == (10, 2)
        assert ClassBeliefs.from_csv(tmp_path / "a.csv").rename(str).classes == ("10", "2")

    def test_as_a_spreadsheet_writes_it(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("\ufeff, mixed, water\n water, -1, 0.5\n\n mixed, 1, -1\n", encoding="utf-8")
        beliefs = ClassBeliefs.from_csv(path)
        assert beliefs.classes == ("mixed", "water")
        np.testing.assert_array_equal(beliefs.values, [[1, -1], [-1, 0.5]])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no line of class names"),
            ("class;a;b\na;1;0\nb;0;1\n", "separated by commas"),
            (",a,b\na,1,0\n", "rows and columns must name the same classes: 'b' only among the columns"),
            (",a,b\na,1,0\nc,0,1\n", "'c' only among the rows; 'b' only among the columns"),
            (",a,b\na,1,0\nb,0\n", "line 3: class 'b' has 1 values for 2 classes"),
            (",a,b\na,1,\nb,0,1\n", r"line 2: the belief about \('a', 'b'\) is empty; write a number"),
            (",a,b\na,1,x\nb,0,1\n", r"line 2: the belief about \('a', 'b'\) is 'x'"),
            (",a,b\na,1,0.5\nb,0,1\n", r"\('a', 'b'\) is 0.5, but about \('b', 'a'\) it is 0"),
            (",a,b\na,1,2\nb,2,1\n", r"\('a', 'b'\) is 2: beliefs lie between"),
            (",a,a\na,1,0\na,0,1\n", "classes 0 and 1 are both 'a'"),
            (",a,\na,1,0\n,0,1\n", "class name in the first line is empty"),
        ],
    )
    def test_bad_files(self, text, message, tmp_path):
        path = tmp_path / "bad.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message) as caught:
            ClassBeliefs.from_csv(path)
        assert "bad.csv" in str(caught.value)


class TestFrames:
    def test_round_trip(self, beliefs):
        frame = beliefs.to_frame()
        assert frame.loc["mixed", "deciduous"] == 0.5
        frame.loc["mixed", "mixed"] = 0.0
        assert beliefs["mixed", "mixed"] == 1.0
        assert ClassBeliefs(beliefs.to_frame()) == beliefs

    def test_columns_in_another_order(self, beliefs):
        frame = beliefs.to_frame()[["mixed", "agriculture", "deciduous"]]
        assert ClassBeliefs(frame) == beliefs
        order = ["mixed", "deciduous", "agriculture"]
        assert ClassBeliefs(frame, order) == beliefs.select(order)
        assert ClassBeliefs(beliefs, order) == beliefs.select(order)

    def test_bad_frames(self, beliefs):
        frame = beliefs.to_frame()
        with pytest.raises(ValueError, match="'mixd' only among the columns"):
            ClassBeliefs(frame.rename(columns={"mixed": "mixd"}))
        with pytest.raises(ValueError, match="the table is about 'agriculture'"):
            ClassBeliefs(frame, ["x", "y", "z"])
        with pytest.raises(ValueError, match=r"\('deciduous', 'mixed'\) is <NA>"):
            ClassBeliefs(frame.astype("Float64").mask(lambda table: table == 0.5, pd.NA))


class TestDisplay:
    def test_text(self, beliefs):
        assert repr(beliefs) == "ClassBeliefs(3 classes: 'agriculture', 'deciduous', 'mixed')"
        lines = str(beliefs).splitlines()
        assert len({len(line) for line in lines}) == 1
        assert lines[2].split() == ["deciduous", "−1", "1", "0.5"]
        assert "(20 in all)" in repr(ClassBeliefs.keep(range(20)))

    def test_html_escapes_names(self):
        html = ClassBeliefs.keep(["<script>", "a & b"])._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert "a &amp; b" in html

    def test_plot(self, beliefs):
        from matplotlib import pyplot

        axes = beliefs.plot()
        assert [label.get_text() for label in axes.get_xticklabels()] == list(NAMES)
        np.testing.assert_array_equal(axes.images[0].get_array(), beliefs.values)
        assert axes.images[0].get_clim() == (-1.0, 1.0)
        assert beliefs.plot(axes) is axes
        pyplot.close(axes.figure)
