"""Kernels over positions: curves, matrices, contours and points hold the values given."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.exceptions import NotFittedError

from linkwise import Constraints
from linkwise.displays import KernelDisplay

X1 = np.linspace(-2.0, 6.0, 41)
KERNEL = np.exp(-0.5 * (X1[:, None] - X1) ** 2)


def cannot_linked(kernel: np.ndarray, i: int, j: int) -> np.ndarray:
    total = kernel[:, i] + kernel[:, j]
    return kernel - np.outer(total, total) / (total[i] + total[j])


def legend_texts(display: KernelDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_columns_are_curves_in_the_order_of_positions() -> None:
    shuffled = np.random.default_rng(0).permutation(41)
    display = KernelDisplay.from_matrix(
        X1[shuffled],
        KERNEL[np.ix_(shuffled, shuffled)],
        columns=[3, 0],
        constraints=Constraints(41, [(0, 5)]),
    )
    for line, column in zip(display.lines_, (3, 0), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), X1)
        np.testing.assert_array_equal(line.get_ydata(), KERNEL[:, shuffled[column]])
    assert legend_texts(display) == ["from row 3", "from row 0", "ends of links"]
    ends = display.ax_.lines[-1]
    np.testing.assert_array_equal(ends.get_xdata(), X1[shuffled][[0, 5]])


def test_curves_with_names_as_in_the_paper() -> None:
    values = np.column_stack([np.exp(-0.5 * (X1 / sigma) ** 2) for sigma in (0.5, 1.0)])
    display = KernelDisplay(X1, values, names=["σ = 0.5", "σ = 1"]).plot()
    assert legend_texts(display) == ["σ = 0.5", "σ = 1"]
    assert display.lines_[0].get_linestyle() != display.lines_[1].get_linestyle()
    alone = KernelDisplay(X1, values[:, 0]).plot()
    assert alone.ax_.get_legend() is None


def test_matrix_is_an_image_even_around_zero() -> None:
    kernel = cannot_linked(KERNEL, 10, 30)
    order = np.argsort(-X1)
    display = KernelDisplay.from_matrix(X1[order], kernel[np.ix_(order, order)])
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()).reshape(41, 41), kernel)
    limit = np.abs(kernel).max()
    assert display.image_.get_clim() == (-limit, limit)
    (contours,) = display.ax_.collections[1:]
    np.testing.assert_allclose(contours.levels, [-0.02 * limit, 0.02 * limit])


def test_grid_has_contours_dashed_below_zero() -> None:
    x, y = np.meshgrid(np.linspace(-2, 5, 15), np.linspace(-2, 2, 9))
    positions = np.c_[x.ravel(), y.ravel()]
    kernel = np.exp(-0.5 * ((positions[:, None] - positions) ** 2).sum(axis=2))
    kernel = cannot_linked(kernel, 64, 70)
    order = np.random.default_rng(0).permutation(len(positions))
    links = Constraints(len(positions), cannot_link=[(64, 70)])[order]
    display = KernelDisplay.from_matrix(
        positions[order],
        kernel[np.ix_(order, order)],
        columns=[int(np.flatnonzero(order == 64)[0])],
        constraints=links,
    )
    assert display.scatters_ == {}
    limit = np.abs(kernel[:, 64]).max()
    shares = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
    np.testing.assert_allclose(display.contours_.levels, limit * np.r_[-np.array(shares)[::-1], shares])
    dashed = [dash[1] is not None for dash in display.contours_.get_linestyle()]
    assert dashed == [level < 0 for level in display.contours_.levels]
    for level, path in zip(display.contours_.levels, display.contours_.get_paths(), strict=True):
        # Between grid lines contours are interpolated; on them they must lie between the two cells.
        for px, py in path.vertices:
            column, row = np.abs(x[0] - px).argmin(), np.abs(y[:, 0] - py).argmin()
            if np.isclose(x[0, column], px) and not np.isclose(y[row, 0], py):
                below = np.searchsorted(y[:, 0], py) - 1
                pair = kernel[:, 64].reshape(x.shape)[below : below + 2, column]
                assert pair.min() - 1e-9 <= level <= pair.max() + 1e-9
    assert legend_texts(display) == ["cannot-link (1)"]


def test_scattered_positions_are_points_with_signs() -> None:
    rng = np.random.default_rng(0)
    positions, values = rng.normal(size=(30, 2)), rng.normal(size=30)
    values[:5] = 1e-6
    display = KernelDisplay(positions, values).plot()
    limit = np.abs(values).max()
    expected = {
        "near_zero": np.abs(values) <= 0.02 * limit,
        "positive": values > 0.02 * limit,
        "negative": values < -0.02 * limit,
    }
    assert list(display.scatters_) == list(expected)
    for name, chosen in expected.items():
        scatter = display.scatters_[name]
        np.testing.assert_array_equal(scatter.get_offsets(), positions[chosen])
        np.testing.assert_array_equal(scatter.get_array(), values[chosen])
        assert scatter.get_clim() == (-limit, limit)
    shapes = {tuple(map(tuple, s.get_paths()[0].vertices.round(6))) for s in display.scatters_.values()}
    assert len(shapes) == 3, "signs differ in their markers"
    assert display.contours_ is None
    assert legend_texts(display) == ["within 2% of zero", "positive", "negative"]


def test_many_links_are_thinned_loudly() -> None:
    positions = np.random.default_rng(0).normal(size=(150, 2))
    display = KernelDisplay(positions, positions[:, 0], constraints=Constraints.from_sequence(150)).plot()
    assert "must-link (100 of 149 drawn)" in legend_texts(display)


def test_a_zero_kernel_can_be_drawn() -> None:
    assert KernelDisplay.from_matrix(X1, np.zeros((41, 41))).image_.get_clim() == (-1.0, 1.0)
    assert list(
        KernelDisplay(np.random.default_rng(0).normal(size=(5, 2)), np.zeros(5)).plot().scatters_
    ) == ["near_zero"]


def test_estimators_and_bad_input() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(NotFittedError):
        KernelDisplay.from_estimator(SpectralClustering(2), X)
    fitted = SpectralClustering(2, random_state=0).fit(X)
    display = KernelDisplay.from_estimator(fitted, X, columns=[4])
    np.testing.assert_array_equal(display.values[:, 0], fitted.affinity_matrix_[:, 4])
    with pytest.raises(ValueError, match=r"KMeans has no affinity_matrix_.*from_matrix\(positions, kernel\)"):
        KernelDisplay.from_estimator(KMeans(2, n_init=1).fit(X), X)
    with pytest.raises(ValueError, match="matrix=True needs 1-D positions"):
        KernelDisplay.from_estimator(fitted, X)
    with pytest.raises(ValueError, match="a 2-D picture shows one"):
        KernelDisplay.from_estimator(fitted, X, columns=[0, 1])
    with pytest.raises(ValueError, match=r"kernel has shape \(41, 41\), but 20 positions need \(20, 20\)"):
        KernelDisplay.from_matrix(X, KERNEL, columns=[0])
    for columns in ([], [20], [-1], [0.5], 3):
        with pytest.raises(ValueError, match="row numbers between 0 and 19"):
            KernelDisplay.from_estimator(fitted, X, columns=columns)
    with pytest.raises(ValueError, match="positions must be"):
        KernelDisplay(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ValueError, match="position 1 is not finite"):
        KernelDisplay([0.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="values of position 0 are not finite"):
        KernelDisplay([0.0, 1.0], [np.inf, 1.0])
    with pytest.raises(ValueError, match=r"values has shape \(3,\), but there are 2 positions"):
        KernelDisplay([0.0, 1.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="1 names for 2 columns"):
        KernelDisplay([0.0, 1.0], np.eye(2), names=["a"])
    with pytest.raises(ValueError, match="about 3 samples"):
        KernelDisplay([0.0, 1.0], [0.0, 1.0], constraints=Constraints(3))
