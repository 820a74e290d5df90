"""A class report as a self-contained HTML page: no scripts, no files beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from linkwise._heat_map import heat_table, signed
from linkwise._page import page_head
from linkwise.mixture.report_curve import curve_svg
from linkwise.mixture.report_tables import (
    cluster_records,
    flip_sentence,
    group_record,
    grouped_decisions,
    is_far,
    span,
)
from linkwise.mixture.report_text import closing, headline, other_decisions
from linkwise.mixture.sure_beliefs import contradiction_sentence

if TYPE_CHECKING:
    from linkwise.mixture.class_report import ClassReport

__all__ = ["body", "page"]

_STYLE = """
.linkwise{font:15px/1.45 system-ui,sans-serif;color:#1a1a1a;max-width:72em;margin:0 auto;padding:1em}
.linkwise h1{font-size:1.5em;margin:.2em 0}.linkwise h2{font-size:1.15em;margin:1.6em 0 .4em}
.linkwise table{border-collapse:collapse;margin:.3em 0}
.linkwise table.list td,.linkwise table.list th{padding:.3em .7em;text-align:left;vertical-align:top;
border-bottom:1px solid #ddd}
.linkwise table.list .number{text-align:right;font-variant-numeric:tabular-nums}
.linkwise caption{text-align:left;font-weight:600;padding:.3em 0}
.linkwise .maps{display:flex;flex-wrap:wrap;gap:2em}.linkwise .wide{overflow-x:auto}
.linkwise .kind{font-weight:600}.linkwise .far{color:#b2182b;font-weight:600}.linkwise .quiet{color:#666}
"""


def page(report: ClassReport) -> str:
    """The whole page.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    str
    """
    return f"{page_head('Class report')}</head><body>{body(report)}</body></html>\n"


def body(report: ClassReport) -> str:
    """The content of the page, with its style, for a notebook.

    Parameters
    ----------
    report : ClassReport

    Returns
    -------
    str
    """
    sections = [
        f"<h1>Class report</h1><p>{escape(headline(report))}.</p>{_contradictions(report)}",
        f"<h2>What became of the classes</h2>{_decisions(report)}{_others(report)}",
        "<h2>Beliefs and separability</h2><p>Blue: together, red: apart. Where the two maps differ, the data "
        "did not follow the wish.</p><div class='maps'>"
        f"<div class='wide'>{heat_table(report.beliefs, report.classes, 'beliefs C')}</div>"
        f"<div class='wide'>{heat_table(report.separability, report.classes, 'separability S')}</div></div>"
        f"<p>Adherence: sum (C − S)² = {report.adherence:.4g}.</p>",
        f"<h2>New legend</h2><div class='wide'>{_clusters(report)}</div>",
        f"<h2>Which belief would flip a decision</h2>{_flips(report)}",
        f"<h2>Criteria</h2>{_criteria(report)}",
        f"<p class='quiet'>{escape(closing(report))}</p>",
    ]
    return f"<style>{_STYLE}</style><div class='linkwise'>{''.join(sections)}</div>"


def _decisions(report: ClassReport) -> str:
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
                f"<span class='kind'>{record['decision']}</span>",
                escape(record["classes"]) + f" <span class='quiet'>({record['n_rows']} rows)</span>",
                parts or "–",
                _percent(record["coverage"]),
                signed(record["certainty"]),
                span(record["beliefs"]),
                span(record["separabilities"]) + far,
                _percent(record["share_of_runs"]),
            ]
        )
    heads = ["", "class", "clusters", "of its rows", "certainty", "belief", "separability", "of runs"]
    if report.stability is None:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return f"<div class='wide'>{_table(heads, rows, text_columns=3)}</div>"


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


def _clusters(report: ClassReport) -> str:
    rows = []
    for record in cluster_records(report):
        counts = report.contingency[:, record["cluster"]]
        largest = [a for a in np.argsort(-counts, kind="stable").tolist() if counts[a]]
        contents = ", ".join(f"{report.classes[a]}: {counts[a]}" for a in largest)
        if record["n_unlabelled"]:
            contents += f"{', ' if contents else ''}unlabelled: {record['n_unlabelled']}"
        rows.append(
            [
                f"<span class='kind'>{escape(record['name'])}</span>",
                escape(contents) or "–",
                str(record["cluster"]),
                str(record["n_rows"]),
                _percent(record["purity"]),
                signed(record["certainty"]),
            ]
        )
    return _table(["name", "made of", "cluster", "rows", "purity", "certainty"], rows, text_columns=2)


def _flips(report: ClassReport) -> str:
    if report.flips is None:
        return "<p class='quiet'>Not examined: the report was made without the data.</p>"
    if not report.flips:
        return "<p>With these clusters no decision has a rival.</p>"
    groups = [group_record(report, decisions) for decisions in grouped_decisions(report)]
    rows = []
    for record in sorted((group for group in groups if group["flip"]), key=lambda group: group["flip"].order):
        flip = record["flip"]
        rows.append(
            [
                f"{record['decision']} {escape(record['classes'])}",
                escape(flip_sentence(flip)),
                signed(abs(flip.change)),
                f"{flip.margin:.4g}",
            ]
        )
    heads = ["decision", "flips with", "change", "margin (nats)"]
    return (
        "<p>The smallest change of a single belief that lets a grouping without the decision draw level. "
        "Where clusters overlap, less may do. A large margin is a decision of the data. Of several merges "
        "into one cluster the easiest is shown.</p>"
        f"<div class='wide'>{_table(heads, rows, text_columns=2)}</div>"
    )


def _criteria(report: ClassReport) -> str:
    rows = [[escape(name), f"{value:.6g}"] for name, value in report.criteria.items()]
    table = _table(["criterion", "value"], rows, text_columns=1)
    return table if report.curve is None else curve_svg(report.curve) + table


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> str:
    """A table of cells that are HTML already; the columns after the first few are figures."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{'' if place < text_columns else ' class=number'}>{cell}</{tag}>"
            for place, cell in enumerate(cells)
        )

    content = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table class='list'><tr>{line([escape(head) for head in heads], 'th')}</tr>{content}</table>"


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"
