"""A class report as records, as text and as a self-contained HTML page without scripts.

The records are what the text, the DataFrames and the page are made of. The page shows the criterion of
a sweep over the number of clusters, if matplotlib is there.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._heat_map import heat_table, signed
from linkwise._pages import Markup, Page, TextTable, new_figure, svg_of
from linkwise.mixture.classes.decisions import Decision, contradiction_sentence, held

if TYPE_CHECKING:
    from linkwise.mixture.classes.flips import Flip
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.model_selection import ComponentSweep

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
    """Collect the facts about one decision, or about several merges into the same clusters.

    ``beliefs`` and ``separabilities`` have one entry for each decision; ``share_of_runs`` is the smallest of
    theirs, ``flip`` the easiest.
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
    """Make one record for each class."""
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
    ordered = sorted(report.evidence, key=lambda one: not one["accepted"])
    return [_evidence_line(one) for one in ordered]


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


def criteria_line(criteria: Mapping[str, float]) -> str:
    """Write the criteria in one line."""
    return ", ".join(f"{name} {value:.6g}" for name, value in criteria.items())


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
_FIRST_FEW, _FIRST_ROWS = 5, 20
# Decisions of other runs are listed if at least this share of the runs took them.
_OFTEN = 0.2


def text(report: ClassReport) -> str:
    """Write the report as plain text."""
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


def page(report: ClassReport) -> Page:
    """Make the report as a page; its body is for a notebook."""
    made = Page("Class report")
    made.text(f"{headline(report)}.")
    made.add(_contradictions(report))
    made.heading("What became of the classes")
    made.table(_decisions(report))
    made.add(_others(report))
    _add_evidence(made, report)
    made.heading("Beliefs and separability")
    made.text("Blue: together, red: apart. Where the two maps differ, the data did not follow the wish.")
    made.add(
        f"<div class='maps'><div class='wide'>{heat_table(report.beliefs, report.classes, 'beliefs C')}</div>"
        f"<div class='wide'>{heat_table(report.separability, report.classes, 'separability S')}</div></div>"
    )
    made.text(f"Adherence: sum (C − S)² = {report.adherence:.4g}.")
    made.heading("New legend")
    made.table(_clusters(report))
    made.heading("Which belief would flip a decision")
    _add_flips(made, report)
    _add_mislabelled(made, report)
    made.heading("Criteria")
    if report.curve is not None:
        made.add(_curve(report.curve))
    rows = [[name, f"{value:.6g}"] for name, value in report.criteria.items()]
    made.table(TextTable("", ["criterion", "value"], rows))
    made.text(closing(report), "quiet")
    return made


def _add_evidence(made: Page, report: ClassReport) -> None:
    """Add the evidence for splits and merges, and what the proposal is compared with."""
    if report.evidence:
        made.heading("Evidence")
        made.text(
            "Gain in nats, by the data alone and with the beliefs: above 0 the change describes them better."
        )
        rows = [
            [
                "made" if one["accepted"] else "not made",
                one["kind"],
                ", ".join(str(name) for name in one["classes"]),
                str(one["n_parts"]),
                f"{one['data_gain']:+.0f}",
                f"{one['gain']:+.0f}",
                "–" if np.isnan(one["stability"]) else f"{one['stability']:.2f}",
                str(one["n_rows"]),
                one["reason"],
            ]
            for one in sorted(report.evidence, key=lambda one: not one["accepted"])
        ]
        columns = ["", "decision", "classes", "parts", "data", "with beliefs", "stability", "rows", "because"]
        made.table(TextTable("", columns, rows, 3))
    if report.alternatives:
        rows = [
            [name, str(int(found["n_clusters"])), f"{found['icl']:.0f}"]
            for name, found in report.alternatives.items()
        ]
        made.table(TextTable("Lower ICL is better", ["", "clusters", "ICL"], rows, 1))


def _decisions(report: ClassReport) -> TextTable:
    rows = []
    for decisions in grouped_decisions(report):
        record = group_record(report, decisions)
        parts = "<br>".join(
            f"{escape(name)} <span class='quiet'>({count} rows)</span>"
            for name, count in zip(record["clusters"], record["counts"], strict=True)
        )
        far = " <span class='far'>far from the belief</span>" if is_far(record) else ""
        rows.append(
            [
                Markup(f"<span class='kind'>{record['decision']}</span>"),
                Markup(escape(record["classes"]) + f" <span class='quiet'>({record['n_rows']} rows)</span>"),
                Markup(parts or "–"),
                _percent(record["coverage"]),
                signed(record["certainty"]),
                span(record["beliefs"]),
                Markup(span(record["separabilities"]) + far),
                _percent(record["share_of_runs"]),
            ]
        )
    heads = ["", "class", "clusters", "of its rows", "certainty", "belief", "separability", "of runs"]
    if report.stability is None:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return TextTable("", heads, rows, 3)


def _contradictions(report: ClassReport) -> str:
    lines = [contradiction_sentence(found) for found in report.contradictions]
    if not lines:
        return ""
    items = "".join(f"<li class='far'>{escape(line)}</li>" for line in lines)
    return f"<h2>Against beliefs of ±1</h2><ul>{items}</ul>"


def _others(report: ClassReport) -> str:
    lines = other_decisions(report)
    if not lines:
        return ""
    return f"<p>Other runs decided: {escape('; '.join(lines))}.</p>"


def _clusters(report: ClassReport) -> TextTable:
    rows = []
    for record in cluster_records(report):
        counts = report.contingency[:, record["cluster"]]
        largest = [a for a in np.argsort(-counts, kind="stable").tolist() if counts[a]]
        contents = ", ".join(f"{report.classes[a]}: {counts[a]}" for a in largest)
        if record["n_unlabelled"]:
            contents += f"{', ' if contents else ''}unlabelled: {record['n_unlabelled']}"
        rows.append(
            [
                Markup(f"<span class='kind'>{escape(record['name'])}</span>"),
                contents or "–",
                str(record["cluster"]),
                str(record["n_rows"]),
                _percent(record["purity"]),
                signed(record["certainty"]),
            ]
        )
    return TextTable("", ["name", "made of", "cluster", "rows", "purity", "certainty"], rows, 2)


def _add_flips(made: Page, report: ClassReport) -> None:
    if report.flips is None:
        made.text("Not examined: the report was made without the data.", "quiet")
        return
    if not report.flips:
        made.text("With these clusters no decision has a rival.")
        return
    groups = [group_record(report, decisions) for decisions in grouped_decisions(report)]
    rows = []
    for record in sorted((group for group in groups if group["flip"]), key=lambda group: group["flip"].order):
        flip = record["flip"]
        rows.append(
            [
                f"{record['decision']} {record['classes']}",
                flip_sentence(flip),
                signed(abs(flip.change)),
                f"{flip.margin:.4g}",
            ]
        )
    made.text(
        "The smallest change of a single belief that lets a grouping without the decision draw level. "
        "Where clusters overlap, less may do. A large margin is a decision of the data. Of several merges "
        "into one cluster the easiest is shown."
    )
    made.table(TextTable("", ["decision", "flips with", "change", "margin (nats)"], rows, 2))


def _add_mislabelled(made: Page, report: ClassReport) -> None:
    if not report.mislabelled:
        return
    shown = report.mislabelled[:_FIRST_ROWS]
    made.heading("Likely mislabelled rows")
    first = "" if len(shown) == len(report.mislabelled) else f" The first {len(shown)} of them:"
    made.text(f"{mislabelled_line(report)}. Look at them before they are used.{first}")
    rows = [
        [str(doubt.row), str(doubt.label), str(doubt.told), f"{doubt.probability:.2f}"] for doubt in shown
    ]
    made.table(TextTable("", ["row", "class given", "rather", "probability"], rows, 3))


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"


def _curve(sweep: ComponentSweep) -> str:
    """Draw the criterion against the number of clusters by CriterionDisplay; needs matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return "<p class='quiet'>The curve of the criterion needs matplotlib: linkwise[plot].</p>"
    from linkwise.displays import CriterionDisplay

    figure, ax = new_figure(size=(8.0, 3.6))
    CriterionDisplay.from_sweep(sweep, ax=ax)
    return svg_of(figure)
