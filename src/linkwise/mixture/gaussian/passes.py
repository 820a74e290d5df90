"""Passes over the data: what the estimators call.

Gaussians become the padded arrays that kernels read, and sums of kernels become statistics again. Every pass
runs over fixed ranges of rows, whose size depends on the problem and never on the number of threads, and adds
the partial sums in the order of the rows: any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import AnyFloats, Floats, Ints
from linkwise._threads import Workers
from linkwise.mixture.gaussian.data import Points
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, log_normalisers
from linkwise.mixture.gaussian.kernels import gaussian_pass, moment_rows, pack_factors, room

#: Multiply-adds in a range of rows: some milliseconds, a hundred times the cost of handing it to a thread.
_RANGE_WORK = 1 << 25
#: Ranges are whole blocks (of 256 or 512 points), and short enough to share small problems out.
_RANGE_STEP = 512
_LONGEST_RANGE = 1 << 16
_SERIAL = Workers()
Scalar = TypeVar("Scalar", bound=np.generic)


class PackedGaussians(NamedTuple):
    """Gaussians as kernels read them, in the type of the points.

    ``centres`` (K, n_rows): means less the offset of the points, padded with zeros to the rows of a block.
    ``factors``: packed triangles (K or 1, D / 2, 2 D), D rounded up to even, or diagonals (K, D).
    ``constants`` (K,): log-density at the mean, plus the log-weight.
    """

    centres: AnyFloats
    factors: AnyFloats
    constants: AnyFloats


def _is_diagonal(covariance_type: str) -> bool:
    return covariance_type in ("diag", "spherical")


def _pack_centres(points: Points, means: Floats, covariance_type: str) -> AnyFloats:
    """Means as kernels subtract them (K, n_rows)."""
    n_components, n_features = means.shape
    n_rows = n_features + 1 if _is_diagonal(covariance_type) else moment_rows(n_features)
    centres = np.zeros((n_components, n_rows), dtype=points.dtype)
    centres[:, :n_features] = means - points.offset
    return centres


def pack_gaussians(points: Points, gaussians: Gaussians, log_weights: Floats | None) -> PackedGaussians:
    """Gaussians as kernels read them."""
    means, factors, covariance_type = gaussians
    constants = log_normalisers(gaussians)
    if log_weights is not None:
        constants = constants + log_weights
    if covariance_type == "full":
        packed = pack_factors(factors.astype(points.dtype))
    elif covariance_type == "tied":
        packed = pack_factors(factors.astype(points.dtype)[np.newaxis])
    else:
        diagonals = factors.reshape(len(means), -1).astype(points.dtype)
        packed = np.array(np.broadcast_to(diagonals, means.shape))
    centres = _pack_centres(points, means, covariance_type)
    return PackedGaussians(centres, packed, constants.astype(points.dtype))


def pack_means(points: Points, means: Floats, covariance_type: str) -> PackedGaussians:
    """Centres alone, for kernels that are given responsibilities and compute no density."""
    centres = _pack_centres(points, means, covariance_type)
    factors = np.empty((0, 0) if _is_diagonal(covariance_type) else (0, 0, 0), dtype=points.dtype)
    return PackedGaussians(centres, factors, np.empty(0, dtype=points.dtype))


def zero_moments(centres: AnyFloats, covariance_type: str) -> Floats:
    """Sums to start from: (K, n_rows, n_rows) or, for diagonal covariances, (K, 2 * n_rows)."""
    n_components, n_rows = centres.shape
    return np.zeros(
        (n_components, 2 * n_rows) if _is_diagonal(covariance_type) else (n_components, n_rows, n_rows)
    )


def unpack_moments(points: Points, centres: AnyFloats, moments: Floats, log_likelihood: float) -> Statistics:
    """Take the moments of d = (x - mu_k, 1) apart."""
    n_features = points.n_features
    if moments.ndim == 3:
        counts = moments[:, n_features, n_features].copy()
        first = moments[:, :n_features, n_features].copy()
        upper = np.triu(moments[:, :n_features, :n_features])
        second = upper + np.triu(upper, 1).transpose(0, 2, 1)
    else:
        halves = moments.reshape(len(centres), 2, -1)
        counts = halves[:, 0, n_features].copy()
        first = halves[:, 0, :n_features].copy()
        second = halves[:, 1, :n_features].copy()
    # The centres as the kernels rounded them: the moments are about exactly these.
    about = points.offset + centres[:, :n_features].astype(np.float64)
    return Statistics(counts, first, second, log_likelihood, about)


def read_only(array: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """A contiguous read-only view (or copy): numba compiles once more for every kind of array it meets."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


_ALL_ROWS = read_only(np.empty(0), np.int64)
_NOT_GIVEN = read_only(np.empty((0, 0)), np.float64)


class Posterior(NamedTuple):
    """What ``posterior_pass`` was asked for; None for the rest.

    ``labels`` (n,): the most probable component, and ``confidence`` (n,) its probability. ``probabilities``
    (n, K). ``log_likelihood`` (n,): log sum_k pi_k N(x; mu_k, Sigma_k).
    """

    labels: Ints | None
    probabilities: AnyFloats | None
    log_likelihood: Floats | None
    confidence: AnyFloats | None


def _ranges(n_rows: int, means: Floats, covariance_type: str) -> Iterator[tuple[int, int]]:
    """Cut the rows into ranges of about equal work."""
    n_components, n_features = means.shape
    per_feature = n_features + 10 if covariance_type in ("full", "tied") else 4
    length = _RANGE_WORK // (n_components * (n_features * per_feature + 20))
    length = min(max(length // _RANGE_STEP, 1) * _RANGE_STEP, _LONGEST_RANGE)
    for start in range(0, n_rows, length):
        yield start, min(start + length, n_rows)


def _selection(rows: NDArray[np.integer], n_samples: int) -> Ints:
    """Row numbers as the kernels take them; they do not check bounds, so this does."""
    selected = read_only(rows, np.int64)
    if selected.size and (selected.min() < 0 or selected.max() >= n_samples):
        raise IndexError(
            f"row numbers must lie in 0, ..., {n_samples - 1}; these go from {selected.min()} to "
            f"{selected.max()}"
            ": correct them"
        )
    return selected


def em_pass(
    points: Points,
    gaussians: Gaussians,
    log_weights: Floats,
    *,
    excluded: NDArray[np.integer] | None = None,
    workers: Workers | None = None,
) -> Statistics:
    """E-step and statistics in one pass: responsibilities live only as long as their block of points.

    ``excluded`` are rows left out, strictly ascending: those with links, which go through
    ``log_density_pass``, inference and ``statistics_pass`` instead. The statistics are about the means of
    ``gaussians``; a log-weight of -inf switches a component off.
    """
    covariance_type = gaussians.covariance_type
    left_out = _ALL_ROWS if excluded is None else _selection(excluded, points.n_samples)
    if not (np.diff(left_out) > 0).all():
        raise ValueError("excluded rows must be strictly ascending: pass np.unique(rows)")
    packed = pack_gaussians(points, gaussians, log_weights)
    no_outputs = _outputs(points)

    def sums(span: tuple[int, int]) -> tuple[Floats, float]:
        rows, (start, stop) = _ALL_ROWS, span
        first, last = np.searchsorted(left_out, span)
        if first < last:
            rows = read_only(np.delete(np.arange(start, stop), left_out[first:last] - start), np.int64)
            start, stop = 0, rows.size
        moments = zero_moments(packed.centres, covariance_type)
        return moments, gaussian_pass(
            *points.memory,
            rows,
            start,
            stop,
            _NOT_GIVEN,
            *packed,
            *room(packed.centres),
            moments,
            *no_outputs,
        )

    moments, log_likelihood = zero_moments(packed.centres, covariance_type), 0.0
    ranges = _ranges(points.n_samples, gaussians.means, covariance_type)
    for some_moments, some_log_likelihood in (workers or _SERIAL).map(sums, ranges):
        moments += some_moments
        log_likelihood += some_log_likelihood
    return unpack_moments(points, packed.centres, moments, log_likelihood)


def statistics_pass(
    points: Points,
    means: Floats,
    responsibilities: AnyFloats,
    covariance_type: str,
    *,
    rows: NDArray[np.integer] | None = None,
    workers: Workers | None = None,
) -> Statistics:
    """Statistics about ``means`` of rows whose responsibilities (n_rows, K) are known.

    Their ``log_likelihood`` is 0. Any means near the new ones will do.
    """
    selected = _ALL_ROWS if rows is None else _selection(rows, points.n_samples)
    n_rows = points.n_samples if rows is None else selected.size
    if np.shape(responsibilities) != (n_rows, means.shape[0]):
        raise ValueError(
            f"responsibilities have shape {np.shape(responsibilities)}; {n_rows} rows and {means.shape[0]} "
            f"means need {(n_rows, means.shape[0])}"
            ": pass that shape"
        )
    given = read_only(responsibilities, np.float64)
    packed = pack_means(points, means, covariance_type)
    no_outputs = _outputs(points)

    def sums(span: tuple[int, int]) -> Floats:
        moments = zero_moments(packed.centres, covariance_type)
        gaussian_pass(
            *points.memory, selected, *span, given, *packed, *room(packed.centres), moments, *no_outputs
        )
        return moments

    moments = zero_moments(packed.centres, covariance_type)
    for some_moments in (workers or _SERIAL).map(sums, _ranges(n_rows, means, covariance_type)):
        moments += some_moments
    return unpack_moments(points, packed.centres, moments, 0.0)


def log_density_pass(
    points: Points,
    gaussians: Gaussians,
    *,
    log_weights: Floats | None = None,
    rows: NDArray[np.integer] | None = None,
    workers: Workers | None = None,
) -> Floats:
    """Log-densities log N(x; mu_k, Sigma_k), plus log pi_k if weights are given."""
    selected = _ALL_ROWS if rows is None else _selection(rows, points.n_samples)
    n_rows = points.n_samples if rows is None else selected.size
    log_density = np.empty((n_rows, gaussians.means.shape[0]))
    _write(points, gaussians, log_weights, selected, n_rows, workers, log_density=log_density)
    return log_density


def posterior_pass(
    points: Points,
    gaussians: Gaussians,
    log_weights: Floats,
    *,
    labels: bool = False,
    probabilities: bool = False,
    log_likelihood: bool = False,
    confidence: bool = False,
    workers: Workers | None = None,
) -> Posterior:
    """What is asked for of every row; no other (n, K) memory than the probabilities, if they are."""
    n_samples, n_components = points.n_samples, gaussians.means.shape[0]
    result = Posterior(
        np.empty(n_samples, dtype=np.int64) if labels else None,
        np.empty((n_samples, n_components), dtype=points.dtype) if probabilities else None,
        np.empty(n_samples) if log_likelihood else None,
        np.empty(n_samples, dtype=points.dtype) if confidence else None,
    )
    _write(points, gaussians, log_weights, _ALL_ROWS, n_samples, workers, **result._asdict())
    return result


def _write(
    points: Points,
    gaussians: Gaussians,
    log_weights: Floats | None,
    rows: Ints,
    n_rows: int,
    workers: Workers | None,
    **outputs: NDArray[Any] | None,
) -> None:
    """Fill those outputs that are given."""
    packed = pack_gaussians(points, gaussians, log_weights)
    wanted = _outputs(points, **outputs)
    no_moments = zero_moments(packed.centres[:0], gaussians.covariance_type)

    def fill(span: tuple[int, int]) -> None:
        gaussian_pass(
            *points.memory, rows, *span, _NOT_GIVEN, *packed, *room(packed.centres), no_moments, *wanted
        )

    (workers or _SERIAL).each(fill, _ranges(n_rows, gaussians.means, gaussians.covariance_type))


def _outputs(points: Points, **given: NDArray[Any] | None) -> tuple[NDArray[Any], ...]:
    """The outputs of the kernel in its order, with an empty array for each that is not wanted."""
    nothing: dict[str, NDArray[Any]] = {
        "log_density": np.empty((0, 0)),
        "labels": np.empty(0, dtype=np.int64),
        "probabilities": np.empty((0, 0), dtype=points.dtype),
        "log_likelihood": np.empty(0),
        "confidence": np.empty(0, dtype=points.dtype),
    }
    return tuple({**nothing, **{name: one for name, one in given.items() if one is not None}}.values())
