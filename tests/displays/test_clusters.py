"""What ClusterDisplay draws: every link once, in the state the labels put it in."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import Constraints
from linkwise.displays import ClusterDisplay
from linkwise.displays._drawing import COLOURS, VIOLATED, link_states, point_style, thin_links
from tests.repeats import examples

LINKS = Constraints(6, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3), (4, 5), (0, 5)])
LABELS = np.array([0, 0, 1, 1, 0, 1])
POINTS = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 0.0], [3.0, 1.0], [0.5, 2.0], [3.0, 3.0]])


def segments(display: ClusterDisplay) -> dict[tuple[str, str], list[list[list[float]]]]:
    return {
        key: [np.asarray(line).tolist() for line in lines.get_segments()]
        for key, lines in display.lines_.items()
    }


def legend_texts(display: ClusterDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def expected_segments(points: np.ndarray, links: Constraints, labels: list) -> dict:
    found: dict = {}
    for (i, j), weight in zip(links.pairs.tolist(), links.weights.tolist(), strict=True):
        kind = "must_link" if weight > 0 else "cannot_link"
        if labels[i] == -1 or labels[j] == -1:
            state = "open"
        else:
            state = "kept" if (labels[i] == labels[j]) == (weight > 0) else "violated"
        found.setdefault((kind, state), []).append([points[i].tolist(), points[j].tolist()])
    return found


def test_links_are_drawn_by_kind_and_state() -> None:
    display = ClusterDisplay.from_predictions(POINTS, LABELS, constraints=LINKS)
    assert segments(display) == {
        ("must_link", "kept"): [[[0.0, 0.0], [1.0, 0.5]]],
        ("must_link", "violated"): [[[1.0, 0.5], [2.0, 0.0]]],
        ("cannot_link", "kept"): [[[0.0, 0.0], [3.0, 3.0]], [[0.5, 2.0], [3.0, 3.0]]],
        ("cannot_link", "violated"): [[[2.0, 0.0], [3.0, 1.0]]],
    }
    np.testing.assert_allclose(display.crosses_.get_offsets(), [[1.5, 0.25], [2.5, 0.5]])
    assert display.drawn_.tolist() == [True] * 5


@settings(max_examples=examples(30))
@given(data=st.data())
def test_every_link_is_drawn_once_in_its_state(data: st.DataObject) -> None:
    n_samples = data.draw(st.integers(2, 8))
    pair = st.tuples(st.integers(0, n_samples - 1), st.integers(0, n_samples - 1)).filter(
        lambda p: p[0] != p[1]
    )
    pairs = data.draw(
        st.lists(st.tuples(pair, st.booleans()), max_size=10, unique_by=lambda p: frozenset(p[0]))
    )
    links = Constraints(
        n_samples, [p for p, must in pairs if must], [p for p, must in pairs if not must], weight=1.0
    )
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=n_samples, max_size=n_samples))
    points = np.random.default_rng(n_samples).normal(size=(n_samples, 2))
    display = ClusterDisplay(points, labels, links).plot(Figure().subplots())
    assert segments(display) == expected_segments(points, links, labels)


def test_violated_links_are_red_thick_and_dashes_tell_the_kind() -> None:
    display = ClusterDisplay.from_predictions(POINTS, LABELS, constraints=LINKS)
    looks = {
        key: (to_hex(lines.get_color()[0]).upper(), lines.get_linewidth()[0], lines.get_linestyle()[0][1])
        for key, lines in display.lines_.items()
    }
    for kind in ("must_link", "cannot_link"):
        kept, violated = looks[kind, "kept"], looks[kind, "violated"]
        assert violated[0] == VIOLATED
        assert len({kept[0][i : i + 2] for i in (1, 3, 5)}) == 1, "kept links are grey"
        assert violated[1] > 1.5 * kept[1]
        assert (kept[2] is None) == (violated[2] is None) == (kind == "must_link")


def test_points_have_colour_and_marker_of_their_cluster() -> None:
    labels = np.array(["b", "a", "b", "c", None, "a"], dtype=object)
    display = ClusterDisplay.from_predictions(POINTS, labels)
    assert list(display.scatters_) == [None, "a", "b", "c"]
    for number, name in enumerate("abc"):
        scatter = display.scatters_[name]
        np.testing.assert_array_equal(scatter.get_offsets(), POINTS[labels == name])
        assert tuple(scatter.get_facecolor()[0]) == to_rgba(COLOURS[number])
    np.testing.assert_array_equal(display.scatters_[None].get_offsets(), POINTS[[4]])
    assert legend_texts(display) == ["no cluster", "a", "b", "c"]
    entries = display.ax_.get_legend().get_lines()
    assert [entry.get_marker() for entry in entries[1:]] == [
        point_style(number)["marker"] for number in range(3)
    ]


def test_without_labels_links_are_open_and_points_grey() -> None:
    display = ClusterDisplay.from_predictions(POINTS, constraints=LINKS)
    assert {key: len(lines) for key, lines in segments(display).items()} == {
        ("must_link", "open"): 2,
        ("cannot_link", "open"): 3,
    }
    assert display.crosses_ is None
    assert legend_texts(display) == ["must-link (2)", "cannot-link (3)"]


def test_nothing_to_explain_needs_no_legend() -> None:
    assert ClusterDisplay.from_predictions(POINTS).ax_.get_legend() is None


def test_thinning_keeps_violated_links_and_says_so() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    links = Constraints.sample(labels, 500, overlap=True, flip=0.05, certainty=0.9, random_state=0)
    display = ClusterDisplay.from_predictions(
        rng.normal(size=(200, 2)), labels, constraints=links, max_links=100
    )
    violated = links.violations(labels)
    assert display.drawn_.sum() == 100
    assert display.drawn_[violated].all()
    assert sum(map(len, segments(display).values())) == 100
    must, kept = links.weights > 0, ~violated
    share = (display.drawn_ & kept & must).sum() / (display.drawn_ & kept).sum()
    assert share == pytest.approx((kept & must).sum() / kept.sum(), abs=0.02)
    texts = legend_texts(display)
    drawn, total = int((display.drawn_ & kept & must).sum()), int((kept & must).sum())
    assert f"must-link, kept ({drawn} of {total} drawn)" in texts
    assert f"must-link, violated ({int((violated & must).sum())})" in texts


@given(st.lists(st.tuples(st.sampled_from([-1.0, 1.0]), st.integers(0, 2)), max_size=60), st.integers(0, 70))
def test_thinning_draws_as_many_as_it_may(links: list[tuple[float, int]], max_links: int) -> None:
    weights = np.array([weight for weight, _ in links])
    states = np.array([state for _, state in links], dtype=np.int64)
    drawn = thin_links(weights, states, max_links)
    assert drawn.sum() == min(max_links, len(links))
    if (drawn & (states != 2)).any():
        assert drawn[states == 2].all(), "violated links come first"


def test_thinning_takes_links_from_all_over() -> None:
    drawn = np.flatnonzero(thin_links(np.ones(1000), np.ones(1000, dtype=np.int64), 10))
    assert np.diff(drawn).tolist() == [100] * 9


def test_groups_that_are_not_drawn_at_all_stay_in_the_legend() -> None:
    display = ClusterDisplay.from_predictions(POINTS, LABELS, constraints=LINKS, max_links=0)
    assert display.lines_ == {}
    assert "must-link, kept (0 of 1 drawn)" in legend_texts(display)


def test_many_links_are_drawn_thinner() -> None:
    points = np.random.default_rng(0).normal(size=(301, 2))
    chain = ClusterDisplay(points, constraints=Constraints.from_sequence(301)).plot()
    short = ClusterDisplay(points[:20], constraints=Constraints.from_sequence(20)).plot()
    widths = [d.lines_["must_link", "open"].get_linewidth()[0] for d in (chain, short)]
    assert widths[0] < 0.6 * widths[1]


def test_more_features_are_projected_and_the_axes_say_so() -> None:
    X = np.random.default_rng(0).normal(size=(40, 5)) * [3.0, 2.0, 1.0, 0.5, 0.1]
    display = ClusterDisplay.from_predictions(X, np.zeros(40))
    pca = PCA(2).fit(X)
    expected = pca.transform(X)
    np.testing.assert_allclose(np.abs(display.points), np.abs(expected), atol=1e-9)
    share = pca.explained_variance_ratio_
    assert display.ax_.get_xlabel() == f"principal component 1 ({share[0]:.0%} of variance)"
    assert display.ax_.get_ylabel() == f"principal component 2 ({share[1]:.0%} of variance)"
    sparse_display = ClusterDisplay.from_predictions(sparse.csr_array(X))
    np.testing.assert_allclose(np.abs(sparse_display.points), np.abs(expected), atol=1e-6)


def test_two_features_may_be_chosen_by_number_or_name() -> None:
    X = np.arange(12.0).reshape(4, 3)
    frame = pandas.DataFrame(X, columns=["long", "wide", "deep"])
    by_name = ClusterDisplay.from_predictions(frame, features=["deep", "long"])
    by_number = ClusterDisplay.from_predictions(X, features=[2, 0])
    np.testing.assert_array_equal(by_name.points, X[:, [2, 0]])
    np.testing.assert_array_equal(by_number.points, X[:, [2, 0]])
    assert (by_name.ax_.get_xlabel(), by_name.ax_.get_ylabel()) == ("deep", "long")
    assert by_number.ax_.get_xlabel() == "feature 2"


def test_one_feature_is_drawn_against_the_row() -> None:
    display = ClusterDisplay.from_predictions([[5.0], [7.0], [6.0]])
    assert display.points.tolist() == [[0.0, 5.0], [1.0, 7.0], [2.0, 6.0]]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("row", "feature 0")


@pytest.mark.parametrize("X", [np.ones((5, 4)), np.ones((1, 3))])
def test_rows_without_variance_can_be_drawn(X: np.ndarray) -> None:
    assert np.isfinite(ClusterDisplay.from_predictions(X).points).all()


def test_estimators_give_their_labels_or_predictions() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    for estimator in (
        KMeans(3, random_state=0),
        make_pipeline(StandardScaler(), KMeans(3, random_state=0)),
        GaussianMixture(2, random_state=0),
    ):
        with pytest.raises(NotFittedError):
            ClusterDisplay.from_estimator(estimator, X)
        display = ClusterDisplay.from_estimator(estimator.fit(X), X)
        np.testing.assert_array_equal(display.labels, estimator.predict(X))
    with pytest.raises(ValueError, match=r"fitted to 30 rows, but X has 10.*from_predictions"):
        ClusterDisplay.from_estimator(KMeans(2).fit(X), X[:10])
    with pytest.raises(ValueError, match="StandardScaler has neither labels_ nor predict"):
        ClusterDisplay.from_estimator(StandardScaler().fit(X), X)


def test_noise_of_dbscan_has_no_cluster() -> None:
    X = np.r_[np.zeros((5, 2)), np.ones((5, 2)), [[9.0, 9.0]]]
    display = ClusterDisplay.from_estimator(DBSCAN(eps=0.5, min_samples=3).fit(X), X)
    np.testing.assert_array_equal(display.scatters_[None].get_offsets(), [[9.0, 9.0]])


def test_given_axes_are_used() -> None:
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    display = ClusterDisplay.from_predictions(POINTS, LABELS, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.plot() is display
    assert display.ax_ is not ax


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1]}, "labels has 2 entries, but there are 6 rows"),
        ({"constraints": Constraints(5)}, "about 5 samples, but X has 6 rows"),
        ({"features": [0]}, "features must name two columns"),
        ({"features": [0, 7]}, "there is no feature 7; X has 2"),
        ({"features": ["a", 0]}, "there is no feature 'a'"),
        ({"max_links": -1, "constraints": LINKS}, "max_links must be at least 0"),
        ({"X": [[1.0, np.nan]]}, "NaN"),
    ],
)
def test_bad_input_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClusterDisplay.from_predictions(**{"X": POINTS, **arguments})


def test_raw_pairs_and_other_than_two_columns_are_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a linkwise\.Constraints"):
        ClusterDisplay.from_predictions(POINTS, constraints=[(0, 1)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 columns, but a picture has two"):
        ClusterDisplay(np.ones((4, 3)))


def test_states_of_links_without_labels() -> None:
    assert link_states(LINKS, None).tolist() == [0] * 5
    assert link_states(LINKS, np.array([0, -1, 0, 0, 1, 1])).tolist() == [0, 1, 0, 2, 2]
