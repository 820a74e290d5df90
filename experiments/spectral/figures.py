"""Figures 2, 3 and 4 of Lu & Carreira-Perpinan 2008 as numbers: what one or two links do on a line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.learning import SpectralLearning

__all__ = ["EXPERIMENTS", "Spectrum", "picture", "spectral_figures", "spectrum"]

#: Eigenvalue of the normalised Laplacian that counts as zero.
_ZERO = 1e-3
_GROUP = 13


class Spectrum(NamedTuple):
    """The low end of the normalised Laplacian.

    Attributes
    ----------
    values : (n,) float64
        Eigenvalues, ascending from 0.
    second : (n,) float64
        Eigenvector of the second one, that of the random walk.
    """

    values: NDArray[np.float64]
    second: NDArray[np.float64]


def spectrum(affinity: NDArray[np.float64]) -> Spectrum:
    """Eigenvalues of I - D^-1/2 A D^-1/2, and D^-1/2 times the second eigenvector.

    Parameters
    ----------
    affinity : (n, n) float64
        Symmetric, >= 0, no row without an entry.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.spectral.figures import spectrum
    >>> apart = np.kron(np.eye(2), np.ones((3, 3)))
    >>> (spectrum(apart).values < 1e-9).sum()
    np.int64(2)
    """
    root = np.sqrt(affinity.sum(axis=1))
    values, vectors = eigh(np.eye(len(affinity)) - affinity / np.outer(root, root))
    return Spectrum(values, vectors[:, 1] / root)


def explained(values: NDArray[np.float64], labels: NDArray[Any]) -> float:
    """Share of the variance of values that lies between two groups: 1 if they are constant on both.

    Parameters
    ----------
    values : (n,) float64
    labels : (n,) ndarray
        Two distinct values.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.spectral.figures import explained
    >>> explained(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]))
    1.0
    """
    return float(np.corrcoef(values, labels == labels[0])[0, 1] ** 2)


def problem(figure: int) -> tuple[NDArray[np.float64], Constraints]:
    """Points on a line and links of a figure; the paper counts samples from 1.

    Parameters
    ----------
    figure : {2, 3, 4}

    Returns
    -------
    x : (n, 1) float64
    links : Constraints
    """
    if figure == 2:
        rng = np.random.default_rng(0)
        groups = [np.sort(rng.normal(centre, 0.03, _GROUP)) for centre in (0.0, 0.5, 1.0)]
        return np.concatenate(groups)[:, np.newaxis], Constraints(3 * _GROUP, must_link=[(4, 19)])
    x = np.linspace(0.0, 1.0, 40)[:, np.newaxis]
    cannot = [(4, 14)] if figure == 3 else [(4, 14), (15, 34)]
    return x, Constraints(len(x), cannot_link=cannot)


def affinities(figure: int, width: float, softness: float = 1e-5) -> dict[str, NDArray[np.float64]]:
    """The Gaussian affinities of a figure, and what each method makes of them.

    Parameters
    ----------
    figure : {2, 3, 4}
    width : float
        Of the Gaussian.
    softness : float
        The paper's by default.

    Returns
    -------
    dict of str to (n, n) float64
        "no links", "A", "B" and "Kamvar".
    """
    x, links = problem(figure)
    common: dict[str, Any] = {"affinity": "rbf", "sigma": width, "random_state": 0}
    models: dict[str, Any] = {
        name: ConstrainedSpectralClustering(2, algorithm=name, softness=softness, **common) for name in "AB"
    }
    models["Kamvar"] = SpectralLearning(2, **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = {"no links": SpectralLearning(2, **common).fit(x).affinity_matrix_}
        for name, model in models.items():
            found[name] = model.fit(x, constraints=links).affinity_matrix_
    return found


def spectral_figures(draw: int, figure: int, width: float) -> list[Row]:
    """What the links of a figure do to affinities, eigenvalues and the cut. Nothing is random.

    The paper gives neither coordinates nor widths. Figure 2 has three groups of thirteen samples at 0, 0.5
    and 1; figures 3 and 4 have forty samples from 0 to 1. Links are hard (softness 1e-5).

    Parameters
    ----------
    draw : int
        Not used.
    figure : {2, 3, 4}
    width : float

    Returns
    -------
    list of dict
        "affinity": mean between the first two groups (2), between samples 1-10 and 11-20 (3), of samples 5
        and 35 (4). For figures 2 and 3 also "zeros", eigenvalues of the normalised Laplacian below 0.001;
        "ratio" of the third eigenvalue to the second, each at least 1e-9; and "r2", the variance of the
        second eigenvector that its two clusters explain: the first two groups against the third (2; without
        a link it has no meaning, as three eigenvalues are zero), or the two sides of the cut (3). For
        figure 3 "boundary", the last sample on the first side of the best normalised cut.

    Examples
    --------
    One must-link merges two of three clusters.

    >>> from experiments.spectral.figures import spectral_figures
    >>> [(row["method"], row["zeros"]) for row in spectral_figures(0, figure=2, width=0.1)][:2]
    [('no links', 3.0), ('A', 2.0)]
    """
    rows = []
    for method, affinity in affinities(figure, width).items():
        row: Row = {"method": method}
        if figure == 4:
            row["affinity"] = float(affinity[4, 34])
        else:
            values, second = spectrum(affinity)
            row["zeros"] = float((values < _ZERO).sum())
            row["ratio"] = float(max(values[2], 1e-9) / max(values[1], 1e-9))
        if figure == 2:
            row["affinity"] = float(affinity[:_GROUP, _GROUP : 2 * _GROUP].mean())
            row["r2"] = explained(second, np.arange(len(second)) < 2 * _GROUP)
        if figure == 3:
            cut = best_cut(affinity, second)
            row["affinity"] = float(affinity[:10, 10:20].mean())
            row["boundary"] = float(cut)
            row["r2"] = explained(second, np.arange(len(second)) < cut)
        rows.append(row)
    return rows


def best_cut(affinity: NDArray[np.float64], second: NDArray[np.float64]) -> int:
    """Samples before the threshold on the second eigenvector with the smallest normalised cut.

    Parameters
    ----------
    affinity : (n, n) float64
    second : (n,) float64
        Monotone along the line, as it is for one cannot-link.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.spectral.figures import best_cut
    >>> best_cut(np.kron(np.eye(2), np.ones((3, 3))), np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]))
    3
    """
    order = np.argsort(second, kind="stable")
    degree = affinity.sum(axis=1)
    cuts = []
    for size in range(1, len(order)):
        inside = np.isin(np.arange(len(order)), order[:size])
        across = affinity[np.ix_(inside, ~inside)].sum()
        cuts.append(across / degree[inside].sum() + across / degree[~inside].sum())
    first_side = order[: int(np.argmin(cuts)) + 1]
    return len(first_side) if 0 in first_side else len(order) - len(first_side)


def picture(path: Path) -> None:
    """Affinity matrices of the three figures, and the second eigenvectors of the first two.

    Parameters
    ----------
    path : Path
        PNG file to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    axes = figure.subplots(3, 4)
    for line, (number, width) in zip(axes, ((2, 0.1), (3, 0.2), (4, 0.2)), strict=True):
        found = affinities(number, width)
        n_maps = 4 if number == 4 else 3
        for ax, (method, affinity) in zip(line[:n_maps], found.items(), strict=False):
            extent = (0.5, len(affinity) + 0.5, len(affinity) + 0.5, 0.5)
            ax.imshow(affinity, cmap="Greys", vmin=0.0, vmax=1.0, extent=extent)
            ax.set_title(f"figure {number}: {method}", fontsize=9)
            if number == 4:
                ax.plot([5, 35], [35, 5], "o", markeredgecolor="C3", markerfacecolor="none", markersize=12)
        for ax in line[n_maps:]:
            for method in ("no links", "A", "Kamvar"):
                second = spectrum(found[method]).second
                second = second / np.abs(second).max() * np.sign(second[-1])
                ax.plot(np.arange(1, len(second) + 1), second, label=method)
            ax.set_title(f"figure {number}: second eigenvector", fontsize=9)
            ax.legend(fontsize=8, frameon=False)
    for ax in axes.ravel():
        ax.tick_params(labelsize=7)
    figure.savefig(path, dpi=90)


#: Figure 4 has the data of figure 3, so both have the same widths.
_WIDTHS = (0.05, 0.1, 0.15, 0.2)
_SETTINGS = [
    {"figure": figure, "width": width}
    for figure, widths in ((2, (0.1,)), (3, _WIDTHS), (4, _WIDTHS))
    for width in widths
]

EXPERIMENTS = (
    Experiment(
        "spectral_figures",
        "What one or two links on a line do to affinities, eigenvalues and the cut",
        "Lu & Carreira-Perpinan 2008, figures 2-4",
        spectral_figures,
        quick=Size(_SETTINGS, 1),
        full=Size(_SETTINGS, 1),
        measures=("affinity", "zeros", "ratio", "r2", "boundary"),
        reference="no links",
        picture=picture,
    ),
)
