"""Constraints against naive double loops, and its invariances as properties."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise import Constraints
from linkwise.exceptions import InfeasibleConstraints
from tests.repeats import examples
from tests.strategies import made_by, random_pairs, size


def link_lists(max_samples=9, hard=False):
    """n, must-links, cannot-links and weights, soft unless ``hard``."""

    def make(random):
        n = size(random, 2, max_samples)
        must, cannot = random_pairs(random, n, 8), random_pairs(random, n, 8)
        if hard:
            return n, must, cannot, None
        # Multiples of 1/8 add without rounding, so that any order of adding gives the same sum.
        return n, must, cannot, [random.randint(0, 40) / 8 for _ in must + cannot]

    return made_by(make)


def soft_links(max_samples=9):
    return link_lists(max_samples).map(lambda lists: Constraints(*lists[:3], weight=lists[3]))


def evidence(n, must, cannot, weights):
    """Dictionary {pair: signed weight} by a loop."""
    total = {}
    signs = [1.0] * len(must) + [-1.0] * len(cannot)
    for (i, j), sign, weight in zip([*must, *cannot], signs, weights, strict=True):
        key = (min(i, j), max(i, j))
        total[key] = total.get(key, 0.0) + sign * weight
    return {key: value for key, value in total.items() if value != 0}


def as_dict(links):
    return {
        tuple(pair): weight for pair, weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True)
    }


def without_classes(links):
    """The links alone: equality asks for the same classes too."""
    return Constraints._restore(links.n_samples, links.pairs, links.weights)


class TestCanonicalForm:
    @given(link_lists())
    def test_sorted_unique_and_summed(self, lists):
        n, must, cannot, weights = lists
        links = Constraints(n, must, cannot, weight=weights)
        assert as_dict(links) == evidence(n, must, cannot, weights)
        rows = links.pairs.tolist()
        assert rows == sorted(rows)
        assert all(i < j for i, j in rows)
        assert len(links.must_link) + len(links.cannot_link) == links.n_pairs

    @given(link_lists())
    def test_order_and_orientation_of_input_do_not_matter(self, lists):
        n, must, cannot, weights = lists
        split = len(must)
        backwards = Constraints(
            n,
            [(j, i) for i, j in must][::-1],
            [(j, i) for i, j in cannot][::-1],
            weight=weights[:split][::-1] + weights[split:][::-1],
        )
        assert backwards == Constraints(n, must, cannot, weight=weights)

    def test_hard_by_default(self):
        links = Constraints(4, [(2, 1)], [(3, 0)])
        assert as_dict(links) == {(1, 2): np.inf, (0, 3): -np.inf}

    def test_certainty_is_half_the_log_odds(self):
        links = Constraints(4, [(0, 1)], [(2, 3)], certainty=[0.85, 0.7])
        assert links.weights == pytest.approx([0.8673, -0.4236], abs=1e-4)
        assert Constraints(2, [(0, 1)], certainty=1.0).weights[0] == np.inf

    def test_hard_evidence_absorbs_soft_evidence(self):
        links = Constraints(2, [(0, 1)], [(1, 0)], weight=[np.inf, 3.0])
        assert links.weights.tolist() == [np.inf]

    @given(link_lists())
    def test_certainty_one_half_equals_no_link(self, lists):
        n, must, cannot, weights = lists
        plain = Constraints(n, must, cannot, weight=weights)
        assert plain + Constraints(n, must, cannot, certainty=0.5) == plain

    def test_empty(self):
        links = Constraints(0)
        assert len(links) == 0
        assert links.pairs.shape == (0, 2)
        assert links.satisfaction([]) == 1.0
        assert Constraints(5).components().tolist() == [0, 1, 2, 3, 4]

    def test_is_immutable(self):
        links = Constraints(4, [(0, 1)])
        with pytest.raises(ValueError, match="read-only"):
            links.pairs[0, 0] = 3
        with pytest.raises(ValueError, match="read-only"):
            links.weights[0] = 3
        with pytest.raises(AttributeError):
            links.n_samples = 9
        with pytest.raises(TypeError):
            iter(links)

    def test_does_not_keep_a_hold_on_its_input(self):
        pairs = np.array([[0, 1], [2, 3]])
        weight = np.array([1.0, 2.0])
        links = Constraints(4, pairs, weight=weight)
        pairs[0] = weight[0] = 3
        assert as_dict(links) == {(0, 1): 1.0, (2, 3): 2.0}
        assert pairs.flags.writeable
        assert weight.flags.writeable

    def test_survives_pickle_and_copy(self):
        links = Constraints(4, [(0, 1)], [(1, 2)], weight=[0.5, np.inf])
        for twin in (pickle.loads(pickle.dumps(links)), copy.deepcopy(links), copy.copy(links)):
            assert twin == links
            assert hash(twin) == hash(links)
            assert not twin.pairs.flags.writeable

    def test_accepts_frames_and_whole_floats(self):
        frame = pd.DataFrame({"a": [0.0, 2.0], "b": [1.0, 3.0]})
        assert Constraints(4, frame).must_link.tolist() == [[0, 1], [2, 3]]

    def test_a_million_pairs(self):
        rng = np.random.default_rng(0)
        pairs = rng.integers(0, 500_000, size=(1_000_000, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        links = Constraints(500_000, pairs, weight=1.0)
        assert links.weights.sum() == len(pairs)


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"must_link": [(0, 1), (7, 7)]}, r"must_link pair 1 is \(7, 7\): a point cannot be linked"),
            ({"cannot_link": [(0, 9)]}, r"cannot_link pair 0 is \(0, 9\): points are numbered 0..7"),
            ({"must_link": [(-1, 2)]}, r"must_link pair 0 is \(-1, 2\): points are numbered 0..7"),
            ({"must_link": [(0.5, 2)]}, r"must_link pair 0 is \(0.5, 2.0\): row numbers must be whole"),
            ({"must_link": [(np.nan, 2)]}, r"must_link pair 0 is \(nan, 2.0\): row numbers must be whole"),
            ({"must_link": [(0, 1, 2)]}, r"must_link pairs must have two columns, got shape \(1, 3\)"),
            ({"must_link": [0, 1]}, r"must_link pairs must have two columns"),
            ({"must_link": [("a", "b")]}, r"must_link pairs must hold row numbers"),
            ({"must_link": [(0, 1)], "cannot_link": [(2, 3)], "weight": [1, np.nan]},
             r"weight of cannot_link pair 0 is nan: it must be >= 0"),
            ({"must_link": [(0, 1), (2, 3)], "weight": [1, -2.0]}, "must_link pair 1 is -2.0.*sign"),
            ({"must_link": [(0, 1)], "certainty": 0.4},
             r"certainty of must_link pair 0 is 0.4: it must lie in \[0.5, 1\]; .*use 1 - certainty"),
            ({"must_link": [(0, 1)], "certainty": 1.1}, r"certainty of must_link pair 0 is 1.1"),
            ({"must_link": [(0, 1)], "certainty": np.nan}, r"certainty of must_link pair 0 is nan"),
            ({"must_link": [(0, 1)], "weight": 1.0, "certainty": 0.9}, "weight or certainty, not both"),
            ({"must_link": [(0, 1)], "weight": [1.0, 2.0]}, r"weight has shape \(2,\).*1 must-links first"),
        ],
    )  # fmt: skip
    def test_names_the_row_the_value_and_the_fix(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Constraints(8, **arguments)

    @pytest.mark.parametrize("n_samples", [-1, 2.5, "3", True, None])
    def test_number_of_samples(self, n_samples):
        with pytest.raises(ValueError, match="n_samples must be a whole number"):
            Constraints(n_samples)

    def test_contradiction_on_one_pair(self):
        with pytest.raises(
            InfeasibleConstraints, match=r"2 and 5 must be together \(2-5\) but are linked apart"
        ):
            Constraints(8, [(5, 2)], [(2, 5)])

    def test_contradiction_through_a_chain(self):
        with pytest.raises(InfeasibleConstraints) as caught:
            Constraints(18, must_link=[(3, 8), (8, 17), (1, 2)], cannot_link=[(17, 3), (0, 1)])
        assert str(caught.value) == (
            "3 and 17 must be together (3-8-17) but are linked apart; remove one of these links"
        )
        assert caught.value.witness.must_link == ((3, 8), (8, 17))
        assert caught.value.witness.cannot_link == ((3, 17),)
        assert pickle.loads(pickle.dumps(caught.value)).witness == caught.value.witness

    def test_soft_contradictions_are_legal(self):
        links = Constraints(3, [(0, 1), (1, 2)], [(0, 2)], weight=[np.inf, np.inf, 1.0])
        assert links.violations([0, 0, 0]).sum() == 1

    def test_union_of_contradicting_links(self):
        with pytest.raises(InfeasibleConstraints, match=r"0 and 2 must be together \(0-1-2\)"):
            Constraints(3, [(0, 1), (1, 2)]) + Constraints(3, cannot_link=[(0, 2)])
        with pytest.raises(ValueError, match="3 samples to links of 4 samples"):
            Constraints(3) + Constraints(4)
        with pytest.raises(TypeError):
            Constraints(3) + [(0, 1)]


class TestUnionAndSubset:
    @given(link_lists(), st.randoms(use_true_random=True))
    def test_union_is_commutative_and_adds(self, lists, random):
        n, must, cannot, weights = lists
        a = Constraints(n, must, cannot, weight=weights)
        other = random_pairs(random, n, 6)
        b = Constraints(n, cannot_link=other, weight=0.5)
        assert a + b == b + a
        assert as_dict(a + b) == evidence(n, must, [*cannot, *other], [*weights, *[0.5] * len(other)])

    @given(soft_links(), st.randoms(use_true_random=True))
    def test_subset_against_a_loop(self, links, random):
        rows = random.choices(range(len(links)), k=size(random, 0, 12))
        part = links[rows]
        expected = {}
        for a, b in itertools.combinations(range(len(rows)), 2):
            key = (min(rows[a], rows[b]), max(rows[a], rows[b]))
            if key in as_dict(links):
                expected[a, b] = as_dict(links)[key]
        assert as_dict(part) == expected
        assert len(part) == len(rows)

    @given(soft_links(), st.randoms(use_true_random=True))
    def test_subset_commutes_with_permutation(self, links, random):
        order = list(range(len(links)))
        random.shuffle(order)
        subset = random.sample(range(len(links)), random.randint(0, len(links)))
        position = np.argsort(order)
        assert links[order][position[subset]] == links[subset]
        assert links[order][np.argsort(order)] == links

    @given(soft_links())
    def test_violations_of_a_subset_are_those_of_the_whole(self, links):
        labels = np.arange(len(links)) % 2
        rows = np.arange(0, len(links), 2)
        inside = np.isin(links.pairs, rows).all(axis=1)
        assert links[rows].violations(labels[rows]).tolist() == links.violations(labels)[inside].tolist()

    def test_kinds_of_keys(self):
        links = Constraints(5, [(0, 4), (1, 2)], weight=[1.0, 2.0])
        mask = np.array([True, False, False, False, True])
        expected = Constraints(2, [(0, 1)], weight=1.0)
        for key in (
            [0, 4],
            (0, 4),
            np.array([0, -1]),
            mask,
            mask.tolist(),
            slice(0, 5, 4),
            pd.Series([0, 4]),
        ):
            if isinstance(key, tuple):
                continue
            assert links[key] == expected
            assert links[key, ...] == expected
            assert links[key, :] == expected
        assert links[:] == links
        assert links[[]] == Constraints(0)

    @pytest.mark.parametrize("key", [3, (0, 4), ([0, 4], [0, 4]), [9], [[0, 1]], [True, False], "a", 1.5])
    def test_keys_that_make_no_sense(self, key):
        with pytest.raises(IndexError):
            Constraints(5, [(0, 4)])[key]

    def test_bootstrap_copies_keep_their_links(self):
        links = Constraints(3, [(0, 1)], [(1, 2)], weight=[1.0, 2.0])
        assert as_dict(links[[1, 0, 1, 2]]) == {(0, 1): 1.0, (1, 2): 1.0, (0, 3): -2.0, (2, 3): -2.0}


class TestLabellings:
    @given(soft_links(), st.randoms(use_true_random=True))
    def test_violations_against_a_double_loop(self, links, random):
        labels = random.choices("abc", k=len(links))
        expected = []
        for i in range(len(links)):
            for j in range(len(links)):
                weight = as_dict(links).get((i, j))
                if weight is not None:
                    expected.append((labels[i] == labels[j]) != (weight > 0))
        assert links.violations(labels).tolist() == expected
        if expected:
            assert links.satisfaction(labels) == pytest.approx(1 - np.mean(expected))

    def test_wrong_length(self):
        with pytest.raises(ValueError, match=r"labels has shape \(2,\), but the links are about 3"):
            Constraints(3).violations([0, 1])

    @settings(max_examples=examples(60, 15))
    @given(link_lists(max_samples=5, hard=True), st.integers(1, 3))
    def test_check_agrees_with_trying_everything(self, lists, n_clusters):
        n, must, cannot, _ = lists
        possible = any(
            all(z[i] == z[j] for i, j in must) and all(z[i] != z[j] for i, j in cannot)
            for z in itertools.product(range(n_clusters), repeat=n)
        )
        try:
            Constraints(n, must, cannot).check(n_clusters)
            found = True
        except InfeasibleConstraints:
            found = False
        assert found == possible


def closure(links):
    """All implied hard relations by Warshall-style loops."""
    n = len(links)
    group = links.chunklets()
    apart = {(group[i], group[j]) for i, j in links.cannot_link}
    return {
        (i, j): 1 if group[i] == group[j] else -1
        for i, j in itertools.combinations(range(n), 2)
        if group[i] == group[j] or (group[i], group[j]) in apart or (group[j], group[i]) in apart
    }


class TestBuilders:
    @given(made_by(lambda random: random.choices([-1, 0, 1, 2, 5], k=size(random, 0, 10))))
    def test_from_labels_is_closure_equivalent_to_all_pairs(self, y):
        links = Constraints.from_labels(y)
        expected = {
            (i, j): 1 if y[i] == y[j] else -1
            for i, j in itertools.combinations(range(len(y)), 2)
            if y[i] != -1 and y[j] != -1
        }
        assert closure(links) == expected
        n_classes = len(set(y) - {-1})
        assert links.n_pairs <= len(y) + n_classes**2

    def test_from_labels_kinds_of_unknown(self):
        expected = Constraints(4, [(0, 3)], [(0, 2)])
        assert without_classes(Constraints.from_labels([0, -1, 1, 0])) == expected
        assert without_classes(Constraints.from_labels([0.0, np.nan, 1.0, 0.0])) == expected
        assert without_classes(Constraints.from_labels(["a", None, "b", "a"])) == expected
        assert without_classes(Constraints.from_labels(pd.Series(["a", pd.NA, "b", "a"]))) == expected
        assert (
            without_classes(Constraints.from_labels(pd.Series([0, pd.NA, 1, 0], dtype="Int64"))) == expected
        )
        assert without_classes(Constraints.from_labels(["a", None, 1, "a"])) == expected
        assert without_classes(Constraints.from_labels([None, -1, np.nan])) == Constraints(3)
        with pytest.raises(ValueError, match="one label per sample"):
            Constraints.from_labels([[0, 1]])

    @given(st.integers(2, 30), st.booleans(), st.integers(0, 2**31))
    def test_sample_tells_the_truth_when_nothing_is_flipped(self, n, overlap, seed):
        y = np.random.default_rng(seed).integers(-1, 3, size=n)
        known = int((y >= 0).sum())
        available = known * (known - 1) // 2 if overlap else known // 2
        links = Constraints.sample(y, available, overlap=overlap, certainty=0.9, random_state=seed)
        assert links.n_pairs == available
        assert not links.violations(y).any()
        assert (y[links.pairs] >= 0).all()
        if not overlap:
            assert len(np.unique(links.pairs)) == 2 * available
        with pytest.raises(ValueError, match=f"make only {available}"):
            Constraints.sample(y, available + 1, overlap=overlap)

    def test_sample_flips_at_the_stated_rate(self):
        y = np.repeat([0, 1, 2], 20_000)
        links = Constraints.sample(y, 30_000, flip=0.15, certainty=0.85, random_state=1)
        assert links.violations(y).mean() == pytest.approx(0.15, abs=0.01)

    def test_sample_overlapping_pairs_are_uniform(self):
        y = np.zeros(5, dtype=int)
        counts = np.zeros((5, 5))
        for seed in range(800):
            i, j = Constraints.sample(y, 3, overlap=True, random_state=seed).pairs.T
            counts[i, j] += 1
        drawn = counts[np.triu_indices(5, 1)]
        assert drawn.sum() == 2400
        assert np.abs(drawn - 240).max() < 5 * np.sqrt(240)

    def test_sample_is_reproducible(self):
        y = np.arange(50) % 3
        first, again, other = (Constraints.sample(y, 20, random_state=seed) for seed in (7, 7, 8))
        assert first == again
        assert first != other
        generators = (np.random.default_rng(3), np.random.RandomState(3))
        for generator in generators:
            assert Constraints.sample(y, 20, random_state=generator).n_pairs == 20
        with pytest.raises(ValueError, match="random_state must be"):
            Constraints.sample(y, 2, random_state="seven")
        with pytest.raises(ValueError, match=r"flip must lie in \[0, 1\]"):
            Constraints.sample(y, 2, flip=1.5)

    def test_from_teachers(self):
        y = np.arange(40) % 4
        links = Constraints.from_teachers(y, 3, 6, random_state=0)
        assert not links.violations(y).any()
        assert np.isinf(links.weights).all()
        assert 15 <= links.n_pairs <= 45
        assert Constraints.from_teachers(y, 1, 6, random_state=0).n_pairs == 15
        assert Constraints.from_teachers(y, 0, 6).n_pairs == 0
        with pytest.raises(ValueError, match="subset_size is 50, but there are 40"):
            Constraints.from_teachers(y, 1, 50)

    def test_from_partial_classes_makes_stars_of_seven(self):
        snow = np.array([1] * 60 + [0] * 10 + [-1] * 5)
        links = Constraints.from_partial_classes(snow, random_state=0)
        assert len(links.must_link) == 0
        assert (np.sort(snow[links.cannot_link], axis=1) == [0, 1]).all()
        degree = np.bincount(links.pairs.ravel(), minlength=75)
        assert (degree[60:70] == 6).all()
        assert (degree[:60] == 1).all()
        sizes = np.bincount(links.components())
        assert sorted(sizes.tolist()) == [1] * 5 + [7] * 10

    def test_from_partial_classes_when_the_larger_group_is_used_up(self):
        links = Constraints.from_partial_classes([0] * 7 + [1] * 5, per_point=3, random_state=0)
        assert links.n_pairs == 7

    @pytest.mark.parametrize(
        ("shape", "connectivity"), [((4, 5), 4), ((4, 5), 8), ((2, 3, 4), 6), ((1, 6), 4), ((1, 1), 8)]
    )
    @pytest.mark.parametrize("masked", [False, True])
    def test_from_grid_against_a_double_loop(self, shape, connectivity, masked):
        mask = np.random.default_rng(0).random(shape) < 0.7 if masked else np.ones(shape, bool)
        links = Constraints.from_grid(
            shape, weight=0.5, connectivity=connectivity, mask=mask if masked else None
        )
        cells = [cell for cell in np.ndindex(*shape) if mask[cell]]
        expected = []
        for a, b in itertools.combinations(range(len(cells)), 2):
            step = np.abs(np.subtract(cells[a], cells[b]))
            if (step.max() == 1) if connectivity == 8 else (step.sum() == 1):
                expected.append([a, b])
        assert links.pairs.tolist() == expected
        assert len(links) == len(cells)

    def test_from_grid_defaults_and_errors(self):
        assert Constraints.from_grid((3, 3), weight=1).n_pairs == 12
        assert Constraints.from_grid((3, 3, 3), weight=1).n_pairs == 54
        with pytest.raises(ValueError, match="connectivity 6 is not defined in 2 dimensions"):
            Constraints.from_grid((3, 3), connectivity=6)
        with pytest.raises(ValueError, match="shape must be"):
            Constraints.from_grid((3,))
        with pytest.raises(ValueError, match="mask must be boolean"):
            Constraints.from_grid((3, 3), mask=np.ones((3, 3)))

    def test_from_sequence(self):
        assert Constraints.from_sequence(1).n_pairs == 0
        assert Constraints.from_sequence(6, breaks=[0, 2, 5]).pairs.tolist() == [[0, 1], [2, 3], [3, 4]]
        with pytest.raises(ValueError, match=r"breaks must be row numbers in 0..6, got \[9\]"):
            Constraints.from_sequence(6, breaks=[9])

    def test_numbers_of_pairs_beyond_32_bits(self):
        links = Constraints.sample(np.zeros(200_000, dtype=int), 1000, overlap=True, random_state=0)
        assert links.n_pairs == 1000
        assert links.pairs.max() > 150_000


class TestFiles:
    @settings(max_examples=examples(50, 15))
    @given(link_lists(), st.floats(1e-300, 1e300))
    def test_round_trip(self, tmp_path_factory, lists, factor):
        n, must, cannot, weights = lists
        links = Constraints(n, must, cannot, weight=np.multiply(weights, factor))
        path = tmp_path_factory.mktemp("csv") / "links.csv"
        links.to_csv(path)
        assert Constraints.read_csv(path, n) == links
        assert [entry.name for entry in path.parent.iterdir()] == ["links.csv"]

    def test_hard_links_and_short_forms(self, tmp_path):
        path = tmp_path / "links.csv"
        path.write_text("j, i, kind\n1,0,must\n2,0,Cannot-Link\n")
        assert Constraints.read_csv(path, 3) == Constraints(3, [(0, 1)], [(0, 2)])
        path.write_text("i,j,kind,weight\n0,1,must_link,inf\n0,2,cannot_link,0.25\n")
        assert Constraints.read_csv(path, 3) == Constraints(3, [(0, 1)], [(0, 2)], weight=[np.inf, 0.25])
        path.write_text("i,j,kind,weight\n0,1,must_link,\n0,2,cannot_link,0.25\n")
        with pytest.raises(ValueError, match="line 2: weight is empty, and the link is not taken for hard"):
            Constraints.read_csv(path, 3)
        path.write_text("i,j,kind,weight\n")
        assert Constraints.read_csv(path, 3) == Constraints(3)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no column i, j, kind"),
            ("a,b\n0,1\n", r"no column kind \(it has a, b\); the first line must be i,j,kind"),
            ("i,j,kind\n0,1,must\n0,x,must\n", "line 3: j is 'x', which is no row number; write row numbers"),
            ("i,j,kind\n0,8,must\n", "line 2: j is 8, but rows are numbered 0..4; correct it"),
            ("i,j,kind\n3,3,must\n", "line 2: 3 is linked to itself: i and j are one point; remove the line"),
            ("i,j,kind\n0,1,maybe\n", "line 2: kind is 'maybe'; write must_link or cannot_link"),
            ("i,j,kind,weight\n0,1,must,-1\n", "line 2: weight is -1; it must be >= 0"),
            ("i,j,kind,weight\n0,1,must,nan\n", "line 2: weight is nan"),
            ("i,j,kind,weight\n0,1,must,much\n", "line 2: weight is 'much', which is no number; write"),
            (
                "i,j,kind,weight\n0\n",
                r"line 2: fewer cells \(1\) than the first line has names \(i, j, kind, weight\)",
            ),
        ],
    )
    def test_bad_lines_are_named(self, tmp_path, text, message):
        path = tmp_path / "links.csv"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            Constraints.read_csv(path, 5)

    def test_a_failed_write_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "links.csv"
        Constraints(3, [(0, 1)]).to_csv(path)
        before = path.read_text()
        monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            Constraints(3, [(1, 2)]).to_csv(path)
        assert path.read_text() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["links.csv"]


class TestDisplay:
    def test_repr(self):
        y = np.repeat([0, 1, 2], 50)
        soft = Constraints.sample(y, 20, certainty=0.8, random_state=0)
        hard = Constraints(150, [(0, 1), (1, 2), (60, 61)])
        both = soft + hard
        n_must = len(both.must_link)
        n_cannot = len(both.cannot_link)
        text = f"150 samples, {n_must} must-links (3 hard), {n_cannot} cannot-links; 2 chunklets"
        assert repr(both) == f"Constraints({text})"
        assert text in both._repr_html_()

    def test_html_shows_a_few_links(self):
        html = Constraints.from_sequence(100, weight=0.5)._repr_html_()
        assert html.count("<tr>") == 12
        assert "89 more" in html
