"""The page of results, claim by claim, from the tables alone."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from experiments import EXPERIMENTS
from experiments.active.page import ask_includes
from experiments.claims.all import CLAIMS
from experiments.claims.causes import CAUSES
from experiments.classes.page import class_includes
from experiments.framework.changes import changes_section, is_older
from experiments.framework.experiment import Experiment
from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table, read_table, wide
from experiments.framework.verdicts import FAILS, HOLDS, PARTLY
from experiments.leaderboard.page import ON_THIS_PAGE, includes

__all__ = ["results_page", "write_pages"]

_INTRODUCTION = """# What the papers claim and what we measured

Generated from the tables in `docs/results` by `python -m experiments.framework.results_page docs`; no
figure on this page is typed by hand. The tables come from `python -m experiments --full --data FOLDER -o
docs/results`, and each experiment names its own command. `python -m experiments --list` lists all of them;
`--quick` runs any of them in a minute or so.

**How to read it.** In one draw all methods get the same data, folds, links and starts. Intervals (±) are
95 % Student intervals of the mean over the draws, or of the paired difference. They hold for new draws
of links and starts on the *same* data set, not for new data sets. A comparison supports or contradicts a
claim when the interval of the paired difference to the reference lies on one side of zero. Where two
methods have no common reference, it does so when their own intervals do not overlap. A claim *holds* if
two thirds of its comparisons support it and none contradicts it. It *does not hold* if none supports it,
or more contradict than support it. Otherwise it holds *partly*. Where a paper states no limit, the claim
says which one we used ("read: ..."); the code of every rule is in `experiments.claims.all`. The papers'
figures are not readable in our copies, so claims are taken from their texts. Data sets that are not
public were replaced, and most experiments have fewer draws than the papers; each says so below.
"""


def results_page(folder: str | Path) -> str:
    """The page in Markdown.

    Parameters
    ----------
    folder : path
        Tables (CSV), provenance (JSON) and figures (PNG) of :func:`linkwise.cli.reproduce.reproduce`.

    Returns
    -------
    str
    """
    folder = Path(folder)
    paths = [folder / f"{name}.csv" for name in EXPERIMENTS]
    tables = {path.stem: read_table(path) for path in paths if path.exists()}
    findings = [
        (claim, claim.judge(tables[claim.experiment]))
        for claim in CLAIMS
        if _is_complete(EXPERIMENTS[claim.experiment], tables.get(claim.experiment, []))
    ]
    counts = {verdict: sum(f.verdict == verdict for _, f in findings) for verdict in (HOLDS, PARTLY, FAILS)}
    unmeasured = sorted({claim.experiment for claim in CLAIMS} - {claim.experiment for claim, _ in findings})
    parts = [
        _INTRODUCTION,
        f"Of {len(findings)} claims {counts[HOLDS]} hold, {counts[PARTLY]} hold partly, "
        f"{counts[FAILS]} do not hold.\n",
    ]
    if unmeasured:
        parts.append(f"Not measured, or not in all settings, and left out: {', '.join(unmeasured)}.\n")
    for paper in dict.fromkeys(claim.paper for claim, _ in findings):
        rows = [
            [
                claim.where,
                claim.says,
                f"{found.measured} ([{claim.experiment}](#{_anchor(claim.experiment)}))",
                f"**{found.verdict}**" + (f". {claim.why}" if claim.why else ""),
            ]
            for claim, found in findings
            if claim.paper == paper
        ]
        claims = markdown_table(["where", "the paper says", "we measured", "verdict"], rows)
        parts.append(f"## {paper}\n\n{claims}\n")
    parts.append(changes_section(folder, findings, tables, CAUSES))
    parts.append("## The experiments\n")
    for name, table in tables.items():
        if name not in (*ON_THIS_PAGE, "ask"):
            parts.append(_section(EXPERIMENTS[name], table, folder))
    return "\n".join(parts)


def _is_complete(experiment: Experiment, table: list[Row]) -> bool:
    """Whether every setting of the full size was measured more than once."""
    keys = tuple(experiment.full.settings[0])
    draws: dict[tuple[Any, ...], int] = {}
    for row in table:
        setting = tuple(row[key] for key in keys)
        draws[setting] = max(draws.get(setting, 0), row["n"])
    needed = min(2, experiment.full.n_draws)
    return all(draws.get(tuple(setting.values()), 0) >= needed for setting in experiment.full.settings)


def _protocol(experiment: Experiment) -> str:
    """What the docstring of a trial says before its parameters."""
    text = (inspect.getdoc(experiment.trial) or "").split("Parameters\n---")[0]
    text = re.sub(r":\w+:`[~.\w]*?(\w+)`", r"`\1`", text).replace("``", "`")
    return text.partition("\n\n")[2].strip() or text.strip()


def _anchor(name: str) -> str:
    return name.replace("_", "-")


def _section(experiment: Experiment, table: list[Row], folder: Path) -> str:
    record = json.loads((folder / f"{experiment.name}.json").read_text(encoding="utf-8"))
    lines = [
        f"({_anchor(experiment.name)})=\n### {experiment.name}\n",
        f"{experiment.title}. From: {experiment.paper}. `{record['command']}`, {record['date']}: "
        f"{record['trials']} trials, {record['seconds'] / 60:.1f} minutes by the clock.\n",
        _protocol(experiment) + "\n",
    ]
    if is_older(folder, experiment.name, CAUSES):
        lines.append(
            "**This table is older than the description**: it was measured before the last change of the "
            f"experiment. {CAUSES[experiment.name]}.\n"
        )
    lines += [
        f"Skipped: {reason} ({len(settings)} settings).\n" for reason, settings in record["skipped"].items()
    ]
    if record["failed"]:
        lines.append(f"{len(record['failed'])} trials failed: {record['failed'][0]['error']}.\n")
    if (folder / f"{experiment.name}.png").exists():
        lines.append(f"![{experiment.title}](../results/{experiment.name}.png)\n")
    for measure in (*experiment.measures, *experiment.texts):
        head, rows = wide(table, measure)
        if rows:
            table_text = markdown_table(head, rows)
            lines.append(f"<details><summary>{measure}</summary>\n\n{table_text}\n\n</details>\n")
    return "\n".join(lines)


def write_pages(docs: str | Path) -> None:
    """Write ``research/results.md`` and the tables of the leaderboard, of questions and of redefined classes.

    Parameters
    ----------
    docs : path
        Folder of the documentation.
    """
    folder = Path(docs) / "results"
    (Path(docs) / "research" / "results.md").write_text(results_page(folder), encoding="utf-8")
    for name, text in {**includes(folder), **ask_includes(folder), **class_includes(folder)}.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(sys.argv[1])
