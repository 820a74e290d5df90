"""Files of links: by row number or by id, hard, weighted or with a certainty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.cli.errors import INFEASIBLE, CommandError
from linkwise.cli.samples import Samples
from linkwise.cli.tables import read_frame, table_suffix
from linkwise.constraints.io import LinkList, by_id, by_row, frame_records, link_list, records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from linkwise.constraints import Constraints

__all__ = ["LinkList", "build_links", "check_links", "read_link_list", "read_links"]


def read_links(
    path: str | Path | None, samples: Samples, *, certainty: float | None = None, by_row: bool = False
) -> Constraints:
    """Links among the rows of a data file.

    Parameters
    ----------
    path : path_like or None
        Columns ``i, j, kind`` and, if wanted, ``weight`` or ``certainty``. None: no links.
    samples : Samples
        If they have ids, ``i`` and ``j`` are ids.
    certainty : float, optional
        Of links that have neither weight nor certainty of their own; without it they are hard.
    by_row : bool, default=False
        ``i`` and ``j`` are row numbers although there are ids.

    Returns
    -------
    Constraints
    """
    from linkwise.constraints import Constraints

    if path is None:
        return Constraints(len(samples))
    places = None if by_row else samples.places
    links = read_link_list(path, len(samples), places=places, certainty=certainty)
    return build_links(links, len(samples), samples)


def read_link_list(
    path: str | Path,
    n_samples: int | None,
    *,
    places: Mapping[str, int] | None = None,
    certainty: float | None = None,
) -> LinkList:
    """The lines of a file of links; every message names the line.

    Parameters
    ----------
    path : path_like
    n_samples : int or None
        None: any row number will do.
    places : mapping from id to row number, optional
    certainty : float, optional

    Returns
    -------
    LinkList
    """
    path = Path(path)
    find: Callable[[str, str], int]
    if places is None:
        find = by_row(n_samples, "for links by id name the column: --id")
    else:
        find = by_id(places, "correct it, or use --links-by row")
    try:
        if path.is_dir() or table_suffix(path) == ".parquet":
            lines = frame_records(path, read_frame(path))
        else:
            lines = records(path)
        links = link_list(path, lines, find, certainty=certainty)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not len(links.pairs):
        raise CommandError(f"{path} has no links; leave --links out to do without")
    return links


def build_links(links: LinkList, n_samples: int, samples: Samples | None = None) -> Constraints:
    """Put the lines together: soft evidence adds up, hard contradictions are refused with their proof."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    must = links.weights > 0
    strength = np.abs(np.concatenate([links.weights[must], links.weights[~must]]))
    try:
        return Constraints(n_samples, links.pairs[must], links.pairs[~must], weight=strength)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


def check_links(links: Constraints, n_clusters: int, samples: Samples | None = None) -> None:
    """Refuse hard links that this many clusters cannot satisfy."""
    from linkwise.exceptions import InfeasibleConstraints

    try:
        links.check(n_clusters)
    except InfeasibleConstraints as error:
        raise CommandError(_witness(error, samples), INFEASIBLE) from None


def _witness(error: Any, samples: Samples | None) -> str:
    """The proof of a contradiction; where links were given by id, the ids of its rows."""
    message = f"the links cannot all hold: {error.witness.message}"
    remedy = "; remove one of these links, make them soft with --certainty, or ask for more clusters"
    if samples is None or samples.ids is None:
        return message + remedy
    points = sorted({point for link in error.witness.must_link + error.witness.cannot_link for point in link})
    names = ", ".join(f"row {point} is {samples.name_of(point)!r}" for point in points[:12])
    return f"{message} ({names}){remedy}"
