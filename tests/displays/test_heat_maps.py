"""Beliefs and separability: images equal the matrices, figures and signs stand in their cells."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from linkwise import PPC
from linkwise.beliefs import ClassBeliefs
from linkwise.displays import BeliefDisplay, SeparabilityDisplay
from linkwise.metrics import separability
from linkwise.mixture.cppc import CPPC

BELIEFS = ClassBeliefs.keep(["oak", "elm", "ash"]).merge("oak", "ash", 0.5).split("elm")
Y = np.array(["oak", "oak", "elm", "elm", "ash", "ash", None], dtype=object)
LABELS = np.array([0, 0, 0, 1, 1, 1, 2])


def ticks(ax: plt.Axes) -> tuple[list[str], list[str]]:
    return [text.get_text() for text in ax.get_xticklabels()], [
        text.get_text() for text in ax.get_yticklabels()
    ]


def test_images_are_the_matrices_side_by_side() -> None:
    S = [[0.1, 0.2, 0.3], [0.2, -0.4, 0.5], [0.3, 0.5, np.nan]]
    display = BeliefDisplay(BELIEFS, S).plot()
    beliefs, found = display.images_
    np.testing.assert_array_equal(beliefs.get_array(), BELIEFS.values)
    np.testing.assert_array_equal(np.ma.filled(found.get_array(), np.nan), S)
    assert all(image.get_clim() == (-1.0, 1.0) for image in display.images_)
    assert [ax.get_title() for ax in display.ax_] == ["beliefs", "separability"]
    for ax in display.ax_:
        assert ticks(ax) == (["oak", "elm", "ash"], ["oak", "elm", "ash"])
    texts = [text.get_text() for text in display.ax_[1].texts]
    assert texts.count("0.5") == 2
    assert "−0.4" in texts
    display.figure_.canvas.draw()
    left, right = (ax.get_window_extent() for ax in display.ax_)
    assert left.x1 < right.x0


def test_beliefs_alone_are_one_picture() -> None:
    display = BeliefDisplay([[1.0, -0.5], [-0.5, 1.0]]).plot()
    assert display.ax_.get_title() == "beliefs"
    assert display.classes == (0, 1)
    assert len(display.images_) == 1


def test_beliefs_are_matched_to_the_classes_of_the_rows() -> None:
    order = ["ash", "elm", "oak"]
    for beliefs in (BELIEFS, BELIEFS.to_frame(), BELIEFS.for_classes(order)):
        display = BeliefDisplay.from_predictions(beliefs, Y, LABELS)
        assert display.classes == tuple(order)
        np.testing.assert_array_equal(display.images_[0].get_array(), BELIEFS.for_classes(order))
        np.testing.assert_array_equal(display.images_[1].get_array(), separability(Y, LABELS))


def test_classes_choose_and_order() -> None:
    display = BeliefDisplay(BELIEFS, classes=["ash", "oak"])
    np.testing.assert_array_equal(display.beliefs, [[1.0, 0.5], [0.5, 1.0]])


def test_fitted_cppc() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = CPPC(beliefs=ClassBeliefs.keep(np.unique(names)).merge("versicolor", "virginica", 0.2))
    for display_class in (BeliefDisplay, SeparabilityDisplay):
        with pytest.raises(NotFittedError):
            display_class.from_estimator(model)
    model.fit(X, names)
    display = BeliefDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.images_[0].get_array(), model.beliefs_)
    np.testing.assert_array_equal(display.images_[1].get_array(), model.separability_)
    alone = SeparabilityDisplay.from_estimator(model)
    np.testing.assert_array_equal(alone.image_.get_array(), model.separability_)
    assert alone.classes == ("setosa", "versicolor", "virginica")


def test_separability_of_any_clusters() -> None:
    display = SeparabilityDisplay.from_predictions(Y, LABELS)
    np.testing.assert_array_equal(display.image_.get_array(), separability(Y, LABELS))
    assert ticks(display.ax_)[0] == ["ash", "elm", "oak"]


def test_many_classes_have_signs_instead_of_figures() -> None:
    rng = np.random.default_rng(0)
    S = rng.uniform(-1, 1, (25, 25))
    S = (S + S.T) / 2
    display = SeparabilityDisplay(S).plot()
    assert len(display.ax_.texts) == 0
    (signs,) = display.ax_.collections
    rows, columns = np.nonzero(S < -0.1)
    np.testing.assert_array_equal(signs.get_offsets(), np.c_[columns, rows])


def test_bad_input_is_refused() -> None:
    fitted = KMeans(2, n_init=1).fit(np.random.default_rng(0).normal(size=(10, 2)))
    with pytest.raises(ValueError, match="KMeans has no beliefs_; fit a CPPC"):
        BeliefDisplay.from_estimator(fitted)
    with pytest.raises(ValueError, match="KMeans has no separability_; CPPC has one"):
        SeparabilityDisplay.from_estimator(fitted)
    with pytest.raises(NotFittedError):
        BeliefDisplay.from_estimator(PPC())
    with pytest.raises(ValueError, match=r"separability must be a square matrix, got shape \(2, 3\)"):
        SeparabilityDisplay(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="about 2 classes, but there are 3 names"):
        SeparabilityDisplay(np.zeros((2, 2)), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"separability of \(0, 1\) is 3, outside"):
        SeparabilityDisplay([[0.0, 3.0], [3.0, 0.0]])
    with pytest.raises(ValueError, match="about 2 classes, but there are 3 names"):
        BeliefDisplay(BELIEFS, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="2 heat maps need 2 axes, got 1"):
        BeliefDisplay(BELIEFS, np.zeros((3, 3))).plot(plt.subplots()[1])
    with pytest.raises(ValueError, match="say nothing about 'ash'"):
        BeliefDisplay.from_predictions(BELIEFS.select(["oak", "elm"]), Y, LABELS)


def test_two_axes_may_be_given() -> None:
    axes = plt.subplots(1, 2)[1]
    display = BeliefDisplay(pandas.DataFrame([[1.0]], ["a"], ["a"]), [[0.5]]).plot(axes)
    assert list(display.ax_) == list(axes)
    assert display.classes == ("a",)
