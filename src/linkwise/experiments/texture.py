"""Texture mosaic with links between neighbouring blocks (Lu & Leen 2007, experiment 4)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from linkwise.constraints import Constraints
from linkwise.datasets import make_texture_mosaic, texture_features
from linkwise.experiments.data_files import data_path
from linkwise.inference.gibbs import gibbs
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.ppc import PPC

__all__ = ["texture_mosaic"]

_ENGINES: dict[str, str | Callable[..., Any]] = {
    "mean_field": "mean_field",
    "gibbs": partial(gibbs, max_sweeps=200, n_chains=1),
    "belief_propagation": "belief_propagation",
}


def texture_mosaic(
    layout: str = "quadrants", n_draws: int = 3, n_components: int = 5, n_textures: int = 4
) -> tuple[list[str], list[list[Any]]]:
    """Quality and time of mean field and Gibbs sampling on a mosaic of four textures.

    Blocks of 7 x 7 pixels in five principal components; soft must-links between neighbouring blocks whose
    certainty is the share that is right, as in the paper. Gibbs sampling runs one chain of 200 sweeps in an
    E-step: the paper does not say how many it took, and the adaptive default takes 8000 where labels hardly
    move. Omega of a lattice is out of reach, so the weights are kept equal (``mixing="fixed"``). Leaving it
    out (``mixing="ignore"``) rewards one cluster for all: on the generated mosaic the adjusted Rand index
    then falls from .40 without links to .09. Every fit starts from the mixture without links.

    Parameters
    ----------
    layout : {"quadrants", "curved", "generated"}
        Mosaics of Brodatz plates (need LINKWISE_DATA), or of filtered noise.
    n_draws : int
        Starts, the same for every engine.
    n_components : int
        Principal components.
    n_textures : int

    Returns
    -------
    head, rows
        Engine, mean adjusted Rand index and accuracy, median processor seconds of a fit, and that time
        over mean field's.

    Examples
    --------
    >>> from linkwise.experiments.texture import texture_mosaic
    >>> head, rows = texture_mosaic("generated", n_draws=1)
    >>> [row[0] for row in rows]
    ['no links', 'mean_field', 'gibbs', 'belief_propagation']
    """
    X, y, grid = _blocks(layout, n_components)
    lattice = Constraints.from_grid(grid)
    agree = float(np.mean(y[lattice.pairs[:, 0]] == y[lattice.pairs[:, 1]]))
    links = Constraints.from_grid(grid, certainty=agree)
    rows: list[list[Any]] = []
    for name, engine in {"no links": None, **_ENGINES}.items():
        if engine is not None:
            _scores(X, y, links, engine, 0, n_textures, max_iter=1)  # compiles, which is not to be timed
        scores = [_scores(X, y, links, engine, seed, n_textures) for seed in range(n_draws)]
        rows.append([name, *np.mean(scores, axis=0)[:2].tolist(), float(np.median(scores, axis=0)[2])])
    mean_field_seconds = rows[1][3]
    for row in rows:
        row.append(row[3] / mean_field_seconds)
    return ["engine", "ari", "accuracy", "seconds", "time ratio"], rows


def _blocks(layout: str, n_components: int) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[int, int]]:
    """Principal components of the blocks, the texture of the most pixels of each, and the grid."""
    if layout == "generated":
        image, truth = make_texture_mosaic(random_state=0)
        height, width = (side - side % 7 for side in image.shape)
        image, truth = image[:height, :width], truth[:height, :width]
    else:
        with np.load(data_path("brodatz_mosaic4.npz"), allow_pickle=False) as stored:
            image, truth = stored[layout].astype(np.float64), stored[f"{layout}_gt"]
    X, grid = texture_features(image)
    pixels, _ = texture_features(truth)
    y = np.array([np.bincount(block).argmax() for block in pixels.astype(np.int64)])
    return PCA(n_components, svd_solver="full").fit_transform(X), y, grid


def _scores(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    links: Constraints,
    engine: str | Callable[..., Any] | None,
    seed: int,
    n_textures: int,
    max_iter: int = 100,
) -> tuple[float, float, float]:
    """Adjusted Rand index, accuracy and processor seconds of one fit; no links without an engine."""
    plain = PPC(n_textures, init_params="kmeans", random_state=seed).fit(X)
    if engine is None:
        model, known = PPC(n_textures, init_params="kmeans", random_state=seed), None
    else:
        known = links
        model = PPC(
            n_textures,
            inference=engine,
            mixing="fixed",
            means_init=plain.means_,
            precisions_init=np.linalg.inv(plain.covariances_),
            max_iter=max_iter,
            random_state=seed,
        )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        labels = model.fit(X, constraints=known).labels_
    seconds = time.process_time() - start
    return adjusted_rand_score(y, labels), clustering_accuracy(y, labels), seconds
