"""The engines by name: one signature for marginals, one for labels.

An engine is a function of a reduced :class:`~linkwise.inference.reduce.Problem`. To plug in another one,
write such a function and pass it as ``method=``, or register it under a name::

    @marginals_engine("my_engine")
    def my_engine(problem, rng, *, initial=None, n_threads=1) -> EngineMarginals: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EngineLabels",
    "EngineMarginals",
    "find_labels_engine",
    "find_marginals_engine",
    "labels_engine",
    "marginals_engine",
]


class EngineMarginals(NamedTuple):
    """Answer of a marginals engine, in the numbering of its problem; fields as in ``Marginals``."""

    prob: NDArray[np.float64]
    log_partition: float
    agreement: NDArray[np.float64]
    exact: bool
    converged: bool = True
    n_iter: int = 0
    log_partition_kind: str = "exact"
    details: Mapping[str, Any] = {}


class EngineLabels(NamedTuple):
    """Answer of a labels engine, in the numbering of its problem; fields as in ``BestLabels``."""

    labels: NDArray[np.int64]
    upper_bound: float | None
    optimal: bool
    converged: bool = True
    n_iter: int = 0
    details: Mapping[str, Any] = {}


_MARGINALS: dict[str, Callable[..., EngineMarginals]] = {}
_LABELS: dict[str, Callable[..., EngineLabels]] = {}


def marginals_engine(name: str) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineMarginals``."""

    def register(engine: Callable[..., EngineMarginals]) -> Callable[..., EngineMarginals]:
        _MARGINALS[name] = engine
        return engine

    return register


def labels_engine(name: str) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineLabels``."""

    def register(engine: Callable[..., EngineLabels]) -> Callable[..., EngineLabels]:
        _LABELS[name] = engine
        return engine

    return register


def find_marginals_engine(
    method: str | Callable[..., EngineMarginals],
) -> tuple[str, Callable[..., EngineMarginals]]:
    """Name and function of a marginals engine given by name or as a function."""
    return _find(method, _MARGINALS, "marginals")


def find_labels_engine(method: str | Callable[..., EngineLabels]) -> tuple[str, Callable[..., EngineLabels]]:
    """Name and function of a labels engine given by name or as a function."""
    return _find(method, _LABELS, "best_labels")


def _find(method: Any, engines: dict[str, Callable[..., Any]], caller: str) -> tuple[str, Callable[..., Any]]:
    if callable(method):
        return getattr(method, "__name__", type(method).__name__), method
    if method not in engines:
        known = ", ".join(["auto", *engines])
        raise ValueError(f"{caller} has no method {method!r}; use one of {known}, or an engine function")
    return method, engines[method]
