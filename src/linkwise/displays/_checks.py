"""What displays need of their inputs; every message says what to pass instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from linkwise._validation import label_codes

__all__ = ["codes_of", "curve", "fitted_step", "needed", "training_labels"]


def fitted_step(estimator: Any) -> Any:
    """The estimator, or the last step of a pipeline, once it is known to be fitted."""
    check_is_fitted(estimator)
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def needed(estimator: Any, attribute: str, instead: str) -> Any:
    """An attribute of a fitted estimator, or an error that names the way round."""
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}; {instead}")
    return getattr(estimator, attribute)


def training_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """``labels_`` of the rows an estimator was fitted to; its predictions where it keeps no labels."""
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


def codes_of(labels: ArrayLike, n_rows: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number of each row's label among the sorted labels, -1 where it has none (-1, NaN or None)."""
    codes, names = label_codes(labels)
    if len(codes) != n_rows:
        raise ValueError(
            f"labels has {len(codes)} entries, but there are {n_rows} rows; pass one for each row"
        )
    return codes, names


def curve(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A vector of at least one number."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"{name} must be a vector of at least one number, got shape {vector.shape}; pass one"
        )
    return vector
