"""What became of earlier verdicts when the experiments were run again, from stored verdicts and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.framework.summary import Row
from experiments.framework.tables import markdown_table
from experiments.framework.verdicts import HOLDS, Claim, Finding

__all__ = ["EARLIER", "changes_section", "is_older"]

#: Verdicts and figures of the tables of an earlier run, and when and how long each experiment ran.
EARLIER = "earlier_verdicts.json"

#: What was not decided beforehand: a reader should know it.
AFTERWARDS = (
    "Most settings were fixed before the new results were seen: plain EM at its maximum, the ridge, starts "
    "and the baseline on images. Some were not. Pendigits in `ppc_noisy_links` got 30 starts instead of "
    "ten after the first draws and `ppc_soft_optimum` had been seen, because a start at the classes "
    "reached a higher objective; the accuracies were known at that time, too. `ppc_soft_optimum` itself, "
    "and `normaliser` with cannot-links alone, were added to explain results that were known. So were more "
    "widths of the Gaussian, after the widest or the narrowest of three had been the best, and the shorter "
    "time on newsgroups. Wine and protein in `teachers` got a common covariance after ten draws of protein "
    "had been seen with it: the rule is the one that faces had from the beginning. In `texture_mosaic` "
    "mean field from the textures was added to explain a known result. "
    "The rule for figure 3 of spectral clustering was written anew when its boundaries were known. "
    "The mixture among the competitors of spectral clustering stops at 1e-4 and has five starts, "
    "and `ppc_noisy_links` does not have the paper's 100 starts, because these take too long."
)

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
        done = claim.cause or causes.get(claim.experiment, "The same settings")
        if claim.experiment not in again:
            done = "Not run again"
            if claim.experiment in causes:
                done += f". What has changed since and is not in these figures: {causes[claim.experiment]}"
        reasons = [_unfinished(folder, claim.experiment, stored["experiments"]), done, tried]
        why = ". ".join(text for text in reasons if text)
        if earlier["verdict"] != found.verdict:
            changed.append([title, f"**{earlier['verdict']}**: {earlier['measured']}", now, why])
        elif found.verdict != HOLDS:
            figures = earlier["measured"] if earlier["measured"] != found.measured else "the same"
            stays.append([title, now, figures, why])
    dates = sorted({record["date"] for record in stored["experiments"].values()})
    parts = [
        "## Verdicts that changed\n",
        "Where a claim did not hold, we first looked for mistakes of our own: fits that had not converged, "
        "too few starts, links trusted too much or too little, a wrong baseline, too few draws. "
        f'"Before" is the verdict from the tables of {" and ".join(dates)}.\n',
        AFTERWARDS + "\n",
        f"Run again: {', '.join(again) or 'none'}. "
        f"Not run again: {', '.join(name for name in names if name not in again) or 'none'}.\n",
        markdown_table(["claim", "before", "now", "why"], changed) + "\n" if changed else "None changed.\n",
        "### Verdicts that stay\n",
        "Claims that still hold partly or do not hold, and what was tried.\n",
        markdown_table(["claim", "now", "before", "what was tried"], stays) + "\n",
    ]
    return "\n".join(parts)


def is_older(folder: Path, name: str, causes: Mapping[str, str]) -> bool:
    """Whether an experiment was changed but its table is still the earlier one.

    Parameters
    ----------
    folder : Path
    name : str
    causes : dict of str to str
        Experiments that were changed.

    Returns
    -------
    bool
    """
    path = folder / EARLIER
    if name not in causes or not path.exists():
        return False
    return not _was_run_again(folder, name, json.loads(path.read_text(encoding="utf-8"))["experiments"])


def _key(claim: Mapping[str, str]) -> tuple[str, str, str]:
    return claim["experiment"], claim["where"], claim["says"]


def _unfinished(folder: Path, name: str, earlier: Mapping[str, Any]) -> str:
    """A warning if there are fewer trials than before, which alone can change a verdict, or of two dates."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    trials = record["trials"]
    if name not in earlier or trials >= earlier[name]["trials"]:
        return ""
    if record.get("kept"):
        return f"Run again in part: {trials} trials; the other rows are of {record['kept'][0]['date']}"
    return (
        f"**Unfinished**: {trials} trials, {earlier[name]['trials']} before, so intervals are wider, "
        "which alone can change a verdict"
    )


def _was_run_again(folder: Path, name: str, earlier: Mapping[str, Any]) -> bool:
    """Whether the record of the experiment is another one than that of the earlier verdicts."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return name not in earlier or any(record[key] != earlier[name][key] for key in earlier[name])
