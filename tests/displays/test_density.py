"""Contours at the right levels, of the right density."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
from scipy import integrate
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, ConstrainedEM
from linkwise.displays import DensityDisplay
from linkwise.displays.density import projected_log_density

RNG = np.random.default_rng(0)
X2 = np.r_[RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2)) + [4.0, 1.0]]
X4 = np.c_[X2, RNG.normal(size=(120, 2)) * [2.0, 0.3]] @ RNG.normal(size=(4, 4)) + [50.0, -20.0, 5.0, 0.0]


def legend_texts(display: DensityDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("model", [PPC(2, random_state=0), ConstrainedEM(2), KernelDensity(bandwidth=0.5)])
def test_each_contour_encloses_its_share_of_the_points(model: object) -> None:
    model.fit(X2)
    display = DensityDisplay.from_estimator(model, X2, shares=(0.5, 0.25, 0.9))
    assert display.shares_ == (0.9, 0.5, 0.25)
    scores = model.score_samples(X2)
    for share, level in zip(display.shares_, display.levels_, strict=True):
        assert np.mean(scores > level) == pytest.approx(share, abs=1 / 120)
    np.testing.assert_array_equal(display.contours_.levels, display.levels_)


def test_contour_lines_lie_where_the_density_has_their_level() -> None:
    model = PPC(2, random_state=0).fit(X2)
    display = DensityDisplay.from_estimator(model, X2, shares=(0.5, 0.9))
    paths = display.contours_.get_paths()
    assert len(paths) == 2
    for level, path in zip(display.levels_, paths, strict=True):
        assert len(path.vertices) > 50
        np.testing.assert_allclose(model.score_samples(path.vertices), level, atol=0.02)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_marginal_on_two_features_is_the_integral_over_the_others(covariance_type: str) -> None:
    model = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X4[:, :3])
    display = DensityDisplay.from_estimator(model, X4[:, :3], features=[2, 0], resolution=5)
    for row, column in ((1, 2), (3, 3), (2, 0)):
        first, third = display.grid_y[row], display.grid_x[column]

        def density(middle: float, first: float = first, third: float = third) -> float:
            return float(np.exp(model.score_samples([[first, middle, third]])[0]))

        middles = model.means_[:, 1]
        integral, _ = integrate.quad(
            density, middles.min() - 40, middles.max() + 40, points=middles, limit=200
        )
        assert np.exp(display.log_density[row, column]) == pytest.approx(integral, rel=1e-5)


def test_principal_plane_shows_the_density_of_projected_rows() -> None:
    model = PPC(2, random_state=0).fit(X4)
    display = DensityDisplay.from_estimator(model, X4, resolution=150)
    cell = np.diff(display.grid_x)[0] * np.diff(display.grid_y)[0]
    assert np.exp(display.log_density).sum() * cell == pytest.approx(1.0, abs=0.05)
    sampled, _ = model.sample(4000)
    centred = X4 - X4.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    places = (sampled - X4.mean(axis=0)) @ axes.T
    signs = np.sign((centred @ axes.T)[0] * display.points[0])
    inside = np.zeros(2)
    for k, level in enumerate((display.levels_[0], display.levels_[-1])):
        x = np.searchsorted(display.grid_x, (places * signs)[:, 0]).clip(0, 149)
        y = np.searchsorted(display.grid_y, (places * signs)[:, 1]).clip(0, 149)
        inside[k] = np.mean(display.log_density[y, x] > level)
    np.testing.assert_allclose(inside, [0.95, 0.25], atol=0.1)


def test_projected_log_density_against_scipy() -> None:
    weights, means = np.array([0.3, 0.7]), np.array([[0.0, 0.0], [2.0, 1.0]])
    covariances = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.2, -0.1], [-0.1, 2.0]]])
    places = RNG.normal(size=(50, 2))
    expected = sum(
        weight * multivariate_normal(mean, covariance).pdf(places)
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
    )
    np.testing.assert_allclose(projected_log_density(places, weights, means, covariances), np.log(expected))
    only_second = projected_log_density(places, np.array([0.0, 1.0]), means, covariances)
    np.testing.assert_allclose(only_second, multivariate_normal(means[1], covariances[1]).logpdf(places))


def test_points_and_contours_are_explained() -> None:
    model = PPC(2, random_state=0).fit(X2)
    display = DensityDisplay.from_estimator(model, X2, shares=(0.5, 0.9))
    assert legend_texts(display) == [
        "cluster 0",
        "cluster 1",
        "around 90% of the points",
        "around 50% of the points",
    ]
    drawn = {name: len(scatter.get_offsets()) for name, scatter in display.scatters_.items()}
    assert drawn == dict(zip(*np.unique(model.predict(X2), return_counts=True), strict=True))
    named = DensityDisplay.from_estimator(model, X2, labels=["x"] * 120)
    assert list(named.scatters_) == ["x"]


def test_a_density_sharper_than_the_grid_is_not_passed_over() -> None:
    points = np.r_[np.zeros((90, 2)), [[1.0, 1.0]] * 10]
    density = np.r_[np.full(90, 50.0), np.full(10, -1.0)]
    grid = np.full((20, 20), -5.0)
    grid[4:16, 4:16] = 0.0
    axis = np.linspace(-1, 2, 20)
    display = DensityDisplay(points, density, axis, axis, grid, shares=(0.5, 0.95)).plot()
    assert display.levels_.tolist() == [-1.0, 50.0]
    assert display.contours_.levels.tolist() == [-1.0]
    assert legend_texts(display) == ["around 95% of the points", "around 50% of the points (not on the grid)"]
    equal = DensityDisplay(points, np.full(100, 50.0), axis, axis, grid).plot()
    assert equal.contours_ is None
    assert legend_texts(equal) == ["around 95% of the points (not on the grid)"]


def test_places_of_zero_density_do_not_break_contours() -> None:
    model = KernelDensity(kernel="tophat", bandwidth=0.7).fit(X2)
    display = DensityDisplay.from_estimator(model, X2, shares=(0.9,))
    assert np.isneginf(display.log_density).any()
    vertices = display.contours_.get_paths()[0].vertices
    assert len(vertices) > 50
    assert np.isfinite(vertices).all()


def test_feature_names_cause_no_warning() -> None:
    frame = pandas.DataFrame(X2, columns=["long", "wide"])
    model = PPC(2, random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = DensityDisplay.from_estimator(model, frame)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("long", "wide")


def test_pipelines_of_two_features_are_drawn() -> None:
    pipeline = make_pipeline(StandardScaler(), PPC(2, random_state=0)).fit(X2)
    display = DensityDisplay.from_estimator(pipeline, X2, shares=(0.5,))
    assert np.mean(pipeline.score_samples(X2) > display.levels_[0]) == pytest.approx(0.5)
    wide = make_pipeline(StandardScaler(), PPC(2, random_state=0)).fit(X4)
    with pytest.raises(ValueError, match="pass its last step and the transformed rows"):
        DensityDisplay.from_estimator(wide, X4)


def test_bad_input_is_refused() -> None:
    with pytest.raises(NotFittedError):
        DensityDisplay.from_estimator(PPC(2), X2)
    with pytest.raises(ValueError, match="KMeans has no score_samples; a density display needs"):
        DensityDisplay.from_estimator(KMeans(2).fit(X2), X2)
    with pytest.raises(ValueError, match="only Gaussian mixtures have marginal"):
        DensityDisplay.from_estimator(KernelDensity().fit(X4), X4)
    with pytest.raises(ValueError, match="one feature"):
        DensityDisplay.from_estimator(KernelDensity().fit(X2[:, :1]), X2[:, :1])
    fitted = PPC(1).fit(X2)
    for shares in ((), (0.0,), (1.0,), (50,)):
        with pytest.raises(ValueError, match="shares must lie between 0 and 1"):
            DensityDisplay.from_estimator(fitted, X2, shares=shares)
    with pytest.raises(ValueError, match="point_log_density has shape"):
        DensityDisplay(X2, [0.0], [0, 1], [0, 1], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="the grid has 3 rows and 2 columns"):
        DensityDisplay(X2, np.zeros(120), [0, 1], [0, 1, 2], np.zeros((2, 3)))
