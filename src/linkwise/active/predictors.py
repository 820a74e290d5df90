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
from numpy.typing import NDArray
from scipy.special import softmax

from linkwise.active.landscape import Landscape

__all__ = ["SMALLEST", "Guess", "guess_groups", "ridge", "shares"]

#: Probabilities are kept above this.
SMALLEST = 1e-3
#: Ridge penalty of a row that is fully trusted.
_PENALTY = 0.1
_N_FOLDS = 5
#: All predictors together count as this many known landmarks before any is known.
_PRIOR_COUNT = 2.0
_N_STEPS = 30


class Guess(NamedTuple):
    """The mean of all predictors.

    Attributes
    ----------
    prob : (l, g) float64
        Probability of each group for each landmark.
    held_out : (m, g) float64
        The same for the known landmarks, each without itself.
    kernel_weights : (7,) float64
        Weight of each kernel of the landscape, with sum 1.
    """

    prob: NDArray[np.float64]
    held_out: NDArray[np.float64]
    kernel_weights: NDArray[np.float64]


def guess_groups(
    landscape: Landscape,
    known: NDArray[np.int64],
    targets: NDArray[np.float64],
    trust: NDArray[np.float64],
) -> Guess:
    """Guess all landmarks from ``known`` (m,) with group probabilities (m, g), trusted by ``trust`` (m,)."""
    everywhere, held_out = [], []
    for kernel in landscape.kernels:
        everywhere_one, held_out_one = ridge(kernel, known, targets, _PENALTY / trust)
        everywhere.append(everywhere_one)
        held_out.append(held_out_one)
    if targets.shape[1] > 1 and len(known) >= targets.shape[1] + 3:
        everywhere_one, held_out_one = _discriminant(landscape.features, known, targets)
        everywhere.append(everywhere_one)
        held_out.append(held_out_one)
    weights = _stack(np.array(held_out), targets, trust)
    kernel_weights = weights[: len(landscape.kernels)]
    return Guess(
        np.tensordot(weights, np.array(everywhere), 1),
        np.tensordot(weights, np.array(held_out), 1),
        kernel_weights / kernel_weights.sum(),
    )


def ridge(
    kernel: NDArray[np.float64],
    known: NDArray[np.int64],
    targets: NDArray[np.float64],
    penalty: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Kernel ridge regression as probabilities: of all landmarks (l, g), and of known ones left out."""
    columns = kernel[:, known]
    inverse = np.linalg.inv(columns[known] + np.diag(penalty))
    dual = inverse @ targets
    return shares(columns @ dual), shares(targets - dual / np.diag(inverse)[:, None])


def shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values above 0 as shares of their sum by row."""
    values = np.maximum(values, SMALLEST)
    return np.asarray(values / values.sum(axis=1, keepdims=True), dtype=np.float64)


def _discriminant(
    features: NDArray[np.float64], known: NDArray[np.int64], targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Linear discriminant: probabilities of all landmarks, and of known ones without their fold."""
    groups, n_groups = targets.argmax(axis=1), targets.shape[1]
    fold = np.arange(len(known)) % _N_FOLDS
    held_out = np.full((len(known), n_groups), 1.0 / n_groups)
    for number in range(_N_FOLDS):
        inside = fold != number
        if len(np.unique(groups[inside])) > 1:
            held_out[~inside] = _discriminant_fit(
                features[known[inside]], groups[inside], features[known[~inside]], n_groups
            )
    everywhere = _discriminant_fit(features[known], groups, features, n_groups)
    return everywhere, held_out


def _discriminant_fit(
    points: NDArray[np.float64], groups: NDArray[np.int64], wanted: NDArray[np.float64], n_groups: int
) -> NDArray[np.float64]:
    """Probabilities of the wanted points, (., g); groups without a point are improbable."""
    counts = np.bincount(groups, minlength=n_groups)
    means = np.zeros((n_groups, points.shape[1]))
    np.add.at(means, groups, points)
    means /= np.maximum(counts, 1)[:, None]
    covariance = _shrunk_covariance(points - means[groups])
    if not covariance.any():  # all groups are single points: the spread of all of them
        covariance = np.eye(points.shape[1]) * max(float(points.var(axis=0).mean()), 1e-300)
    slopes = np.linalg.lstsq(covariance, means.T, rcond=None)[0]
    with np.errstate(divide="ignore"):
        scores = wanted @ slopes - 0.5 * np.einsum("gd,dg->g", means, slopes) + np.log(counts)
    return shares(softmax(scores, axis=1))


def _shrunk_covariance(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Covariance (d, d) of points around 0, shrunk as Ledoit and Wolf (2004) do.

    scikit-learn's function has the same result, but its checks took a third of the time of a question.
    """
    n, d = points.shape
    covariance = points.T @ points / n
    mean = float(np.trace(covariance)) / d
    away = float((covariance**2).sum()) - d * mean**2
    noise = (float(((points**2).sum(axis=1) ** 2).mean()) - float((covariance**2).sum())) / n
    share = min(noise, away) / away if away > 0.0 and noise > 0.0 else 0.0
    return np.asarray((1.0 - share) * covariance + share * mean * np.eye(d), dtype=np.float64)


def _stack(
    held_out: NDArray[np.float64], targets: NDArray[np.float64], trust: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights (c,) of predictors under which the targets are likeliest, with a flat prior; EM."""
    likelihood = np.einsum("cmg,mg->cm", held_out, targets)
    prior = np.full(len(held_out), _PRIOR_COUNT / len(held_out))
    weights = prior / prior.sum()
    for _ in range(_N_STEPS):
        share = weights[:, None] * likelihood
        weights = prior + (share / share.sum(axis=0)) @ trust
        weights /= weights.sum()
    return weights
