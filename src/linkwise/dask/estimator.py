"""What the estimators for Dask share: their constructors, lazy prediction, and the way back to memory."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any, ClassVar, Self, TypeVar

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._validation import check_constraints
from linkwise.dask.collections import Table, lazy_array

Estimator = TypeVar("Estimator", bound=type)
#: Attributes of training rows, which stay lazy.
_LAZY = ("labels_", "responsibilities_")


def extended(cls: Estimator) -> Estimator:
    """Give a class the constructor of its namesake in memory, with the parameters of ``DaskEstimator``."""
    base = cls.local_class.__init__  # type: ignore[attr-defined]
    signature = inspect.signature(base)
    names: tuple[str, ...] = cls.more  # type: ignore[attr-defined]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    signature = signature.replace(parameters=[*signature.parameters.values(), *more])

    @functools.wraps(base)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        for name in names:
            setattr(self, name, bound.kwargs.get(name))
        base(*bound.args, **{name: value for name, value in bound.kwargs.items() if name not in names})

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[misc]
    return cls


class DaskEstimator:
    """The part of an estimator for Dask that does not depend on the model."""

    local_class: ClassVar[type]
    #: Parameters beside those of the namesake in memory.
    more: ClassVar[tuple[str, ...]] = ("client",)
    client: Any
    #: Is told the number of each iteration and its objective, where there is a checkpoint.
    _watch: Any = None

    def __sklearn_clone__(self) -> Self:
        """Clone parameters; the client, a connection, is shared."""
        own: Any = self
        params = own.get_params(deep=False)
        kept = {name: params.pop(name) for name in ("client",)}
        return type(self)(**{name: clone(value, safe=False) for name, value in params.items()}, **kept)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "client": None}

    def to_local(self, *, labels: bool = True) -> Any:
        """Return the estimator of ``linkwise`` with these parameters and results.

        Parameters
        ----------
        labels : bool, default=True
            Whether to compute ``labels_``, which needs memory for a number per row. Probabilities of the
            training rows stay here in any case.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        own: Any = self
        params = {name: value for name, value in own.get_params(deep=False).items() if name not in self.more}
        local = self.local_class(**params)
        for name, value in vars(self).items():
            fitted = name.endswith("_") and not name.startswith("_")
            if (fitted and name not in _LAZY) or name == "_last_n_clusters":
                setattr(local, name, value)
        if labels:
            local.labels_ = np.asarray(self._computed(own.labels_))
        return local

    def _computed(self, value: Any) -> Any:
        """Compute something lazy where the estimator computes."""
        return dask.compute(value, scheduler=self.client)[0]

    def _check_table(self, table: Table) -> None:
        """Store the number and the names of the columns, and refuse data without rows."""
        check_columns(self, table.n_features, table.names, reset=True)
        if table.n_features == 0:
            raise ValueError("X has 0 columns; pass at least one")
        if table.n_samples < 2:
            raise ValueError(f"X has {table.n_samples} rows; pass at least 2")

    def _is_lazy(self, X: Any) -> bool:
        """Whether X is a collection of Dask, or a place to read one from; else it is data in memory."""
        return (
            hasattr(X, "__dask_graph__")
            or isinstance(X, str | os.PathLike)
            or type(X).__module__.split(".")[0] == "zarr"
        )

    def _lazily(self, X: Any, method: str, dtype: Any, n_columns: int | None = None) -> Any:
        """The result of a method of the estimator in memory, chunk by chunk; at once for rows in memory."""
        if not self._is_lazy(X):
            return getattr(self.local_class, method)(self, X)
        check_is_fitted(self)
        array: Any
        array, names = lazy_array(X)
        check_columns(self, int(array.shape[1]), names, reset=False)
        if array.numblocks[1] > 1:
            array = array.rechunk({1: -1})
        if array.dtype != np.float32:
            array = array.astype(np.float64)
        local = self.to_local(labels=False)
        local.__dict__.pop("feature_names_in_", None)  # checked above
        dtype = array.dtype if dtype is None else dtype
        if n_columns is None:
            return array.map_blocks(_apply, local, method, dtype, None, dtype=dtype, drop_axis=1)
        chunks = (array.chunks[0], (n_columns,))
        return array.map_blocks(_apply, local, method, dtype, n_columns, dtype=dtype, chunks=chunks)


class ScoredDaskEstimator(DaskEstimator):
    """An estimator that scores rows, as its namesake in memory does."""

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None, constraints: Any = None) -> float:
        """Return the score of the estimator in memory, computed chunk by chunk."""
        base: Any = super()
        if not self._is_lazy(X):
            return float(base.score(X, y, sample_weight=sample_weight, constraints=constraints))
        check_constraints(constraints, None, y)
        return self._lazy_score(X, sample_weight)

    def _lazy_score(self, X: Any, sample_weight: Any) -> float:
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to a Dask collection, and return what :meth:`transform` gives for it, lazy (n, K)."""
        own: Any = self
        return own.fit(X, y, **fit_params).transform(X)


def check_columns(estimator: Any, n_features: int, names: NDArray[np.object_] | None, *, reset: bool) -> None:
    """Store or compare the number and the names of columns, as scikit-learn does for data in memory."""
    shown: Any = np.empty((0, n_features))
    if names is not None:
        import pandas as pd

        shown = pd.DataFrame(shown, columns=list(names))
    validate_data(estimator, shown, reset=reset, skip_check_array=True)


def along_rows(array: da.Array, function: Any) -> da.Array:
    """Reduce each row of a lazy table (n, K); those of Dask itself fail in empty chunks."""
    lazy: Any = array
    reduced: da.Array = lazy.map_blocks(function, axis=1, drop_axis=1, dtype=np.float64)
    return reduced


def _apply(block: NDArray[Any], model: Any, method: str, dtype: Any, n_columns: int | None) -> NDArray[Any]:
    """Call a method on the rows of a chunk; there may be none."""
    if len(block) == 0:
        return np.empty(0 if n_columns is None else (0, n_columns), dtype=dtype)
    return np.asarray(getattr(model, method)(np.asarray(block)), dtype=dtype)
