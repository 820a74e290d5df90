"""A class report as records, of which frames and the page are made, sentences and plain text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._pages import signed
from linkwise.mixture.classes.decisions import Decision, contradiction_sentence, held

if TYPE_CHECKING:
    from linkwise.mixture.classes.flips import Flip
    from linkwise.mixture.classes.report import ClassReport

# Beliefs and separability differ by more than half their range: the outcome is far from what was wished.
FAR = 1.0
# The decision that leaves a class whole has another name.
_KIND_OF = {"whole": "kept"}


def decision_records(report: ClassReport) -> list[dict[str, Any]]:
    """Make one record for each decision.

    ``n_rows``: rows of the classes; ``coverage``: the share of them in ``clusters``; ``certainty``: mean
    probability of these clusters; ``gap``: separability less belief; ``flip_change``: how much one belief
    would have to change; ``contradiction``: the belief of ±1 that the decision is against, in words.
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
    """Group the decisions: pairs of classes that share the same clusters are one group of merges."""
    groups: dict[Hashable, list[Decision]] = {}
    for decision in report.decisions:
        key = frozenset(decision.clusters) if decision.kind == "merged" else decision
        groups.setdefault(key, []).append(decision)
    return list(groups.values())


def group_record(report: ClassReport, decisions: list[Decision]) -> dict[str, Any]:
    """Collect the facts about one decision, or about several merges into the same clusters."""
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
    """Make one record for each class."""
    holds = held(report.contingency, report.threshold)
    records = []
    for place, name in enumerate(report.classes):
        mine = [decision for decision in report.decisions if name in decision.classes]
        companions = [str(other) for decision in mine for other in decision.classes if other != name]
        counts = report.contingency[place]
        holders = np.flatnonzero(holds[place])
        holders = holders[np.argsort(-counts[holders], kind="stable")]
        records.append(
            {
                "class": name,
                "n_rows": int(counts.sum()),
                "outcome": " and ".join(dict.fromkeys(decision.kind for decision in mine)),
                "with": ", ".join(companions),
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


def cluster_records(report: ClassReport) -> list[dict[str, Any]]:
    """Make one record for each cluster, with a column for each class; ``purity``: share of its largest."""
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


def mislabelled_records(report: ClassReport) -> list[dict[str, Any]]:
    """Make one record for each row whose class is likely wrong: row, label, told, probability."""
    if report.mislabelled is None:
        raise ValueError("likely mislabelled rows need the data: pass X and y to the report")
    return [doubt._asdict() for doubt in report.mislabelled]


def mislabelled_line(report: ClassReport) -> str:
    """Say how many rows are likely mislabelled."""
    doubts = report.mislabelled or ()
    share = len(doubts) / max(int(report.contingency.sum()), 1)
    rows = "1 row is" if len(doubts) == 1 else f"{len(doubts)} rows ({share:.1%} of the labelled) are"
    return f"{rows} more likely of another class than of the one given"


def evidence_lines(report: ClassReport) -> list[str]:
    """Say what the evidence for each split and merge is, those that were made first."""
    return [_evidence_line(one) for one in made_first(report)]


def made_first(report: ClassReport) -> list[Mapping[str, Any]]:
    """Sort the evidence: splits and merges that were made come first."""
    return sorted(report.evidence, key=lambda one: not one["accepted"])


def _evidence_line(one: Mapping[str, Any]) -> str:
    names = " and ".join(str(name) for name in one["classes"])
    data = f"{one['data_gain']:+.0f} nats by the data, {one['gain']:+.0f} with the beliefs"
    if one["kind"] == "merge":
        done = "merged" if one["accepted"] else "not merged"
        why = "" if one["accepted"] else f"; {one['reason']}"
        return f"{names}: {done} ({data}; {one['n_rows']} rows move{why})"
    found_again = f"fits to two halves of the rows agree {one['stability']:.2f}"
    if one["accepted"]:
        return (
            f"{names}: divided into {one['n_parts']} ({data}; {found_again}; {one['n_rows']} rows leave the "
            "largest part)"
        )
    return f"{names}: not divided, {one['reason']} (into {one['n_parts']}: {data}; {found_again})"


def alternative_lines(report: ClassReport) -> list[str]:
    """Compare the proposal with the classes as they are and with each class divided on its own."""
    return [
        f"{name}: {int(found['n_clusters'])} clusters, ICL {found['icl']:.0f}"
        for name, found in report.alternatives.items()
    ]


def flip_sentence(flip: Flip) -> str:
    """Say which belief would reverse the decision, and whether it can."""
    a, b = flip.entry
    about = f"{a} whole" if a == b else f"{a} with {b}"
    if flip.margin <= 0.0:
        return "another grouping is better already: try more starts"
    limit = "" if flip.possible else ", which no belief can be"
    return f"belief in {about} from {signed(flip.belief)} to {signed(flip.value)}{limit}"


def span(values: list[float]) -> str:
    """Write one number, or the smallest and the largest of several."""
    low, high = (signed(bound) for bound in (min(values), max(values)))
    return low if low == high else f"{low} … {high}"


def is_far(record: dict[str, Any]) -> bool:
    """Return whether a separability is far from the belief about it."""
    pairs = zip(record["separabilities"], record["beliefs"], strict=True)
    return any(abs(separability - belief) > FAR for separability, belief in pairs)


_HEADINGS = {
    "split": "Split",
    "merged": "Merged",
    "kept": "Kept",
    "scattered": "Scattered (no cluster holds a notable share)",
}
# So many rows that are likely mislabelled are shown; the table has all.
_FIRST_FEW = 5
# Decisions of other runs are listed if at least this share of the runs took them.
_OFTEN = 0.2


def text(report: ClassReport) -> str:
    """Write the report as plain text."""
    records = [group_record(report, decisions) for decisions in grouped_decisions(report)]
    criteria = ", ".join(f"{name} {value:.6g}" for name, value in report.criteria.items())
    lines = [headline(report), f"adherence {report.adherence:.4g}; {criteria}"]
    against = [contradiction_sentence(found) for found in report.contradictions]
    if against:
        lines += ["", "Against beliefs of ±1", *(f"  {line}" for line in against)]
    for kind, heading in _HEADINGS.items():
        mine = [record for record in records if record["decision"] == kind]
        if mine:
            lines += ["", heading]
            for record in mine:
                lines += _entry(record)
    if report.evidence:
        lines += ["", "Evidence", *(f"  {line}" for line in evidence_lines(report))]
    if report.alternatives:
        lines += ["", "Compared (lower ICL is better)", *(f"  {line}" for line in alternative_lines(report))]
    others = other_decisions(report)
    if others:
        lines += ["", "Other runs decided", *(f"  {line}" for line in others)]
    if report.mislabelled:
        lines += ["", "Likely mislabelled", f"  {mislabelled_line(report)}"]
        lines += [
            f"  row {doubt.row}: {doubt.label}, rather {doubt.told} (probability {doubt.probability:.2f})"
            for doubt in report.mislabelled[:_FIRST_FEW]
        ]
        if len(report.mislabelled) > _FIRST_FEW:
            lines.append('  all of them: to_frame("mislabelled")')
    lines += ["", closing(report)]
    return "\n".join(lines).rstrip() + "\n"


def headline(report: ClassReport) -> str:
    """Say how many classes became how many clusters."""
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
    """List decisions that this run did not take but a fifth of the runs did."""
    if report.stability is None:
        return []
    taken = {decision.key for decision in report.decisions}
    return [
        f"{kind} {' + '.join(str(name) for name in classes)}: in {share:.0%} of runs"
        for (kind, classes), share in report.stability.shares.items()
        if share >= _OFTEN and (kind, classes) not in taken
    ]


def closing(report: ClassReport) -> str:
    """Say what the figures mean, and what was not examined."""
    sentences = [f"A cluster holds a class if it has at least {report.threshold:.0%} of its rows."]
    if report.stability is not None:
        sentences.append(f"Shares are of {report.stability.n_runs} {report.stability.source}.")
    if report.flips is None:
        sentences.append(
            "Pass X and y to learn which belief would flip a decision and which rows are likely mislabelled."
        )
    return " ".join(sentences)
