"""Sinop, Brazil: classes that were given one name are told apart again, and mapped."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.classes.land_cover import tree_classifier
from experiments.framework.data_files import data_path
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.beliefs import ClassBeliefs
from linkwise.mixture.cppc import CPPC

__all__ = ["EXPERIMENTS", "TASKS", "Task", "map_legends", "sinop_legend", "sinop_picture"]

COARSE, NEW, TOLD = "coarse legend", "CPPC", "true classes"
#: Values of the images are NDVI times this.
_SCALE = 10_000.0
_SOY = ("Soy_Corn", "Soy_Cotton", "Soy_Millet", "Soy_Fallow")
_COMPONENTS = 10
#: Colours of true classes on the maps; coarse classes have the last one.
_COLOURS = {
    "Cerrado": "#E69F00", "Forest": "#009E73", "Pasture": "#F0E442", "Soy_Corn": "#D55E00",
    "Soy_Cotton": "#56B4E9", "Soy_Millet": "#CC79A7", "Soy_Fallow": "#000000", "": "#9678FF",
}  # fmt: skip
_N_FOLDS = 5


class Task(NamedTuple):
    """Classes that get one name, what is believed about it, and which samples.

    ``table`` is "sinop" (12 dates of NDVI), "matogrosso" (the same dates, more kinds of crops) or "bands"
    (23 dates of NDVI, EVI, near and middle infrared, ten principal components, which the images do not have:
    no map).
    """

    merged: tuple[str, ...]
    belief: float
    table: str = "sinop"


TASKS = {
    "four soy rotations": Task(_SOY, 0.1, "matogrosso"),
    "soy with corn and with cotton": Task(("Soy_Corn", "Soy_Cotton"), 0.1, "matogrosso"),
    "pasture and soy": Task(("Pasture", "Soy_Corn"), 0.1),
    "cerrado and pasture": Task(("Cerrado", "Pasture"), 0.1),
    "cerrado and pasture, must be two": Task(("Cerrado", "Pasture"), -1.0),
    "cerrado and pasture, four bands": Task(("Cerrado", "Pasture"), 0.1, "bands"),
}


class Samples(NamedTuple):
    """Rows with their true classes, and the place of each."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    places: NDArray[np.int64]


def _load(table: str) -> Samples:
    import pandas as pd

    name = "sinop/samples_modis_ndvi.csv.gz" if table == "sinop" else "modis_matogrosso.csv.gz"
    frame = pd.read_csv(data_path(name))
    places = frame.groupby(["longitude", "latitude"]).ngroup().to_numpy()
    y = frame["label"].to_numpy(dtype=str)
    if table == "bands":
        values = frame.drop(columns=["longitude", "latitude", "start_date", "label"]).to_numpy(dtype=float)
        scaled = StandardScaler().fit_transform(values)
        return Samples(PCA(_COMPONENTS, random_state=0).fit_transform(scaled), y, places)
    dates = sorted(name for name in frame.columns if name.startswith("ndvi_"))
    # The images have every second of the 23 dates.
    dates = dates if table == "sinop" else dates[::2]
    return Samples(_SCALE * frame[dates].to_numpy(dtype=float), y, places)


class Maps(NamedTuple):
    """Classifiers by the coarse legend, the new one and the true classes; true class of each new cluster."""

    models: dict[str, Any]
    names: dict[str, list[str]]
    owners: dict[str, list[str]]
    labels: dict[str, NDArray[Any]]


def map_legends(samples: Samples, task: Task, seed: int) -> Maps:
    """Fit one mixture for each legend.

    Parameters
    ----------
    samples : Samples
    task : Task
    seed : int

    Returns
    -------
    Maps
        ``owners`` has the true class with most samples in each class of a legend.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.maps.sinop import Samples, Task, map_legends
    >>> X = np.random.default_rng(0).normal(size=(180, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 60, axis=0)
    >>> samples = Samples(X, np.repeat(["corn", "soy", "wood"], 60), np.arange(180))
    >>> map_legends(samples, Task(("corn", "soy"), 0.1), 0).owners["CPPC"]
    ['corn', 'wood', 'soy']
    """
    coarse_name = " + ".join(task.merged)
    given = np.where(np.isin(samples.y, task.merged), coarse_name, samples.y)
    classes = sorted(set(given.tolist()))
    beliefs = ClassBeliefs.keep(classes)
    table = np.array(beliefs.values)
    table[classes.index(coarse_name), classes.index(coarse_name)] = task.belief
    doubts = ClassBeliefs(table, classes)
    models, names, owners, labels = {}, {}, {}, {}
    for method, y, about in ((COARSE, given, None), (NEW, given, doubts), (TOLD, samples.y, None)):
        model = make_pipeline(StandardScaler(), CPPC(beliefs=about, random_state=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(samples.X, y)
        fitted = model[-1]
        models[method], labels[method] = model, fitted.labels_
        names[method] = [str(name) for name in fitted.report().legend]
        owners[method] = [_most(samples.y[fitted.labels_ == k]) for k in range(len(fitted.means_))]
    return Maps(models, names, owners, labels)


def _most(names: NDArray[Any]) -> str:
    found, counts = np.unique(names, return_counts=True)
    return str(found[counts.argmax()]) if len(found) else ""


@lru_cache(maxsize=8)
def _fitted(task: str, draw: int) -> tuple[Samples, Maps]:
    """Samples of a draw, which leaves out a tenth of the places, and the legends fitted to them."""
    samples = _load(TASKS[task].table)
    places = np.unique(samples.places)
    left_out = np.random.default_rng(draw).permutation(places)[: len(places) // 10]
    kept = ~np.isin(samples.places, left_out)
    samples = Samples(samples.X[kept], samples.y[kept], samples.places[kept])
    return samples, map_legends(samples, TASKS[task], draw)


@lru_cache(maxsize=1)
def _stack() -> Any:
    from linkwise.raster import read_stack

    return read_stack(str(data_path("sinop") / "*.jp2"))


def _field_points() -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Pixels and classes of the field points."""
    from linkwise.raster import training_rows

    rows = training_rows(_stack(), data_path("sinop/samples_sinop_crop.csv"), label="label", min_pixels=1)
    return rows.pixels, rows.y


def sinop_legend(draw: int, task: str) -> list[Row]:
    """Classes with one name told apart again, and the map of Sinop before and after.

    Samples are year-long series of NDVI at places in Mato Grosso whose classes are known; the map covers
    Sinop, 147 x 255 pixels, by images of 12 dates. A task gives several true classes one common name. The
    beliefs say that the other classes stay as they are, and that the coarse one may be several (.1) or must
    be several (-1). A draw leaves out a random tenth of the places. No method tells Cerrado and pasture apart
    well by NDVI on 12 dates (see "held out"); four bands on 23 dates do so very well.

    Parameters
    ----------
    draw : int
    task : str
        One of :data:`TASKS`.

    Returns
    -------
    list of dict
        For the coarse legend, CPPC, and the true classes: "clusters"; "ari", the adjusted Rand index to the
        true classes; "within", the same among samples of the coarse class; "held_out", the same for random
        trees that are told the true classes of other places: what can be learnt at all. If there is a map,
        "map", the share of its pixels that get the same class as from the true classes, each class of a
        legend being the true class it holds most of; "points", of the 18 field points, those that do.
    """
    samples, maps = _fitted(task, draw)
    inside = np.isin(samples.y, TASKS[task].merged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        trees = cross_val_predict(
            tree_classifier(draw), samples.X, samples.y, groups=samples.places, cv=GroupKFold(_N_FOLDS)
        )
    on_map = {} if TASKS[task].table == "bands" else _on_map(maps)
    rows: list[Row] = []
    for method, labels in maps.labels.items():
        row: Row = {
            "method": method,
            "clusters": len(np.unique(labels)),
            "ari": float(adjusted_rand_score(samples.y, labels)),
            "within": float(adjusted_rand_score(samples.y[inside], labels[inside])),
        }
        if method == TOLD:
            row["held_out"] = float(adjusted_rand_score(samples.y[inside], trees[inside]))
        rows.append(row | on_map.get(method, {}))
    return rows


def _on_map(maps: Maps) -> dict[str, Row]:
    """Agreement of the maps with that of the true classes, and with the field points."""
    from linkwise.raster import classify

    drawn = {
        method: np.array(["", *maps.owners[method]])[classify(_stack(), model)["classes"].values]
        for method, model in maps.models.items()
    }
    pixels, y = _field_points()
    return {
        method: {
            "map": float(np.mean(names == drawn[TOLD])),
            "points": int(np.sum(names[pixels[:, 0], pixels[:, 1]] == y)),
        }
        for method, names in drawn.items()
    }


def sinop_picture(path: Path) -> None:
    """Maps of Sinop by the coarse legend and by the new one, with the field points.

    Parameters
    ----------
    path : path
        PNG.
    """
    from matplotlib.figure import Figure

    from linkwise.displays import ClassMapDisplay
    from linkwise.raster import classify

    figure = Figure(figsize=(13.5, 6.9), layout="constrained")
    axes = figure.subplots(2, 2)
    pixels, _ = _field_points()
    for line, task in zip(axes, ("four soy rotations", "pasture and soy"), strict=True):
        _, maps = _fitted(task, 0)
        for ax, method in zip(line, (COARSE, NEW), strict=True):
            found = classify(_stack(), maps.models[method], smooth=0.7)
            names, colours = {}, {}
            for code, (name, owner) in enumerate(
                zip(maps.names[method], maps.owners[method], strict=True), start=1
            ):
                short = _short(name, task)
                names[code] = short if method == COARSE or owner == name else f"{short}: {owner}"
                colours[code] = _COLOURS["" if method == COARSE and owner != name else owner]
            ClassMapDisplay.from_raster(found, class_names=names, colors=colours, ax=ax)
            ax.plot(pixels[:, 1], pixels[:, 0], "o", color="white", markeredgecolor="black", markersize=4)
            ax.set_title(f"{task}: {'one name' if method == COARSE else 'new legend'}", fontsize=10)
    figure.savefig(path, dpi=90, facecolor="white")


def _short(name: str, task: str) -> str:
    """A name of the legend in which the coarse class has a short one."""
    return name.replace(" + ".join(TASKS[task].merged), "soy" if "rotations" in task else "open land")


_SETTINGS = [{"task": name} for name in TASKS]

EXPERIMENTS = (
    Experiment(
        "sinop_legend",
        "Sinop, Brazil: classes of one name told apart again, and the map before and after",
        "beyond the papers: CPPC from samples to a map",
        sinop_legend,
        quick=Size(_SETTINGS, 1),
        full=Size(_SETTINGS, 5),
        measures=("clusters", "ari", "within", "held_out", "map", "points"),
        reference=COARSE,
        picture=sinop_picture,
    ),
)
