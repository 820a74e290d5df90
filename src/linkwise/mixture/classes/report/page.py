"""A class report as a self-contained HTML page without scripts; with matplotlib also the criterion."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from linkwise._pages import Markup, Page, TextTable, heat_table, new_figure, signed, svg_of
from linkwise.mixture.classes.decisions import contradiction_sentence
from linkwise.mixture.classes.report.text import (
    closing,
    cluster_records,
    flip_sentence,
    group_record,
    grouped_decisions,
    headline,
    is_far,
    made_first,
    mislabelled_line,
    other_decisions,
    span,
)

if TYPE_CHECKING:
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.model_selection import ComponentSweep

# So many rows that are likely mislabelled are shown; the table has all.
_FIRST_ROWS = 20


def page(report: ClassReport) -> Page:
    """Make the report as a page; its body is for a notebook."""
    made = Page("Class report")
    made.text(f"{headline(report)}.")
    against = [contradiction_sentence(found) for found in report.contradictions]
    if against:
        items = "".join(f"<li class='far'>{escape(line)}</li>" for line in against)
        made.add(f"<h2>Against beliefs of ±1</h2><ul>{items}</ul>")
    made.heading("What became of the classes")
    made.table(_decisions(report))
    others = other_decisions(report)
    if others:
        made.text(f"Other runs decided: {'; '.join(others)}.")
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
            for one in made_first(report)
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
