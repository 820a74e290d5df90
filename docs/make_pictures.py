"""Draw the picture and the badges of the first page: ``python docs/make_pictures.py``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.mixture import GaussianMixture

from linkwise import PPC, Constraints, __version__
from linkwise.datasets import make_four_blobs

STATIC = Path(__file__).parent / "_static"

# After Okabe and Ito, of different lightness and with different markers, so that grey print works too.
BLUE, ORANGE, RED = "#0072B2", "#E69F00", "#B03A00"
CLUSTER_STYLES = [("o", BLUE), ("^", ORANGE)]


def tall_blobs() -> tuple[np.ndarray, np.ndarray]:
    """Four blobs whose classes are the columns, stretched so that a mixture of two prefers the rows."""
    X, y = make_four_blobs(28, sd=0.5, spacing=2.3, random_state=7)
    return X * [1.0, 1.25], y


def draw_points(ax: Axes, X: np.ndarray, labels: np.ndarray | None) -> None:
    if labels is None:
        ax.scatter(*X.T, s=24, color="0.65", linewidths=0, zorder=2)
        return
    for label, (marker, colour) in enumerate(CLUSTER_STYLES):
        ax.scatter(
            *X[labels == label].T,
            s=24,
            marker=marker,
            color=colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=2,
        )


def draw_links(ax: Axes, X: np.ndarray, links: Constraints, labels: np.ndarray | None) -> None:
    """Must-links solid, cannot-links dashed; with labels, broken ones in front in red."""
    broken = np.zeros(links.n_pairs, dtype=bool) if labels is None else links.violations(labels)
    for (i, j), weight, is_broken in zip(links.pairs, links.weights, broken, strict=True):
        kept_colour = "black" if labels is None else "0.6"
        ax.plot(
            *X[[i, j]].T,
            linestyle="-" if weight > 0 else (0, (4, 2)),
            color=RED if is_broken else kept_colour,
            linewidth=2.6 if is_broken else 1.2,
            zorder=4 if is_broken else 3,
        )
    if labels is None:
        ax.scatter(*X[np.unique(links.pairs)].T, s=26, color="black", linewidths=0, zorder=5)


def picture_of_links() -> Figure:
    """What links do, at a glance: the data and the links, a mixture without them, a mixture with them."""
    X, y = tall_blobs()
    links = Constraints.sample(y, 24, random_state=32)
    without = GaussianMixture(2, n_init=10, random_state=0).fit_predict(X)
    linked = PPC(2, n_init=10, random_state=0).fit_predict(X, constraints=links)
    broken = [int(links.violations(labels).sum()) for labels in (without, linked)]

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = [
        (None, f"{links.n_pairs} links"),
        (without, f"without: {broken[0]} broken"),
        (linked, f"with: {broken[1]} broken"),
    ]
    for ax, (labels, title) in zip(figure.subplots(1, 3, sharex=True, sharey=True), panels, strict=True):
        draw_points(ax, X, labels)
        draw_links(ax, X, links, labels)
        ax.set_title(title, fontsize=19)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_aspect("equal")
        ax.spines[:].set_color("0.8")
    figure.legend(
        handles=[
            Line2D([], [], color="black", linewidth=1.3, label="must-link"),
            Line2D(
                [],
                [],
                color="black",
                linewidth=1.3,
                linestyle=(0, (4, 2)),
                label="cannot-link",
            ),
            Line2D([], [], color=RED, linewidth=2.6, label="broken"),
        ],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=19,
    )
    return figure


def badges() -> dict[str, str]:
    """SVG by name of what the project itself states: version, versions of Python, licence.

    No badge tells whether tests pass: a file in the repository cannot know.
    """
    project = tomllib.loads((STATIC.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    versions = [
        f"3.{text.removeprefix(prefix)}" for text in project["classifiers"] if text.startswith(prefix)
    ]
    return {
        "version": badge("version", __version__),
        "python": badge("Python", " | ".join(versions)),
        "licence": badge("licence", project["license"]),
    }


def badge(name: str, value: str) -> str:
    """A name on dark and a value on blue ground; widths are those of 11 px letters, about 6.6 px each."""
    left, right = (round(6.6 * len(text)) + 12 for text in (name, value))
    texts = "".join(
        f'<text x="{x}" y="14" text-anchor="middle">{text}</text>'
        for x, text in ((left / 2, name), (left + right / 2, value))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{name}: {value}"><title>{name}: {value}</title>'
        f'<rect width="{left + right}" height="20" rx="4" fill="{BLUE}"/>'
        f'<path d="M4 0h{left - 4}v20H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z" fill="#444"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def main() -> None:
    path = STATIC / "links.png"
    picture_of_links().savefig(path, dpi=110)
    print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    (STATIC / "badges").mkdir(exist_ok=True)
    for name, text in badges().items():
        (STATIC / "badges" / f"{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
