"""How many pairs of rows the labels put right: an estimate with an interval, from held-out answers.

Labellings are drawn from the posterior, and the labels are compared with each. The posterior is only as good
as its predictors, so its error rates are multiplied by a common factor for each drawing: the factor is drawn
from its own posterior, given how often the predictors were wrong about rows that were asked about (each
without itself) and how often they said they would be. Clusters that no answer has found yet may be one, or
part of a group: in each drawing some of them are.

The constants were set so that the interval holds the truth in about nine of ten sessions on the sets of the
leaderboard, with right answers and with 10 % wrong ones (``experiments ask``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise.active.labelling import label_landmarks
from linkwise.active.landscape import Landscape
from linkwise.active.posterior import Posterior
from linkwise.metrics import rand_score

_N_DRAWS = 100
#: Errors, and errors foretold, that are assumed before any answer.
_ERRORS, _FORETOLD = 1.0, 0.4
#: What a row tells about the errors of other rows: those asked about are harder than most, and alike.
_WORTH = 0.15
#: A cluster that no answer has found is one of the others with a chance drawn as U ** this.
_MERGING = 0.3
_LOW, _HIGH = 0.05, 0.95


class Quality(NamedTuple):
    """Share of the pairs of rows that the labels put right: together if they are one, else apart.

    Attributes
    ----------
    estimate : float
    low, high : float
        An interval that holds the truth in nine of ten sessions.
    """

    estimate: float
    low: float
    high: float


def estimate_quality(
    landscape: Landscape,
    posterior: Posterior,
    n_clusters: int | None,
    rng: np.random.Generator,
    clusters: Ints | None = None,
) -> Quality:
    """Estimate from drawn labellings of the landmarks; ``clusters`` as in ``label_landmarks``."""
    labels = label_landmarks(landscape, posterior, n_clusters, clusters)
    prob = np.maximum(posterior.prob, 0.0)
    if clusters is not None:
        prob = _as_sure_of(labels, prob)
    best = prob.max(axis=1)
    errors, foretold = _errors(posterior)
    factors = rng.gamma(_ERRORS + _WORTH * errors, 1.0 / (_FORETOLD + _WORTH * foretold), size=_N_DRAWS)
    found = np.array([rand_score(_draw(landscape, prob, best, factor, rng), labels) for factor in factors])
    low, high = np.quantile(found, [_LOW, _HIGH])
    return Quality(float(found.mean()), float(low), float(high))


def _errors(posterior: Posterior) -> tuple[float, float]:
    """Errors of the predictors about asked landmarks, each without itself, and the number they foretold."""
    known = (posterior.trust > 0.0) & (posterior.group >= 0)
    size = np.bincount(posterior.group[known], minlength=1)
    # The first row of a group cannot be guessed.
    known[known] = size[posterior.group[known]] > 1
    guess = posterior.held_out[known]
    wrong = guess.argmax(axis=1) != posterior.group[known]
    return float(wrong.sum()), float((1.0 - guess.max(axis=1)).sum())


def _as_sure_of(labels: Ints, prob: Floats) -> Floats:
    """Probabilities (l, g + 1) that are as high for the label of a row as they were for its likeliest group.

    Clusters label because they foretell more answers than the predictors. Without this they would count as
    wrong wherever they differ from these: of 13 intervals after 25 right answers 8 held the truth, so 12.
    """
    found = np.flatnonzero(labels < prob.shape[1] - 1)
    likeliest = prob[found].argmax(axis=1)
    prob = prob.copy()
    prob[found, likeliest], prob[found, labels[found]] = (prob[found, labels[found]], prob[found, likeliest])
    return prob


def _draw(landscape: Landscape, prob: Floats, best: Floats, factor: float, rng: np.random.Generator) -> Ints:
    """A labelling of the landmarks, (l,), from probabilities whose chances of error are multiplied."""
    error = 1.0 - best
    wanted = np.minimum(factor * error, np.maximum(error, 0.9))
    others = prob * (wanted / np.maximum(error, 1e-12))[:, None]
    rows = np.arange(len(prob))
    others[rows, prob.argmax(axis=1)] = 1.0 - wanted
    total = others.cumsum(axis=1)
    drawn = (total < rng.random(len(prob))[:, None] * total[:, -1:]).sum(axis=1)
    n_groups, n_start = prob.shape[1] - 1, int(landscape.start.max()) + 1
    # Rows of a group not found yet are in the clusters of the start, some of which are one in truth.
    cluster = n_groups + np.arange(n_start)
    merged = rng.random(n_start) < rng.random() ** _MERGING
    cluster[merged] = rng.integers(rng.integers(1, n_groups + n_start + 1), size=int(merged.sum()))
    return np.asarray(np.where(drawn == n_groups, cluster[landscape.start], drawn), dtype=np.int64)
