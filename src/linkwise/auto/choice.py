"""How links that a fit did not see weigh one clustering against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.constraints import Constraints
from linkwise.model_selection.held_out import LinkFold, Questions

__all__ = [
    "Gain",
    "agreement",
    "doubted_links",
    "held_out_kept",
    "paired_gain",
    "right_log_odds",
    "share_without_links",
    "vote_weights",
]

#: A link that a candidate keeps is worth so many nats of its vote, but all links together at most so many, or
#: sqrt(n) if there are very many. More would let one candidate decide alone, although the mean of several is
#: better. 15, 20, 25 and 30 nats for all links had mean adjusted Rand indices of .676, .671, .666 and .663 on
#: half A of the leaderboard and .443, .446, .446 and .446 on 15 other sets (one draw, candidates of before);
#: 2 sqrt(n), the rule of before, .672 and .428.
_NATS_OF_A_LINK = 0.75
_MOST_NATS = 15.0
#: The same for hard links, whose answers are right. As many hard pairs as among 5 and 10 % of the rows of ten
#: real sets, one draw: .702 and .898 with 15 nats, .716 and .903 with 30, .719 and .904 with 60; ten other
#: sets, which did not decide: .738 and .905 with 15, .737 and .919 with 30.
_MOST_NATS_IF_CERTAIN = 30.0
#: Nats by which the vote of a candidate without links is smaller. Whoever gives links thinks that the rows
#: alone do not tell. With 0, 1 and 2 the same mean was .667, .672 and .673, and with 15 % wrong links over
#: 10 % of the rows .576, .588 and .589.
_WITHOUT_LINKS = 1.0

#: Probability that clear votes are wrong about a link that none of the fits saw. With 15 % wrong links (23
#: sets, 3 kinds of links, one draw) .1 is what was observed, but .2 scored better: .498, .496 with .1, and
#: .491 without doubt. The rows speak in the votes, and once more in the fits that use the result.
_WRONG_VOTES = 0.2

#: The clustering without links has this many of (this + n) votes, n independent answers. With few links the
#: candidates with links may all be misled alike. Cases worse by .02 than without links, on 22 sets that no
#: table has: 13 % with right hard links (disjoint pairs, two draws, 132 cases), 13 % with 10 and 20 % wrong
#: ones (one draw, 132 cases); 11 and 11 % with 1 of (1 + n) votes, 9 and 10 % with 2, 8 and 7 % with 3. Their
#: mean gains were .102 and .076 without, .103 and .062 with 3. The leaderboard (19 sets, two draws) did not
#: decide: 8 and 11 % became 5 and 8 %, and the means .673 and .622 became .672 and .620.
_ANSWERS_WITHOUT_LINKS = 3.0

#: Quantile of the normal distribution for intervals of 90 %.
_QUANTILE_90 = 1.645


class Gain(NamedTuple):
    """Difference of two shares of held-out links that are kept, and its 90 % interval."""

    value: float
    low: float
    high: float


def held_out_kept(
    questions: Questions, folds: Sequence[LinkFold], memberships: Sequence[NDArray[np.integer]]
) -> NDArray[np.float64]:
    """Whether fits that did not know the answer give it, (q,): 1, 0, their mean, or NaN if none is asked."""
    right, asked = np.zeros(len(questions.pairs)), np.zeros(len(questions.pairs))
    for fold, labels in zip(folds, memberships, strict=True):
        ends = labels[questions.pairs[fold.asked]]
        right[fold.asked] += (ends[:, 0] == ends[:, 1]) == questions.same[fold.asked]
        asked[fold.asked] += 1.0
    with np.errstate(invalid="ignore"):
        return right / asked


def agreement(kept: NDArray[np.float64], trust: NDArray[np.float64]) -> tuple[float, float]:
    """Share of the links kept, weighted by trust, and its standard error; links not asked are left out."""
    asked = np.isfinite(kept)
    weight = trust[asked]
    if not weight.sum() > 0:
        return np.nan, np.nan
    mean = float(np.average(kept[asked], weights=weight))
    error = float(np.sqrt((weight**2 * (kept[asked] - mean) ** 2).sum()) / weight.sum())
    return mean, error


def vote_weights(
    agreements: NDArray[np.float64],
    uses_links: NDArray[np.bool_],
    n_links: float,
    more_nats: NDArray[np.float64] | float = 0.0,
    *,
    certain: bool = False,
) -> NDArray[np.float64]:
    """Votes (c,) of candidates by their agreement (c,) with so many independent links; NaN has none.

    Votes grow exponentially with the agreement: with few or doubtful links many candidates vote, with many
    links the best ones, with very many the best. A candidate that does not use links must agree better than
    one that does. ``more_nats`` (c,) is what else speaks for a candidate. ``certain`` links are hard.
    """
    known = np.isfinite(agreements)
    most = _MOST_NATS_IF_CERTAIN if certain else _MOST_NATS
    sharpness = max(min(_NATS_OF_A_LINK * n_links, most), np.sqrt(n_links))
    nats = (sharpness * agreements - _WITHOUT_LINKS * ~uses_links + more_nats)[known]
    votes = np.zeros(len(agreements))
    votes[known] = np.exp(nats - nats.max())
    return np.asarray(votes / votes.sum())


def share_without_links(n_independent: float) -> float:
    """Share of the votes that the clustering without links has, beside so many independent answers."""
    return _ANSWERS_WITHOUT_LINKS / (_ANSWERS_WITHOUT_LINKS + n_independent)


def paired_gain(
    kept: NDArray[np.float64], reference: NDArray[np.float64], trust: NDArray[np.float64]
) -> Gain:
    """Agreement less that of a reference on the same links; its interval comes from links they differ on."""
    both = np.isfinite(kept) & np.isfinite(reference)
    value, error = agreement(np.where(both, kept - reference, np.nan), trust)
    return Gain(value, value - _QUANTILE_90 * error, value + _QUANTILE_90 * error)


def right_log_odds(weights: NDArray[np.float64], support: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log odds (m,) that links of signed weights (m,) are right, given the votes (m,) of fits without them.

    ``support`` is the share of these votes that say what the link says, NaN if nobody voted. The odds of the
    certainty are multiplied by those of the votes, v / (1 - v), where v lies between ``_WRONG_VOTES`` and
    1 - ``_WRONG_VOTES``. Those of a hard link are infinite.
    """
    votes = np.where(np.isnan(support), 0.5, _WRONG_VOTES + (1.0 - 2.0 * _WRONG_VOTES) * support)
    return np.asarray(2.0 * np.abs(weights) + np.log(votes / (1.0 - votes)))


def doubted_links(links: Constraints, log_odds: NDArray[np.float64]) -> Constraints:
    """Links with the log odds (m,) of being right as certainty; those that are rather wrong are left out."""
    stays = log_odds > 0
    weights = np.sign(links.weights[stays]) * 0.5 * log_odds[stays]
    return Constraints._from_signed(links.n_samples, links.pairs[stays], weights)
