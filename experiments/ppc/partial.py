"""Cannot-links from coarse groups of an image: experiment 3 of Lu & Leen (2007), on another image."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from experiments.framework.data_files import data_path
from experiments.framework.experiment import Experiment, Size
from experiments.framework.starts import CONVERGED, best_fit, mixture_starts, random_centres
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.mixture.ppc import PPC

__all__ = ["EXPERIMENTS", "group_of_clusters", "ppc_partial_classes"]

#: Classes of Indian Pines that play "no snow"; all the others are "snow".
GROUPS = {"woods": (14,), "woods and grass": (5, 6, 7, 14)}

#: Side of a block in pixels, clusters, and starts of both methods.
BLOCK, N_CLUSTERS, N_STARTS = 3, 3, 5


def ppc_partial_classes(draw: int, apart: str, components: int) -> list[Row]:
    """How well three clusters keep to a coarse division that was given by cannot-links alone.

    The paper's image (Greenland, snow or no snow, 5 x 5 blocks, 50 principal components) is not public. Here
    it is Indian Pines (145 x 145 pixels, 200 bands) in blocks of 3 x 3 pixels; the 1134 blocks whose most
    frequent class is known are kept. "No snow" are the woods, an eighth of the blocks, so that each can have
    its own six; "snow" are all other classes. With woods and grass, some blocks get no links. As in the
    paper, half of the blocks train; each training block of "no snow" is linked apart, hard, from six of
    "snow" drawn without replacement; there are three components. Both methods have the same five starts, and
    run to the maximum, without a prior of the covariances.

    Parameters
    ----------
    draw : int
        Split, links and starts.
    apart : {"woods", "woods and grass"}
    components : int
        Principal components of the blocks.

    Returns
    -------
    list of dict
        For PPC and the mixture without links: balanced accuracy of the coarse division on "train" and "test"
        blocks, clusters being given to a group on the training blocks (:func:`group_of_clusters`);
        "found", the share of the test blocks of "no snow" in clusters given to it; and "lost", the
        share of the other test blocks in them.
    """
    X, classes, _, _ = _blocks(components)
    group = np.isin(classes, GROUPS[apart])
    train = _training_rows(len(X), draw)
    rows = []
    for method, model in _fits(X, group, train, draw).items():
        of_cluster = group_of_clusters(model.labels_, group[train])
        found_train, lost_train = _rates(of_cluster[model.labels_], group[train])
        found, lost = _rates(of_cluster[model.predict(X[~train])], group[~train])
        rows.append(
            {
                "method": method,
                "train": (found_train + 1.0 - lost_train) / 2,
                "test": (found + 1.0 - lost) / 2,
                "found": found,
                "lost": lost,
            }
        )
    return rows


def group_of_clusters(labels: NDArray[np.int64], group: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which clusters belong to a group: those that hold a larger share of it than of the rest.

    No other choice has a higher balanced accuracy.

    Parameters
    ----------
    labels : (n,) int64
        Clusters 0 to 2.
    group : (n,) bool
        Rows of the group; some, not all.

    Returns
    -------
    (3,) bool

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.ppc.partial import group_of_clusters
    >>> group_of_clusters(np.array([0, 0, 1, 1, 2]), np.array([True, True, True, False, False]))
    array([ True, False, False])
    """
    inside = np.bincount(labels[group], minlength=N_CLUSTERS) / group.sum()
    outside = np.bincount(labels[~group], minlength=N_CLUSTERS) / (~group).sum()
    return inside > outside


def _rates(told: NDArray[np.bool_], group: NDArray[np.bool_]) -> tuple[float, float]:
    return float(told[group].mean()), float(told[~group].mean())


def _training_rows(n_rows: int, draw: int) -> NDArray[np.bool_]:
    train = np.zeros(n_rows, dtype=bool)
    train[np.random.default_rng([draw, n_rows]).permutation(n_rows)[: n_rows // 2]] = True
    return train


def _fits(
    X: NDArray[np.float64], group: NDArray[np.bool_], train: NDArray[np.bool_], draw: int
) -> dict[str, PPC]:
    rng = np.random.default_rng([draw, int(group.sum()), X.shape[1]])
    links = Constraints.from_partial_classes(group[train].astype(int), per_point=6, random_state=rng)
    starts = mixture_starts(X[train], random_centres(X[train], N_CLUSTERS, N_STARTS, rng))
    return {
        method: best_fit(
            PPC(N_CLUSTERS, **CONVERGED), X[train], known, starts, lambda fitted: fitted.lower_bound_
        )
        for method, known in (("GMM", None), ("PPC", links))
    }


@cache
def _blocks(
    n_components: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_], tuple[int, int]]:
    """Principal components and class of the labelled blocks, which blocks they are, and the grid."""
    with np.load(data_path("indian_pines.npz"), allow_pickle=False) as stored:
        bands, truth = stored["X"].astype(np.float64), stored["gt"].astype(np.int64)
    height, width = (side // BLOCK for side in truth.shape)
    bands = bands[: height * BLOCK, : width * BLOCK].reshape(height, BLOCK, width, BLOCK, -1)
    truth = truth[: height * BLOCK, : width * BLOCK].reshape(height, BLOCK, width, BLOCK)
    pixels = truth.swapaxes(1, 2).reshape(height * width, -1)
    classes = np.array([np.bincount(block).argmax() for block in pixels])
    known = classes > 0
    features = bands.swapaxes(1, 2).reshape(height * width, -1)[known]
    X = PCA(n_components, svd_solver="full").fit_transform(features)
    return X, classes[known], known, (height, width)


def _draw_maps(path: Path, apart: str = "woods", components: int = 10) -> None:
    """The coarse truth beside the clusters of both methods, training and test blocks together."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    X, classes, known, grid = _blocks(components)
    group, train = np.isin(classes, GROUPS[apart]), _training_rows(len(X), 0)
    panels = {f"{apart} (black)": np.where(group, 0, 2)}
    for method, model in _fits(X, group, train, 0).items():
        labels = np.empty(len(X), dtype=np.int64)
        labels[train], labels[~train] = model.labels_, model.predict(X[~train])
        inside = group_of_clusters(model.labels_, group[train])
        shade = np.where(inside, np.cumsum(inside) - 1, 1 + np.cumsum(~inside))
        panels[method] = shade[labels]
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    for ax, (title, labels) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        image = np.full(grid[0] * grid[1], 5)
        image[known] = labels
        # Two shades of clusters given to the group, three of the others, and unknown blocks.
        colours = ListedColormap(["black", "0.3", "0.85", "0.6", "0.7", "#dfe8f5"])
        ax.imshow(image.reshape(grid), cmap=colours, vmin=0, vmax=5, interpolation="nearest")
        ax.set_title(title, fontsize=9)
        ax.set_axis_off()
    figure.savefig(path, dpi=110)


_SETTINGS = [{"apart": apart, "components": count} for apart in GROUPS for count in (5, 10, 20)]

EXPERIMENTS = (
    Experiment(
        "ppc_partial_classes",
        "Coarse division given by cannot-links alone (Indian Pines, woods apart, in place of Greenland)",
        "PPC, experiment 3, figure 11",
        ppc_partial_classes,
        quick=Size(_SETTINGS, 3),
        full=Size(_SETTINGS, 40),
        measures=("test", "train", "found", "lost"),
        reference="GMM",
        picture=_draw_maps,
    ),
)
