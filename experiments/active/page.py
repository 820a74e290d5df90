"""The tables of the experiment "ask" as Markdown, for ``docs/research/ask.md`` to include."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from experiments.active.ask import CONDITIONS, EXPERIMENTS, METHODS
from experiments.active.curves import CHECKPOINTS
from experiments.active.summary import (
    BELOW_RANDOM,
    Gap,
    Scores,
    gaps,
    half_scores,
    mean_of,
    scores,
    targets,
    whole,
)
from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table, read_table, target_list
from experiments.leaderboard.data import SETS, half_of

__all__ = ["ASK_INCLUDES", "ask_includes", "curves", "details", "target_table"]

_FULL = EXPERIMENTS[0].full


def curves(table: Sequence[Row]) -> str:
    """Means over the sets after each number of answers, a table for each kind of answers.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "ask".

    Returns
    -------
    str
        Markdown.
    """
    parts = [_extent(table)]
    table, _ = whole(table)
    found = scores(table)
    for condition in _measured(found):
        parts.append(f"**Answers: {condition}**\n\n{_means(found, condition, intervals=True)}")
    return "\n\n".join(parts) + "\n"


def target_table(table: Sequence[Row]) -> str:
    """What was to be reached, and whether it is.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    return target_list(targets(table))


def details(table: Sequence[Row]) -> str:
    """The halves, sets below random pairs, means by set, and seconds of a question.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    table, _ = whole(table)
    found = scores(table)
    parts = []
    for half in "AB":
        names = ", ".join(name for name in sorted(SETS) if half_of(name) == half)
        own = half_scores(found, half)
        parts.append(f"### Half {half}\n\nSets: {names}. Right answers.\n\n{_means(own, 'right')}")
    parts.append(_below_random(table))
    for answers in (25, 100):
        parts.append(f"### By set, {answers} right answers\n\n{_by_set(found, answers)}")
    seconds = [
        [method, float(np.mean([row["mean"] for row in table if _is_time(row, method)]))]
        for method in _methods(found)
        if any(_is_time(row, method) for row in table)
    ]
    parts.append(
        "### Seconds\n\nProcessor seconds of the next question, labels not counted; for LinkedClustering, of "
        f"all fits, divided by the number of answers.\n\n{markdown_table(['method', 'seconds'], seconds)}"
    )
    return "\n\n".join(parts) + "\n"


def _below_random(table: Sequence[Row]) -> str:
    """Sets and numbers of answers at which random pairs are better by more than the target allows."""
    found = gaps(table)
    text = (
        f"### Below random pairs\n\nOf {len(found)} pairs of a set and a number of right answers, those "
        f"where random pairs, with the better of their labels, are better by more than {BELOW_RANDOM}. Means "
        "are of the same draws unless their numbers differ."
    )
    rows = [
        [name, str(answers), _numbers_of_draws(gap), gap.method, f"{gap.ours:.3f}", f"{gap.theirs:.3f}"]
        + [f"{gap.mean:+.3f}", f"{gap.error:.3f}" if gap.error == gap.error else ""]
        for (name, answers), gap in sorted(found.items(), key=lambda item: item[1].mean)
        if gap.mean < -BELOW_RANDOM
    ]
    if not rows:
        return f"{text}\n\nThere are none."
    head = ["set", "answers", "draws", "random pairs", "session", "random", "difference", "standard error"]
    return f"{text}\n\n{markdown_table(head, rows)}"


def _numbers_of_draws(gap: Gap) -> str:
    return str(gap.n) if gap.n == gap.n_theirs else f"{gap.n} and {gap.n_theirs}"


def _is_time(row: Row, method: str) -> bool:
    return bool(row["measure"] == "seconds" and row["method"] == method)


def _measured(found: Scores) -> list[str]:
    return [condition for condition in CONDITIONS if any(key[0] == condition for key in found)]


def _methods(found: Scores) -> list[str]:
    return [method for method in METHODS if any(key[1] == method for key in found)]


def _means(found: Scores, condition: str, intervals: bool = False) -> str:
    rows = []
    for method in _methods(found):
        means = [mean_of(found, condition, method, m) for m in CHECKPOINTS]
        if any(one.mean == one.mean for one in means):
            cells = [
                "" if one.mean != one.mean else str(one) if intervals else f"{one.mean:.3f}" for one in means
            ]
            rows.append([method, *cells])
    return markdown_table(["method", *(str(m) for m in CHECKPOINTS)], rows)


def _by_set(found: Scores, answers: int) -> str:
    methods = [m for m in _methods(found) if ("right", m, answers) in found]
    columns = {method: found["right", method, answers] for method in methods}
    rows = []
    for name in sorted(SETS):
        known = {method: own[name].mean for method, own in columns.items() if name in own}
        if known:
            best = max(known.values())
            cells = [
                "" if m not in known else f"**{known[m]:.2f}**" if known[m] == best else f"{known[m]:.2f}"
                for m in methods
            ]
            rows.append([name, *cells])
    return markdown_table(["set", *methods], rows)


def _extent(table: Sequence[Row]) -> str:
    """How much was run, and who is missing."""
    n_sets = len({row["set"] for row in table})
    known: dict[tuple[str, str, str], int] = {}
    for row in table:
        key = row["set"], row["condition"], row["method"]
        known[key] = max(row["n"], known.get(key, 0))
    draws = max(known.values())
    most = "up to " if min(known.values()) < draws else ""
    text = f"{n_sets} of {len(SETS)} sets, {most}{draws} draw{'s' if draws > 1 else ''}."
    missing = [method for method in METHODS if not any(key[2] == method for key in known)]
    if missing:
        text += f" Not run: {'; '.join(missing)}."
    _, unfinished = whole(table)
    if unfinished:
        text += f" Not run on all sets, and left out there: {'; '.join(sorted(unfinished))}."
    if sum(known.values()) < len(_FULL.settings) * _FULL.n_draws:
        text += " The run is not finished."
    return text


#: Generated parts of the page: file name, and the function that makes it.
ASK_INCLUDES: dict[str, Callable[[Sequence[Row]], str]] = {
    "ask_curves.inc": curves,
    "ask_targets.inc": target_table,
    "ask_details.inc": details,
}


def ask_includes(folder: str | Path) -> dict[str, str]:
    """Every generated part, by file name, if the table is in a folder.

    Parameters
    ----------
    folder : path

    Returns
    -------
    dict of str to str
    """
    path = Path(folder) / "ask.csv"
    if not path.exists():
        return {}
    table = read_table(path)
    return {file: make(table) for file, make in ASK_INCLUDES.items()}
