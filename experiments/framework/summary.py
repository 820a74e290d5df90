"""Means over draws with confidence intervals, and paired differences to a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy.stats import t as student

__all__ = ["Row", "interval", "summarise"]

Row = dict[str, Any]

#: Probability that an interval covers the mean.
CONFIDENCE = 0.95


class _Draw(Protocol):
    """What a trial must have."""

    @property
    def setting(self) -> dict[str, Any]: ...
    @property
    def draw(self) -> int: ...
    @property
    def rows(self) -> list[Row]: ...


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its confidence interval (Student's t, 95 %).

    Parameters
    ----------
    values : sequence of float
        One for each draw; NaN stands for a draw without a value and is left out.

    Returns
    -------
    mean, low, high : float
        NaN limits for fewer than two values, NaN throughout for none.

    Examples
    --------
    >>> from experiments.framework.summary import interval
    >>> [round(limit, 3) for limit in interval([0.8, 0.9, 1.0])]
    [0.9, 0.652, 1.148]
    """
    found = np.asarray(values, dtype=np.float64)
    found = found[~np.isnan(found)]
    n = len(found)
    if n == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(found.mean())
    if n == 1:
        return mean, float("nan"), float("nan")
    half = float(student.ppf(0.5 + 0.5 * CONFIDENCE, n - 1) * found.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def summarise(
    trials: Iterable[_Draw],
    measures: Sequence[str],
    reference: str | None = None,
    texts: Sequence[str] = (),
) -> list[Row]:
    """Tidy table: a row for each setting, method and measure.

    Parameters
    ----------
    trials : iterable of Trial
    measures : sequence of str
        Columns of numbers. A method need not have all of them.
    reference : str, optional
        Method that the others are compared with on the same draws.
    texts : sequence of str
        Columns of words.

    Returns
    -------
    list of dict
        The setting's columns; "method"; "measure"; "n", draws with a value; "mean", "low", "high"; and
        "difference", "difference_low", "difference_high" to the reference (None for itself and without
        one). For words, "mean" is the share of the draws with the most frequent one, which is "text".

    Examples
    --------
    >>> from experiments.framework.summary import summarise
    >>> from experiments.framework.trials import Trial
    >>> def rows(plain, linked):
    ...     return [{"method": "plain", "f": plain}, {"method": "linked", "f": linked}]
    >>> trials = [Trial({"links": 9}, 0, rows(0.2, 0.4)), Trial({"links": 9}, 1, rows(0.6, 0.9))]
    >>> table = summarise(trials, ["f"], reference="plain")
    >>> [(row["method"], round(row["mean"], 2), row["difference"]) for row in table]
    [('plain', 0.4, None), ('linked', 0.65, 0.25)]
    """
    settings: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, dict[int, Row]]]] = {}
    for trial in trials:
        _, methods = settings.setdefault(tuple(trial.setting.values()), (trial.setting, {}))
        for row in trial.rows:
            methods.setdefault(row["method"], {})[trial.draw] = row
    table = []
    for setting, methods in settings.values():
        for method, draws in methods.items():
            for measure in measures:
                values = {draw: row[measure] for draw, row in draws.items() if row.get(measure) is not None}
                if values:
                    others = {} if method == reference else methods.get(reference or "", {})
                    table.append(
                        {**setting, "method": method, "measure": measure, **_numbers(values, others, measure)}
                    )
            for column in texts:
                words = Counter(row[column] for row in draws.values() if column in row)
                if words:
                    table.append({**setting, "method": method, "measure": column, **_most_frequent(words)})
    return table


def _numbers(values: dict[int, float], others: dict[int, Row], measure: str) -> Row:
    mean, low, high = interval(list(values.values()))
    pairs = [
        value - others[draw][measure]
        for draw, value in values.items()
        if draw in others and others[draw].get(measure) is not None
    ]
    gain = interval(pairs) if pairs else (None, None, None)
    return {
        "n": sum(value == value for value in values.values()), "mean": mean, "low": low, "high": high,
        "difference": gain[0], "difference_low": gain[1], "difference_high": gain[2], "text": "",
    }  # fmt: skip


def _most_frequent(words: Counter[str]) -> Row:
    text, count = words.most_common(1)[0]
    return {
        "n": words.total(), "mean": count / words.total(), "low": None, "high": None,
        "difference": None, "difference_low": None, "difference_high": None, "text": text,
    }  # fmt: skip
