"""Spectral experiments: all methods get the same rows and links; figures against closed forms; images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from experiments.framework.data_files import DataMissing
from experiments.framework.starts import best_fit
from experiments.spectral import curves as spectral
from experiments.spectral import figures as spectral_figures
from experiments.spectral import images as spectral_images
from experiments.spectral.figures import affinities, best_cut, explained, problem, spectrum
from experiments.spectral.images import IMAGES, scene
from experiments.spectral.methods import (
    IMAGE_METHODS,
    TEXT_METHODS,
    VECTOR_METHODS,
    Method,
    compare,
    draw_links,
    fitted_labels,
)
from linkwise import Constraints
from linkwise.datasets import make_rings
from linkwise.spectral.kernels import gaussian_kernel, local_scale
from tests.repeats import for_seeds
from tests.spectral.spectral_oracle import equivalent_kernel

RNG = np.random.default_rng


class Recorder:
    """An estimator that keeps what it was given."""

    given: list[dict] = []  # noqa: RUF012

    def __init__(self, n_clusters, **settings):
        self.record = {"n_clusters": n_clusters, **settings}

    def fit(self, X, constraints=None):
        self.given.append({**self.record, "X": X, "links": constraints})
        self.labels_ = np.arange(X.shape[0]) % 2
        return self


@pytest.fixture
def recorded(monkeypatch):
    """Every method of the tables records its call instead of clustering."""
    Recorder.given = []
    for methods in (VECTOR_METHODS, TEXT_METHODS, IMAGE_METHODS, spectral._TWO_CLASS_METHODS):
        for name, method in methods.items():
            monkeypatch.setitem(methods, name, method._replace(estimator=Recorder, from_random_rows=False))
    return Recorder.given


def test_all_methods_get_the_same_rows_links_and_seed(recorded):
    rows = spectral.spectral_uci(3, "iris", 0.0, 25)
    assert [row["method"] for row in rows] == list(VECTOR_METHODS)
    assert len(recorded) == len(rows)
    for call in recorded:
        assert call["n_clusters"] == 3
        assert call["random_state"] == 3
        assert call["X"] is recorded[0]["X"]
        assert call["links"] is recorded[0]["links"]
    assert recorded[0]["links"].n_pairs == 25
    assert np.isinf(recorded[0]["links"].weights).all()


def test_methods_that_need_hard_links_get_none_that_are_wrong(recorded):
    rows = spectral.spectral_uci(0, "iris", 0.1, 50)
    assert "COPKMeans" not in {row["method"] for row in rows}
    assert len(rows) == len(VECTOR_METHODS) - 1
    # Soft links of weight 1 are as strong as hard ones for the spectral methods.
    assert np.abs(recorded[0]["links"].weights) == pytest.approx(np.ones(50))


def test_no_links_are_no_constraints(recorded):
    spectral.spectral_two_class(0, "moons", 0)
    assert all(call["links"] is None for call in recorded)


def keep_only(monkeypatch, methods, *names):
    for name in set(methods) - set(names):
        monkeypatch.delitem(methods, name)


def test_links_find_rings_where_kamvar_does_not(monkeypatch):
    keep_only(monkeypatch, spectral._TWO_CLASS_METHODS, "softness 0.3", "Kamvar x2")
    scores = {row["method"]: row["rand"] for row in spectral.spectral_two_class(0, "rings", links=40)}
    assert scores["softness 0.3"] > 0.8 > scores["Kamvar x2"]


def test_more_links_score_higher_on_iris(monkeypatch):
    keep_only(monkeypatch, VECTOR_METHODS, "softness 0.3")
    (few,), (many,) = (spectral.spectral_uci(0, "iris", flip=0.0, links=links) for links in (0, 100))
    assert few["method"] == many["method"] == "softness 0.3"
    assert many["rand"] > few["rand"]


def test_flips_change_kinds_only():
    y = np.arange(90) % 3
    right, wrong = draw_links(y, 300, 0.0, RNG(5)), draw_links(y, 300, 0.2, RNG(5))
    assert {tuple(pair) for pair in right.pairs} == {tuple(pair) for pair in wrong.pairs}
    assert right.satisfaction(y) == 1.0
    assert 0.7 < wrong.satisfaction(y) < 0.9


def test_links_do_not_change_the_points(recorded):
    spectral.spectral_two_class(0, "rings", 5)
    first = recorded[-1]
    spectral.spectral_two_class(0, "rings", 10)
    second = recorded[-1]
    spectral.spectral_two_class(1, "rings", 5)
    assert np.array_equal(first["X"], second["X"])
    assert (first["links"].n_pairs, second["links"].n_pairs) == (5, 10)
    assert not np.array_equal(first["X"], recorded[-1]["X"])


def test_real_rows_are_the_same_in_all_draws(recorded):
    spectral.spectral_uci(0, "digits389", 0.0, 5)
    first = recorded[-1]
    spectral.spectral_uci(1, "digits389", 0.0, 5)
    assert np.array_equal(first["X"], recorded[-1]["X"])
    assert first["X"].shape == (400, 64)
    assert not np.array_equal(first["links"].pairs, recorded[-1]["links"].pairs)


def test_widths_are_multiples_of_the_local_scale():
    Recorder.given = []
    X = RNG(0).normal(size=(50, 2))
    for width in (None, 0.5, 2.0):
        fitted_labels(Method(Recorder, {"softness": 0.3}, width), X, 2, None, 7)
    scale = local_scale(NearestNeighbors().fit(X))
    plain, narrow, wide = Recorder.given
    assert "sigma" not in plain
    assert (narrow["sigma"], wide["sigma"]) == pytest.approx((0.5 * scale, 2.0 * scale))
    assert narrow["softness"] == 0.3


def test_references_are_among_the_methods():
    assert {experiment.reference for experiment in spectral.EXPERIMENTS} <= {*VECTOR_METHODS, *TEXT_METHODS}
    for experiment in spectral.EXPERIMENTS:
        assert all(setting in experiment.full.settings for setting in experiment.quick.settings)


def test_scores_compare_with_the_truth():
    class Given:
        def __init__(self, n_clusters, random_state):
            pass

        def fit(self, X, constraints=None):
            self.labels_ = X[:, 0].astype(np.int64)
            return self

    y = np.array([0, 0, 1, 1])
    for labels, rand, ari in (([1, 1, 0, 0], 1.0, 1.0), ([0, 1, 0, 1], 2 / 6, -0.5)):
        X = np.array(labels, dtype=np.float64)[:, np.newaxis]
        (row,) = compare({"given": Method(Given, {})}, X, y, None, 0)
        assert (row["rand"], row["ari"]) == pytest.approx((rand, ari))


@pytest.mark.parametrize(
    "trial",
    [
        lambda: spectral.spectral_newsgroups(0, "easy", 0),
        lambda: spectral.spectral_uci(0, "ionosphere", 0.0, 0),
    ],
)
def test_missing_data_are_named(trial, monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)
    with pytest.raises(DataMissing, match="LINKWISE_DATA"):
        trial()


def test_two_points_have_the_eigenvalues_of_the_closed_form():
    values, second = spectrum(np.array([[1.0, 0.25], [0.25, 1.0]]))
    assert values == pytest.approx([0.0, 2 * 0.25 / 1.25])
    assert second[0] == pytest.approx(-second[1])


def test_explained_variance_of_two_groups():
    labels = np.array([0, 0, 0, 1, 1])
    values = np.array([0.0, 1.0, 2.0, 4.0, 6.0])
    between = 3 * (1.0 - 2.6) ** 2 + 2 * (5.0 - 2.6) ** 2
    assert explained(values, labels) == pytest.approx(between / ((values - 2.6) ** 2).sum())


@for_seeds(20)
def test_best_cut_is_the_smallest_normalised_cut_along_the_line(seed):
    x = np.sort(RNG(seed).uniform(size=12))[:, np.newaxis]
    affinity = gaussian_kernel(x, x, 0.1)
    degree = affinity.sum(axis=1)

    def cut(first):
        across = affinity[:first, first:].sum()
        return across / degree[:first].sum() + across / degree[first:].sum()

    expected = min(range(1, 12), key=cut)
    assert best_cut(affinity, x[:, 0]) == expected
    assert best_cut(affinity, -x[:, 0]) == expected


@pytest.mark.parametrize(("figure", "kind", "ends"), [(2, "must", (4, 19)), (3, "cannot", (4, 14))])
def test_one_link_gives_the_equivalent_kernel(figure, kind, ends):
    x, _ = problem(figure)
    found = affinities(figure, 0.15)
    K = gaussian_kernel(x, x, 0.15)
    assert found["no links"] == pytest.approx(K)
    expected = np.maximum(equivalent_kernel(K, *ends, kind), 0.0)
    assert found["A"] == pytest.approx(expected, abs=1e-6)
    assert found["B"] == pytest.approx(expected, abs=1e-6)
    changed = np.argwhere(np.triu(np.abs(found["Kamvar"] - K) > 1e-9))
    assert changed.tolist() == [list(ends)]
    assert found["Kamvar"][ends] == (1.0 if kind == "must" else 0.0)


def figure_rows(figure, width):
    return {row["method"]: row for row in spectral_figures.spectral_figures(0, figure, width)}


def test_figure_2_merges_two_of_three_groups():
    rows = figure_rows(2, 0.1)
    assert [rows[method]["zeros"] for method in ("no links", "A")] == [3.0, 2.0]
    assert rows["A"]["affinity"] > 0.2 > rows["no links"]["affinity"]
    assert rows["A"]["r2"] > 0.999


def test_figure_3_moves_the_cut_between_the_ends_of_the_link():
    rows = figure_rows(3, 0.2)
    assert rows["no links"]["boundary"] == 20.0
    assert 5 <= rows["A"]["boundary"] <= 14
    assert rows["A"]["ratio"] > 10 * rows["no links"]["ratio"]
    assert rows["A"]["affinity"] < 0.05 < rows["no links"]["affinity"]
    assert rows["Kamvar"]["boundary"] == 20.0


def test_figure_4_shows_the_false_affinity_of_algorithm_a():
    rows = figure_rows(4, 0.05)
    assert rows["A"]["affinity"] > 0.2
    assert rows["B"]["affinity"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", IMAGES)
def test_links_by_hand_are_true_whatever_the_noise(name):
    first, second = scene(name, 0), scene(name, 1)
    assert np.array_equal(first.truth, second.truth)
    assert not np.array_equal(first.image, second.image)
    assert first.links.satisfaction(first.truth.ravel()) == 1.0
    assert len(first.links.must_link) == len(IMAGES[name].must)
    row, column = IMAGES[name].must[0][0]
    width = first.image.shape[1]
    assert row * width + column in first.links.pairs
    assert first.X[row * width + column, :2].tolist() == [row, column]
    assert first.X[row * width + column, 2] == IMAGES[name].contrast * first.image[row, column]


def test_random_links_are_as_many_as_links_by_hand(recorded):
    by_hand = spectral_images.spectral_images(0, "occluder", "by hand")
    n_fits = len(recorded)
    at_random = spectral_images.spectral_images(0, "occluder", "at random")
    assert [row["method"] for row in by_hand] == ["no links", *IMAGE_METHODS]
    assert [row["method"] for row in at_random] == ["no links", *IMAGE_METHODS]
    hand, drawn = recorded[:n_fits], recorded[n_fits:]
    n_alone = n_fits - len(IMAGE_METHODS)  # the default and the paper's five widths
    assert n_alone == 6
    assert all(fit["links"] is None for fit in (*hand[:n_alone], *drawn[:n_alone]))
    assert all(fit["links"].n_pairs == 8 for fit in (*hand[n_alone:], *drawn[n_alone:]))
    assert not np.array_equal(hand[-1]["links"].pairs, drawn[-1]["links"].pairs)
    assert np.array_equal(hand[-1]["X"], drawn[-1]["X"])


def test_gain_on_images_is_over_the_same_kernel():
    rows = {row["method"]: row for row in spectral_images.spectral_images(0, "occluder", "by hand")}
    shown = scene("occluder", 0)
    for method in ("paper x0.5", "paper x2"):
        (alone,) = compare({method: IMAGE_METHODS[method]}, shown.X, shown.truth.ravel(), None, 0)
        assert rows[method]["gain"] == rows[method]["rand"] - alone["rand"]
    assert rows["default"]["gain"] == rows["default"]["rand"] - rows["no links"]["rand"]


def test_mixture_among_the_competitors_is_the_best_of_its_starts(monkeypatch):
    X, y = make_rings(30, random_state=0)
    asked = {}

    def recorded_fit(model, X, links, starts, objective):
        asked.update(model=model, links=links, n_starts=len(starts))
        return best_fit(model, X, links, starts, objective)

    monkeypatch.setattr("experiments.spectral.methods.best_fit", recorded_fit)
    links = draw_links(y, 10, 0.0, RNG(0))
    labels = fitted_labels(VECTOR_METHODS["PPC"], X, 2, links, 0)
    assert asked["n_starts"] == 5
    assert asked["links"] is links
    assert asked["model"].get_params()["shrinkage"] == 0.0
    assert links.satisfaction(labels) == 1.0


def test_propagated_links_find_the_occluder():
    scores = {row["method"]: row["ari"] for row in spectral_images.spectral_images(0, "occluder", "by hand")}
    assert scores["A heat"] > 0.6
    assert scores["Kamvar x2"] == pytest.approx(scores["no links"], abs=0.1)


def test_pictures_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(
        spectral_images, "IMAGES", {"occluder": IMAGES["occluder"], "again": IMAGES["occluder"]}
    )
    known = {}  # the second row of pictures shows the same fits

    def once(method, X, n_clusters, links, seed):
        key = id(method), links is None
        if key not in known:
            known[key] = fitted_labels(method, X, n_clusters, links, seed)
        return known[key]

    monkeypatch.setattr(spectral_images, "fitted_labels", once)
    for number, draw in enumerate((spectral_images.picture, spectral_figures.picture)):
        path = tmp_path / f"{number}.png"
        draw(path)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_propagated_links_separate_rings():
    X, y = make_rings(60, random_state=1)
    methods = {"softness 0.3": VECTOR_METHODS["softness 0.3"]}
    (none,) = compare(methods, X, y, Constraints(120), 0)
    (many,) = compare(methods, X, y, draw_links(y, 80, 0.0, RNG(1)), 0)
    assert many["rand"] > none["rand"] + 0.25
