"""The tables of the leaderboard as Markdown, for ``docs/leaderboard.md`` to include."""

from __future__ import annotations

from collections import Counter

from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table
from experiments.leaderboard.choice import choice_table
from experiments.leaderboard.data import SETS, half_of
from experiments.leaderboard.methods import METHODS
from experiments.leaderboard.summary import WITHOUT_LINKS, losses, scores_by_setting, standings

__all__ = ["leaderboard_tables"]

_FLIPS = {0.0: "all links right", 0.1: "10 % of the links wrong", 0.2: "20 % of the links wrong"}
_LISTED = 30


def leaderboard_tables(table: list[Row]) -> str:
    """All tables of the page.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "leaderboard".

    Returns
    -------
    str
        Markdown.
    """
    ran = sorted({row["set"] for row in table})
    draws = max(row["n"] for row in table)
    problems = [row for row in table if row["measure"] == "problem"]
    other = Counter(
        f"{row['method']}: {row['text'].split(':')[0]}" for row in problems if row["text"] != "infeasible"
    )
    parts = [
        f"{len(ran)} of {len(SETS)} sets, {draws} draws. "
        f"{sum(row['n'] for row in problems if row['text'] == 'infeasible')} fits had hard links that no "
        "labelling keeps. "
        + (
            "Settings with other problems: "
            + "; ".join(f"{problem} ({count})" for problem, count in sorted(other.items()))
            + "."
            if other
            else "No fit raised another error."
        ),
        f"## The choice of auto\n\n{markdown_table(*choice_table(table))}",
    ]
    for half in "AB":
        names = ", ".join(name for name in ran if half_of(name) == half)
        parts.append(f"## Half {half}\n\nSets: {names}.")
        for flip, title in _FLIPS.items():
            scores = scores_by_setting(table, half=half, flips=(flip,))
            parts.append(f"### Half {half}: {title}\n\n{markdown_table(*standings(scores))}")
        scores = scores_by_setting(table, half=half)
        parts.append(f"### Half {half}: overall\n\n{markdown_table(*standings(scores))}")
    scores = scores_by_setting(table)
    parts.append(f"## All sets\n\n{markdown_table(*standings(scores))}")
    methods = [name for name in METHODS if "start" not in name]
    head, rows = losses(scores, methods)
    n_compared = len({(m, key[0], key[2]) for key, found in scores.items() for m in methods
                      if m in found and WITHOUT_LINKS[m] in found})  # fmt: skip
    parts.append(
        f"## Where links lose to ignoring them\n\n{len(rows)} of {n_compared} triples of method, set and "
        "share of wrong links, each the mean over the shares of linked rows; "
        f"the {min(len(rows), _LISTED)} largest losses:\n\n{markdown_table(head, rows[:_LISTED])}"
    )
    return "\n\n".join(parts) + "\n"
