"""Class maps show the labels cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.colors import to_hex
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from linkwise.displays import ClassMapDisplay
from linkwise.displays._drawing import COLOURS
from linkwise.displays.class_map import inner_place
from tests.repeats import examples


def legend(display: ClassMapDisplay) -> list[tuple[str, str]]:
    found = display.ax_.get_legend()
    return [
        (text.get_text(), to_hex(patch.get_facecolor()).upper())
        for text, patch in zip(found.get_texts(), found.get_patches(), strict=True)
    ]


def cells(display: ClassMapDisplay) -> list[list[object]]:
    """The label of every cell, read back from the image."""
    image = display.image_.get_array()
    classes = display.classes_.tolist()
    return [
        [None if masked else classes[code] for code, masked in zip(codes, mask, strict=True)]
        for codes, mask in zip(image.data.tolist(), np.ma.getmaskarray(image).tolist(), strict=True)
    ]


def test_image_holds_the_labels() -> None:
    labels = np.array([["b", "a", "b"], ["c", "c", None]], dtype=object)
    display = ClassMapDisplay(labels).plot()
    assert cells(display) == labels.tolist()
    assert legend(display) == [
        ("a", COLOURS[0]),
        ("b", COLOURS[1]),
        ("c", COLOURS[2]),
        ("no class", "#FFFFFF"),
    ]


@settings(max_examples=examples(25, 12))
@given(arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(-1, 30)))
def test_colours_belong_to_the_labels(labels: np.ndarray) -> None:
    from matplotlib.figure import Figure

    display = ClassMapDisplay(labels).plot(Figure().subplots())
    drawn = display.image_.to_rgba(display.image_.get_array())
    classes = sorted(set(labels.ravel().tolist()) - {-1})
    for (row, column), label in np.ndenumerate(labels):
        if label == -1:
            assert drawn[row, column, 3] == 0.0
        else:
            assert to_hex(drawn[row, column]).upper() == COLOURS[classes.index(label) % 24]


def test_flat_labels_fill_the_grid_in_c_order() -> None:
    display = ClassMapDisplay.from_predictions(np.arange(6) // 2, (2, 3))
    assert cells(display) == [[0, 0, 1], [1, 2, 2]]
    mask = np.array([[True, False, True], [False, True, True]])
    masked = ClassMapDisplay.from_predictions([7, 8, 7, 9], (2, 3), mask=mask)
    assert cells(masked) == [[7, None, 8], [None, 7, 9]]


def test_marks_stand_in_the_largest_region() -> None:
    labels = np.zeros((40, 60), dtype=int)
    labels[5:25, 30:50] = 1
    labels[0, 0] = 1
    labels[39, 59] = 2
    display = ClassMapDisplay(labels, {0: "water", 1: "wood", 2: "speck"}).plot()
    assert {label: mark.get_text() for label, mark in display.marks_.items()} == {0: "0", 1: "1"}
    for label, mark in display.marks_.items():
        column, row = mark.get_position()
        assert labels[row, column] == label
    assert [text for text, _ in legend(display)] == ["0  water", "1  wood", "2  speck"]


def test_long_labels_get_numbers() -> None:
    labels = np.repeat(["forest", "water"], 200).reshape(20, 20)
    display = ClassMapDisplay(labels).plot()
    assert [text for text, _ in legend(display)] == ["1  forest", "2  water"]
    assert {mark.get_text() for mark in display.marks_.values()} == {"1", "2"}


def test_names_by_position_or_by_label() -> None:
    labels = np.array([[3, 9]])
    for names in (["low", "high"], {9: "high", 3: "low", 5: "absent"}):
        assert [text for text, _ in legend(ClassMapDisplay(labels, names).plot())] == ["3  low", "9  high"]
    assert [text for text, _ in legend(ClassMapDisplay(labels.astype(float)).plot())] == ["3", "9"]


@given(arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))).filter(np.any))
def test_inner_place_against_flood_fill(region: np.ndarray) -> None:
    row, column, room = inner_place(region)
    parts: list[set[tuple[int, int]]] = []
    left = {(int(r), int(c)) for r, c in np.argwhere(region)}
    while left:
        part, front = set(), [next(iter(left))]
        while front:
            cell = front.pop()
            if cell in left:
                left.remove(cell)
                part.add(cell)
                front += [(cell[0] + dr, cell[1] + dc) for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        parts.append(part)
    largest = max(map(len, parts))

    def room_of(cell: tuple[int, int], part: set[tuple[int, int]]) -> float:
        outside = [
            (r, c)
            for r in range(-1, region.shape[0] + 1)
            for c in range(-1, region.shape[1] + 1)
            if (r, c) not in part
        ]
        return min(float(np.hypot(cell[0] - r, cell[1] - c)) for r, c in outside)

    (mine,) = [part for part in parts if (row, column) in part]
    assert len(mine) == largest
    assert room == pytest.approx(max(room_of(cell, mine) for cell in mine))
    assert room == pytest.approx(room_of((row, column), mine))


def test_estimators_and_bad_input() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(NotFittedError):
        ClassMapDisplay.from_estimator(KMeans(2), (3, 4))
    fitted = KMeans(2, n_init=1, random_state=0).fit(X)
    assert cells(ClassMapDisplay.from_estimator(fitted, (3, 4))) == fitted.labels_.reshape(3, 4).tolist()
    with pytest.raises(ValueError, match="StandardScaler has no labels_; use from_predictions"):
        ClassMapDisplay.from_estimator(StandardScaler().fit(X), (3, 4))
    with pytest.raises(
        ValueError, match=r"labels has shape \(12,\), but the grid of shape \(3, 5\) has 15 cells"
    ):
        ClassMapDisplay.from_estimator(fitted, (3, 5))
    with pytest.raises(ValueError, match="1 cells inside the mask"):
        ClassMapDisplay.from_predictions([0, 1], (1, 2), mask=[[True, False]])
    with pytest.raises(ValueError, match=r"mask has shape \(2, 1\)"):
        ClassMapDisplay.from_predictions([0, 1], (1, 2), mask=[[True], [False]])
    for shape in ((12,), (3, 2, 2), (0, 4)):
        with pytest.raises(ValueError, match=r"shape must be \(height, width\)"):
            ClassMapDisplay.from_predictions(np.zeros(12), shape)
    with pytest.raises(ValueError, match=r"use from_predictions\(labels, shape\)"):
        ClassMapDisplay([0, 1])
    with pytest.raises(ValueError, match="1 names, but there are 2 classes"):
        ClassMapDisplay([[0, 1]], ["a"])
    with pytest.raises(ValueError, match="no name for 1; add it"):
        ClassMapDisplay([[0, 1]], {0: "a"})


def test_a_map_without_classes_is_white() -> None:
    display = ClassMapDisplay(np.full((2, 2), -1)).plot()
    assert np.ma.getmaskarray(display.image_.get_array()).all()
    assert legend(display) == [("no class", "#FFFFFF")]
