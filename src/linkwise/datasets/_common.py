"""Checks and draws shared by the generators."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["GaussianPart", "check_count", "check_scale", "draw_parts", "shuffled"]

Points = tuple[NDArray[np.float64], NDArray[np.int64]]


class GaussianPart(NamedTuple):
    """A Gaussian with independent features that supplies part of a class."""

    label: int
    n_samples: int
    mean: Sequence[float]
    sd: float | Sequence[float]


def check_count(name: str, value: int, minimum: int) -> int:
    """A whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} is {value!r}; pass an integer >= {minimum}")
    return int(value)


def check_scale(name: str, value: float, *, zero: bool = False) -> float:
    """A finite number above 0, or at least 0 where ``zero`` is allowed."""
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} is {value!r}; pass a finite number {'>= 0' if zero else '> 0'}")
    return number


def draw_parts(parts: Sequence[GaussianPart], rng: np.random.Generator) -> Points:
    """Samples of all parts in shuffled order."""
    X = np.concatenate([rng.normal(part.mean, part.sd, (part.n_samples, len(part.mean))) for part in parts])
    return shuffled(X, np.repeat([part.label for part in parts], [part.n_samples for part in parts]), rng)


def shuffled(X: NDArray[np.float64], y: NDArray[np.int64], rng: np.random.Generator) -> Points:
    """The rows in random order, so that the first rows are not all of one class."""
    order = rng.permutation(len(y))
    return X[order], y[order]
