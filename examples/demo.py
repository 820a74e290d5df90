"""What links say about a clustering, on iris: noisy links, contradictions, feasibility, and a comparison.

Run ``make demo``, or ``python examples/demo.py [output directory]``.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from linkwise import PPC, Constraints
from linkwise.datasets import load_bundled
from linkwise.exceptions import InfeasibleConstraints
from linkwise.metrics import clustering_accuracy, constraint_satisfaction, match_clusters, pairwise_f1

N_LINKS = 40
FLIP = 0.1

# After Okabe and Ito, of different lightness and with different markers, so that grey print works too.
STYLES = [("o", "#0072B2"), ("^", "#E69F00"), ("s", "#009E73")]
BROKEN = "#B03A00"
COLUMNS = ("clustering", "links kept", "accuracy", "pairwise F")


class Row(NamedTuple):
    """One line of the table."""

    name: str
    labels: np.ndarray
    links_kept: str
    accuracy: float
    pairwise_f: float


def draw_links(y: np.ndarray) -> Constraints:
    """Pairs as an annotator reports them who is wrong one time in ten, and knows it."""
    return Constraints.sample(y, N_LINKS, flip=FLIP, certainty=1 - FLIP, random_state=0)


def refusal(ask: Callable[[], object]) -> str:
    """What linkwise answers to links that cannot hold."""
    try:
        ask()
    except InfeasibleConstraints as error:
        return str(error)
    raise AssertionError("these links were meant to contradict each other")


def refusals() -> dict[str, str]:
    """Two mistakes people make, and the answers."""
    three_kinds = Constraints(150, cannot_link=[(0, 50), (50, 100), (0, 100)])
    return {
        "must-link 3-8 and 8-17, cannot-link 3-17": refusal(
            lambda: Constraints(150, must_link=[(3, 8), (8, 17)], cannot_link=[(3, 17)])
        ),
        "three flowers of three kinds, but two clusters": refusal(lambda: three_kinds.check(n_clusters=2)),
    }


def compare(X: np.ndarray, y: np.ndarray, links: Constraints) -> list[Row]:
    """Score clusterings that never saw the links, one that did, and the truth, against links and truth."""
    clusterings = {
        "KMeans": KMeans(3, n_init=10, random_state=0).fit_predict(X),
        "GaussianMixture": GaussianMixture(3, n_init=10, random_state=0).fit_predict(X),
        "PPC with the links": PPC(3, n_init=10, random_state=0).fit_predict(X, constraints=links),
        "the true species": y,
    }
    return [
        Row(
            name,
            labels,
            f"{constraint_satisfaction(labels, links) * links.n_pairs:.0f} of {links.n_pairs}",
            clustering_accuracy(y, labels),
            pairwise_f1(y, labels),
        )
        for name, labels in clusterings.items()
    ]


def cells(row: Row) -> tuple[str, ...]:
    """The numbers of a row as text."""
    return row.name, row.links_kept, f"{row.accuracy:.3f}", f"{row.pairwise_f:.3f}"


def as_text(rows: list[Row]) -> str:
    """The table for a terminal."""
    lines = [COLUMNS, *map(cells, rows)]
    return "\n".join(f"{name:20}{kept:>12}{accuracy:>12}{f1:>12}" for name, kept, accuracy, f1 in lines)


def draw(ax: Axes, X: np.ndarray, links: Constraints, row: Row, classes: np.ndarray) -> None:
    """Flowers coloured by cluster, with the links; broken ones are thick."""
    for name, (marker, colour) in zip(classes, STYLES, strict=True):
        chosen = row.labels == name
        ax.scatter(
            X[chosen, 2], X[chosen, 1], s=26, marker=marker, color=colour, edgecolors="white", linewidths=0.4
        )
    for (i, j), weight, broken in zip(links.pairs, links.weights, links.violations(row.labels), strict=True):
        ax.plot(
            X[[i, j], 2],
            X[[i, j], 1],
            linestyle="-" if weight > 0 else (0, (4, 2)),
            color=BROKEN if broken else "0.6",
            linewidth=2.4 if broken else 1.0,
            zorder=3 if broken else 0,
        )
    ax.set_title(f"{row.name}: {row.links_kept} links kept", fontsize=11)
    ax.set_xlabel("petal length (cm)")


def picture(X: np.ndarray, y: np.ndarray, links: Constraints, rows: list[Row]) -> Figure:
    """One panel per clustering, clusters named after the species they match best."""
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    axes = figure.subplots(1, len(rows), sharex=True, sharey=True)
    for ax, row in zip(axes, rows, strict=True):
        named = row._replace(labels=match_clusters(y, row.labels).apply(row.labels))
        draw(ax, X, links, named, np.unique(y))
    axes[0].set_ylabel("sepal width (cm)")
    handles = [
        Line2D([], [], color="0.6", linewidth=1.0, label="must-link"),
        Line2D([], [], color="0.6", linewidth=1.0, linestyle=(0, (4, 2)), label="cannot-link"),
        Line2D([], [], color=BROKEN, linewidth=2.4, label="broken"),
    ]
    handles += [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
        for name, (marker, colour) in zip(np.unique(y), STYLES, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    return figure


def as_html(links: Constraints, rows: list[Row], answers: dict[str, str], png: bytes) -> str:
    """A page that needs nothing beside itself."""
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row)) + "</tr>" for row in rows
    )
    mistakes = "\n".join(
        f"<dt>{escape(asked)}</dt><dd>{escape(said)}</dd>" for asked, said in answers.items()
    )
    image = base64.b64encode(png).decode()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>linkwise demo</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .3rem 1rem; border-bottom: 1px solid #ccc; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
img {{ max-width: 100%; height: auto; }}
dt {{ font-weight: 600; }}
dd {{ margin: 0 0 .8rem 1.5rem; }}
</style>
</head>
<body>
<h1>What links say about a clustering</h1>
<p>Iris, 150 flowers of three species. {N_LINKS} pairs were shown to a simulated annotator who says "same" or
"different" and is wrong with probability {FLIP}: {escape(repr(links))}. KMeans and GaussianMixture never saw
the links; PPC was told them, and how sure the annotator is.</p>
<table><thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table>
<p>Even the true species break the links that were reported wrongly. That is why links carry a certainty.</p>
<img alt="Petal length and sepal width of iris, coloured by cluster, with the links drawn between flowers"
 src="data:image/png;base64,{image}">
<h2>Links that cannot hold are refused, with the reason</h2>
<dl>
{mistakes}
</dl>
</body>
</html>
"""


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?", type=Path, default=Path("build/demo"))
    output: Path = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)

    X, y = load_bundled("iris")
    links = draw_links(y)
    rows = compare(X, y, links)
    answers = refusals()

    print(f"Iris, and what an annotator says about {N_LINKS} pairs (wrong one time in ten):\n{links}\n")
    print(as_text(rows))
    for asked, said in answers.items():
        print(f"\n{asked}:\n  {said}")

    image = output / "links.png"
    picture(X, y, links, rows).savefig(image, dpi=110)
    report = output / "report.html"
    report.write_text(as_html(links, rows, answers, image.read_bytes()), encoding="utf-8")
    print(f"\nReport: {report}")


if __name__ == "__main__":
    main()
