"""A class report in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from linkwise.mixture.report_tables import (
    criteria_line,
    flip_sentence,
    group_record,
    grouped_decisions,
    is_far,
    span,
)
from linkwise.mixture.sure_beliefs import contradiction_sentence

if TYPE_CHECKING:
    from linkwise.mixture.class_report import ClassReport

__all__ = ["closing", "headline", "other_decisions", "text"]

_HEADINGS = {
    "split": "Split",
    "merged": "Merged",
    "kept": "Kept",
    "scattered": "Scattered (no cluster holds a notable share)",
}
# Decisions of other runs are listed if at least this share of the runs took them.
_OFTEN = 0.2


def text(report: ClassReport) -> str:
    """The report as plain text.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    str
    """
    records = [group_record(report, decisions) for decisions in grouped_decisions(report)]
    lines = [headline(report), f"adherence {report.adherence:.4g}; {criteria_line(report.criteria)}"]
    against = [contradiction_sentence(found) for found in report.contradictions]
    if against:
        lines += ["", "Against beliefs of ±1", *(f"  {line}" for line in against)]
    for kind, heading in _HEADINGS.items():
        mine = [record for record in records if record["decision"] == kind]
        if mine:
            lines += ["", heading]
            for record in mine:
                lines += _entry(record)
    others = other_decisions(report)
    if others:
        lines += ["", "Other runs decided", *(f"  {line}" for line in others)]
    lines += ["", closing(report)]
    return "\n".join(lines).rstrip() + "\n"


def headline(report: ClassReport) -> str:
    """How many classes became how many clusters."""
    n_rows = int(report.contingency.sum())
    unlabelled = int(report.n_unlabelled.sum())
    return (
        f"{len(report.classes)} classes, {n_rows} labelled rows"
        + (f" and {unlabelled} unlabelled" if unlabelled else "")
        + f", in {report.n_occupied} of {len(report.legend)} clusters"
    )


def _entry(record: dict[str, Any]) -> list[str]:
    parts = [f"{name} [{n}]" for name, n in zip(record["clusters"], record["counts"], strict=True)]
    arrow = f" -> {', '.join(parts)}" if parts else ""
    lines = [f"  {record['classes']} ({record['n_rows']} rows){arrow}"]
    facts = [
        f"{record['coverage']:.0%} of its rows there" if record["clusters"] else "",
        "" if math.isnan(record["certainty"]) else f"certainty {record['certainty']:.2f}",
        f"belief {span(record['beliefs'])}",
        f"separability {span(record['separabilities'])}",
        "FAR FROM THE BELIEF" if is_far(record) else "",
        "" if math.isnan(record["share_of_runs"]) else f"in {record['share_of_runs']:.0%} of runs",
    ]
    lines.append("    " + ", ".join(fact for fact in facts if fact))
    if record["flip"] is not None:
        which = (
            f"{' + '.join(map(str, record['flip'].decision.classes))}: " if len(record["beliefs"]) > 1 else ""
        )
        lines.append(f"    would flip: {which}{flip_sentence(record['flip'])}")
    return lines


def other_decisions(report: ClassReport) -> list[str]:
    """Decisions that this run did not take but a fifth of the runs did."""
    if report.stability is None:
        return []
    taken = {decision.key for decision in report.decisions}
    return [
        f"{kind} {' + '.join(str(name) for name in classes)}: in {share:.0%} of runs"
        for (kind, classes), share in report.stability.shares.items()
        if share >= _OFTEN and (kind, classes) not in taken
    ]


def closing(report: ClassReport) -> str:
    """What the figures mean, and what was not examined."""
    sentences = [f"A cluster holds a class if it has at least {report.threshold:.0%} of its rows."]
    if report.stability is not None:
        sentences.append(f"Shares are of {report.stability.n_runs} {report.stability.source}.")
    if report.flips is None:
        sentences.append("Pass X and y to learn which belief would flip a decision.")
    return " ".join(sentences)
