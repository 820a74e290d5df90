"""Section 4.1 of Preston et al. (2010) without EM: the printed criterion on groupings that we fix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.classes.legend_scores import legend_criteria
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.datasets import make_eleven_gaussians

__all__ = ["EXPERIMENTS", "GROUPINGS", "cppc_fixed_groupings", "grouped"]

#: Is class 1 in two, are 2 and 3 apart, is class 4 in two, are 5 to 9 apart?
GROUPINGS = {
    "{1} {2,3} {4} {5-9}": (False, False, False, False),
    "{1} {2} {3} {4} {5-9}": (False, True, False, False),
    "{1a} {1b} {2,3} {4} {5-9}": (True, False, False, False),
    "{1a} {1b} {2} {3} {4} {5-9}": (True, True, False, False),
    "nine classes": (False, True, False, True),
    "eleven Gaussians": (True, True, True, True),
}
#: What the paper reports for lambda = .2; for .75 it is the one before.
CLAIMED = "{1a} {1b} {2} {3} {4} {5-9}"

#: Half-way between the modes of classes 1 and 4, at x = -5 and x = -2.
_BETWEEN_MODES = -3.5


def grouped(X: NDArray[np.float64], y: NDArray[np.int64], grouping: str) -> NDArray[np.int64]:
    """Clusters of the rows in a grouping that is named.

    Parameters
    ----------
    X : (n, 2) float64
    y : (n,) int64
        Classes 1 to 9.
    grouping : str
        A key of ``GROUPINGS``.

    Returns
    -------
    (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_eleven_gaussians
    >>> from experiments.classes.groupings import GROUPINGS, grouped
    >>> X, y, _ = make_eleven_gaussians(random_state=0)
    >>> [len(np.unique(grouped(X, y, name))) for name in GROUPINGS]
    [4, 5, 5, 6, 9, 11]
    """
    first_split, second_apart, fourth_split, last_apart = GROUPINGS[grouping]
    clusters = y.copy()
    right = X[:, 0] > _BETWEEN_MODES
    if first_split:
        clusters[(y == 1) & right] = 10
    if not second_apart:
        clusters[y == 3] = 2
    if fourth_split:
        clusters[(y == 4) & right] = 11
    if not last_apart:
        clusters[y > 5] = 5
    return clusters


def cppc_fixed_groupings(draw: int, weight: float) -> list[Row]:
    """CBIC of the groupings the paper names and of a few others, on one draw of its data.

    Every cluster is a Gaussian with the moments of its rows, so EM has no influence: if the grouping that the
    paper reports is not the lowest here, its criterion does not choose it. The modes of classes 1 and 4 are
    told apart by the line half-way between them.

    Parameters
    ----------
    draw : int
        Seed of the data.
    weight : float
        lambda of Eq. 15: .2 and .75 in the paper.

    Returns
    -------
    list of dict
        For each grouping "cbic_paper" (Eq. 15 as printed), "cbic" (ours, on the likelihood) and for both
        whether it is the lowest of all, "lowest_paper" and "lowest".

    Examples
    --------
    >>> from experiments.classes.groupings import cppc_fixed_groupings
    >>> [row["method"] for row in cppc_fixed_groupings(0, 0.2) if row["lowest_paper"]]
    ['{1a} {1b} {2,3} {4} {5-9}']
    """
    X, y, beliefs = make_eleven_gaussians(random_state=draw)
    rows: list[dict[str, Any]] = []
    for name in GROUPINGS:
        criteria = legend_criteria(X, y, grouped(X, y, name), beliefs, weight)
        rows.append({"method": name, "cbic_paper": criteria["cbic_paper"], "cbic": criteria["cbic"]})
    for criterion, column in (("cbic_paper", "lowest_paper"), ("cbic", "lowest")):
        lowest = min(row[criterion] for row in rows)
        for row in rows:
            row[column] = float(row[criterion] == lowest)
    return rows


_SETTINGS = [{"weight": weight} for weight in (0.2, 0.75)]

EXPERIMENTS = (
    Experiment(
        "cppc_fixed_groupings",
        "The criterion of CPPC on fixed groupings of its own example, without EM; lower is better",
        "CPPC, section 4.1: cBIC is smallest at K = 6 (lambda .2) and K = 5 (.75)",
        cppc_fixed_groupings,
        quick=Size(_SETTINGS, 5),
        full=Size(_SETTINGS, 100),
        measures=("cbic_paper", "lowest_paper", "cbic", "lowest"),
        reference=CLAIMED,
    ),
)
