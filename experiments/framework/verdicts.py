"""From a tidy table to a verdict on a claim, by rules that do not depend on the claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments.framework.summary import Row

__all__ = [
    "Claim", "Finding", "against", "by_majority", "by_threshold", "gains", "mean_of", "rows_of", "signs",
]  # fmt: skip

HOLDS, PARTLY, FAILS = "holds", "partly", "does not hold"


class Finding(NamedTuple):
    """What was measured, in a sentence, and the verdict."""

    measured: str
    verdict: str


class Claim(NamedTuple):
    """A sentence of a paper and how it is judged.

    Attributes
    ----------
    paper : str
    where : str
        Section or figure.
    says : str
        The claim, in our words.
    experiment : str
    judge : callable
        From the tidy table of the experiment to a finding.
    why : str
        Where we disagree: what explains it.
    tried : str or callable
        What else was looked at before the paper was doubted; a callable takes the tidy table of ``tried_in``,
        so that every figure in the text comes from it.
    tried_in : str
        Another experiment; the one of the claim if empty.
    cause : str
        What was done differently for this claim when its experiment was run again, where that is not what was
        done for the experiment as a whole.
    """

    paper: str
    where: str
    says: str
    experiment: str
    judge: Callable[[list[Row]], Finding]
    why: str = ""
    tried: str | Callable[[list[Row]], str] = ""
    tried_in: str = ""
    cause: str = ""


def rows_of(table: Sequence[Row], measure: str, **wanted: Any) -> list[Row]:
    """Rows of a measure with these values; a tuple stands for any of its members.

    Parameters
    ----------
    table : list of dict
    measure : str
    **wanted
        Columns of the setting, or "method".

    Returns
    -------
    list of dict

    Raises
    ------
    ValueError
        If there is none: a claim about nothing would hold.

    Examples
    --------
    >>> from experiments.framework.verdicts import rows_of
    >>> table = [{"links": links, "method": "PPC", "measure": "f", "mean": 0.5} for links in (0, 20, 40)]
    >>> [row["links"] for row in rows_of(table, "f", links=(20, 40))]
    [20, 40]
    """
    allowed = {key: value if isinstance(value, tuple) else (value,) for key, value in wanted.items()}
    found = [
        row
        for row in table
        if row["measure"] == measure and all(row[key] in values for key, values in allowed.items())
    ]
    if not found:
        raise ValueError(f"no row of {measure} with {wanted}")
    return found


def gains(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Paired differences to the reference whose interval is above, across and below zero.

    Parameters
    ----------
    rows : list of dict
        With a reference.

    Returns
    -------
    better, open, worse : int
        A difference that is exactly zero in every draw is open.

    Examples
    --------
    >>> from experiments.framework.verdicts import gains
    >>> limits = [(0.1, 0.3), (-0.1, 0.2), (-0.3, -0.1), (0.0, 0.0)]
    >>> gains([{"difference_low": low, "difference_high": high} for low, high in limits])
    (1, 2, 1)
    """
    better = sum(row["difference_low"] is not None and row["difference_low"] > 0 for row in rows)
    worse = sum(row["difference_high"] is not None and row["difference_high"] < 0 for row in rows)
    return better, len(rows) - better - worse, worse


def mean_of(table: Sequence[Row], measure: str, **wanted: Any) -> float:
    """The mean of the one row of a measure with these values.

    Parameters
    ----------
    table : list of dict
    measure : str
    **wanted
        See :func:`rows_of`.

    Returns
    -------
    float

    Examples
    --------
    >>> from experiments.framework.verdicts import mean_of
    >>> mean_of([{"links": 9, "method": "PPC", "measure": "f", "mean": 0.5}], "f", links=9, method="PPC")
    0.5
    """
    (row,) = rows_of(table, measure, **wanted)
    return float(row["mean"])


def against(rows: Sequence[Row], others: Sequence[Row]) -> tuple[int, int, int]:
    """Rows whose interval is above, across and below that of the row at the same place among the others.

    For methods that are compared with a common reference and not with each other, and for settings, which are
    not paired. Overlapping intervals decide nothing, which is stricter than a test of the difference.

    Parameters
    ----------
    rows, others : list of dict

    Returns
    -------
    above, open, below : int

    Examples
    --------
    >>> from experiments.framework.verdicts import against
    >>> def row(low, high):
    ...     return {"low": low, "high": high}
    >>> against([row(0.6, 0.7), row(0.4, 0.6)], [row(0.3, 0.5), row(0.5, 0.7)])
    (1, 1, 0)
    """
    pairs = list(zip(rows, others, strict=True))
    above = sum(_known(a, b) and a["low"] > b["high"] for a, b in pairs)
    below = sum(_known(a, b) and a["high"] < b["low"] for a, b in pairs)
    return above, len(pairs) - above - below, below


def _known(*rows: Row) -> bool:
    return all(row["low"] is not None and row["low"] == row["low"] for row in rows)


def signs(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Rows whose own interval is above, across and below zero: measures that are differences themselves.

    Parameters
    ----------
    rows : list of dict

    Returns
    -------
    above, open, below : int

    Examples
    --------
    >>> from experiments.framework.verdicts import signs
    >>> signs([{"low": 0.1, "high": 0.2}, {"low": -0.1, "high": 0.2}])
    (1, 1, 0)
    """
    return against(rows, [{"low": 0.0, "high": 0.0}] * len(rows))


def by_majority(yes: int, undecided: int, no: int) -> str:
    """Verdict on a claim about several comparisons.

    Parameters
    ----------
    yes, undecided, no : int
        Comparisons that support the claim, that decide nothing, and that contradict it.

    Returns
    -------
    {"holds", "partly", "does not hold"}
        It holds if two thirds support it and none contradicts it; it does not if fewer support it than
        contradict it, or none does.

    Examples
    --------
    >>> from experiments.framework.verdicts import by_majority
    >>> by_majority(4, 2, 0), by_majority(4, 1, 1), by_majority(1, 3, 2)
    ('holds', 'partly', 'does not hold')
    """
    if no == 0 and 3 * yes >= 2 * (yes + undecided):
        return HOLDS
    return FAILS if yes == 0 or yes < no else PARTLY


def by_threshold(values: Sequence[float], test: Callable[[float], bool]) -> str:
    """Verdict on a claim that every value must pass.

    Parameters
    ----------
    values : list of float
    test : callable

    Returns
    -------
    {"holds", "partly", "does not hold"}
        All, some or none pass.

    Examples
    --------
    >>> from experiments.framework.verdicts import by_threshold
    >>> by_threshold([0.9, 0.95], lambda value: value > 0.92)
    'partly'
    """
    passed = [test(value) for value in values]
    return HOLDS if all(passed) else PARTLY if any(passed) else FAILS
