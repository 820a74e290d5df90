"""Beliefs of ±1, which leave no doubt: what they ask for, and which outcomes contradict them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._heat_map import signed
from linkwise.mixture.classes.decisions import held

if TYPE_CHECKING:
    from linkwise.mixture.classes.report import ClassReport

__all__ = ["contradiction_sentence", "contradictions", "n_held_apart"]

#: Beliefs at least this strong count as ±1; a table may have been through a spreadsheet.
SURE = 1.0 - 1e-9


def n_held_apart(beliefs: NDArray[np.float64]) -> int:
    """Size of a set of classes of which any two are believed apart by -1: fewer clusters contradict them.

    The set is grown greedily, so that a larger one may exist.

    Parameters
    ----------
    beliefs : (L, L)

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.classes.sure_beliefs import n_held_apart
    >>> n_held_apart(2.0 * np.eye(3) - 1.0)
    3
    >>> n_held_apart(np.array([[1.0, -1.0, 0.5], [-1.0, 1.0, -0.2], [0.5, -0.2, 1.0]]))
    2
    """
    apart = np.asarray(beliefs) <= -SURE
    np.fill_diagonal(apart, False)
    candidates = np.ones(len(apart), dtype=bool)
    size = 0
    for place in np.argsort(-apart.sum(axis=1), kind="stable"):
        if candidates[place]:
            candidates &= apart[place]
            size += 1
    return size


def contradictions(report: ClassReport) -> list[dict[str, Any]]:
    """Outcomes that contradict a belief of ±1, each with the belief beside its certainty and its rows.

    Two classes believed apart may be merged, two believed together may share no cluster, a class believed
    whole may be split, and one that should be split may be whole.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    list of dict
        ``outcome``: "merged", "apart", "split" or "whole"; ``classes``: names, one or two; ``belief``;
        ``separability``; ``clusters``: names of those concerned; ``n_rows``: rows of the classes in them;
        ``certainty``: mean probability of the clusters among these rows.
    """
    holds = held(report.contingency, report.threshold)
    found = []
    for a in range(len(report.classes)):
        clusters = np.flatnonzero(holds[a])
        belief = report.beliefs[a, a]
        if belief >= SURE and len(clusters) > 1:
            found.append(_record(report, "split", [a], clusters))
        elif belief <= -SURE and len(clusters) == 1:
            found.append(_record(report, "whole", [a], clusters))
    for a, b in combinations(range(len(report.classes)), 2):
        belief = report.beliefs[a, b]
        if abs(belief) < SURE:
            continue
        shared = np.flatnonzero(holds[a] & holds[b])
        if belief < 0 and len(shared):
            found.append(_record(report, "merged", [a, b], shared))
        elif belief > 0 and not len(shared) and holds[a].any() and holds[b].any():
            found.append(_record(report, "apart", [a, b], np.flatnonzero(holds[a] | holds[b])))
    return found


def _record(
    report: ClassReport, outcome: str, places: list[int], clusters: NDArray[np.int64]
) -> dict[str, Any]:
    counts = report.contingency[places].sum(axis=0)[clusters]
    pair = places[0], places[-1]
    return {
        "outcome": outcome,
        "classes": tuple(report.classes[place] for place in places),
        "belief": float(report.beliefs[pair]),
        "separability": float(report.separability[pair]),
        "clusters": tuple(report.legend[k] for k in clusters.tolist()),
        "n_rows": int(counts.sum()),
        "certainty": float(np.average(report.certainty[clusters], weights=counts)),
    }


_OUTCOMES = {
    "merged": ("keeps {names} apart", "{n_rows} of their rows share {clusters}"),
    "apart": ("puts {names} together", "no cluster holds both: {n_rows} rows in {clusters}"),
    "split": ("keeps {names} whole", "it is split: {n_rows} rows in {clusters}"),
    "whole": ("asks to split {names}", "{n_rows} of its rows are in {clusters}"),
}


def contradiction_sentence(record: dict[str, Any]) -> str:
    """A contradiction in words.

    Parameters
    ----------
    record : dict
        Of :func:`contradictions`.

    Returns
    -------
    str
    """
    names = " and ".join(str(name) for name in record["classes"])
    wish, outcome = (
        part.format(names=names, n_rows=record["n_rows"], clusters=", ".join(record["clusters"]))
        for part in _OUTCOMES[record["outcome"]]
    )
    return (
        f"the belief {signed(record['belief'])} {wish}, but {outcome} "
        f"(certainty {record['certainty']:.2f}, separability {signed(record['separability'])})"
    )
