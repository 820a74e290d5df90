"""The tables of a class report as records: what its text, its DataFrames and its page are made of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._heat_map import signed
from linkwise.mixture.split_merge import Decision, held
from linkwise.mixture.sure_beliefs import contradiction_sentence

if TYPE_CHECKING:
    from linkwise.mixture.belief_flips import Flip
    from linkwise.mixture.class_report import ClassReport

__all__ = [
    "class_records",
    "cluster_records",
    "decision_records",
    "flip_sentence",
    "group_record",
    "grouped_decisions",
    "is_far",
    "span",
]

# Beliefs and separability differ by more than half their range: the outcome is far from what was wished.
FAR = 1.0
# The decision that leaves a class whole has another name.
_KIND_OF = {"whole": "kept"}


def decision_records(report: ClassReport) -> list[dict[str, Any]]:
    """One record for each decision.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    list of dict
        ``n_rows``: rows of the classes; ``coverage``: the share of them in ``clusters``; ``certainty``: mean
        probability of these clusters; ``gap``: separability less belief; ``flip_change``: how much one
        belief would have to change; ``contradiction``: the belief of ±1 that the decision is against, in
        words, or empty.
    """
    records = []
    against = {
        (_KIND_OF.get(found["outcome"], found["outcome"]), found["classes"]): contradiction_sentence(found)
        for found in report.contradictions
    }
    for decision in report.decisions:
        facts = group_record(report, [decision])
        belief, separability = facts.pop("beliefs")[0], facts.pop("separabilities")[0]
        flip = facts.pop("flip")
        records.append(
            {
                **facts,
                "belief": belief,
                "separability": separability,
                "gap": separability - belief,
                "flip": "" if flip is None else flip_sentence(flip),
                "flip_change": float("nan") if flip is None else flip.change,
                "contradiction": against.get(decision.key, ""),
            }
        )
    return records


def grouped_decisions(report: ClassReport) -> list[list[Decision]]:
    """Decisions as a reader wants them: pairs of classes that share the same clusters are one merge.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    list of list of Decision
    """
    groups: dict[Hashable, list[Decision]] = {}
    for decision in report.decisions:
        key = frozenset(decision.clusters) if decision.kind == "merged" else decision
        groups.setdefault(key, []).append(decision)
    return list(groups.values())


def group_record(report: ClassReport, decisions: list[Decision]) -> dict[str, Any]:
    """The facts about one decision, or about several merges into the same clusters.

    Parameters
    ----------
    report : ClassReport
    decisions : list of Decision

    Returns
    -------
    dict
        ``beliefs`` and ``separabilities`` have one entry for each decision; ``share_of_runs`` is the
        smallest of theirs, ``flip`` the easiest.
    """
    involved = {name for decision in decisions for name in decision.classes}
    places = [place for place, name in enumerate(report.classes) if name in involved]
    pairs = [
        (report.classes.index(decision.classes[0]), report.classes.index(decision.classes[-1]))
        for decision in decisions
    ]
    counts = report.contingency[places].sum(axis=0)
    clusters = list(decisions[0].clusters)
    inside = counts[clusters]
    certainty = np.average(report.certainty[clusters], weights=inside) if clusters else np.nan
    shares = [
        np.nan if report.stability is None else report.stability.share(decision) for decision in decisions
    ]
    flips = [flip for flip in report.flips or () if flip.decision in decisions]
    return {
        "decision": decisions[0].kind,
        "classes": " + ".join(str(report.classes[place]) for place in places),
        "clusters": tuple(report.legend[k] for k in clusters),
        "counts": tuple(inside.tolist()),
        "n_rows": int(counts.sum()),
        "coverage": float(inside.sum() / counts.sum()),
        "certainty": float(certainty),
        "beliefs": [float(report.beliefs[pair]) for pair in pairs],
        "separabilities": [float(report.separability[pair]) for pair in pairs],
        "share_of_runs": float(min(shares)),
        "flip": flips[0] if flips else None,
    }


def class_records(report: ClassReport) -> list[dict[str, Any]]:
    """One record for each class.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    list of dict
    """
    holds = held(report.contingency, report.threshold)
    records = []
    for place, name in enumerate(report.classes):
        mine = [decision for decision in report.decisions if name in decision.classes]
        counts = report.contingency[place]
        holders = np.flatnonzero(holds[place])
        holders = holders[np.argsort(-counts[holders], kind="stable")]
        records.append(
            {
                "class": name,
                "n_rows": int(counts.sum()),
                "outcome": " and ".join(dict.fromkeys(decision.kind for decision in mine)),
                "with": ", ".join(str(other) for other in _companions(mine, name)),
                "clusters": ", ".join(
                    f"{report.legend[k]} ({counts[k] / counts.sum():.0%})" for k in holders
                ),
                "coverage": float(counts[holders].sum() / counts.sum()),
                "certainty": float(np.average(report.certainty[counts > 0], weights=counts[counts > 0])),
                "belief": float(report.beliefs[place, place]),
                "separability": float(report.separability[place, place]),
            }
        )
    return records


def _companions(decisions: list[Decision], name: Hashable) -> list[Hashable]:
    return [other for decision in decisions for other in decision.classes if other != name]


def cluster_records(report: ClassReport) -> list[dict[str, Any]]:
    """One record for each cluster, with a column for each class.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    list of dict
        ``purity``: share of the largest class among the labelled rows.
    """
    records = []
    for k, name in enumerate(report.legend):
        counts = report.contingency[:, k]
        labelled = int(counts.sum())
        records.append(
            {
                "cluster": k,
                "name": name,
                "n_rows": labelled + int(report.n_unlabelled[k]),
                "n_unlabelled": int(report.n_unlabelled[k]),
                "purity": float(counts.max() / labelled) if labelled else float("nan"),
                "certainty": float(report.certainty[k]),
                **{str(other): int(count) for other, count in zip(report.classes, counts, strict=True)},
            }
        )
    return records


def flip_sentence(flip: Flip) -> str:
    """Which belief would reverse the decision, and whether it can."""
    a, b = flip.entry
    about = f"{a} whole" if a == b else f"{a} with {b}"
    if flip.margin <= 0.0:
        return "another grouping is better already: try more starts"
    limit = "" if flip.possible else ", which no belief can be"
    return f"belief in {about} from {signed(flip.belief)} to {signed(flip.value)}{limit}"


def criteria_line(criteria: Mapping[str, float]) -> str:
    """The criteria in one line."""
    return ", ".join(f"{name} {value:.6g}" for name, value in criteria.items())


def span(values: list[float]) -> str:
    """One number, or the smallest and the largest of several."""
    low, high = (signed(bound) for bound in (min(values), max(values)))
    return low if low == high else f"{low} … {high}"


def is_far(record: dict[str, Any]) -> bool:
    """Whether a separability is far from the belief about it."""
    pairs = zip(record["separabilities"], record["beliefs"], strict=True)
    return any(abs(separability - belief) > FAR for separability, belief in pairs)
