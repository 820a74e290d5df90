"""Write what the tutorial offers for download, and its picture: ``python docs/make_tutorial.py``."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import Constraints
from linkwise.datasets import load_bundled

DOCS = Path(__file__).parent
START = DOCS / "start"
N_ROWS, N_PAIRS = 300, 40


def rows() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Ids, pixels (300, 64) and true digits of the first scans that show a 3, 5, 8 or 9."""
    X, y = load_bundled("digits")
    keep = np.isin(y, [3, 5, 8, 9])
    ids = [f"scan{number:03}" for number in range(N_ROWS)]
    return ids, X[keep][:N_ROWS].astype(int), y[keep][:N_ROWS]


def as_csv(head: list[str], lines: list[list[Any]]) -> str:
    """A table as text."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return text.getvalue()


def files() -> dict[str, str]:
    """Content of every file by name."""
    ids, X, y = rows()
    links = Constraints.sample(y, N_PAIRS, random_state=0)
    pixels = [f"pixel{number:02}" for number in range(64)]
    pairs = [
        [ids[i], ids[j], "same" if weight > 0 else "different"]
        for (i, j), weight in zip(links.pairs, links.weights, strict=True)
    ]
    return {
        **flowers(),
        "digits.csv": as_csv(["id", *pixels], [[name, *row] for name, row in zip(ids, X, strict=True)]),
        "pairs.csv": as_csv(["left", "right", "kind"], pairs),
        "tutorial.ipynb": notebook((START / "tutorial.md").read_text(encoding="utf-8")),
    }


def flowers() -> dict[str, str]:
    """The files of the page about the command.

    Irises; 40 answers of which one in ten is wrong; the species of ten irises; two names for three species.
    """
    X, y = load_bundled("iris")
    links = Constraints.sample(y, 40, flip=0.1, random_state=0)
    head = ["flower", "sepal_length", "sepal_width", "petal_length", "petal_width"]
    kinds = ["must_link" if weight > 0 else "cannot_link" for weight in links.weights]
    rows = [[f"f{row:03}", *X[row].tolist()] for row in range(len(X))]
    known = [species if row % 15 == 0 else "" for row, species in enumerate(y)]
    legend = ["setosa" if species == "setosa" else "other" for species in y]
    return {
        "flowers.csv": as_csv(head, rows),
        "known.csv": as_csv(
            [*head, "species"], [[*row, name] for row, name in zip(rows, known, strict=True)]
        ),
        "legend.csv": as_csv(
            [*head, "species"], [[*row, name] for row, name in zip(rows, legend, strict=True)]
        ),
        "links.csv": as_csv(
            ["i", "j", "kind"],
            [[f"f{i:03}", f"f{j:03}", kind] for (i, j), kind in zip(links.pairs, kinds, strict=True)],
        ),
    }


def notebook(page: str) -> str:
    """The page as a notebook: text, and a cell for every block of Python."""
    cells = []
    for number, part in enumerate(re.split(r"```python\n(.*?)```\n", page, flags=re.DOTALL)):
        if number % 2:
            for lines in statements(part):
                cells.append({"cell_type": "code", "execution_count": None, "outputs": [], "source": lines})
        elif part.strip():
            cells.append({"cell_type": "markdown", "source": plain(part).strip().splitlines()})
    for number, cell in enumerate(cells):
        cell.update(id=f"cell{number}", metadata={})
        cell["source"] = [f"{line}\n" for line in cell["source"][:-1]] + cell["source"][-1:]
    book = {
        "cells": cells,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def statements(block: str) -> list[list[str]]:
    """Lines of code of a doctest, cut wherever output is shown."""
    prompt = re.compile(r"(?:>>>|\.\.\.) ?")
    groups: list[list[str]] = [[]]
    for line in block.splitlines():
        if prompt.match(line):
            groups[-1].append(prompt.sub("", line, count=1))
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


def plain(text: str) -> str:
    """Markdown that notebooks show: no directives, roles or links to other pages."""
    text = re.sub(r"```\{image\}.*?```\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\{download\}`([^`<]+) <[^>]+>`", r"`\1`", text)
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def draw() -> None:
    """Ten scans of every cluster, without links (k-means) and with them."""
    from matplotlib.figure import Figure
    from sklearn.cluster import KMeans

    from linkwise import LinkedClustering

    ids, X, _ = rows()
    links = Constraints.read_csv(START / "pairs.csv", index=ids, certainty=0.95).with_index(None)
    panels = {
        "k-means, without the pairs": KMeans(4, n_init=10, random_state=0).fit_predict(X),
        "linkwise, with 40 pairs": LinkedClustering(4, effort="quick", random_state=0).fit_predict(
            X, constraints=links
        ),
    }
    figure = Figure(figsize=(5.6, 4.6), layout="constrained")
    for ax, (title, labels) in zip(figure.subplots(2, 1), panels.items(), strict=True):
        rng = np.random.default_rng(0)
        chosen = [rng.choice(np.flatnonzero(labels == cluster), 12, replace=False) for cluster in range(4)]
        strips = [np.hstack([np.pad(X[row].reshape(8, 8), 1) for row in line]) for line in chosen]
        ax.imshow(np.vstack(strips), cmap="gray_r")
        ax.set_title(title, fontsize=14)
        ax.set_yticks(5 + 10 * np.arange(4), range(4), fontsize=13)
        ax.set_ylabel("cluster", fontsize=13)
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    figure.savefig(DOCS / "_static" / "tutorial.png", dpi=130)


def main() -> None:
    """Write the files, then draw the picture."""
    for name, text in files().items():
        (START / name).write_text(text, encoding="utf-8")
    draw()


if __name__ == "__main__":
    main()
