"""Measure all methods on small data sets and draw the picture of "which method when".

``python docs/make_comparison.py`` takes a few minutes and writes ``_static/which_method.png``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from linkwise import (
    PPC,
    ConstrainedEM,
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)
from linkwise.datasets import load_bundled, make_four_blobs, make_ppc_artificial, make_rings, make_two_moons
from linkwise.exceptions import InfeasibleConstraints
from linkwise.metrics import clustering_accuracy

STATIC = Path(__file__).parent / "_static"
N_DRAWS = 4
WRONG = 0.15

Data = tuple[np.ndarray, np.ndarray]


def data_sets() -> dict[str, Data]:
    """Four sets in the plane and four real ones, standardised; digits on ten principal components."""
    digits, digit = load_bundled("digits")
    real = {name: load_bundled(name) for name in ("iris", "wine", "breast_cancer")}
    return {
        "four blobs": make_four_blobs(50, random_state=0),
        "hexagon": make_ppc_artificial(3, n_per_class=100, random_state=0),
        "moons": make_two_moons(100, noise=0.12, random_state=0),
        "rings": make_rings(100, noise=0.15, random_state=0),
        **{name.replace("_", " "): (scale(X), y) for name, (X, y) in real.items()},
        "digits 0-4": (
            PCA(10, random_state=0).fit_transform(digits[digit < 5][:400]) / 10,
            digit[digit < 5][:400],
        ),
    }


def methods(n_clusters: int) -> dict[str, Any]:
    """The methods, all with three starts; full covariances need more rows than thirty features have here."""
    return {
        "PPC, no links": PPC(n_clusters, covariance_type="diag", n_init=3),
        "PPC": PPC(n_clusters, covariance_type="diag", n_init=3),
        "PPC, 3 per cluster": PPC(n_clusters, covariance_type="diag", components_per_cluster=3, n_init=3),
        "ConstrainedEM": ConstrainedEM(n_clusters, covariance_type="diag", n_init=3),
        "PCKMeans": PCKMeans(n_clusters, n_init=3),
        "MPCKMeans": MPCKMeans(n_clusters, n_init=3),
        "COPKMeans": COPKMeans(n_clusters, n_init=3),
        "ConstrainedSpectral": ConstrainedSpectralClustering(n_clusters),
        "SpectralLearning": SpectralLearning(n_clusters),
    }


def links_for(name: str, y: np.ndarray, seed: int, flip: float) -> Constraints | None:
    """A fifth as many disjoint pairs as rows. Methods that can doubt are told how often links are wrong."""
    hard = flip == 0 or name in ("ConstrainedEM", "COPKMeans")
    certainty = None if hard else 1.0 - flip
    return Constraints.sample(y, len(y) // 5, flip=flip, certainty=certainty, random_state=seed)


def measure(sets: dict[str, Data], flip: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean accuracy and median CPU seconds, (methods, sets); NaN where links were refused in every draw."""
    accuracy, seconds = [], []
    for set_name, (X, y) in sets.items():
        rows: dict[str, list[tuple[float, float]]] = {}
        for name, model in methods(len(np.unique(y))).items():
            rows[name] = []
            for seed in range(N_DRAWS):
                links = None if name.endswith("no links") else links_for(name, y, seed, flip)
                one = clone(model).set_params(random_state=seed)
                if not (rows[name] or accuracy):
                    fit(one, X, links)  # compiles
                begin = process_time()
                labels = fit(one, X, links)
                spent = process_time() - begin
                rows[name].append((clustering_accuracy(y, labels) if labels is not None else np.nan, spent))
        table = np.array(list(rows.values()))
        accuracy.append(np.nanmean(table[..., 0], axis=1))
        seconds.append(np.median(table[..., 1], axis=1))
        print(set_name, *(f"{score:.3f}" for score in accuracy[-1]), file=sys.stderr, flush=True)
    return np.array(accuracy).T, np.array(seconds).T


def fit(model: Any, X: np.ndarray, links: Constraints | None) -> np.ndarray | None:
    try:
        return model.fit(X, constraints=links).labels_
    except InfeasibleConstraints:
        return None


def draw_table(ax: Axes, values: np.ndarray, texts: list[list[str]], shades: tuple[float, float]) -> None:
    """A heat map with a number in every cell."""
    low, high = shades
    ax.imshow(values, cmap="Blues", vmin=low, vmax=high + 0.35 * (high - low), aspect="auto")
    for row, column in np.ndindex(values.shape):
        dark = np.isfinite(values[row, column]) and values[row, column] > low + 0.85 * (high - low)
        ax.text(column, row, texts[row][column], ha="center", va="center", color="white" if dark else "black")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def main() -> None:
    warnings.simplefilter("ignore")
    sets = data_sets()
    with threadpool_limits(1):
        clean, seconds = measure(sets, 0.0)
        noisy, _ = measure(sets, WRONG)
    names = list(methods(2))

    figure = Figure(figsize=(12, 10.5), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for ax, values, title in zip(
        panels,
        [clean, noisy],
        ["accuracy, all links right", f"accuracy, {WRONG:.0%} of the links wrong"],
        strict=False,
    ):
        draw_table(ax, values, [[f"{value:.2f}" for value in row] for row in values], (0.5, 1.0))
        ax.set_title(title)
    draw_table(
        panels[2],
        np.log10(seconds),
        [[f"{1000 * value:.0f}" for value in row] for row in seconds],
        (-2.5, 1.0),
    )
    panels[2].set_title("milliseconds of CPU for a fit, all links right")
    for ax in panels:
        ax.set_yticks(range(len(names)), names)
    panels[2].set_xticks(
        range(len(sets)),
        [f"{name}\n{len(X)} × {X.shape[1]}, K={len(np.unique(y))}" for name, (X, y) in sets.items()],
        fontsize=9,
    )
    path = STATIC / "which_method.png"
    figure.savefig(path, dpi=80)
    print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
