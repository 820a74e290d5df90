"""Layouts that keep components apart, and a graph that shows every link it says it shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from linkwise import Constraints
from linkwise.displays import ConstraintGraphDisplay
from linkwise.displays._drawing import COLOURS, VIOLATED
from linkwise.displays.constraint_graph import circle, pack, stress_layout
from tests.repeats import examples, for_seeds

LINKS = Constraints(
    12,
    must_link=[(0, 1), (1, 2), (5, 6), (8, 9)],
    cannot_link=[(2, 3), (6, 7), (3, 0)],
    certainty=[1.0, 1.0, 1.0, 0.9, 1.0, 0.8, 1.0],
)


def legend_texts(display: ConstraintGraphDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def distances(places: np.ndarray) -> np.ndarray:
    return np.linalg.norm(places[:, None] - places, axis=2)


def stress(places: np.ndarray, wanted: np.ndarray) -> float:
    wanted = wanted[np.triu_indices(len(wanted), 1)]
    return float(((pdist(places) / wanted - 1.0) ** 2).sum())


def floyd_warshall(n_nodes: int, pairs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    distance = np.full((n_nodes, n_nodes), np.inf)
    np.fill_diagonal(distance, 0.0)
    for (i, j), length in zip(pairs, lengths, strict=True):
        distance[i, j] = distance[j, i] = min(distance[i, j], length)
    for k in range(n_nodes):
        distance = np.minimum(distance, distance[:, [k]] + distance[[k]])
    return distance


@for_seeds(examples(10, 4))
def test_stress_layout_is_a_good_local_minimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(3, 9))
    tree = [(int(rng.integers(node)), node) for node in range(1, n_nodes)]
    extra = [tuple(sorted(rng.choice(n_nodes, 2, replace=False).tolist())) for _ in range(n_nodes // 2)]
    pairs = np.array(sorted(set(tree) | set(extra)))
    lengths = rng.choice([1.0, 2.0], len(pairs))
    wanted = floyd_warshall(n_nodes, pairs, lengths)
    found = stress_layout(n_nodes, pairs, lengths)
    first, second = np.triu_indices(n_nodes, 1)

    def stress_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        places = flat.reshape(-1, 2)
        apart, gradient = pdist(places), np.zeros_like(places)
        ratio = 2.0 * (apart / wanted[first, second] - 1.0) / (wanted[first, second] * apart)
        pull = ratio[:, None] * (places[first] - places[second])
        np.add.at(gradient, first, pull)
        np.add.at(gradient, second, -pull)
        return stress(places, wanted), gradient.ravel()

    starts = rng.normal(size=(6, 2 * n_nodes))
    best = min(minimize(stress_and_gradient, start, jac=True, method="L-BFGS-B").fun for start in starts)
    assert stress(found, wanted) <= 1.5 * best + 0.3


def test_chains_are_straight_and_lie_lengthwise() -> None:
    pairs = np.array([[k, k + 1] for k in range(9)])
    places = stress_layout(10, pairs, np.ones(9))
    np.testing.assert_allclose(np.linalg.norm(np.diff(places, axis=0), axis=1), 1.0, atol=0.02)
    assert np.ptp(places[:, 1]) < 0.1 * np.ptp(places[:, 0])


@pytest.mark.parametrize("n_nodes", [3, 4, 5, 8, 20])
def test_nodes_of_cliques_and_stars_do_not_fall_together(n_nodes: int) -> None:
    clique = np.array([(i, j) for i in range(n_nodes) for j in range(i + 1, n_nodes)])
    star = np.array([(0, j) for j in range(1, n_nodes)])
    for pairs in (clique, star):
        places = stress_layout(n_nodes, pairs, np.ones(len(pairs)))
        apart = distances(places)
        assert apart[np.triu_indices(n_nodes, 1)].min() > 0.15


@pytest.mark.parametrize("side", [3, 4, 5])
def test_rows_with_the_same_neighbours_do_not_fall_together(side: int) -> None:
    grid = [
        (row * side + column, row * side + column + 1) for row in range(side) for column in range(side - 1)
    ]
    grid += [(cell, cell + side) for cell in range(side * (side - 1))]
    twins = [(0, side**2 + k) for k in range(3)]
    pairs = np.array(grid + twins)
    places = stress_layout(side**2 + 3, pairs, np.ones(len(pairs)))
    assert distances(places)[np.triu_indices(len(places), 1)].min() > 0.2


def test_circle_keeps_neighbours_one_apart() -> None:
    places = circle(40)
    np.testing.assert_allclose(np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1), 1.0, atol=0.01)


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=12))
def test_packed_boxes_do_not_overlap(sizes: list[tuple[float, float]]) -> None:
    layouts = [np.array([[5.0, -3.0], [5.0 + width, -3.0 + height]]) for width, height in sizes]
    moved = pack(layouts, gap=1.0)
    for before, after in zip(layouts, moved, strict=True):
        np.testing.assert_allclose(np.diff(after, axis=0), np.diff(before, axis=0), atol=1e-9)
    boxes = [(box.min(axis=0), box.max(axis=0)) for box in moved]
    for k, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:k]:
            gaps = np.maximum(low - other_high, other_low - high)
            assert gaps.max() >= 1.0 - 1e-9


def test_every_link_joins_the_places_of_its_rows() -> None:
    display = ConstraintGraphDisplay.from_constraints(LINKS)
    place = dict(zip(display.rows_.tolist(), display.places_.tolist(), strict=True))
    assert sorted(place) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    for kind, pairs in (("must_link", LINKS.must_link), ("cannot_link", LINKS.cannot_link)):
        drawn = [np.asarray(line).tolist() for line in display.lines_[kind, "open"].get_segments()]
        assert drawn == [[place[i], place[j]] for i, j in pairs.tolist()]
    chunklets = [np.asarray(line).tolist() for line in display.chunklet_lines_.get_segments()]
    assert chunklets == [[place[0], place[1]], [place[1], place[2]], [place[5], place[6]]]
    assert legend_texts(display) == [
        "must-link (4)",
        "cannot-link (3)",
        "chunklets (2)",
        "3 rows without links",
    ]
    assert [text.get_text() for text in display.ax_.texts] == [str(row) for row in display.rows_]


def test_components_come_by_size_and_stand_apart() -> None:
    display = ConstraintGraphDisplay.from_constraints(LINKS)
    assert display.n_components_ == display.n_components_drawn_ == 3
    assert display.rows_.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    apart = distances(display.places_)
    groups = LINKS.components()[display.rows_]
    assert apart[groups[:, None] != groups].min() > 1.0


def test_cannot_links_are_longer() -> None:
    links = Constraints(4, must_link=[(0, 1)], cannot_link=[(1, 2)], weight=1.0)
    display = ConstraintGraphDisplay.from_constraints(links)
    lengths = {
        kind: float(np.linalg.norm(np.diff(lines.get_segments()[0], axis=0)))
        for (kind, _), lines in display.lines_.items()
    }
    assert lengths == pytest.approx({"must_link": 1.0, "cannot_link": 2.0}, abs=0.05)
    assert display.chunklet_lines_ is None, "soft links make no chunklets"


def test_labels_colour_rows_and_cross_violated_links() -> None:
    labels = [0, 0, 1, 1, 5, 5, 5, 5, 0, 0, 0, 0]
    display = ConstraintGraphDisplay.from_constraints(LINKS, labels=labels)
    counts = {key: len(lines.get_segments()) for key, lines in display.lines_.items()}
    assert counts == {
        ("must_link", "kept"): 3,
        ("must_link", "violated"): 1,
        ("cannot_link", "kept"): 1,
        ("cannot_link", "violated"): 2,
    }
    assert to_hex(display.lines_["must_link", "violated"].get_color()[0]).upper() == VIOLATED
    assert len(display.crosses_.get_offsets()) == 3
    place = dict(zip(display.rows_.tolist(), display.places_.tolist(), strict=True))
    scatters = [scatter for scatter in display.ax_.collections if scatter.get_zorder() == 4.0]
    found = {
        to_hex(scatter.get_facecolor()[0]).upper(): sorted(np.asarray(scatter.get_offsets()).tolist())
        for scatter in scatters
    }
    assert found == {
        COLOURS[number]: sorted(place[row] for row in place if labels[row] == label)
        for number, label in enumerate((0, 1, 5))
    }
    assert legend_texts(display)[:3] == ["cluster 0", "cluster 1", "cluster 5"]


def test_what_does_not_fit_is_counted() -> None:
    links = Constraints.from_sequence(30, breaks=[20, 26]) + Constraints(30)
    display = ConstraintGraphDisplay.from_constraints(links, max_points=12)
    assert display.rows_.tolist() == list(range(20, 30))
    assert (display.n_components_, display.n_components_drawn_) == (3, 2)
    texts = legend_texts(display)
    assert "must-link (8 of 27 drawn)" in texts
    assert "not drawn: 1 of 3 components\n(20 rows; raise max_points)" in texts
    none = ConstraintGraphDisplay.from_constraints(links, max_points=1)
    assert len(none.rows_) == 0
    assert "must-link (0 of 27 drawn)" in legend_texts(none)


def test_components_with_violated_links_come_first() -> None:
    links = Constraints.from_sequence(30, breaks=[20, 26])
    labels = np.r_[np.zeros(29), 1]
    display = ConstraintGraphDisplay.from_constraints(links, labels=labels)
    assert display.rows_.tolist() == [26, 27, 28, 29, *range(26)]
    assert ConstraintGraphDisplay.from_constraints(links, labels=labels, max_points=5).rows_.tolist() == [
        26, 27, 28, 29,
    ]  # fmt: skip


def test_large_components_stand_on_a_circle() -> None:
    display = ConstraintGraphDisplay.from_constraints(Constraints.from_sequence(600), max_points=600)
    centre = (display.places_.min(axis=0) + display.places_.max(axis=0)) / 2
    radii = np.linalg.norm(display.places_ - centre, axis=1)
    np.testing.assert_allclose(radii, radii[0], rtol=0.01)
    assert len(display.ax_.texts) == 0, "hundreds of numbers cannot be read"


def test_no_links_are_an_empty_picture_that_says_so() -> None:
    display = ConstraintGraphDisplay.from_constraints(Constraints(5))
    assert display.lines_ == {}
    assert legend_texts(display) == ["5 rows without links"]


def test_estimators_and_bad_input() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(NotFittedError):
        ConstraintGraphDisplay.from_estimator(KMeans(2), LINKS)
    fitted = KMeans(2, n_init=1, random_state=0).fit(X)
    display = ConstraintGraphDisplay.from_estimator(fitted, LINKS)
    violated = sum(
        len(lines.get_segments()) for (_, state), lines in display.lines_.items() if state == "violated"
    )
    assert violated == LINKS.violations(fitted.labels_).sum()
    with pytest.raises(ValueError, match="StandardScaler has no labels_; pass from_constraints"):
        ConstraintGraphDisplay.from_estimator(StandardScaler().fit(X), LINKS)
    with pytest.raises(ValueError, match="labels has 2 entries, but there are 12 rows"):
        ConstraintGraphDisplay(LINKS, [0, 1])
    with pytest.raises(ValueError, match="max_points must be at least 1"):
        ConstraintGraphDisplay(LINKS, max_points=0)
    with pytest.raises(TypeError, match="constraints is None"):
        ConstraintGraphDisplay(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a linkwise\.Constraints"):
        ConstraintGraphDisplay([(0, 1)])  # type: ignore[arg-type]
