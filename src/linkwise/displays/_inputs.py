"""Inputs of displays, with errors that say what to pass, and rows as points of a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from linkwise._arrays import Floats, Ints
from linkwise._validation import label_codes


def fitted_step(estimator: Any) -> Any:
    """Give the estimator, or the last step of a pipeline, once it is known to be fitted."""
    check_is_fitted(estimator)
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def needed(estimator: Any, attribute: str, instead: str) -> Any:
    """Give an attribute of a fitted estimator, or raise an error that says what to use instead."""
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}; {instead}")
    return getattr(estimator, attribute)


def training_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """Give ``labels_`` of the rows an estimator was fitted to; its predictions if it keeps no labels."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    step = fitted_step(estimator)
    if not hasattr(step, "labels_"):
        if not hasattr(estimator, "predict"):
            raise ValueError(
                f"{type(step).__name__} has neither labels_ nor predict; pass labels to from_predictions"
            )
        return np.asarray(estimator.predict(X))
    labels = np.asarray(step.labels_)
    if len(labels) != n_rows:
        raise ValueError(
            f"{type(step).__name__} was fitted to {len(labels)} rows, but X has {n_rows}; pass the training "
            "rows, or for new rows from_predictions(X, estimator.predict(X))"
        )
    return labels


def codes_if_any(labels: ArrayLike | None, n_rows: int) -> tuple[Ints | None, NDArray[Any]]:
    """The same as ``codes_of``; without labels None and no names."""
    return (None, np.empty(0)) if labels is None else codes_of(labels, n_rows)


def codes_of(labels: ArrayLike, n_rows: int) -> tuple[Ints, NDArray[Any]]:
    """Number each row's label among the sorted labels, -1 where it has none (-1, NaN or None)."""
    codes, names = label_codes(labels)
    if len(codes) != n_rows:
        raise ValueError(
            f"labels has {len(codes)} entries, but there are {n_rows} rows; pass one for each row"
        )
    return codes, names


def curve(values: ArrayLike, name: str) -> Floats:
    """Check a vector of at least one number."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"{name} must be a vector of at least one number, got shape {vector.shape}; pass one"
        )
    return vector


class Plane(NamedTuple):
    """``points = (X - origin) @ axes.T``, (n, 2); ``axes`` (2, d), None for a feature by row number."""

    points: Floats
    axes: Floats | None
    origin: Floats
    axis_labels: tuple[str, str]


def check_points(points: Any) -> Floats:
    """Check (n, 2) finite numbers."""
    table = check_array(points, dtype=np.float64, input_name="points")
    if table.shape[1] != 2:
        raise ValueError(
            f"points has {table.shape[1]} columns, but a picture has two; from_predictions and "
            "from_estimator project any number of features: use one of them"
        )
    return np.asarray(table)


def plane_of(X: Any, features: Sequence[Any] | None = None) -> Plane:
    """Take two features as they are; of more, the two chosen ones or the first two principal components."""
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


def _dense(table: Any) -> Floats:
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
