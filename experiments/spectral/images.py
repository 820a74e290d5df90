"""Segmentation of small images with links drawn by hand (Lu & Carreira-Perpinan 2008, figure 7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.spectral.methods import IMAGE_METHODS, compare, draw_links, fitted_labels
from linkwise.constraints import Constraints
from linkwise.datasets import make_noisy_objects, make_occluder
from linkwise.metrics import rand_score

__all__ = ["EXPERIMENTS", "Scene", "picture", "scene", "spectral_images"]

#: The paper's method in its widths.
_PAPERS = tuple(name for name in IMAGE_METHODS if name.startswith("paper"))

Pixels = list[tuple[tuple[int, int], tuple[int, int]]]


class _Image(NamedTuple):
    """How an image is made, what brightness weighs beside place, and the links drawn by hand."""

    make: Callable[..., tuple[NDArray[np.float64], NDArray[np.int64]]]
    contrast: float
    must: Pixels
    cannot: Pixels


IMAGES = {
    "occluder": _Image(
        make_occluder,
        40.0,
        must=[((2, 1), (13, 14)), ((13, 2), (2, 13)), ((2, 6), (13, 9)), ((8, 1), (8, 14))],
        cannot=[((2, 2), (2, 6)), ((2, 11), (3, 7)), ((13, 5), (13, 9)), ((13, 14), (12, 9))],
    ),
    "objects": _Image(
        make_noisy_objects,
        20.0,
        must=[
            ((8, 7), (11, 16)), ((14, 8), (6, 12)), ((28, 6), (35, 18)), ((12, 32), (32, 26)),
            ((12, 32), (32, 38)), ((2, 22), (22, 3)), ((22, 22), (40, 41)), ((22, 3), (41, 3)),
            ((22, 22), (2, 22)), ((3, 40), (25, 41)), ((2, 22), (3, 40)),
        ],
        cannot=[
            ((11, 16), (22, 22)), ((8, 7), (22, 3)), ((35, 18), (22, 22)), ((28, 6), (22, 3)),
            ((31, 12), (41, 3)), ((12, 32), (3, 40)), ((32, 26), (22, 22)), ((32, 38), (40, 41)),
            ((11, 16), (20, 32)), ((14, 8), (28, 6)), ((35, 18), (32, 26)), ((6, 12), (2, 22)),
            ((11, 16), (3, 40)),
        ],
    ),
}  # fmt: skip


class Scene(NamedTuple):
    """An image, its true segments, a row of features for each pixel, and the links drawn by hand."""

    image: NDArray[np.float64]
    truth: NDArray[np.int64]
    X: NDArray[np.float64]
    links: Constraints


def scene(name: str, seed: int) -> Scene:
    """An image with new noise; its geometry, on which the links were drawn, is always the same.

    Parameters
    ----------
    name : {"occluder", "objects"}
        16 x 16 pixels with 4 must-links and 4 cannot-links; 43 x 43 with 11 and 13.
    seed : int

    Returns
    -------
    Scene
        Features are row, column and weighted brightness.

    Examples
    --------
    >>> from experiments.spectral.images import scene
    >>> [scene(name, 3).links.satisfaction(scene(name, 3).truth.ravel()) for name in ("occluder", "objects")]
    [1.0, 1.0]
    """
    source = IMAGES[name]
    image, truth = source.make(random_state=np.random.default_rng(seed))
    row, column = np.indices(image.shape)
    X = np.column_stack([row.ravel(), column.ravel(), source.contrast * image.ravel()])

    def numbers(pairs: Pixels) -> NDArray[np.int64]:
        return np.array([[np.ravel_multi_index(end, image.shape) for end in pair] for pair in pairs])

    return Scene(image, truth, X, Constraints(image.size, numbers(source.must), numbers(source.cannot)))


def spectral_images(draw: int, image: str, placed: str) -> list[Row]:
    """Segments of a small image with few links, drawn by hand or at random.

    The paper's images and links are not published. Ours have the same sizes and the same difficulty: edges
    that fade. A draw has new noise and new random links. The links by hand are those of the library's
    examples; whoever placed them saw what the heat kernel makes of them. The width of the paper's Gaussian is
    not published: there are five, half to eight times the local scale (the median distance to the 7th
    neighbour), because objects are much wider than the distance of two pixels.

    Parameters
    ----------
    draw : int
    image : {"occluder", "objects"}
    placed : {"by hand", "at random"}
        At random: as many links between random pixels, labelled by the truth.

    Returns
    -------
    list of dict
        "rand" and "ari" of "no links" and of each method of
        :data:`~experiments.spectral.methods.IMAGE_METHODS`; and "gain" of the default and of the paper's
        method, the Rand index less that of the same kernel and seed without links.

    Examples
    --------
    >>> from experiments.spectral.images import spectral_images
    >>> scores = {row["method"]: row["rand"] for row in spectral_images(0, "occluder", "by hand")}
    >>> scores["default"] > scores["no links"]
    True
    """
    shown = scene(image, draw)
    y = shown.truth.ravel()
    links = shown.links
    if placed == "at random":
        links = draw_links(y, links.n_pairs, 0.0, np.random.default_rng([draw, 1]))
    kernels = {name: IMAGE_METHODS[name] for name in ("default", *_PAPERS)}
    alone = {row["method"]: row for row in compare(kernels, shown.X, y, None, draw)}
    rows = compare(IMAGE_METHODS, shown.X, y, links, draw)
    for row in rows:
        if row["method"] in alone:
            row["gain"] = row["rand"] - alone[row["method"]]["rand"]
    return [{**alone["default"], "method": "no links"}, *rows]


def picture(path: Path) -> None:
    """The images with the links drawn by hand, and what the methods make of them.

    Parameters
    ----------
    path : Path
        PNG file to write.
    """
    from matplotlib.figure import Figure

    shown_methods = ("A heat", "B heat", "paper x2", "Kamvar x2")
    figure = Figure(figsize=(13, 5), layout="constrained")
    axes = figure.subplots(2, 2 + len(shown_methods))
    for line, (name, source) in zip(axes, IMAGES.items(), strict=True):
        shown = scene(name, 0)
        line[0].imshow(shown.image, cmap="gray", vmin=0.0, vmax=1.0)
        for pairs, colour, style in ((source.must, "C0", "-"), (source.cannot, "C3", "--")):
            for first, second in pairs:
                line[0].plot([first[1], second[1]], [first[0], second[0]], style, color=colour, marker=".")
        line[0].set_title("links", fontsize=9)
        cases: list[tuple[str, str, Constraints | None]] = [("no links", "default", None)]
        cases += [(method, method, shown.links) for method in shown_methods]
        for ax, (title, method, links) in zip(line[1:], cases, strict=True):
            labels: NDArray[Any] = fitted_labels(IMAGE_METHODS[method], shown.X, _n_segments(shown), links, 0)
            ax.imshow(labels.reshape(shown.image.shape), cmap="Set2", interpolation="nearest")
            for segment in range(1, _n_segments(shown)):
                ax.contour(shown.truth == segment, levels=[0.5], colors="black", linewidths=1.0)
            ax.set_title(f"{title}: {rand_score(shown.truth.ravel(), labels):.2f}", fontsize=9)
    for ax in axes.ravel():
        ax.set_xticks([])
        ax.set_yticks([])
    figure.savefig(path, dpi=90)


def _n_segments(shown: Scene) -> int:
    return len(np.unique(shown.truth))


_SETTINGS = [{"image": image, "placed": placed} for image in IMAGES for placed in ("by hand", "at random")]

EXPERIMENTS = (
    Experiment(
        "spectral_images",
        "Rand index of the segments of small images with a few links, placed by hand or at random",
        "Lu & Carreira-Perpinan 2008, figure 7; generated images",
        spectral_images,
        quick=Size(_SETTINGS, 2),
        full=Size(_SETTINGS, 20),
        measures=("rand", "gain", "ari"),
        reference="no links",
        picture=picture,
    ),
)
