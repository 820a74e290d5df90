"""From judgements about pairs, and their sources, to one signed weight per unordered pair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from linkwise._arrays import Floats, Ints
from linkwise.constraints.cells import cell_text
from linkwise.exceptions import InfeasibleConstraints
from linkwise.graph import check_feasibility, path_witness, unique_pairs

#: Pairs that the guess 1 / K counts as when the base rate is estimated.
_PRIOR_PAIRS = 10.0

#: Base rates stay this far from 0 and 1: links of one kind alone say little about the other.
_RAREST = 1e-3

#: Weight of a link whose answer is no more likely right than wrong: it counts for next to nothing.
_LEAST_WEIGHT = 1e-3


class Judgements(NamedTuple):
    """Judgements about pairs, one row each; a pair that several annotators judged has several rows.

    Attributes
    ----------
    pairs : (J, 2) int64
        Row numbers, i < j, sorted.
    weights : (J,) float64
        Signed weight of each judgement.
    source : (J,) str or None
        Who said it, "" where nobody is named; None if no sources were given.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]
    source: NDArray[np.str_] | None


def link_strength(
    n_must: int, n_cannot: int, weight: float | ArrayLike | None, certainty: float | ArrayLike | None
) -> Floats:
    """abs(W) of each pair, must-links first."""
    n_pairs = n_must + n_cannot
    if weight is not None and certainty is not None:
        raise ValueError(
            "give weight or certainty, not both: certainty g means weight 0.5 * log(g / (1 - g))"
        )
    if weight is None and certainty is None:
        return np.full(n_pairs, np.inf)
    name, given = ("weight", weight) if certainty is None else ("certainty", certainty)
    values = _as_numbers(given, name, n_must)
    if values.ndim > 1 or (values.ndim == 1 and values.shape != (n_pairs,)):
        raise ValueError(
            f"{name} has shape {values.shape}; give one value, or one per pair "
            f"({n_must} must-links first, then {n_cannot} cannot-links)"
        )
    # A single value is checked even if there is no pair yet that it could be about.
    values = np.broadcast_to(values, max(n_pairs, 1)) if values.ndim == 0 else values
    if name == "weight":
        bad, reason = (
            ~(values >= 0),
            (
                "must be >= 0, or inf for a hard link; give its size, "
                "the list it is in, must_link or cannot_link, gives the sign"
            ),
        )
    else:
        bad = ~((values >= 0.5) & (values <= 1.0))
        reason = "must lie in [0.5, 1]; below 0.5, move the pair to the other list and use 1 - certainty"
    if bad.any():
        row = int(np.argmax(bad))
        where = f"{name} of {_pair_of(row, n_must)}" if n_pairs else name
        raise ValueError(f"{where} is {values[row]}: it {reason}")
    return np.array(values[:n_pairs]) if name == "weight" else certainty_weight(values[:n_pairs])


def _as_numbers(given: Any, name: str, n_must: int) -> Floats:
    """Weights or certainties as floats; the first that is masked or no number is named with its pair."""
    hidden = np.atleast_1d(np.ma.getmaskarray(given)) if isinstance(given, np.ma.MaskedArray) else np.zeros(1)
    if hidden.any():
        pair = _pair_of(int(np.argmax(hidden.ravel())), n_must)
        raise ValueError(f"{name} of {pair} is masked: fill it in, or leave the pair out")
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(np.atleast_1d(np.array(given, dtype=object)).tolist()):
            try:
                float(value)
            except (TypeError, ValueError):
                pair = _pair_of(row, n_must)
                raise ValueError(f"{name} of {pair} is {value!r}: it is no number; correct it") from None
        raise


def _pair_of(row: int, n_must: int) -> str:
    """The list and the place in it of a pair counted over both lists."""
    return f"must_link pair {row}" if row < n_must else f"cannot_link pair {row - n_must}"


def certainty_weight(certainty: Floats | np.float64) -> Floats:
    """abs(W) = 0.5 log(g / (1 - g)) of a certainty g (Lu & Leen 2007, Eq. 2.15); 1 is hard."""
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * (np.log(certainty) - np.log1p(-certainty)))


def base_rate(weights: Floats, n_clusters: int) -> float:
    """P(same) of the pairs that were asked about, estimated from the answers and how sure they are.

    With a_l = P(answer l | same), b_l = P(answer l | different) and log(a_l / b_l) = 2 W_l, it maximises the
    sum of log(p a_l + (1 - p) b_l), and of ten pairs more of which a share 1 / K is the same.
    """
    if n_clusters < 2:
        return 1.0 - _RAREST
    values, counts = np.unique(weights, return_counts=True)
    guess = 1.0 / n_clusters
    rate = guess
    for _ in range(1000):
        same = expit(2.0 * values + logit(rate))
        before, rate = rate, float(counts @ same + _PRIOR_PAIRS * guess) / (counts.sum() + _PRIOR_PAIRS)
        if abs(rate - before) < 1e-9:
            break
    return float(np.clip(rate, _RAREST, 1.0 - _RAREST))


def truth_weights(weights: Floats, rate: float) -> Floats:
    """Weights of P(truth | answer) from those of P(answer | truth), ``rate`` being P(same) before.

    The chance of the truth given the answer is g p / (g p + (1 - g)(1 - p)), g its certainty and p the base
    rate of what was said: half its log odds. Hard links stay hard, and no answer changes its sign.
    """
    odds = np.where(weights > 0, logit(rate), -logit(rate))
    return np.asarray(np.sign(weights) * np.maximum(np.abs(weights) + 0.5 * odds, _LEAST_WEIGHT))


def canonical(n_samples: int, pairs: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Sorted unique pairs with evidence added; raises on hard contradictions."""
    pairs, row_of = unique_pairs(n_samples, pairs)
    if len(pairs) == len(weights):
        total = np.empty(len(pairs))
        total[row_of] = weights
    else:
        # Summed apart, so that the order in which evidence arrives cannot matter and inf - inf shows.
        attract = np.bincount(row_of, np.maximum(weights, 0.0), len(pairs))
        repel = np.bincount(row_of, np.maximum(-weights, 0.0), len(pairs))
        clash = np.flatnonzero(np.isinf(attract) & np.isinf(repel))
        if clash.size:
            i, j = pairs[clash[0]].tolist()
            raise InfeasibleConstraints(path_witness(n_samples, pairs[clash[:1]], i, j))
        total = np.subtract(attract, repel, dtype=np.float64)
    kept = total != 0
    if not kept.all():
        pairs, total = np.ascontiguousarray(pairs[kept]), total[kept]
    found = check_feasibility(n_samples, pairs, total)
    if found.witness is not None:
        raise InfeasibleConstraints(found.witness)
    return pairs, total


def check_source(source: Any, n_must: int, n_cannot: int) -> NDArray[np.str_]:
    """One name for each pair as text; None or missing is "", which names nobody."""
    n_pairs = n_must + n_cannot
    if isinstance(source, str):
        return np.full(n_pairs, source)
    names = np.asarray(source, dtype=object)
    if names.shape != (n_pairs,):
        raise ValueError(
            f"source has shape {names.shape}; give one name, or one per pair "
            f"({n_must} must-links first, then {n_cannot} cannot-links)"
        )
    return np.array([cell_text(name).strip() for name in names.tolist()], dtype=np.str_)


def sorted_judgements(pairs: Ints, weights: Floats, source: NDArray[np.str_]) -> Judgements:
    """Judgements in an order that does not depend on the order in which they came."""
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((weights, source, pairs[:, 1], pairs[:, 0]))
    return Judgements(pairs[order], weights[order], source[order])
