"""Links in one line, and as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Bools
from linkwise._pages import TextTable, html_table
from linkwise._validation import counted
from linkwise.graph import compact, group_labels

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints

# Links in the table that notebooks show.
_SHOWN = 10


def summary(links: Constraints) -> str:
    """``150 samples, 40 must-links (12 hard), 60 cannot-links; 23 chunklets`` (of two or more samples)."""

    def kind(chosen: Bools, noun: str) -> str:
        hard = int(np.isinf(links.weights[chosen]).sum())
        return counted(int(chosen.sum()), noun) + (f" ({hard} hard)" if hard else "")

    rows, local = compact(links.pairs[links.weights == np.inf])
    n_chunklets = group_labels(len(rows), local)[1]
    parts = [
        f"{counted(links.n_samples, 'sample')}{'' if links.index is None else ' by id'}, "
        f"{kind(links.weights > 0, 'must-link')}, {kind(links.weights < 0, 'cannot-link')}",
        counted(n_chunklets, "chunklet"),
    ]
    if links.source is not None:
        n_sources = len({*links.source.tolist()} - {""})
        parts.append(f"{counted(len(links.source), 'judgement')} of {counted(n_sources, 'source')}")
    if links.classes is not None:
        parts.append(f"{len(links.classes)} class" + ("" if len(links.classes) == 1 else "es"))
    return "; ".join(parts)


def html(links: Constraints) -> str:
    """A heading and the first few links as a table."""
    names: Any = range(links.n_samples) if links.index is None else links.index
    rows = [
        [
            str(names[i]),
            str(names[j]),
            "must-link" if weight > 0 else "cannot-link",
            "hard" if np.isinf(weight) else f"{abs(weight):.3g}",
        ]
        for (i, j), weight in zip(links.pairs[:_SHOWN].tolist(), links.weights[:_SHOWN].tolist(), strict=True)
    ]
    if links.n_pairs > _SHOWN:
        rows.append(["…", "…", f"and {links.n_pairs - _SHOWN} more", ""])
    table = html_table(TextTable("", ["i", "j", "kind", "weight"], rows, 3))
    return f"<div><b>Constraints</b>: {escape(summary(links))}{table}</div>"
