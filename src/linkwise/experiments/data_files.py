"""Data sets that do not come with the library: a folder named by the environment variable LINKWISE_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataMissing", "data_path", "load_table"]

#: Columns of the tables that are no features.
_OTHER_COLUMNS = (
    "label", "split", "class_code", "sample10", "row_in_letters",
    "longitude", "latitude", "start_date", "medv",
)  # fmt: skip


class DataMissing(FileNotFoundError):
    """A data set that an experiment needs is not there; the experiment is skipped and says so."""


def data_path(name: str) -> Path:
    """Path of a data file.

    Parameters
    ----------
    name : str

    Returns
    -------
    Path

    Raises
    ------
    DataMissing
        If the variable is not set or the file is not in the folder.
    """
    folder = os.environ.get("LINKWISE_DATA")
    if not folder:
        raise DataMissing(f"{name} is needed: set LINKWISE_DATA to the folder that holds it")
    path = Path(folder) / name
    if not path.exists():
        raise DataMissing(f"{name} is not in the folder named by LINKWISE_DATA")
    return path


def load_table(name: str, marked: str | None = None) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Features and labels of a table (``name.csv.gz``).

    Parameters
    ----------
    name : str
    marked : str, optional
        Only the rows where this column is 1.

    Returns
    -------
    X : (n, d) float64
    y : (n,) ndarray
    """
    import pandas as pd

    frame = pd.read_csv(data_path(f"{name}.csv.gz"))
    if marked is not None:
        frame = frame[frame[marked] == 1]
    features = frame.drop(columns=[column for column in _OTHER_COLUMNS if column in frame])
    return features.to_numpy(dtype=np.float64), frame["label"].to_numpy()
