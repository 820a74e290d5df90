"""Two maps beside each other: pixels by the old legend and by the new one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.classes.land_cover_scenes import Scene
from linkwise.displays._drawing import COLOURS
from linkwise.metrics import contingency_table

__all__ = ["cluster_colours", "draw_legends"]

#: How far towards white the colour goes that the parts of a class share.
_PALEST = 0.6


def cluster_colours(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """Colours that let the new map be read with the old one in mind.

    Parameters
    ----------
    table : (L, K) int64
        Rows of each class in each cluster.

    Returns
    -------
    (K, 3) float64
        The colour of the class with most rows in the cluster; where several clusters have the same class,
        the smaller are paler.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.land_cover_map import cluster_colours
    >>> colours = cluster_colours(np.array([[60, 40, 0], [0, 5, 95]]))
    >>> bool((colours[1] > colours[0]).all()), bool((colours[0] == colours[2]).all())
    (True, False)
    """
    from matplotlib.colors import to_rgb

    owner = table.argmax(axis=0)
    colours = np.zeros((table.shape[1], 3))
    for label in np.unique(owner):
        parts = np.flatnonzero(owner == label)
        parts = parts[np.argsort(-table[:, parts].sum(axis=0), kind="stable")]
        base = np.array(to_rgb(COLOURS[label % len(COLOURS)]))
        for paleness, part in zip(np.linspace(0.0, _PALEST, len(parts)), parts, strict=True):
            colours[part] = base + paleness * (1.0 - base)
    return colours


def draw_legends(
    scene: Scene, names: Sequence[str], labels: NDArray[np.int64], classifier: Any, path: str | Path
) -> None:
    """Draw the labelled pixels, and the whole scene as a classifier sees it, by both legends.

    Parameters
    ----------
    scene : Scene
        With pixels.
    names : sequence of str
        Of the clusters.
    labels : (n,) int64
        New cluster of each labelled pixel.
    classifier : scikit-learn classifier
        Trained on either legend to label the rest, as the paper's maps were made.
    path : path
        PNG.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    assert scene.pixels is not None
    assert scene.labelled is not None
    classes, codes = np.unique(scene.y, return_inverse=True)
    _, clusters, table = contingency_table(scene.y, labels)
    new_codes = np.searchsorted(clusters, labels)
    old_colours, new_colours = cluster_colours(np.diag(np.bincount(codes))), cluster_colours(table)
    figure = Figure(figsize=(13.0, 8.4), layout="constrained")
    grid = figure.add_gridspec(2, 4, width_ratios=(1.0, 0.52, 1.0, 0.74))
    everything = scene.pixels.reshape(-1, scene.pixels.shape[2])
    legends = (
        ("old legend", codes, old_colours, [str(name) for name in classes]),
        ("new legend", new_codes, new_colours, _cluster_names(names, clusters, classes, table)),
    )
    for place, (title, rows, colours, texts) in enumerate(legends):
        known = np.ones((*scene.labelled.shape, 3))
        known[scene.labelled] = colours[rows]
        seen = classifier.fit(scene.X, rows).predict(everything)
        whole = colours[seen].reshape(known.shape)
        for line, (what, image) in enumerate((("labelled pixels", known), ("classified", whole))):
            ax = figure.add_subplot(grid[line, 2 * place])
            ax.imshow(image, interpolation="nearest")
            ax.set_title(f"{title}: {what}", fontsize=10)
            ax.set_xticks([])
            ax.set_yticks([])
        ax = figure.add_subplot(grid[:, 2 * place + 1])
        ax.set_axis_off()
        order = np.argsort([text.lower() for text in texts])
        handles = [Patch(facecolor=colours[k], edgecolor="0.3", linewidth=0.4, label=texts[k]) for k in order]
        ax.legend(handles=handles, loc="upper left", borderaxespad=0.0, fontsize=7.5, frameon=False)
    figure.savefig(path, dpi=100, facecolor="white")


def _cluster_names(
    names: Sequence[str], clusters: NDArray[np.int64], classes: NDArray[Any], table: NDArray[np.int64]
) -> list[str]:
    """Names of the occupied clusters; those that hold no class are named by the one they have most of."""
    texts = []
    for column, k in enumerate(clusters.tolist()):
        rest = names[k].startswith("rest")
        texts.append(f"part of {classes[table[:, column].argmax()]}" if rest else names[k])
    return texts
