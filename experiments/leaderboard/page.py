"""The tables of the leaderboard as Markdown, for ``docs/research/leaderboard.md`` to include."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table, read_table, target_list
from experiments.leaderboard.data import SETS, WRONG, half_of
from experiments.leaderboard.few_labels import CLASSIFIERS
from experiments.leaderboard.figure import SHOWN
from experiments.leaderboard.leaderboard import N_REPEATS
from experiments.leaderboard.methods import BEFORE, CHOSEN_WITHOUT, METHODS, WITHOUT_LINKS
from experiments.leaderboard.real_sets import REAL_SETS
from experiments.leaderboard.summary import (
    CONDITIONS,
    NOISY,
    RIGHT,
    Scores,
    best_without,
    harm,
    mean_score,
    measured,
    n_repeats,
    scores,
    targets,
)

__all__ = [
    "INCLUDES", "ON_THIS_PAGE", "changes", "details", "few_labels", "hard_groups", "includes",
    "other_packages", "standings", "target_table", "unknown_number",
]  # fmt: skip

_CONDITION_NAMES = [str(condition) for condition in CONDITIONS]


def standings(table: Sequence[Row]) -> str:
    """The main table: means by condition, harm and time, best mean first.

    Parameters
    ----------
    table : list of dict
        Tidy table of the experiment "leaderboard".

    Returns
    -------
    str
        Markdown.
    """
    known, seconds = scores(table), scores(table, measure="seconds")
    rows = []
    for name in _by_score(known, SHOWN):
        own = [mean_score(known, name, [condition]).mean for condition in CONDITIONS]
        lost = [
            "" if name == CHOSEN_WITHOUT else _percent(harm(known, name, conditions=group).mean)
            for group in (RIGHT, NOISY)
        ]
        time = float(np.nanmean([mean_score(seconds, name, [c]).mean for c in CONDITIONS]))
        rows.append([name, *(_short(value) for value in own), *lost, f"{time:.2g}"])
    head = ["method", *_CONDITION_NAMES, "worse, right", "worse, wrong", "seconds"]
    return f"{_extent(table)}\n\n{markdown_table(head, rows)}\n"


def changes(table: Sequence[Row]) -> str:
    """What the new defaults bought: earlier and present ones, and how often each loses to ignoring the links.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    known = scores(table)
    rows = []
    for before in BEFORE:
        now = before.split(", ")[0]
        plain = METHODS[now].counterpart or ""
        for label, name in ((before, before), (f"{now}, now", now)):
            means = [mean_score(known, name, [condition]).mean for condition in CONDITIONS]
            lost = [_percent(harm(known, name, plain, conditions=group).mean) for group in (RIGHT, NOISY)]
            rows.append([label, *(_short(mean) for mean in means), *lost])
        rows.append([plain, *(_short(mean_score(known, plain, [c]).mean) for c in CONDITIONS), "", ""])
    head = ["method", *_CONDITION_NAMES, "worse than without links, right", "worse, wrong"]
    return markdown_table(head, rows) + "\n"


def target_table(table: Sequence[Row]) -> str:
    """What was to be reached, and whether it is.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    return target_list(targets(table))


def details(table: Sequence[Row]) -> str:
    """All methods with their intervals, the halves, gains over no links, and means by set.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    known = scores(table)
    halves = {half: scores(table, half=half) for half in "AB"}
    everything = [*METHODS, *BEFORE, CHOSEN_WITHOUT, *WITHOUT_LINKS]
    best = best_without(halves["A"])
    parts = [
        "### All methods, with intervals\n\n"
        "Means over the sets; ± is half of the 95 % interval over the repeats.\n\n"
        + _means_table(known, everything)
    ]
    for half, found in halves.items():
        names = ", ".join(sorted({case.set for case in found}))
        parts.append(f"### Half {half}\n\nSets: {names}.\n\n{_means_table(found, everything)}")
    parts.append(
        "### One method without links for all sets\n\n"
        f"Half A chooses {best}: "
        + "; ".join(
            f"half {half} {mean_score(found, best, measured(found))}, "
            f"LinkedClustering {mean_score(found, 'LinkedClustering', measured(found))}"
            for half, found in halves.items()
        )
        + "."
    )
    parts.append(f"### Against the same method without links\n\n{_gains_table(known)}")
    parts.append(f"### By set\n\n{_sets_table(known)}")
    parts.append(f"### Fits that failed\n\n{_problems(table)}")
    return "\n\n".join(parts) + "\n"


def hard_groups(table: Sequence[Row]) -> str:
    """Means over the sets of "hard_groups" or "hard_pairs", the hard links that were broken, and every set.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown. A run may not be finished: means are over the sets that all methods have clustered, and
        methods that have clustered less than a quarter of what others have are not among them.
    """
    table = _whole(table, "share")
    shares = sorted({row["share"] for row in table})
    names = list(dict.fromkeys(row["method"] for row in table))
    known = {
        (row["method"], row["set"], row["share"], row["measure"]): row["mean"]
        for row in table
        if row["measure"] != "problem"
    }
    sets = {
        method: [
            name
            for name in dict.fromkeys(row["set"] for row in table)
            if all((method, name, share, "ari") in known for share in shares)
        ]
        for method in names
    }
    most = max(len(found) for found in sets.values())
    late = [method for method in names if len(sets[method]) < most / 4]
    compared = [method for method in names if method not in late]
    common = [name for name in sets[compared[0]] if all(name in sets[method] for method in compared)]
    rows = []
    for method in compared:
        means = [
            _mean([known.get((method, name, share, measure), np.nan) for name in common])
            for measure in ("ari", "ari_unlinked")
            for share in shares
        ]
        counted = [
            row["mean"] * row["n"] for row in table if (row["method"], row["measure"]) == (method, "broken")
        ]
        rows.append([method, *(_short(mean) for mean in means), str(round(sum(counted))) if counted else ""])
    head = [f"{share:.0%}{rows_of}" for rows_of in ("", ", rows without links") for share in shares]
    count = max(row["n"] for row in table)
    by_set = [
        [name, f"{share:.0%}", *(_short(known.get((method, name, share, "ari"), np.nan)) for method in names)]
        for name in dict.fromkeys(row["set"] for row in table)
        for share in shares
    ]
    return (
        f"{len(common)} of {len(REAL_SETS)} sets, {count} draw{'s' if count > 1 else ''}."
        + "".join(f" {method} has clustered {len(sets[method])} of them: see below." for method in late)
        + f"\n\n{markdown_table(['method', *head, 'links broken'], rows)}\n\n"
        "<details><summary>Every set, scores of all rows</summary>\n\n"
        f"{markdown_table(['set', 'rows', *names], by_set)}\n\n</details>\n"
    )


def few_labels(table: Sequence[Row]) -> str:
    """Means over the sets of the experiment "few_labels", best first.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    best: dict[str, float] = {}
    for row in table:
        if row["measure"] == "ari" and row["method"] in CLASSIFIERS:
            best[row["set"]] = max(best.get(row["set"], -1.0), row["mean"])
    rows = []
    for name in dict.fromkeys(row["method"] for row in table):
        own = [row for row in table if row["method"] == name]
        halves = [
            _mean_over_sets([row for row in own if half_of(row["set"]) == half], "ari") for half in "AB"
        ]
        gaps = [best[row["set"]] - row["mean"] for row in own if row["measure"] == "ari"]
        rows.append([name, _mean_over_sets(own, "ari"), *halves, max(gaps, default=np.nan)])
    rows.sort(key=lambda row: -np.nan_to_num(row[1], nan=-1.0))
    head = ["method", "mean", "half A", "half B", "furthest below the best classifier of a set"]
    return f"{_draws(table)}\n\n{markdown_table(head, rows)}\n"


def other_packages(table: Sequence[Row]) -> str:
    """Means over the sets where a package ran, and how often it did not.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    table = _whole(table, "flip")
    rows = []
    for name in dict.fromkeys(row["method"] for row in table):
        row: list[Any] = [name.removeprefix("peer ")]
        for flip in (0.0, WRONG):
            own = [one for one in table if one["method"] == name and one["flip"] == flip]
            failed = sum(one["n"] for one in own if one["measure"] == "problem")
            row += [
                *(_short(_mean_over_sets(own, measure)) for measure in ("ari", "kept")),
                str(failed) if own else "",
            ]
        rows.append(row)
    head = ["package", "right links", "kept", "failed", "15 % wrong", "kept", "failed"]
    return f"{_draws(table)}\n\n{markdown_table(head, rows)}\n"


def unknown_number(table: Sequence[Row]) -> str:
    """Means over the sets of the experiment "unknown_number", and by how many clusters numbers are wrong.

    Parameters
    ----------
    table : list of dict

    Returns
    -------
    str
        Markdown.
    """
    kinds = tuple(dict.fromkeys(row["links"] for row in table))
    rows = []
    for name in dict.fromkeys(row["method"] for row in table):
        row: list[Any] = [name]
        for kind in kinds:
            own = [one for one in table if one["method"] == name and one["links"] == kind]
            half_b = [one for one in own if half_of(one["set"]) == "B"]
            row += [
                _mean_over_sets(own, "ari"), _mean_over_sets(half_b, "ari"), _mean_over_sets(own, "off")
            ]  # fmt: skip
        rows.append(row)
    head = [
        f"{'no links' if kind == 'none' else f'links of {kind}'}{part}"
        for kind in kinds
        for part in ("", ", half B", ", clusters off")
    ]
    return f"{_draws(table)}\n\n{markdown_table(['method', *head], rows)}\n"


#: Generated parts of the page: file name, and the experiment and the function that make it.
INCLUDES: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "leaderboard_standings.inc": ("leaderboard", standings),
    "leaderboard_changes.inc": ("leaderboard", changes),
    "leaderboard_targets.inc": ("leaderboard", target_table),
    "leaderboard_details.inc": ("leaderboard", details),
    "hard_groups.inc": ("hard_groups", hard_groups),
    "hard_pairs.inc": ("hard_pairs", hard_groups),
    "few_labels.inc": ("few_labels", few_labels),
    "other_packages.inc": ("other_packages", other_packages),
    "unknown_number.inc": ("unknown_number", unknown_number),
}

#: Experiments that stand on the page of the leaderboard and not among the claims.
ON_THIS_PAGE = tuple(dict.fromkeys(name for name, _ in INCLUDES.values()))


def includes(folder: str | Path) -> dict[str, str]:
    """Every generated part whose table is in a folder, by file name.

    Parameters
    ----------
    folder : path

    Returns
    -------
    dict of str to str
    """
    paths = {name: Path(folder) / f"{name}.csv" for name in ON_THIS_PAGE}
    tables = {name: read_table(path) for name, path in paths.items() if path.exists()}
    return {file: make(tables[name]) for file, (name, make) in INCLUDES.items() if name in tables}


def _whole(table: Sequence[Row], key: str) -> Sequence[Row]:
    """Rows of those values of a setting that have seen as many sets as any: a run may not be finished."""
    sets: dict[Any, set[str]] = {}
    for row in table:
        sets.setdefault(row[key], set()).add(row["set"])
    most = max(len(names) for names in sets.values())
    return [row for row in table if len(sets[row[key]]) == most]


def _draws(table: Sequence[Row]) -> str:
    """How much was run: sets, and draws of them, from the fewest to the most."""
    by_set: dict[str, int] = {}
    for row in table:
        by_set[row["set"]] = max(by_set.get(row["set"], 0), row["n"])
    fewest, most = min(by_set.values()), max(by_set.values())
    draws = f"{most}" if fewest == most else f"{fewest} to {most}"
    return f"{len(by_set)} of {len(SETS)} sets, {draws} draw{'s' if most > 1 else ''}."


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _mean_over_sets(rows: Sequence[Row], measure: str) -> float:
    return _mean([row["mean"] for row in rows if row["measure"] == measure])


def _extent(table: Sequence[Row]) -> str:
    """How much was run."""
    known = scores(table)
    sets = {case.set for case in known}
    count = n_repeats(known)
    there = len(measured(known))
    fewer = [f"{own} of `{name}`" for name in SHOWN if 0 < (own := n_repeats(known, name)) < count]
    return (
        f"{len(sets)} of {len(SETS)} sets, {there} of {len(CONDITIONS)} kinds of links, "
        f"{count} draw{'s' if count > 1 else ''} of them{''.join(', ' + one for one in fewer)}."
        + (" The run is not finished." if len(known) < len(SETS) * len(CONDITIONS) * N_REPEATS else "")
    )


def _by_score(known: Scores, methods: Sequence[str]) -> list[str]:
    """Methods by their mean over the conditions with right links, which all were given."""
    there = measured(known, RIGHT)
    means = {name: mean_score(known, name, there).mean for name in methods}
    return sorted((name for name in methods if means[name] == means[name]), key=lambda name: -means[name])


def _means_table(known: Scores, methods: Sequence[str]) -> str:
    there = measured(known)
    rows = [
        [name, *(str(mean_score(known, name, [c])) for c in CONDITIONS), str(mean_score(known, name, there))]
        for name in _by_score(known, methods)
    ]
    return markdown_table(["method", *_CONDITION_NAMES, "all"], rows)


def _gains_table(known: Scores) -> str:
    """Gain over the counterpart by condition, and how often it is a loss."""
    rows = []
    for name, method in METHODS.items():
        plain = method.counterpart or ""
        gains = {
            case: {"gain": found[name] - found[plain]}
            for case, found in known.items()
            if name in found and plain in found
        }
        row: list[Any] = [name, *(_signed(mean_score(gains, "gain", [c]).mean) for c in CONDITIONS)]
        rows.append([*row, *(_percent(harm(known, name, plain, group).mean) for group in (RIGHT, NOISY))])
    return markdown_table(["method", *_CONDITION_NAMES, "worse, right", "worse, wrong"], rows)


def _sets_table(known: Scores) -> str:
    """The flagship, the reference and the best single method, set by set."""
    shown = ["LinkedClustering", CHOSEN_WITHOUT, *(name for name in METHODS if name != "LinkedClustering")]
    rows = []
    for one in sorted({case.set for case in known}):
        own = {case: found for case, found in known.items() if case.set == one}
        for label, group in (("right", RIGHT), ("15 % wrong", NOISY)):
            means = [mean_score(own, name, measured(own, group)).mean for name in shown]
            rows.append([one, half_of(one), label, *(_short(mean) for mean in means)])
    return markdown_table(["set", "half", "links", *shown], rows)


def _problems(table: Sequence[Row]) -> str:
    found = Counter(f"{row['method']}: {row['text']}" for row in table if row["measure"] == "problem")
    return "\n".join(f"- {text} ({count})" for text, count in sorted(found.items())) or "None."


def _short(value: float) -> str:
    return "" if value != value else f"{value:.3f}"


def _signed(value: float) -> str:
    return "" if value != value else f"{value:+.3f}"


def _percent(share: float) -> str:
    return "" if share != share else f"{share:.0%}"
