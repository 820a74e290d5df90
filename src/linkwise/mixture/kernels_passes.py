"""One pass over a range of rows, block by block, inside one compiled call.

The number of axes of ``factors`` and ``moments`` tells full from diagonal covariances; numba drops the branch
that does not apply. There are two kernels, not one for each pass in ``passes``, because each compiles for
more than a second: an array without elements stands for an input not given or an output not wanted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise._numba import kernel
from linkwise.mixture import simd
from linkwise.mixture.kernels_block import PANELS, empty_block, empty_scores, load_block, normalise
from linkwise.mixture.kernels_moments import diagonal_moments, full_moments
from linkwise.mixture.kernels_scores import block_scores

__all__ = ["moments_range", "posterior_range"]


@kernel
def moments_range(
    values: NDArray[np.floating],
    row_stride: int,
    column_stride: int,
    offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    start: int,
    stop: int,
    responsibilities: NDArray[np.float64],
    centres: NDArray[np.floating],
    factors: NDArray[np.floating],
    constants: NDArray[np.floating],
    moments: NDArray[np.float64],
) -> float:
    """Add the moments of the rows number start, ..., stop - 1 of a selection; return their log-likelihood.

    Responsibilities come from the Gaussians, or from ``responsibilities``; then the log-likelihood is 0.
    """
    panel_size = simd.panel_size(centres)
    block_size = PANELS * panel_size
    n_components = centres.shape[0]
    block = empty_block(centres)
    weights = empty_scores(centres)
    log_sums = np.empty(block_size, dtype=np.float64)
    log_likelihood = 0.0
    for first in range(start, stop, block_size):
        count = min(block_size, stop - first)
        n_panels = (count + panel_size - 1) // panel_size
        load_block(values, row_stride, column_stride, rows, first, count, offset, centres.shape[1], block)
        if responsibilities.size > 0:
            for k in range(n_components):
                for n in range(count):
                    weights[k, n] = responsibilities[first + n, k]
                for n in range(count, n_panels * panel_size):
                    weights[k, n] = 0.0
        else:
            block_scores(block, n_panels, centres, factors, constants, weights)
            normalise(weights, count, n_panels, log_sums)
            for n in range(count):
                log_likelihood += log_sums[n]
        if moments.ndim == 3:
            full_moments(block, n_panels, centres, weights, moments)
        else:
            diagonal_moments(block, n_panels, centres, weights, moments)
    return log_likelihood


@kernel
def posterior_range(
    values: NDArray[np.floating],
    row_stride: int,
    column_stride: int,
    offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    start: int,
    stop: int,
    centres: NDArray[np.floating],
    factors: NDArray[np.floating],
    constants: NDArray[np.floating],
    log_density: NDArray[np.float64],
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating],
    log_likelihood: NDArray[np.float64],
) -> None:
    """Write what is wanted of the rows number start, ..., stop - 1 of a selection."""
    panel_size = simd.panel_size(centres)
    block_size = PANELS * panel_size
    n_components = centres.shape[0]
    block = empty_block(centres)
    scores = empty_scores(centres)
    log_sums = np.empty(block_size, dtype=np.float64)
    for first in range(start, stop, block_size):
        count = min(block_size, stop - first)
        n_panels = (count + panel_size - 1) // panel_size
        load_block(values, row_stride, column_stride, rows, first, count, offset, centres.shape[1], block)
        block_scores(block, n_panels, centres, factors, constants, scores)
        if log_density.size > 0:
            for n in range(count):
                for k in range(n_components):
                    log_density[first + n, k] = scores[k, n]
        if labels.size > 0:
            for n in range(count):
                best = 0
                for k in range(1, n_components):
                    if scores[k, n] > scores[best, n]:
                        best = k
                labels[first + n] = best
        if probabilities.size > 0 or log_likelihood.size > 0:
            normalise(scores, count, n_panels, log_sums)
        if probabilities.size > 0:
            for n in range(count):
                for k in range(n_components):
                    probabilities[first + n, k] = scores[k, n]
        if log_likelihood.size > 0:
            for n in range(count):
                log_likelihood[first + n] = log_sums[n]
