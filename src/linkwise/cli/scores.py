"""Scores of a labelling against known classes and against links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = ["TruthScores", "links_kept", "score_truth"]


@dataclass(frozen=True)
class TruthScores:
    """How well clusters match known classes.

    Attributes
    ----------
    accuracy, pairwise_f1, rand : float
    n_rows : int
        Rows with a known class, the only ones that count.
    """

    accuracy: float
    pairwise_f1: float
    rand: float
    n_rows: int


def score_truth(
    truth: NDArray[Any] | None, labels: NDArray[Any], rows: NDArray[np.bool_] | None = None
) -> TruthScores | None:
    """Scores over the rows whose class is known; None if there are fewer than two.

    Parameters
    ----------
    truth : (n,) or None
        None or -1 where unknown.
    labels : (n,)
    rows : (n,) bool, optional
        Rows to look at.
    """
    if truth is None:
        return None
    from linkwise import metrics

    known = np.array([name is not None and name != -1 for name in truth.tolist()], dtype=bool)
    if rows is not None:
        known &= rows
    if known.sum() < 2:
        return None
    y, found = truth[known], np.asarray(labels)[known]
    return TruthScores(
        metrics.clustering_accuracy(y, found),
        metrics.pairwise_f1(y, found),
        metrics.rand_score(y, found),
        int(known.sum()),
    )


def links_kept(links: Constraints, labels: NDArray[Any]) -> str:
    """``38 of 40``, or a dash without links."""
    if not links.n_pairs:
        return "–"
    return f"{links.n_pairs - int(links.violations(labels).sum())} of {links.n_pairs}"
