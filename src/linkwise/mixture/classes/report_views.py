"""A class report as records, as text and as a self-contained HTML page without scripts.

The records are what the text, the DataFrames and the page are made of. The page draws the criterion of a
sweep over the number of clusters as inline SVG.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._heat_map import heat_table, signed
from linkwise._pages import page_head
from linkwise.mixture.classes.decisions import Decision, held
from linkwise.mixture.classes.sure_beliefs import contradiction_sentence

if TYPE_CHECKING:
    from linkwise.mixture.classes.flips import Flip
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.model_selection import ComponentSweep

__all__ = [
    "body",
    "class_records",
    "closing",
    "cluster_records",
    "curve_svg",
    "decision_records",
    "flip_sentence",
    "group_record",
    "grouped_decisions",
    "headline",
    "is_far",
    "other_decisions",
    "page",
    "round_ticks",
    "span",
    "text",
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


_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 60, 20, 50


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two values, about as many as wanted.

    Parameters
    ----------
    low, high : float
    about : int, default=5

    Returns
    -------
    list of float

    Examples
    --------
    >>> from linkwise.mixture.classes.report_views import round_ticks
    >>> round_ticks(3, 48)
    [10.0, 20.0, 30.0, 40.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def curve_svg(sweep: ComponentSweep) -> str:
    """Mean criterion with its spread, the chosen K, and the occupied clusters on a second axis.

    Values of K whose criterion is not finite are left out of the line.

    Parameters
    ----------
    sweep : ComponentSweep

    Returns
    -------
    str
        An ``svg`` element.
    """
    table = sweep.table[np.isfinite(sweep.table["mean"])]
    spread = np.nan_to_num(table["std"])
    k_low, k_high = float(sweep.table["n_components"][0]), float(sweep.table["n_components"][-1])
    low = float((table["mean"] - spread).min(initial=np.inf))
    high = float((table["mean"] + spread).max(initial=-np.inf))
    if not high > low:
        low, high = (0.0, 1.0) if math.isinf(low) else (low - 1.0, low + 1.0)
    most = float(max(sweep.table["n_occupied"].max(), 1.0))

    def x(k: float) -> float:
        share = 0.5 if k_high == k_low else (k - k_low) / (k_high - k_low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float, bottom: float = low, top: float = high) -> float:
        return _HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM)

    def points(values: list[tuple[float, float]]) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in values)

    ks, means = table["n_components"].tolist(), table["mean"].tolist()
    upper = [(x(k), y(mean + s)) for k, mean, s in zip(ks, means, spread.tolist(), strict=True)]
    lower = [(x(k), y(mean - s)) for k, mean, s in zip(ks, means, spread.tolist(), strict=True)]
    occupied = [(x(row["n_components"]), y(row["n_occupied"], 0.0, most)) for row in sweep.table]
    chosen = x(sweep.best_n_components)
    name = escape(sweep.criterion)
    floor = _HEIGHT - _BOTTOM
    middle = (_TOP + floor) / 2
    parts = [
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' style='max-width:{_WIDTH}px;width:100%' role='img' "
        f"font-family='system-ui,sans-serif' font-size='12'>"
        f"<title>{name} against the number of clusters; lowest mean at {sweep.best_n_components}</title>"
    ]
    for value in round_ticks(low, high):
        parts.append(
            f"<path d='M{_LEFT} {y(value):.1f}H{_WIDTH - _RIGHT}' stroke='#e5e5e5'/>"
            f"<text x='{_LEFT - 8}' y='{y(value) + 4:.1f}' text-anchor='end'>{value:.6g}</text>"
        )
    for value in (tick for tick in round_ticks(0.0, most, 4) if tick == round(tick)):
        height = y(value, 0.0, most)
        parts.append(f"<text x='{_WIDTH - _RIGHT + 8}' y='{height + 4:.1f}' fill='#666'>{value:.0f}</text>")
    for k in (tick for tick in round_ticks(k_low, k_high, 10) if tick == round(tick)):
        parts.append(f"<text x='{x(k):.1f}' y='{floor + 18}' text-anchor='middle'>{k:.0f}</text>")
    parts += [
        f"<polygon points='{points(upper + lower[::-1])}' fill='#2166ac' fill-opacity='.18'/>",
        f"<polyline points='{points(occupied)}' fill='none' stroke='#888' stroke-dasharray='2 4'/>",
        f"<path d='M{chosen:.1f} {_TOP}V{floor}' stroke='#b2182b' stroke-dasharray='6 4'/>",
        f"<text x='{chosen:.1f}' y='{_TOP - 6}' fill='#b2182b' text-anchor='middle'>"
        f"chosen: {sweep.best_n_components}</text>",
        f"<polyline points='{points([(x(k), y(m)) for k, m in zip(ks, means, strict=True)])}' fill='none' "
        "stroke='#2166ac' stroke-width='2'/>",
        *(
            f"<circle cx='{x(k):.1f}' cy='{y(m):.1f}' r='3.5' fill='#2166ac'/>"
            for k, m in zip(ks, means, strict=True)
        ),
        f"<g text-anchor='middle'><text x='{(_LEFT + _WIDTH - _RIGHT) / 2}' y='{_HEIGHT - 8}'>"
        "number of clusters</text>",
        f"<text transform='translate(14 {middle}) rotate(-90)' fill='#2166ac'>{name}, mean ± std</text>",
        f"<text transform='translate({_WIDTH - 10} {middle}) rotate(-90)' fill='#666'>"
        "occupied (dotted)</text></g></svg>",
    ]
    return "".join(parts)
