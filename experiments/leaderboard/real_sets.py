"""Real data sets with all their features, for the comparison under hard links."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.framework.data_files import data_path, load_table
from experiments.leaderboard.data import SETS as OTHER_SETS
from experiments.leaderboard.data import Loaded, some_rows
from linkwise.datasets import load_bundled

__all__ = ["MAX_ROWS", "REAL_SETS", "load_real"]

#: Rows of a set at most.
MAX_ROWS = 1000


def _indian_pines() -> Loaded:
    with np.load(data_path("indian_pines.npz"), allow_pickle=False) as stored:
        labelled = stored["gt"] > 0
        return stored["X"][labelled].astype(np.float64), stored["gt"][labelled]


def _scene() -> Loaded:
    """Labelled pixels of the scene of Mato Grosso, all dates and bands that have no missing value."""
    with np.load(data_path("modis_matogrosso_scene.npz"), allow_pickle=False) as stored:
        labelled = stored["gt"] > 0
        X = stored["X"][labelled].reshape(int(labelled.sum()), -1).astype(np.float64)
        return X[:, (stored["nodata"] != X).all(axis=0)], stored["gt"][labelled]


#: Name and loader. Left out are generated sets (waveform is one), texts, whose features cannot be
#: standardised without making them dense, and faces: on 1024 features a fit of a mixture takes minutes.
REAL_SETS: dict[str, Callable[[], Loaded]] = {
    "balance_scale": partial(load_table, "balance_scale"),
    "breast_cancer": partial(load_bundled, "breast_cancer"),
    "bupa": partial(load_table, "bupa"),
    "digits": partial(load_bundled, "digits"),
    "forest_type": partial(load_table, "forest_type_mapping"),
    "indian_pines": _indian_pines,
    "ionosphere": partial(load_table, "ionosphere"),
    "iris": partial(load_bundled, "iris"),
    "letters": partial(load_table, "letters"),
    "letters_ijl": partial(load_table, "letters_ijl"),
    "matogrosso": partial(load_table, "modis_matogrosso"),
    "matogrosso_scene": _scene,
    "pendigits": partial(load_table, "pendigits"),
    "pima": partial(load_table, "pima_diabetes"),
    "protein116": partial(load_table, "protein116"),
    "satimage": partial(load_table, "satimage"),
    "sinop": partial(load_table, "sinop/samples_modis_ndvi"),
    "soybean_small": partial(load_table, "soybean_small"),
    "wine": partial(load_bundled, "wine"),
    "wisconsin": OTHER_SETS["wisconsin"],
}


def load_real(name: str, n_rows: int = MAX_ROWS) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Standardised features and classes of a set, cut to some rows.

    Rows are drawn once, with a seed made of the name. Constant columns are dropped, and nothing else.

    Parameters
    ----------
    name : str
    n_rows : int

    Returns
    -------
    X : (n, d) float64
    y : (n,) int64
        Classes, numbered.

    Examples
    --------
    >>> from experiments.leaderboard.real_sets import load_real
    >>> X, y = load_real("wine")
    >>> X.shape, int(y.max())
    ((178, 13), 2)
    """
    return some_rows(name, REAL_SETS[name](), n_rows)
