"""M-step of the mixing weights pi, the only one that links make difficult.

The part of the expected penalised log-likelihood that depends on eta = log pi,

    f(eta) = sum_k n_k eta_k - N_free log sum_k exp(eta_k) - log Omega(eta),

is the log-likelihood of an exponential family with the counts n_k(Z) as statistics: concave, with gradient
"posterior counts minus prior counts". The maximum matches the two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from linkwise._arrays import Bools, Floats

#: pi is kept above this; below it a component is empty and log pi would run away (the maximum is at
#: infinity).
SMALLEST_WEIGHT = 1e-8
_LOG_SMALLEST_WEIGHT = float(np.log(SMALLEST_WEIGHT))
#: Weights whose sum is this near to 1 are not normalised again, so that ``LastValue`` knows them.
_ROUNDING = 1e-15
#: The grid of Lu & Leen has C(99, K - 1) nodes: 156,849 for four components, 3.8 million for five.
GRID_LARGEST = 4
#: Inference passes of one M-step. Few links take 5 to 10 of them; strong must-links on all rows, which make
#: log Omega steep, about 7 per component.
MAX_PASSES = 200
#: Where log Omega is only approximate (Bethe), it is neither concave nor known to more digits than the
#: messages of belief propagation, so that moments cannot be matched to 1e-10 and trying wastes hundreds of
#: passes. Any step that raises the objective will do, because EM goes on from there (generalised EM).
#: On a grid of 40 x 40 links of certainty 0.9, the first 12 passes gain .0492 per row and 200 more .0001.
PASSES_PER_COMPONENT = 4
#: Hard cannot-links make a pass dear, and they hardly bend log Omega: after three passes of every M-step EM
#: ends where it ends after forty, to the sixth digit, in .5 to .8 of the time (three covariance types on
#: digits, pendigits, satimage and balance_scale, 190 to 780 links).
PASSES_UNDER_HARD_LINKS = 3
_MAX_SHORTENINGS = 30
#: A concave f stays below its tangents. If it is this much above, per row, belief propagation has come to
#: another fixed point, and the gain is an error of log Omega.
_ABOVE_TANGENT = 1e-6

#: log Omega and expected prior counts at log pi.
Prior = Callable[[Floats], tuple[float, Floats]]


class LastValue:
    """A prior that answers without another inference pass if asked for the same weights twice in a row.

    An EM step wants log Omega at its weights for the objective, Newton's method starts from them, and the
    step before ended there.
    """

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._at: Floats | None = None
        self._value: tuple[float, Floats] = (0.0, np.empty(0))

    def __call__(self, log_weights: Floats) -> tuple[float, Floats]:
        """Log Omega and expected prior counts at log pi."""
        if self._at is None or not np.array_equal(self._at, log_weights):
            self._at, self._value = None, self._prior(log_weights)
            self._at = log_weights.copy()
        return self._value


class MixingStep(NamedTuple):
    """New weights, whether the moments were matched, and the inference passes it took."""

    log_weights: Floats
    converged: bool
    n_passes: int


def newton_mixing(
    counts: Floats,
    n_free: float,
    log_weights: Floats,
    prior: Prior,
    *,
    tol: float = 1e-10,
    max_passes: int = MAX_PASSES,
    concave: bool = True,
) -> MixingStep:
    """Weights whose expected prior counts equal the posterior counts (K,), by damped quasi-Newton steps.

    The Hessian starts as that of independent rows, -N (diag(pi) - pi pi'), and is corrected by BFGS
    updates, so that each step costs one inference pass. Every step is shortened until f rises: even
    unconverged, the result never lowers the likelihood.

    The ``n_free`` rows without links add -n_free log sum_k exp(eta_k), and ``log_weights`` to start from
    are normalised. The search ends when no counts differ by more than ``tol`` of their sum (those of
    components whose weight is as small as allowed may), or after ``max_passes`` evaluations of the prior. If
    f is ``concave``, a gain above its tangent is an error of log Omega and is refused; the product over links
    that share groups (``DisjointPrior``) is not, and its gains are real.
    """
    total = counts.sum()
    target = counts / total

    def evaluate(eta: Floats) -> tuple[float, Floats]:
        log_omega, linked_counts = prior(eta)
        log_total = float(np.logaddexp.reduce(eta))
        value = counts @ eta - n_free * log_total - log_omega
        return value / total, target - (n_free * np.exp(eta - log_total) + linked_counts) / total

    eta = _clipped(log_weights)
    value, gradient = evaluate(eta)
    n_passes = 1
    curvature_inverse = _independent_inverse(np.exp(eta))
    while True:
        slope, pressed = _climbable(eta, gradient)
        if np.abs(slope).max() <= tol:
            return MixingStep(eta, True, n_passes)
        direction = np.where(pressed, 0.0, curvature_inverse @ slope)
        step = 1.0
        for _ in range(_MAX_SHORTENINGS):
            if n_passes >= max_passes:
                return MixingStep(eta, False, n_passes)
            candidate = _clipped(eta + step * direction)
            new_value, new_gradient = evaluate(candidate)
            n_passes += 1
            if concave and new_value > value + gradient @ (candidate - eta) + _ABOVE_TANGENT:
                return MixingStep(eta, False, n_passes)
            if new_value >= value - 1e-15 * abs(value) and np.isfinite(new_value):
                break
            slopes = float(gradient @ direction), float(new_gradient @ direction)
            step = _shorter(step, *slopes, new_value - value)
        else:
            return MixingStep(eta, False, n_passes)
        curvature_inverse = _bfgs(curvature_inverse, candidate - eta, gradient - new_gradient)
        stalled = np.abs(candidate - eta).max() <= 1e-14
        eta, value, gradient = candidate, new_value, new_gradient
        if stalled:
            # Pressed against the smallest weight, or unidentified (f constant): nothing left to gain.
            return MixingStep(eta, True, n_passes)


def _climbable(eta: Floats, gradient: Floats) -> tuple[Floats, Bools]:
    """Slope of f where weights at the smallest one cannot fall, (K,), and which these are.

    They keep their value while the others change, so that the slope along them is spread over the others.
    """
    pressed = (eta <= _LOG_SMALLEST_WEIGHT) & (gradient < 0.0)
    if not pressed.any():
        return gradient, pressed
    share = np.where(pressed, 0.0, np.exp(eta))
    return np.where(pressed, 0.0, gradient + gradient[pressed].sum() * share / share.sum()), pressed


def _shorter(step: float, slope: float, new_slope: float, rise: float) -> float:
    """A shorter step along a line on which f fell: where the tangents at its ends meet.

    That is the top if f has a kink, as -log Omega has where strong must-links put all rows into one cluster
    and equal weights leave open which; and it is half the step if f is a parabola.
    """
    drop = slope - new_slope
    meeting = (rise - new_slope * step) / drop if drop > 0.0 else 0.5 * step
    return float(np.clip(meeting, 0.01 * step, 0.9 * step)) if np.isfinite(meeting) else 0.5 * step


def _clipped(eta: Floats) -> Floats:
    """Normalised log weights, none below log SMALLEST_WEIGHT; the same ones if they are so already."""
    log_total = float(np.logaddexp.reduce(eta))
    if abs(log_total) <= _ROUNDING and eta.min() >= _LOG_SMALLEST_WEIGHT:
        return eta
    eta = np.maximum(eta - log_total, _LOG_SMALLEST_WEIGHT)
    return eta - np.logaddexp.reduce(eta)


def _independent_inverse(weights: Floats) -> Floats:
    """Pseudo-inverse of diag(pi) - pi pi' on directions that sum to zero."""
    centring = np.eye(len(weights)) - 1.0 / len(weights)
    return centring @ np.diag(1.0 / weights) @ centring


def _bfgs(inverse: Floats, change: Floats, gradient_drop: Floats) -> Floats:
    """BFGS update of an inverse Hessian of -f; skipped when the curvature seen is not positive."""
    change = change - change.mean()
    product = float(change @ gradient_drop)
    lengths = math.sqrt(change @ change) * math.sqrt(gradient_drop @ gradient_drop)
    if product <= 1e-12 * lengths or product == 0.0:
        return inverse
    column = change[:, np.newaxis]
    shrink = column * (gradient_drop / -product)
    shrink.ravel()[:: len(change) + 1] += 1.0
    return shrink @ inverse @ shrink.T + column * (change / product)


def grid_mixing(counts: Floats, prior: Prior, *, step: float = 0.01) -> MixingStep:
    """Best weights on the grid of Lu & Leen (2007, Eq. 2.14): all multiples of ``step`` that sum to one.

    Weights of zero are left out: 0 log 0 and Omega = 0 would give NaN.
    """
    n_steps = round(1.0 / step)
    best: Floats | None = None
    best_value, n_passes = -np.inf, 0
    for cuts in itertools.combinations(range(1, n_steps), len(counts) - 1):
        eta = np.log(np.diff([0, *cuts, n_steps]) / n_steps)
        value = float(counts @ eta) - prior(eta)[0]
        n_passes += 1
        if value > best_value:
            best, best_value = eta, value
    assert best is not None
    return MixingStep(best, True, n_passes)
