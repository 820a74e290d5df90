"""Data sets that do not come with the library: a folder named by the environment variable LINKWISE_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["DataMissing", "data_path", "even_sample", "load_newsgroups", "load_table"]

#: Tasks of the 20 newsgroups, in the order of their numbers in the file.
TASKS = ("easy", "medium", "difficult")

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


def load_newsgroups(task: str) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Term counts and groups of a task of the spectral paper, without stop words.

    Parameters
    ----------
    task : {"easy", "medium", "difficult"}

    Returns
    -------
    counts : (n, d) CSR
    labels : (n,) int64
    """
    with np.load(data_path("newsgroups8_counts.npz"), allow_pickle=False) as stored:
        counts = sparse.csr_array(
            (
                stored["data"].astype(np.float64),
                stored["indices"].astype(np.int64),
                stored["indptr"].astype(np.int64),
            ),
            shape=tuple(stored["shape"]),
        )
        rows = stored["task"] == TASKS.index(task)
        return counts[rows][:, ~stored["is_stopword"]], stored["label"][rows].astype(np.int64)


def even_sample(labels: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of which every class has the same number, give or take one.

    Parameters
    ----------
    labels : (n,) int64
    size : int
    rng : Generator

    Returns
    -------
    (size,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.framework.data_files import even_sample
    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1])
    >>> np.bincount(labels[even_sample(labels, 4, np.random.default_rng(0))])
    array([2, 2])
    """
    classes = np.unique(labels)
    shares = np.full(len(classes), size // len(classes))
    shares[: size % len(classes)] += 1
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:share]
        for label, share in zip(classes, shares, strict=True)
    ]
    return np.concatenate(chosen)
