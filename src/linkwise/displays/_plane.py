"""Rows of any number of features as points of a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils import check_array

__all__ = ["Plane", "check_points", "plane_of"]


class Plane(NamedTuple):
    """Points and the map that made them: ``points = (X - origin) @ axes.T``.

    Attributes
    ----------
    points : (n, 2)
    axes : (2, n_features) or None
        None where a single feature is drawn against the row number.
    origin : (n_features,)
    axis_labels : (str, str)
    """

    points: NDArray[np.float64]
    axes: NDArray[np.float64] | None
    origin: NDArray[np.float64]
    axis_labels: tuple[str, str]


def check_points(points: Any, name: str = "points") -> NDArray[np.float64]:
    """(n, 2) finite numbers."""
    table = check_array(points, dtype=np.float64, input_name=name)
    if table.shape[1] != 2:
        raise ValueError(
            f"{name} has {table.shape[1]} columns, but a picture has two; from_predictions and "
            "from_estimator project any number of features"
            ": use one of them"
        )
    return np.asarray(table)


def plane_of(X: Any, features: Sequence[Any] | None = None) -> Plane:
    """Two features as they are; of more, the first two principal components unless two are chosen.

    Parameters
    ----------
    X : (n, n_features) array_like, sparse matrix or DataFrame
    features : two column numbers or column names, optional

    Returns
    -------
    Plane
    """
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    table = check_array(X, dtype=np.float64, accept_sparse="csr", input_name="X")
    n_rows, n_features = table.shape
    if names is None:
        names = [f"feature {column}" for column in range(n_features)]
    if features is not None:
        columns = _columns(features, names, n_features)
    elif n_features == 1:
        points = np.column_stack([np.arange(n_rows), _dense(table)[:, 0]])
        return Plane(points, None, np.zeros(1), ("row", names[0]))
    elif n_features == 2 or n_rows == 1:
        columns = [0, 1]
    else:
        return _principal_plane(table)
    axes = np.zeros((2, n_features))
    axes[[0, 1], columns] = 1.0
    return Plane(
        _dense(table[:, columns]), axes, np.zeros(n_features), (names[columns[0]], names[columns[1]])
    )


def _principal_plane(table: Any) -> Plane:
    with np.errstate(invalid="ignore"):  # equal rows have no variance to explain
        pca = PCA(n_components=2, random_state=0).fit(table)
    labels = [
        f"principal component {place} ({share:.0%} of variance)"
        for place, share in enumerate(np.nan_to_num(pca.explained_variance_ratio_), start=1)
    ]
    return Plane(pca.transform(table), pca.components_, pca.mean_, (labels[0], labels[1]))


def _columns(features: Sequence[Any], names: list[str], n_features: int) -> list[int]:
    chosen = list(features)
    if len(chosen) != 2:
        raise ValueError(f"features must name two columns, got {chosen!r}; pass two")
    columns = [names.index(name) if isinstance(name, str) and name in names else name for name in chosen]
    for column in columns:
        if isinstance(column, str) or not 0 <= column < n_features:
            raise ValueError(
                f"there is no feature {column!r}; X has {n_features}: {', '.join(names[:8])}"
                "; name two of these"
            )
    return [int(column) for column in columns]


def _dense(table: Any) -> NDArray[np.float64]:
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
