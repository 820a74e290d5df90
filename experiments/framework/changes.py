"""What became of earlier verdicts when the experiments were run again, from stored verdicts and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table
from experiments.framework.verdicts import HOLDS, Claim, Finding

__all__ = ["EARLIER", "changes_section"]

#: Verdicts and figures of the tables of an earlier run, and when and how long each experiment ran.
EARLIER = "earlier_verdicts.json"

Judged = Sequence[tuple[Claim, Finding]]


def changes_section(
    folder: Path,
    judged: Judged,
    tables: Mapping[str, list[Row]],
    causes: Mapping[str, str],
) -> str:
    """The part of the page about verdicts that changed, and about those that stay.

    Parameters
    ----------
    folder : Path
        Has ``EARLIER`` and the records of the experiments.
    judged : sequence of (Claim, Finding)
        The verdicts of today.
    tables : dict of str to list
        Tidy tables of the experiments.
    causes : dict of str to str
        What was done differently in each experiment that was run again.

    Returns
    -------
    str
        Empty if there are no earlier verdicts.
    """
    path = folder / EARLIER
    if not path.exists():
        return ""
    stored = json.loads(path.read_text(encoding="utf-8"))
    before = {_key(claim): claim for claim in stored["claims"]}
    names = list(dict.fromkeys(claim.experiment for claim, _ in judged))
    again = [name for name in names if _was_run_again(folder, name, stored["experiments"])]
    changed: list[list[str]] = []
    stays: list[list[str]] = []
    for claim, found in judged:
        earlier = before.get((claim.experiment, claim.where, claim.says))
        if earlier is None:
            continue
        title = f"{claim.paper}, {claim.where}: {claim.says}"
        now = f"**{found.verdict}**: {found.measured}"
        tried = claim.tried
        if callable(tried):
            tried = tried(tables[claim.tried_in or claim.experiment])
        if earlier["verdict"] != found.verdict:
            reasons = [causes.get(claim.experiment, ""), tried]
            was = f"**{earlier['verdict']}**: {earlier['measured']}"
            changed.append([title, was, now, ". ".join(text for text in reasons if text)])
        elif found.verdict != HOLDS:
            figures = earlier["measured"] if earlier["measured"] != found.measured else "the same"
            reasons = [causes[claim.experiment]] if claim.experiment in again else ["Not run again"]
            stays.append([title, now, figures, ". ".join([*reasons, *([tried] if tried else [])])])
    dates = sorted({record["date"] for record in stored["experiments"].values()})
    parts = [
        "## Verdicts that changed\n",
        "Where a claim did not hold we suspected ourselves first: fits that had not converged, too few "
        "starts, links trusted too much or too little, a wrong baseline, too few draws. The settings were "
        f"fixed before the new results were seen. Before is what the tables of {' and '.join(dates)} said.\n",
        f"Run again: {', '.join(again) or 'none'}. "
        f"Not run again: {', '.join(name for name in names if name not in again) or 'none'}.\n",
        markdown_table(["claim", "before", "now", "why"], changed) + "\n" if changed else "None changed.\n",
        "### Verdicts that stay\n",
        "Claims that still hold partly or do not hold, and what was tried.\n",
        markdown_table(["claim", "now", "before", "what was tried"], stays) + "\n",
    ]
    return "\n".join(parts)


def _key(claim: Mapping[str, str]) -> tuple[str, str, str]:
    return claim["experiment"], claim["where"], claim["says"]


def _was_run_again(folder: Path, name: str, earlier: Mapping[str, Any]) -> bool:
    """Whether the record of the experiment is another one than that of the earlier verdicts."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return name not in earlier or any(record[key] != earlier[name][key] for key in earlier[name])
