"""Means over the sets of the experiment "ask", and what was to be reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from experiments.active.curves import CHECKPOINTS
from experiments.framework.summary import CONFIDENCE, Row
from experiments.leaderboard.data import half_of
from experiments.leaderboard.summary import Estimate, Target

__all__ = [
    "BELOW_RANDOM",
    "OURS",
    "Gap",
    "Scores",
    "coverage",
    "draw_measure",
    "gaps",
    "half_scores",
    "keeps_draws",
    "mean_of",
    "scores",
    "targets",
    "whole",
]

OURS = "ActiveClustering"
#: Random pairs, with the labels of the session and with those of LinkedClustering; the better one counts.
RANDOM = ("random", "random, LinkedClustering")


class _Score(NamedTuple):
    """Mean over the draws, half of its interval, number of draws."""

    mean: float
    half_width: float
    n: int


class Gap(NamedTuple):
    """How far ours is above random pairs on a set: mean of the draws that both have, and its standard error.

    ``ours`` and ``theirs`` are means over ``n`` and ``n_theirs`` draws, the same ones unless these numbers
    differ; ``method`` names the random pairs.
    """

    mean: float
    error: float
    n: int
    n_theirs: int
    ours: float
    theirs: float
    method: str


#: (condition, method, answers) and the score of each set.
Scores = dict[tuple[str, str, int], dict[str, _Score]]


def scores(table: Sequence[Row], measure: str = "ari") -> Scores:
    """Scores of a tidy table by condition, method and number of answers.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "ask".
    measure : {"ari", "covered"}

    Returns
    -------
    dict
    """
    found: Scores = defaultdict(dict)
    for row in table:
        kind, _, answers = row["measure"].rpartition("_")
        if kind == measure:
            known = row["high"] is not None and row["high"] == row["high"]
            half_width = row["high"] - row["mean"] if known else float("nan")
            key = row["condition"], row["method"], int(answers)
            found[key][row["set"]] = _Score(row["mean"], half_width, row["n"])
    return dict(found)


def whole(table: Sequence[Row]) -> tuple[list[Row], set[str]]:
    """Rows that can be compared, and methods that were left out somewhere: a run may not be finished.

    A method counts under a condition if it has seen as many sets there as any.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    rows : list of dict
    unfinished : set of str
    """
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in table:
        seen[row["condition"], row["method"]].add(row["set"])
    most = {condition: 0 for condition, _ in seen}
    for (condition, _), sets in seen.items():
        most[condition] = max(most[condition], len(sets))
    short = {key for key, sets in seen.items() if len(sets) < most[key[0]]}
    kept = [row for row in table if (row["condition"], row["method"]) not in short]
    return kept, {method for _, method in short}


def keeps_draws(condition: str, method: str) -> bool:
    """Whether the table holds the score of each draw, too: of methods that are compared draw by draw."""
    return condition == "right" and method in (OURS, *RANDOM)


def draw_measure(answers: int, draw: int) -> str:
    """Name of the score of one draw."""
    return f"ari_{answers}_draw_{draw}"


def _drawn(table: Sequence[Row]) -> dict[tuple[str, str, int], dict[int, float]]:
    """Score of each draw by set, method and number of answers, of those with right answers that have them."""
    found: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
    for row in table:
        kind, _, draw = row["measure"].rpartition("_draw_")
        if kind and row["condition"] == "right":
            key = row["set"], row["method"], int(kind.removeprefix("ari_"))
            found[key][int(draw)] = row["mean"]
    return found


def gaps(table: Sequence[Row]) -> dict[tuple[str, int], Gap]:
    """By set and number of right answers, how far ours is above the better of the random pairs.

    The same draws are compared. They are numbered from 0, so that means of as many draws are means of the
    same ones. If the score of each draw is not in the table, the standard error is that of independent draws,
    and the numbers of draws may differ.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    dict
    """
    found, drawn = scores(table), _drawn(table)
    worst: dict[tuple[str, int], Gap] = {}
    for answers in CHECKPOINTS[1:]:
        for name, score in found.get(("right", OURS, answers), {}).items():
            for method in RANDOM:
                other = found.get(("right", method, answers), {}).get(name)
                if other is None:
                    continue
                ours, theirs = drawn.get((name, OURS, answers), {}), drawn.get((name, method, answers), {})
                both = sorted(ours.keys() & theirs.keys())
                if both:
                    gap = _gap([ours[d] for d in both], [theirs[d] for d in both], method)
                else:
                    error = float(np.hypot(_error(score), _error(other)))
                    difference = score.mean - other.mean
                    gap = Gap(difference, error, score.n, other.n, score.mean, other.mean, method)
                if (name, answers) not in worst or gap.mean < worst[name, answers].mean:
                    worst[name, answers] = gap
    return worst


def _gap(ours: list[float], theirs: list[float], method: str) -> Gap:
    """From the scores of the same draws."""
    gain = np.subtract(ours, theirs)
    error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else float("nan")
    n = len(gain)
    return Gap(float(gain.mean()), error, n, n, float(np.mean(ours)), float(np.mean(theirs)), method)


def _error(score: _Score) -> float:
    """Standard error of a mean over draws, from its interval."""
    if score.n < 2:
        return float("nan")
    return float(score.half_width / student.ppf(0.5 + 0.5 * CONFIDENCE, score.n - 1))


def half_scores(found: Scores, half: str) -> Scores:
    """The scores of the sets of one half."""
    return {
        key: {name: score for name, score in by_set.items() if half_of(name) == half}
        for key, by_set in found.items()
    }


def mean_of(found: Scores, condition: str, method: str, answers: int) -> Estimate:
    """Mean over the sets, and half of its 95 % interval over other draws on the same sets.

    Draws of two sets have nothing in common, so the variance of the mean is the sum of theirs.

    Parameters
    ----------
    found : Scores
    condition, method : str
    answers : int

    Returns
    -------
    Estimate
        NaN where nothing was measured.

    Examples
    --------
    >>> from experiments.active.summary import mean_of
    >>> by_set = {"iris": (0.5, 0.1, 5), "wine": (0.7, 0.1, 5)}
    >>> mean_of({("right", "npu", 50): by_set}, "right", "npu", 50).mean
    0.6
    """
    by_set = [_Score(*score) for score in found.get((condition, method, answers), {}).values()]
    if not by_set:
        return Estimate(float("nan"), float("nan"))
    mean = float(np.mean([score.mean for score in by_set]))
    if any(score.n < 2 for score in by_set):
        return Estimate(mean, float("nan"))
    level = 0.5 + 0.5 * CONFIDENCE
    errors = [_error(score) for score in by_set]
    free = sum(score.n - 1 for score in by_set)
    half_width = student.ppf(level, free) * np.sqrt(np.sum(np.square(errors))) / len(by_set)
    return Estimate(mean, float(half_width))


def coverage(table: Sequence[Row], method: str = OURS) -> tuple[float, int]:
    """Share of runs and checkpoints at which the interval of the quality held the truth, and their number."""
    by_set = [
        score
        for (_, who, _), own in scores(table, "covered").items()
        for score in own.values()
        if who == method
    ]
    count = sum(score.n for score in by_set)
    held = sum(score.mean * score.n for score in by_set)
    return (held / count if count else float("nan")), count


#: What was to be reached.
_ABOVE_COBRAS = 0.12
BELOW_RANDOM = 0.03
_KEPT_GAIN = 0.75
_COVERED = (0.80, 0.98)


def targets(table: Sequence[Row]) -> list[Target]:
    """What was to be reached on all sets, and what was.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    list of Target
    """
    table, _ = whole(table)
    found = scores(table)
    return [
        *(_above_cobras(found, m) for m in (10, 25, 50, 100, 200)),
        _not_below_random(table),
        *(_kept_gain(found, m) for m in (50, 100, 200)),
        _covered(table),
    ]


def _above_cobras(found: Scores, answers: int) -> Target:
    ours, other = (mean_of(found, "right", name, answers).mean for name in (OURS, "COBRAS"))
    margin = ours - other
    measured = f"{ours:.3f}, COBRAS {other:.3f}: {margin:+.3f}" if margin == margin else ""
    wanted = f"COBRAS + {_ABOVE_COBRAS}"
    return Target(f"mean after {answers} answers", wanted, measured, _reached(margin - _ABOVE_COBRAS))


def _not_below_random(table: Sequence[Row]) -> Target:
    """The set and number of answers at which ours is furthest below the better of the random pairs."""
    found = gaps(table)
    wanted = f"nowhere more than {BELOW_RANDOM} below random pairs"
    if not found:
        return Target("any set, any number of answers", wanted, "", None)
    name, answers = min(found, key=lambda key: found[key].mean)
    worst = found[name, answers]
    many = sum(gap.mean < -BELOW_RANDOM for gap in found.values())
    notes = [f"standard error {worst.error:.3f}"] if worst.error == worst.error else []
    if worst.n != worst.n_theirs:
        notes.append(f"{worst.n} draws against {worst.n_theirs}")
    elif notes:
        notes.append(f"{worst.n} draws")
    note = f" ({', '.join(notes)})" if notes else ""
    unpaired = sum(gap.n != gap.n_theirs for gap in found.values())
    other = f"; {unpaired} compare different numbers of draws" if unpaired else ""
    return Target(
        "any set, any number of answers",
        wanted,
        f"{worst.mean:+.3f}{note} on {name} after {answers}; {many} of {len(found)} cases are below{other}",
        worst.mean >= -BELOW_RANDOM,
    )


def _kept_gain(found: Scores, answers: int) -> Target:
    start, right, wrong = (
        mean_of(found, condition, OURS, m).mean
        for condition, m in (("right", 0), ("right", answers), ("10 % wrong", answers))
    )
    share = (wrong - start) / (right - start)
    return Target(
        f"10 % wrong, {answers} answers: share of the gain over no answers",
        f"at least {_KEPT_GAIN:.0%}",
        f"{share:.0%} ({start:.3f} to {wrong:.3f}, right answers {right:.3f})" if share == share else "",
        _reached(share - _KEPT_GAIN),
    )


def _covered(table: Sequence[Row]) -> Target:
    share, count = coverage(table)
    low, high = _COVERED
    return Target(
        "90 % intervals of the quality hold the truth",
        f"{low:.0%} to {high:.0%} of the runs",
        f"{share:.0%} of {count}" if count else "",
        low <= share <= high if count else None,
    )


def _reached(margin: float) -> bool | None:
    """Whether a margin is not negative; None if it is not known."""
    return None if margin != margin else margin >= 0.0
