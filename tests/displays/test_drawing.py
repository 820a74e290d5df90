"""Colours that differ for every eye, markers that differ in grey, legends outside the data."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from linkwise import Constraints, displays
from linkwise.displays._drawing import (
    COLOURS,
    MARKERS,
    VIOLATED,
    axes_or_new,
    contrasting,
    line_style,
    place_legend,
    point_size,
    point_style,
)

# Linear RGB as seen by dichromats (Machado, Oliveira and Fernandes 2009, severity 1).
PROTANOPE = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]
DEUTERANOPE = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
TRITANOPE = [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.303900],
]
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def lab(colours: list[str], sight: object) -> np.ndarray:
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(sight).T, 0.0, 1.0)
    xyz = seen @ np.array(XYZ).T / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


def least_distance(colours: list[str]) -> float:
    found = np.inf
    for sight in (np.eye(3), PROTANOPE, DEUTERANOPE, TRITANOPE):
        places = lab(colours, sight)
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        found = min(found, float(apart[np.triu_indices(len(colours), 1)].min()))
    return found


def test_colours_differ_for_every_kind_of_sight() -> None:
    assert set(COLOURS[:8]) == {
        "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
    }  # fmt: skip
    assert least_distance(list(COLOURS)) >= 15.0
    # The distance of the whole list from white keeps every class visible on paper.
    assert least_distance([*COLOURS, "#FFFFFF"]) >= 15.0


def test_the_first_four_colours_differ_in_grey() -> None:
    lightness = np.sort(lab(list(COLOURS[:4]), np.eye(3))[:, 0])
    assert np.diff(lightness).min() >= 10.0


def test_no_two_clusters_look_alike() -> None:
    looks = [tuple(point_style(number).values()) for number in range(264)]
    assert len(set(looks)) == 264
    assert len({point_style(number)["marker"] for number in range(8)}) == 8
    assert "x" not in MARKERS, "a cross is the mark of a violated link"
    assert VIOLATED not in COLOURS


def test_neighbouring_curves_differ_in_dashes() -> None:
    for number in range(40):
        assert line_style(number)["linestyle"] != line_style(number + 1)["linestyle"]
        assert line_style(number)["color"] != "#F0E442"


def test_point_sizes_shrink_within_bounds() -> None:
    sizes = [point_size(n) for n in (0, 10, 150, 600, 10**7)]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (36.0, 4.0)


@pytest.mark.parametrize(
    ("colour", "text"), [("#000000", "white"), ("#F0E442", "black"), ("#0072B2", "white")]
)
def test_text_can_be_read_on_its_colour(colour: str, text: str) -> None:
    assert contrasting(colour) == text


def test_legend_stands_beside_the_axes_when_the_layout_makes_room() -> None:
    ax = axes_or_new()
    legend = place_legend(ax, [Line2D([], [], label="one")])
    ax.figure.canvas.draw()
    assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    assert legend.get_window_extent().x1 <= ax.figure.bbox.x1
    below = place_legend(ax, [Line2D([], [], label="one")], below=True)
    ax.figure.canvas.draw()
    assert below.get_window_extent().y1 <= ax.get_window_extent().y0


def test_legend_stands_inside_axes_without_a_layout() -> None:
    left, right = plt.subplots(1, 2)[1]
    legend = place_legend(left, [Line2D([], [], label="one")])
    left.figure.canvas.draw()
    assert legend.get_window_extent().x1 <= left.get_window_extent().x1
    assert place_legend(right, []) is None
    assert right.get_legend() is None


@pytest.mark.parametrize(
    "display",
    [
        displays.ClusterDisplay([[0.0, 1.0]]),
        displays.DensityDisplay([[0.0, 0.0]], [0.0], [0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]]),
        displays.LinkCurveDisplay([0], [1.0]),
        displays.BeliefDisplay([[1.0]]),
        displays.SeparabilityDisplay([[1.0]]),
        displays.CriterionDisplay([1], [1.0]),
        displays.ConstraintGraphDisplay(Constraints(2)),
        displays.ClassMapDisplay([[0]]),
        displays.ConvergenceDisplay([0.0, 1.0]),
        displays.KernelDisplay([0.0], [1.0]),
    ],
    ids=lambda display: type(display).__name__,
)
def test_without_matplotlib_the_error_says_what_to_install(
    display: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "linkwise\[plot\]"'):
        display.plot()  # type: ignore[attr-defined]
