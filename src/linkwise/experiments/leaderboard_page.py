"""The tables of the leaderboard as Markdown, for ``docs/leaderboard.md`` to include."""

from __future__ import annotations

from typing import Any

from linkwise.experiments.leaderboard_data import SETS, half_of
from linkwise.experiments.leaderboard_methods import METHODS
from linkwise.experiments.leaderboard_summary import Cells, losses, summarise

__all__ = ["leaderboard_tables", "markdown_table"]

_FLIPS = {"0": "all links right", "0.1": "10 % of the links wrong", "0.2": "20 % of the links wrong"}
_LISTED = 30


def markdown_table(head: list[str], rows: list[list[Any]]) -> str:
    """A table in Markdown, numbers with three decimals and nothing for NaN.

    Parameters
    ----------
    head : list of str
    rows : list of list

    Returns
    -------
    str

    Examples
    --------
    >>> from linkwise.experiments.leaderboard_page import markdown_table
    >>> print(markdown_table(["method", "rank"], [["PPC", 0.25]]))
    | method | rank |
    | --- | --- |
    | PPC | 0.250 |
    """

    def text(value: Any) -> str:
        if isinstance(value, float):
            return "" if value != value else f"{value:.3f}"
        return str(value)

    lines = [head, ["---"] * len(head), *[[text(value) for value in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def leaderboard_tables(cells: Cells) -> str:
    """All tables of the page.

    Parameters
    ----------
    cells : list of dict
        From :func:`linkwise.experiments.leaderboard_summary.read_cells`.

    Returns
    -------
    str
        Markdown.
    """
    ran = sorted({cell["set"] for cell in cells})
    draws = {name: len({cell["draw"] for cell in cells if cell["set"] == name}) for name in ran}
    infeasible = sum(cell["status"] == "infeasible" for cell in cells)
    errors = sorted({cell["status"] for cell in cells} - {"ok", "infeasible"})
    parts = [
        f"{len(cells)} cells on {len(ran)} of {len(SETS)} sets; draws begun: "
        + ", ".join(f"{name} {count}" for name, count in draws.items())
        + f". {infeasible} cells had hard links that no labelling keeps. "
        + (f"Errors: {'; '.join(errors)}." if errors else "No fit raised an error.")
    ]
    for half in "AB":
        names = ", ".join(name for name in ran if half_of(name) == half)
        parts.append(f"## Half {half}\n\nSets: {names}.")
        for flip, title in _FLIPS.items():
            parts.append(f"### Half {half}: {title}\n\n{markdown_table(*summarise(cells, half, flip))}")
        parts.append(f"### Half {half}: overall\n\n{markdown_table(*summarise(cells, half))}")
    parts.append(f"## All sets\n\n{markdown_table(*summarise(cells))}")
    head, rows = losses(cells, tuple(name for name in METHODS if "start" not in name))
    parts.append(
        f"## Where links lose to ignoring them\n\n{len(rows)} of {_n_compared(cells)} triples of method, set "
        f"and share of wrong links, each the mean over the shares of linked rows; "
        f"the {min(len(rows), _LISTED)} largest losses:\n\n{markdown_table(head, rows[:_LISTED])}"
    )
    return "\n\n".join(parts) + "\n"


def _n_compared(cells: Cells) -> int:
    """Triples of method, set and share of wrong links in the file, variants of the start left out."""
    return len(
        {
            (cell["method"], cell["set"], cell["flip"])
            for cell in cells
            if cell["method"] in METHODS and "start" not in cell["method"] and cell["status"] == "ok"
        }
    )
