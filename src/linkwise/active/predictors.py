"""Guesses of the group of each landmark from the landmarks whose group is known, and their weighted mean.

A predictor gives two things: what it says about every landmark, and what it says about each known one if that
one is left out. The second is the evidence for the first: predictors are mixed with the weights under which
the known groups, each left out, are likeliest (stacking).

- Kernel ridge regression on group indicators: with A = (K + lambda / trust)^-1 over the known landmarks and
  targets Y, predictions are K A Y, and without the i-th one Y_i - (A Y)_i / A_ii: no second fit is needed.
- A linear discriminant with shrunk covariance, left out by fives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, sposv
from scipy.special import softmax

from linkwise._arrays import Bools, Floats, Ints
from linkwise.active.landscape import Landscape

#: Probabilities are kept above this.
SMALLEST = 1e-3
#: Ridge penalty of a row that is fully trusted.
_PENALTY = 0.1
_N_FOLDS = 5
#: All predictors together count as this many known landmarks before any is known.
_PRIOR_COUNT = 2.0
_N_STEPS = 30
#: Weight of a predictor that hardly counts.
_LEAST_WEIGHT = 0.02


class Guess(NamedTuple):
    """The mean of all predictors."""

    held_out: Floats  # (m, g) probability of each group for the known landmarks, each without itself
    known: Ints  # (m,) the landmarks that were learned from
    duals: Floats  # (7, m, g) coefficients of the ridge regressions
    discriminant: tuple[Floats, Floats] | None  # slopes (d, g) and offsets (g,) of log densities
    weights: Floats  # (7,) or (8,) weight of each predictor, with sum 1

    @property
    def kernel_weights(self) -> Floats:
        """Weight of each kernel of the landscape, (7,), with sum 1."""
        weights = self.weights[: len(self.duals)]
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def prob(self, landscape: Landscape, rows: Ints) -> Floats:
        """Probability of each group for these landmarks, (r, g)."""
        total = np.zeros((len(rows), self.held_out.shape[1]))
        for kernel, dual, weight in zip(landscape.kernels, self.duals, self.weights, strict=False):
            if weight == 0.0:
                continue
            # Kernels are symmetric, and of a large array whole rows are read much faster than columns.
            few = len(rows) < len(kernel)
            similarity = kernel[np.ix_(rows, self.known)] if few else kernel[self.known].T[rows]
            total += weight * shares(similarity @ dual)
        if self.discriminant is not None:
            slopes, offsets = self.discriminant
            total += self.weights[-1] * shares(softmax(landscape.features[rows] @ slopes + offsets, axis=1))
        return total


def guess_groups(
    landscape: Landscape, known: Ints, targets: Floats, trust: Floats, kernels: Floats | None = None
) -> Guess:
    """Learn from landmarks ``known`` (m,) with group probabilities (m, g), trusted by ``trust`` (m,).

    ``kernels`` (7, m, m) are those between them, if they were gathered before.
    """
    if kernels is None:
        kernels = landscape.kernels[:, known[:, None], known]
    duals, held_out = ridge(kernels, targets, _PENALTY / trust)
    discriminant = None
    if targets.shape[1] > 1 and len(known) >= targets.shape[1] + 3:
        discriminant, held_out_one = _discriminant(landscape.features[known], targets)
        held_out = np.concatenate([held_out, held_out_one[None]])
    weights = _stack(held_out, targets, trust)
    return Guess(np.tensordot(weights, held_out, 1), known, duals, discriminant, weights)


def learn_more(guess: Guess, landscape: Landscape, known: Ints, targets: Floats, trust: Floats) -> Guess:
    """The same predictors with the same weights, learned from more landmarks; ``held_out`` stays as it is.

    Predictors that hardly count, with weights below ``_LEAST_WEIGHT``, are left out: each costs the third
    power of the number of landmarks.
    """
    weights = np.where(guess.weights < _LEAST_WEIGHT, 0.0, guess.weights)
    weights /= weights.sum()
    duals = np.zeros((len(guess.duals), len(known), targets.shape[1]))
    for dual, kernel, weight in zip(duals, landscape.kernels, weights, strict=False):
        if weight > 0.0:
            # Single precision is enough: eigenvalues are between the penalty and the number of landmarks.
            matrix = kernel[np.ix_(known, known)].astype(np.float32)
            matrix[np.diag_indices_from(matrix)] += (_PENALTY / trust).astype(np.float32)
            _, dual[:], failed = sposv(matrix.T, targets.astype(np.float32), lower=True)
            if failed:  # as in ``inverse_of``
                dual[:] = np.linalg.solve(matrix, targets)
    discriminant = guess.discriminant
    if discriminant is not None:
        indicators = np.eye(targets.shape[1])[targets.argmax(axis=1)]
        everyone = np.ones((1, len(known)), dtype=bool)
        (slopes,), (offsets,) = _discriminant_fits(landscape.features[known], indicators, everyone)
        discriminant = slopes, offsets
    return Guess(guess.held_out, known, duals, discriminant, weights)


def ridge(kernels: Floats, targets: Floats, penalty: Floats) -> tuple[Floats, Floats]:
    """Kernel ridge regressions: coefficients (c, m, g), and probabilities of each row left out, (c, m, g)."""
    inverse = np.stack([inverse_of(kernel + np.diag(penalty)) for kernel in kernels])
    dual = inverse @ targets
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    return dual, shares(targets - dual / diagonal[:, :, None])


def inverse_of(matrix: Floats) -> Floats:
    """Inverse of a symmetric matrix (m, m), at half the cost if all its eigenvalues are positive."""
    factor, failed = dpotrf(matrix.T, lower=True)
    if failed:  # a kernel of the graph whose entries were clipped may have a negative eigenvalue
        return np.asarray(np.linalg.inv(matrix))
    lower = np.tril(dpotri(factor, lower=True)[0])
    return np.asarray(lower + np.tril(lower, -1).T, dtype=np.float64)


def shares(values: Floats) -> Floats:
    """Values above 0 as shares of their sum over the last axis."""
    values = np.maximum(values, SMALLEST)
    return np.asarray(values / values.sum(axis=-1, keepdims=True), dtype=np.float64)


def _discriminant(points: Floats, targets: Floats) -> tuple[tuple[Floats, Floats], Floats]:
    """Linear discriminant of points (m, d): slopes and offsets; probabilities of each without its fold."""
    groups, n_groups = targets.argmax(axis=1), targets.shape[1]
    fold = np.arange(len(points)) % _N_FOLDS
    # The last fit is to all rows.
    inside = np.vstack([fold != np.arange(_N_FOLDS)[:, None], np.ones((1, len(points)), dtype=bool)])
    slopes, offsets = _discriminant_fits(points, np.eye(n_groups)[groups], inside)
    held_out = shares(softmax(np.einsum("md,mdg->mg", points, slopes[fold]) + offsets[fold], axis=1))
    several = (np.isfinite(offsets).sum(axis=1) > 1)[fold]  # a fold may leave one group only
    held_out[~several] = 1.0 / n_groups
    return (slopes[-1], offsets[-1]), held_out


def _discriminant_fits(points: Floats, indicators: Floats, inside: Bools) -> tuple[Floats, Floats]:
    """Slopes (f, d, g) and offsets (f, g) of log densities; fit f is to the points (m, d) ``inside`` (f, m).

    A group without a point has the offset minus infinity.
    """
    weight = inside[:, :, None] * indicators
    counts = weight.sum(axis=1)
    means = np.einsum("fmg,md->fgd", weight, points) / np.maximum(counts, 1.0)[:, :, None]
    away = (points - np.einsum("fmg,fgd->fmd", weight, means)) * inside[:, :, None]
    covariance = _shrunk_covariances(away, inside.sum(axis=1))
    for one, rows in zip(covariance, inside, strict=True):
        if not one.any():  # all groups are single points: the spread of all of them
            one[:] = np.eye(points.shape[1]) * max(float(points[rows].var(axis=0).mean()), 1e-300)
    slopes = np.linalg.pinv(covariance, hermitian=True) @ means.transpose(0, 2, 1)
    with np.errstate(divide="ignore"):
        offsets = np.log(counts) - 0.5 * np.einsum("fgd,fdg->fg", means, slopes)
    return slopes, offsets


def _shrunk_covariances(points: Floats, n: Ints) -> Floats:
    """Covariances (f, d, d) of sets of n (f,) points around 0, shrunk as Ledoit and Wolf (2004) do.

    The arrays (f, m, d) have zeros in place of points that are not in a set. scikit-learn's function has the
    same result, but its checks took a third of the time of a question.
    """
    d = points.shape[2]
    covariance = points.transpose(0, 2, 1) @ points / n[:, None, None]
    mean = np.trace(covariance, axis1=1, axis2=2) / d
    squared = (covariance**2).sum(axis=(1, 2))
    away = squared - d * mean**2
    noise = (((points**2).sum(axis=2) ** 2).sum(axis=1) / n - squared) / n
    share = np.where(away > 0.0, np.clip(noise, 0.0, away) / np.where(away > 0.0, away, 1.0), 0.0)
    share, mean = share[:, None, None], mean[:, None, None]
    return np.asarray((1.0 - share) * covariance + share * mean * np.eye(d), dtype=np.float64)


def _stack(held_out: Floats, targets: Floats, trust: Floats) -> Floats:
    """Weights (c,) of predictors under which the targets are likeliest, with a flat prior; EM."""
    likelihood = np.einsum("cmg,mg->cm", held_out, targets)
    prior = np.full(len(held_out), _PRIOR_COUNT / len(held_out))
    weights = prior / prior.sum()
    for _ in range(_N_STEPS):
        share = weights[:, None] * likelihood
        weights = prior + (share / share.sum(axis=0)) @ trust
        weights /= weights.sum()
    return weights
