"""Part of an experiment is run anew: which settings, and what the others keep of an earlier table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.framework.experiment import Size
from experiments.framework.summary import Row
from experiments.framework.tables import read_table

__all__ = ["chosen_methods", "chosen_size", "with_kept"]

_METHOD = "method="


def chosen_methods(known: Sequence[str], only: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Methods that "method=NAME" names, of an experiment that can run each alone, and the other texts.

    Parameters
    ----------
    known : sequence of str
        Methods that can be run alone; if there are none, "method" is a setting like others.
    only : sequence of str

    Returns
    -------
    methods, others : tuple of str

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> from experiments.framework.kept import chosen_methods
    >>> chosen_methods(["PPC", "KMeans"], ["set=iris", "method=PPC"])
    (('PPC',), ('set=iris',))
    """
    if not known:
        return (), tuple(only)
    methods = tuple(text.removeprefix(_METHOD) for text in only if text.startswith(_METHOD))
    for name in methods:
        if name not in known:
            raise ValueError(f"there is no method {name!r}; use one of {', '.join(known)}")
    return methods, tuple(text for text in only if not text.startswith(_METHOD))


def chosen_size(size: Size, only: Sequence[str], n_draws: int | None = None) -> Size:
    """The settings that ``only`` names, with at most so many draws.

    Parameters
    ----------
    size : Size
    only : sequence of str
        "key=value". Several values of one key are alternatives; none means all settings.
    n_draws : int, optional

    Returns
    -------
    Size

    Raises
    ------
    ValueError
        If a text is not of this form, or if no setting is left.

    Examples
    --------
    >>> from experiments.framework.experiment import Size
    >>> from experiments.framework.kept import chosen_size
    >>> size = Size([{"set": "iris", "links": n} for n in (10, 20, 30)], n_draws=5)
    >>> chosen_size(size, ["links=10", "links=30"], 2)
    Size(settings=[{'set': 'iris', 'links': 10}, {'set': 'iris', 'links': 30}], n_draws=2)
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, found, value = text.partition("=")
        if not found or any(key not in setting for setting in size.settings):
            keys = ", ".join(size.settings[0])
            raise ValueError(f"{text!r} names no setting; write KEY=VALUE with one of {keys}")
        wanted.setdefault(key, set()).add(value)
    settings = [
        setting
        for setting in size.settings
        if all(str(setting[key]) in values for key, values in wanted.items())
    ]
    if not settings:
        raise ValueError(f"no setting has {' and '.join(only)}; see the values in a table that was written")
    return Size(settings, size.n_draws if n_draws is None else min(n_draws, size.n_draws))


def with_kept(
    folder: str | Path,
    name: str,
    settings: Sequence[Row],
    table: Sequence[Row],
    *,
    other_methods: bool = False,
) -> tuple[list[Row], list[dict[str, Any]]]:
    """A new table with the rows that an earlier one has of settings without new rows.

    Parameters
    ----------
    folder : path
        Holds the earlier table and its record.
    name : str
        Name of both files, without their endings.
    settings : sequence of dict
        All settings, in the order of the result.
    table : list of dict
        New rows.
    other_methods : bool
        Of settings with new rows, keep those of methods without new ones.

    Returns
    -------
    rows : list of dict
    kept : list of dict
        Where the kept rows come from: date, states of the code and number of rows; the newest first.
    """
    path = Path(folder) / f"{name}.csv"
    if not path.exists():
        return list(table), []
    keys = list(settings[0])

    def setting_of(row: Row) -> tuple[Any, ...]:
        # A table on disk has 0 for 0.0: numbers are compared, not their texts.
        return tuple(row[key] if isinstance(row[key], int | float) else str(row[key]) for key in keys)

    place = {setting_of(setting): k for k, setting in enumerate(settings)}

    def key_of(row: Row) -> tuple[Any, ...]:
        return (*setting_of(row), row["method"]) if other_methods else setting_of(row)

    new = {key_of(row) for row in table}
    old = [row for row in read_table(path) if key_of(row) not in new and setting_of(row) in place]
    rows = sorted([*table, *old], key=lambda row: place[setting_of(row)])
    if not old:
        return rows, []
    record = json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8"))
    kept = [{"date": record["date"], "rows": len(old), "sources": record["sources"]}]
    return rows, kept + record.get("kept", [])
