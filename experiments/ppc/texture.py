"""Texture mosaics with links between neighbouring blocks: experiment 4 of Lu & Leen (2007)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from experiments.framework.data_files import data_path
from experiments.framework.experiment import Experiment, Size
from experiments.framework.starts import CONVERGED
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.datasets import make_texture_mosaic, texture_features
from linkwise.inference.gibbs import gibbs
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.ppc import PPC

__all__ = ["EXPERIMENTS", "texture_mosaic"]

#: Sweeps of Gibbs sampling in an E-step. The paper does not give them. It says that mean field takes about 20
#: iterations, each as long as a sweep, and that it is 50 times faster: together that is a thousand. These
#: take a fifth of the time.
N_SWEEPS = 200

#: Mean field once more, from the classes: where this ends higher, the starts are to blame.
FROM_CLASSES = "mean field, from the textures"

#: Engines of the E-step; the mixture without links has none.
ENGINES: dict[str, str | Callable[..., Any] | None] = {
    "GMM": None,
    "mean field": "mean_field",
    "Gibbs": partial(gibbs, max_sweeps=N_SWEEPS, n_chains=1),
    "belief propagation": "belief_propagation",
}

N_TEXTURES, N_COMPONENTS, BLOCK = 4, 5, 7


class _Mosaic(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    grid: tuple[int, int]
    links: Constraints


def texture_mosaic(draw: int, layout: str) -> list[Row]:
    """Quality and time of three engines on a mosaic of four textures, from the same start.

    Blocks of 7 x 7 pixels in five principal components; soft must-links between neighbouring blocks whose
    certainty is the share that is right, as in the paper. The paper's mosaic is not published; these
    are mosaics of Brodatz plates and of filtered noise. Gibbs sampling runs one chain of 200 sweeps
    in an E-step. The paper does not give this number, to which the ratio of the times is proportional; but
    it says that mean field took about 20 iterations, each as long as a sweep, and was 50 times faster, so it
    may have made 1000. With 1000, one draw of "quadrants" took 303 times as long as mean field and ended at
    an ARI of .99; with 200, 48 times as long and at .83. Omega
    of a lattice cannot be computed, so the weights are kept equal (``mixing="fixed"``); leaving it out
    (``mixing="ignore"``) favours one cluster for all rows. Every fit starts from the mixture without links,
    has no prior of the covariances, and makes 100 steps of EM: Gibbs sampling never comes to an end, and a
    rule that stops one engine and not the other would determine the ratio of their times. "mean field, from
    the textures" starts at their means and covariances instead: it shows whether a higher maximum was missed.

    Parameters
    ----------
    draw : int
        Start of the mixture without links.
    layout : {"quadrants", "curved", "generated"}
        Brodatz plates need LINKWISE_DATA.

    Returns
    -------
    list of dict
        For each engine "ari", "accuracy", processor "seconds" of the fit; for those with links
        "time_ratio", the seconds over those of mean field, and "over_mean_field", the difference of the ARI;
        for mean field "objective", its bound of the log-likelihood per block.

    Examples
    --------
    >>> from experiments.ppc.texture import ENGINES
    >>> list(ENGINES)  # the methods of the rows, in this order
    ['GMM', 'mean field', 'Gibbs', 'belief propagation']
    """
    mosaic = _mosaic(layout)
    _compile()
    rows: list[Row] = []
    for method, fit in _fits(mosaic, draw).items():
        ari = float(adjusted_rand_score(mosaic.y, fit.labels))
        accuracy = clustering_accuracy(mosaic.y, fit.labels)
        rows.append({"method": method, "ari": ari, "accuracy": accuracy, "seconds": fit.seconds})
        if method == "mean field":
            rows[-1]["objective"] = fit.objective
    mean_field = next(row for row in rows if row["method"] == "mean field")
    for row in rows[1:]:
        row["time_ratio"] = row["seconds"] / mean_field["seconds"]
        row["over_mean_field"] = row["ari"] - mean_field["ari"]
    best = _fit(mosaic, "mean_field", draw, 100, _class_start(mosaic))
    ari = float(adjusted_rand_score(mosaic.y, best.labels))
    return [*rows, {"method": FROM_CLASSES, "ari": ari, "objective": best.objective}]


class _Fit(NamedTuple):
    labels: NDArray[np.int64]
    seconds: float
    objective: float
    end: dict[str, Any]
    """The parameters it ended at, as a start."""


def _fits(mosaic: _Mosaic, seed: int, max_iter: int = 100) -> dict[str, _Fit]:
    """Every engine, those with links from the end of the mixture without."""
    fitted: dict[str, _Fit] = {}
    for method, engine in ENGINES.items():
        start = fitted["GMM"].end if fitted else {}
        fitted[method] = _fit(mosaic, engine, seed, max_iter, start)
    return fitted


def _fit(
    mosaic: _Mosaic,
    engine: str | Callable[..., Any] | None,
    seed: int,
    max_iter: int,
    start: dict[str, Any],
) -> _Fit:
    model = PPC(N_TEXTURES, random_state=seed, **{**CONVERGED, "tol": 0.0, "max_iter": max_iter, **start})
    if engine is not None:
        model.set_params(inference=engine, mixing="fixed")
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(mosaic.X, constraints=None if engine is None else mosaic.links)
    seconds = time.process_time() - before
    end = {"means_init": model.means_, "precisions_init": np.linalg.inv(model.covariances_)}
    return _Fit(model.labels_, seconds, float(model.lower_bound_), end)


def _class_start(mosaic: _Mosaic) -> dict[str, Any]:
    """Means and covariances of the textures."""
    blocks = [mosaic.X[mosaic.y == texture] for texture in np.unique(mosaic.y)]
    return {
        "means_init": np.array([block.mean(axis=0) for block in blocks]),
        "precisions_init": np.array([np.linalg.inv(np.cov(block.T)) for block in blocks]),
    }


@cache
def _compile() -> None:
    """One iteration of every engine, because compiling is not to be timed."""
    _fits(_mosaic("generated"), 0, max_iter=1)


@cache
def _mosaic(layout: str) -> _Mosaic:
    """Principal components of the blocks, the texture of the most pixels of each, the grid and its links."""
    if layout == "generated":
        image, truth = make_texture_mosaic(random_state=0)
    else:
        with np.load(data_path("brodatz_mosaic4.npz"), allow_pickle=False) as stored:
            image, truth = stored[layout].astype(np.float64), stored[f"{layout}_gt"]
    features, grid = texture_features(image, BLOCK)
    pixels, _ = texture_features(truth, BLOCK)
    y = np.array([np.bincount(block).argmax() for block in pixels.astype(np.int64)])
    pairs = Constraints.from_grid(grid).pairs
    agree = float(np.mean(y[pairs[:, 0]] == y[pairs[:, 1]]))
    X = PCA(N_COMPONENTS, svd_solver="full").fit_transform(features)
    return _Mosaic(X, y, grid, Constraints.from_grid(grid, certainty=agree))


def _draw_maps(path: Path, layout: str = "curved") -> None:
    """The textures and the clusters of every engine."""
    from matplotlib.figure import Figure

    mosaic = _mosaic(layout)
    maps = {"textures": mosaic.y, **{name: fit.labels for name, fit in _fits(mosaic, 0).items()}}
    figure = Figure(figsize=(12.0, 2.9), layout="constrained")
    for ax, (title, labels) in zip(figure.subplots(1, len(maps)), maps.items(), strict=True):
        ax.imshow(labels.reshape(mosaic.grid), cmap="viridis", interpolation="nearest")
        score = "" if title == "textures" else f": ARI {adjusted_rand_score(mosaic.y, labels):.2f}"
        ax.set_title(f"{title}{score}", fontsize=9)
        ax.set_axis_off()
    figure.savefig(path, dpi=100)


_SETTINGS = [{"layout": layout} for layout in ("quadrants", "curved", "generated")]

EXPERIMENTS = (
    Experiment(
        "texture_mosaic",
        "Segmentation of texture mosaics by neighbouring blocks: quality and time of three engines",
        "PPC, experiment 4, figure 12",
        texture_mosaic,
        quick=Size(_SETTINGS, 2),
        full=Size(_SETTINGS, 10),
        measures=("ari", "accuracy", "seconds", "time_ratio", "over_mean_field", "objective"),
        reference="GMM",
        alone=True,
        picture=_draw_maps,
    ),
)
