"""What ``auto`` should be: chosen on one half of the sets by a fixed rule, reported on the other half."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from experiments.framework.summary import Row
from experiments.leaderboard.summary import WITHOUT_LINKS, Scores, against_itself, scores_by_setting

__all__ = ["CANDIDATES", "SITUATIONS", "Situation", "choice_table", "choose"]

#: Method of the leaderboard for each estimator with its defaults; by kind of links it was given.
CANDIDATES = {
    "hard": {"PPC hard": "PPC", "ConstrainedEM": "ConstrainedEM", "COPKMeans": "COPKMeans"},
    "soft": {
        "PPC soft": "PPC", "MPCKMeans": "HMRFKMeans", "ConstrainedSpectral": "ConstrainedSpectralClustering",
    },
}  # fmt: skip

#: A method may be worse than without links in this share of the settings at most, if any is.
_MOST_WORSE = 0.2


class Situation(NamedTuple):
    """What is known before a fit: the kind of links, how many, and whether some are expected to be wrong."""

    kind: str
    shares: tuple[float, ...]
    flips: tuple[float, ...]


#: Few links are 0.05 per row, many 0.15 or 0.3.
SITUATIONS = {
    "hard, many": Situation("hard", (0.15, 0.3), (0.0,)),
    "hard, few": Situation("hard", (0.05,), (0.0,)),
    "soft, sure, many": Situation("soft", (0.15, 0.3), (0.0,)),
    "soft, sure, few": Situation("soft", (0.05,), (0.0,)),
    "soft, doubtful, many": Situation("soft", (0.15, 0.3), (0.1, 0.2)),
    "soft, doubtful, few": Situation("soft", (0.05,), (0.1, 0.2)),
}


def choose(scores: Scores, methods: Iterable[str]) -> str:
    """The highest mean score among methods that links seldom harm.

    Parameters
    ----------
    scores : dict
        From :func:`experiments.leaderboard.summary.scores_by_setting`.
    methods : iterable of str

    Returns
    -------
    str
        The method with the highest mean score over the settings where all ran, among those that gain on
        average and are worse than without links (by more than 0.01) in at most a fifth of the settings; if
        there is none, the one that is worse least often.

    Examples
    --------
    >>> from experiments.leaderboard.choice import choose
    >>> without = {"PPC, no links": 0.4, "MPCKMeans, no links": 0.7}
    >>> scores = {("iris", 0.3, 0.0): {"PPC soft": 0.5, "MPCKMeans": 0.6, **without}}
    >>> choose(scores, ["PPC soft", "MPCKMeans"])
    'PPC soft'
    """
    methods = list(methods)
    common = {key: found for key, found in scores.items() if set(methods) <= set(found)}
    means = {m: sum(found[m] for found in common.values()) / max(1, len(common)) for m in methods}
    harm = {method: _harm(scores, method) for method in methods}
    careful = [m for m in methods if harm[m] <= _MOST_WORSE and _record(scores, m)[1][2] > 0]
    if careful:
        return max(careful, key=lambda method: means[method])
    return min(methods, key=lambda method: (harm[method], -means[method]))


def _record(scores: Scores, method: str) -> tuple[int, list[Any]]:
    """Settings compared, and better, worse, gain and its error."""
    counterpart = WITHOUT_LINKS[method]
    gains = [
        (key[0], found[method] - found[counterpart])
        for key, found in scores.items()
        if method in found and counterpart in found
    ]
    return len(gains), against_itself(gains)


def _harm(scores: Scores, method: str) -> float:
    n, (_, worse, _, _) = _record(scores, method)
    return worse / n if n else 1.0


def choice_table(table: Iterable[Row]) -> tuple[list[str], list[list[Any]]]:
    """The choice of half A in every situation, and how it does on half B.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "leaderboard".

    Returns
    -------
    head, rows
        Situation, estimator, and for each half the mean gain over no links with its standard error over the
        sets, and the settings worse than that out of all.
    """
    table = list(table)
    rows = []
    for name, situation in SITUATIONS.items():
        candidates = CANDIDATES[situation.kind]
        by_half = {
            half: scores_by_setting(table, half=half, shares=situation.shares, flips=situation.flips)
            for half in "AB"
        }
        method = choose(by_half["A"], candidates)
        row: list[Any] = [name, candidates[method]]
        for half in "AB":
            n, (_, worse, gain, error) = _record(by_half[half], method)
            row += [f"{gain:+.3f} ± {error:.3f}", f"{worse} of {n}"]
        rows.append(row)
    return ["situation", "chosen on half A", "gain, half A", "worse, A", "gain, half B", "worse, B"], rows
