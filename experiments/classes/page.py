"""The tables of redefined classes as Markdown, for ``docs/research/classes.md`` to include."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.classes.tasks import SETS, half_of
from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table, read_table

__all__ = ["CLASS_INCLUDES", "class_includes", "coarse_table", "doubled_table", "nothing_table"]


def coarse_table(table: Sequence[Row]) -> str:
    """Adjusted Rand indices of "coarse_classes" or "coarse_criteria": means, halves, harm, and by set.

    Parameters
    ----------
    table : list of dict
        Tidy table.

    Returns
    -------
    str
        Markdown.
    """
    sets = _sets(table)
    halves = [[name for name in sets if half_of(name) == half] for half in "AB"]
    rows = []
    for method in dict.fromkeys(row["method"] for row in table):
        means = [_mean(table, "ari", names, method=method) for names in (sets, *halves)]
        below = _mean(table, "below", sets, method=method)
        strayed = _mean(table, "strayed", sets, method=method)
        own = [_mean(table, "ari", [name], method=method) for name in sets]
        rows.append(
            [method, *map(_short, means), f"{below:.0%}", f"{strayed:.1%}", *(_short(value) for value in own)]
        )
    head = ["", "mean", "half A", "half B", "worse than the names", "rows that left their name"]
    return markdown_table([*head, *(name.replace("_", " ") for name in sets)], rows) + "\n"


def doubled_table(table: Sequence[Row]) -> str:
    """Shares of draws merged or left apart, by belief, of "doubled_classes" or "distinct_classes".

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    sets = _sets(table)
    rows = []
    for belief in sorted({row["belief"] for row in table}):
        merged, apart, score = (
            _mean(table, name, sets, belief=belief) for name in ("merged", "apart", "ari")
        )
        rows.append([f"{belief:g}".replace("-", "−"), f"{merged:.0%}", f"{apart:.0%}", _short(score)])
    head = ["belief that the two are one", "made one", "left apart", "index to the true classes"]
    return markdown_table(head, rows) + "\n"


def nothing_table(table: Sequence[Row]) -> str:
    """Share of the classes of "nothing_to_do" that were divided.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    sets = _sets(table)
    rows = []
    for kind in dict.fromkeys(row["kind"] for row in table):
        for method in dict.fromkeys(row["method"] for row in table):
            shares = [
                _mean(table, "divided", names, kind=kind, method=method)
                for names in (sets, *([name] for name in sets))
            ]
            rows.append([kind, method, *(f"{share:.0%}" for share in shares)])
    head = ["rows", "method", "classes divided", *(name.replace("_", " ") for name in sets)]
    return markdown_table(head, rows) + "\n"


def _sets(table: Sequence[Row]) -> list[str]:
    measured = {row["set"] for row in table}
    return [name for name in SETS if name in measured]


def _mean(table: Sequence[Row], measure: str, sets: Sequence[str], **wanted: Any) -> float:
    """Mean over the sets of the mean over the draws; NaN if there are no sets."""
    means = [
        row["mean"]
        for row in table
        if row["measure"] == measure
        and row["set"] in sets
        and all(row[key] == value for key, value in wanted.items())
    ]
    return sum(means) / len(means) if means else float("nan")


def _short(value: float) -> str:
    """Two digits without the zero before the point."""
    return "" if value != value else f"{value:.2f}".removeprefix("0")


#: Files to include, the experiment each is made from, and how.
CLASS_INCLUDES: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "coarse_classes.inc": ("coarse_classes", coarse_table),
    "coarse_criteria.inc": ("coarse_criteria", coarse_table),
    "doubled_classes.inc": ("doubled_classes", doubled_table),
    "distinct_classes.inc": ("distinct_classes", doubled_table),
    "nothing_to_do.inc": ("nothing_to_do", nothing_table),
}


def class_includes(folder: str | Path) -> dict[str, str]:
    """All tables, by the name of their file.

    Parameters
    ----------
    folder : path
        Tables of the experiments (CSV).

    Returns
    -------
    dict of str to str
    """
    return {
        name: make(read_table(Path(folder) / f"{experiment}.csv"))
        for name, (experiment, make) in CLASS_INCLUDES.items()
    }
