"""Exports: links, labels, a model for new rows, and a report to read."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise._arrays import Floats
from linkwise._pages import Page, TextTable, new_figure, png_of
from linkwise._validation import counted
from linkwise.active.knowledge import as_constraints, learned_certainty
from linkwise.cli.samples import output_frame, save_prepared_model
from linkwise.cli.tables import write_csv
from linkwise.constraints import Constraints
from linkwise.workbench.desk import Desk, Missing
from linkwise.workbench.model import View
from linkwise.workbench.pictures import principal_plane

# Lines of a table in the report, and points of its picture.
_MOST_LINES, _MOST_POINTS = 200, 20_000
# Columns that say what marks a cluster, and the standard deviations from which one does.
_N_MARKS, _MARKED = 3, 0.5


def links_of(desk: Desk) -> Constraints:
    """The links given at first, and the answers as links."""
    rate = 0.05 if desk.view is None else desk.view.error_rate
    told = as_constraints(desk.answers, len(desk.table), certainty=learned_certainty(rate))
    return told if desk.given is None else desk.given + told


def links_csv(desk: Desk) -> bytes:
    """A file of links for ``linkwise fit --links``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.csv"
        links_of(desk).with_index(desk.table.samples.ids).to_csv(path)
        return path.read_bytes()


def labels_csv(desk: Desk) -> bytes:
    """The cluster of each row, and its probability."""
    view = _seen(desk)
    results = {"cluster": view.labels.astype(np.int64), "probability": _own_probability(view).round(6)}
    stream = io.StringIO()
    write_csv(output_frame(desk.table.samples, results, note=lambda line: None), stream)
    return stream.getvalue().encode()


def _own_probability(view: View) -> Any:
    """Probability of each row's cluster, (n,); of one that no answer has found that of not being found."""
    places = np.searchsorted(view.landmarks, view.landmark_of)
    numbers = {int(number): place for place, number in enumerate(view.clusters.tolist())}
    column = np.array([numbers.get(number, -1) for number in range(int(view.clusters.max()) + 1)])
    own = view.prob[places, column[view.labels]]
    return np.where(own > 0.0, own, view.prob[places, -1])


def model_zip(desk: Desk) -> bytes:
    """A folder for ``linkwise predict``: a Gaussian mixture fitted to rows and links from these clusters."""
    from linkwise.mixture.ppc import PPC

    view, table = _seen(desk), desk.table
    if table.preparation is None:
        raise Missing("rows were clustered by words; there is no model that takes words: use labels")
    clusters, labels = np.unique(view.labels, return_inverse=True)
    means = np.stack([table.X[labels == place].mean(axis=0) for place in range(len(clusters))])
    # A common width at the start: a cluster of few rows has none of its own.
    around = table.X - means[labels]
    width = around.T @ around / len(around)
    width += 1e-3 * max(float(np.trace(width)) / len(width), 1e-12) * np.eye(len(width))
    links = links_of(desk)
    model = PPC(
        len(clusters), weights_init=np.bincount(labels) / len(labels), means_init=means,
        precisions_init=np.tile(np.linalg.inv(width), (len(clusters), 1, 1)), random_state=0,
    )  # fmt: skip
    model.fit(table.X, constraints=links if links.n_pairs else None)
    shared = np.zeros((len(clusters), len(clusters)), dtype=np.int64)
    np.add.at(shared, (np.asarray(model.predict(table.X)), labels), 1)
    # Components may have changed places; each is named after the cluster that it shares most rows with.
    cluster_of = linear_sum_assignment(shared, maximize=True)[1]
    agreed = float(shared[np.arange(len(clusters)), cluster_of].sum() / len(labels))
    text = (
        f"model/ is a Gaussian mixture (PPC) fitted to the {len(table)} rows of {table.samples.path.name} "
        f"and {counted(links.n_pairs, 'link')}, started from the clusters of the workbench.\n"
        f"It puts {agreed:.1%} of these rows into the same cluster as labels.csv.\n"
        "Clusters of new rows: linkwise predict model new.csv\n"
    )
    stream = io.BytesIO()
    named = replace(table.preparation, clusters=[str(number) for number in clusters[cluster_of].tolist()])
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr("README.txt", text)
        saved = save_prepared_model(Path(folder) / "model", model, named)
        for path in sorted(saved.rglob("*")):
            if path.is_file():
                archive.write(path, Path("model") / path.relative_to(saved))
    return stream.getvalue()


def report_html(desk: Desk) -> bytes:
    """A page about the session that needs nothing beside itself."""
    view, table, answers = _seen(desk), desk.table, desk.answers
    state = desk.state()
    page = Page(f"Clusters of {table.samples.path.name}")
    quality = "not known yet"
    if view.quality is not None:
        estimate, low, high = (f"{100 * value:.0f} %" for value in view.quality)
        quality = f"{estimate} of the pairs of rows are put right ({low} to {high}), by the estimate"
    facts = [
        ["rows", f"{len(table):,}"],
        ["clusters", str(len(np.unique(view.labels)))],
        ["answers", ", ".join(f"{count} {word}" for word, count in state["counts"].items())],
        ["quality", quality],
        ["answers that are wrong", f"about {100 * view.error_rate:.0f} %"],
        ["contradictions", str(state["n_contradictions"])],
    ]
    for note in state["notes"]:
        page.text(note, "warning")
    if view.told is not answers:
        page.text(
            "The model has not seen the last answers yet; the clusters are those before them.", "warning"
        )
    page.table(TextTable("", ("", ""), facts, 2))
    page.heading("Clusters")
    picture = _picture(table.X, view)
    if picture is not None:
        page.picture(picture, "Rows in the plane, coloured by cluster", "The first two principal components.")
    page.table(_cluster_table(desk, view))
    page.heading("Answers")
    page.table(_people_table(desk))
    contradictions = desk.contradictions()
    if contradictions:
        rows = [[one.text(table.name_of)] for one in contradictions[:_MOST_LINES]]
        page.table(
            TextTable(f"{len(contradictions)} contradictions", ("answers that cannot all be right",), rows)
        )
    doubts = desk.doubted_lines()
    if doubts:
        rows = [
            [*line["ids"], line["says"], line["source"] or "", f"{line['wrong']:.2f}"]
            for line in doubts[:_MOST_LINES]
        ]
        columns = ("row", "and row", "answer", "by", "probably wrong")
        page.table(TextTable("Answers that contradict the others", columns, rows, 4))
    return page.html().encode()


def _cluster_table(desk: Desk, view: View) -> TextTable:
    """Size of each cluster, how sure its rows are, and the columns that mark it."""
    own, X = _own_probability(view), desk.table.X
    names = [str(name) for name in desk.table.samples.features.columns]
    spread = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    rows = []
    for number in np.unique(view.labels).tolist():
        inside = view.labels == number
        away = (X[inside].mean(axis=0) - X.mean(axis=0)) / spread
        order = [place for place in np.argsort(-np.abs(away)) if abs(away[place]) >= _MARKED][:_N_MARKS]
        marks = ", ".join(f"{names[place]} {'high' if away[place] > 0 else 'low'}" for place in order)
        count = int(inside.sum())
        rows.append(
            [
                f"cluster {number}",
                marks,
                f"{count:,}",
                f"{100 * count / len(X):.1f} %",
                f"{own[inside].mean():.2f}",
            ]
        )
    columns = ("", "what marks it", "rows", "share", "mean probability")
    return TextTable("", columns, rows, 2)


def _people_table(desk: Desk) -> TextTable:
    """How many answers each person gave, and how many of them are doubted."""
    answers, doubted = desk.answers, set(desk.doubts())
    rows = []
    for name in sorted(set(answers.source)):
        places = [place for place, source in enumerate(answers.source) if source == name]
        says = answers.says[places]
        counts = [int((says == value).sum()) for value in (1, -1, 0)]
        rows.append(
            [name or "(no name)", *map(str, [len(places), *counts, sum(p in doubted for p in places)])]
        )
    return TextTable("", ("by", "answers", "same", "different", "unsure", "in doubt"), rows)


def _picture(X: Any, view: View) -> bytes | None:
    """The rows in the plane; None without matplotlib."""
    try:
        figure, ax = new_figure()
    except ImportError:
        return None
    chosen = np.arange(len(X))
    if len(X) > _MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(X), _MOST_POINTS, replace=False)
    points = principal_plane(X)[chosen]
    colours = view.labels[chosen].astype(np.int64) % 20
    ax.scatter(points[:, 0], points[:, 1], c=colours, cmap="tab20", vmin=0, vmax=19, s=6, linewidths=0)
    ax.set_xlabel("first component")
    ax.set_ylabel("second component")
    return png_of(figure)


def _seen(desk: Desk) -> View:
    if desk.view is None:
        raise Missing("there are no clusters yet; wait until the first ones are found")
    return desk.view


#: Rows that stand for a group.
N_REPRESENTATIVES = 3


def answers_of_groups(
    X: Floats, relation: str, a: Sequence[int], b: Sequence[int]
) -> tuple[list[tuple[int, int]], str]:
    """Pairs, and the answer about each of them, that say what two groups of rows are to each other.

    At most three rows stand for each group: the one nearest to its mean, then the furthest ones. "together"
    makes a chain of answers "same" through all of them, "apart" up to three answers "different" between them.
    """
    first, second = sorted(set(a)), sorted(set(b))
    if relation == "together":
        both = [*_representatives(X, first), *(_representatives(X, second) if second else [])]
        chain = list(dict.fromkeys(both))
        if len(chain) < 2:
            raise ValueError("one row belongs together with itself; draw around two rows or more")
        return list(pairwise(chain)), "same"
    shared = sorted(set(first) & set(second))
    if shared:
        raise ValueError(f"row {shared[0]} is in both groups; draw them so that they do not overlap")
    if not second:
        raise ValueError("there is one group; draw around the second one, too")
    pairs = zip(_representatives(X, first), _representatives(X, second), strict=False)
    return list(pairs), "different"


def _representatives(X: Floats, rows: Sequence[int]) -> list[int]:
    """The row nearest to the mean, then the furthest from those chosen."""
    points = X[np.asarray(rows)]
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    away = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(N_REPRESENTATIVES, len(rows)):
        away[chosen] = -1.0
        chosen.append(int(away.argmax()))
        away = np.minimum(away, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return [int(rows[place]) for place in chosen]
