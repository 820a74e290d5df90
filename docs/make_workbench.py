"""Draw the pictures of the workbench in Chromium: ``python docs/make_workbench.py``, about a minute."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from linkwise.active import LabelOracle  # noqa: E402
from linkwise.datasets import load_bundled  # noqa: E402
from tests.workbench.browsing import Bench, Visit, browser  # noqa: E402

TARGET = DOCS / "_static" / "workbench"
PHONE = {"width": 390, "height": 844}


def digits(folder: Path) -> tuple[Path, Any]:
    """600 scans as ten components, with an image of each; and the true digits."""
    X, y = load_bundled("digits")
    X, y = X[:600], y[:600]
    (folder / "scans").mkdir()
    for row, pixels in enumerate(X):
        ink = np.pad(255 * pixels.reshape(8, 8) / 16, 2)
        Image.fromarray((255 - ink).astype("uint8")).resize((192, 192)).save(
            folder / "scans" / f"{row:04}.png"
        )
    table = components(X, 1)
    table.insert(0, "scan", [f"scan {row:04}" for row in range(len(X))])
    table["file"] = [f"scans/{row:04}.png" for row in range(len(X))]
    table.to_csv(folder / "digits.csv", index=False)
    return folder / "digits.csv", y


def components(X: Any, digits: int) -> pd.DataFrame:
    """Ten principal components as a table."""
    table = pd.DataFrame(PCA(10, random_state=0).fit_transform(X).round(digits))
    return table.rename(columns=lambda number: f"component {number + 1}")


def wine(folder: Path) -> tuple[Path, Any]:
    """Wines under names that are too coarse and too fine; and the true grapes."""
    data = load_wine(as_frame=True)
    grape = data.target.map({0: "barolo", 1: "grignolino", 2: "barbera"})
    table = components(StandardScaler().fit_transform(data.data), 2)
    table.insert(0, "bottle", [f"W{row:03}" for row in range(len(table))])
    half = pd.Series(["barbera A", "barbera B"] * len(table))[: len(table)]
    table["grape"] = grape.where(grape == "barbera", "other").where(grape != "barbera", half)
    table.to_csv(folder / "wine.csv", index=False)
    return folder / "wine.csv", data.target.to_numpy()


def answer(visit: Visit, y: Any, n_answers: int, wrong: tuple[int, ...]) -> None:
    """Answer by keys, as Anna, who is wrong about the questions of these numbers."""
    visit.page.fill("#annotator", "anna")
    visit.page.keyboard.press("Enter")
    oracle = LabelOracle(y)
    for number in range(1, n_answers + 1):
        keys = {"same": "d", "different": "s"} if number in wrong else {"same": "s", "different": "d"}
        visit.press(keys[oracle(*visit.pair())])
    visit.settle()


def typical_row(visit: Visit) -> int:
    """A row that nobody was asked about and that is in its cluster with some probability, not for sure."""
    for row in range(600):
        told = visit.json(f"/api/row/{row}")
        chances = {one["cluster"]: one["p"] for one in told["probabilities"]}
        if not told["links"] and 0.7 < chances.get(told["record"]["cluster"], 0.0) < 0.9:
            return row
    raise AssertionError("no row is in its cluster with such a probability")


def take(page: Any, name: str) -> None:
    """Keep what the page shows, in few colours."""
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(600)
    path = TARGET / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)


def about_digits(chromium: Any, folder: Path) -> None:
    """A question, all rows, and the question on a phone in the dark."""
    path, y = digits(folder)
    bench = Bench(path, "--id", "scan", "--image-column", "file")
    visit = Visit(bench, chromium)
    answer(visit, y, 60, wrong=(25, 40))
    take(visit.page, "answer")
    visit.go("see")
    visit.page.select_option("#embedding", index=1)
    visit.page.fill("#go-to", str(typical_row(visit)))
    visit.page.keyboard.press("Enter")
    visit.page.click("text='All'")
    take(visit.page, "see")
    visit.close()
    phone = Visit(bench, chromium, color_scheme="dark", has_touch=True)
    phone.page.set_viewport_size(PHONE)
    phone.page.fill("#annotator", "anna")
    phone.page.keyboard.press("Enter")
    phone.pair()
    take(phone.page, "phone")
    phone.close()
    bench.kill()


def about_wine(chromium: Any, folder: Path) -> None:
    """Answers that cannot all be right, and new classes."""
    path, y = wine(folder)
    bench = Bench(path, "--id", "bottle", "--label", "grape")
    visit = Visit(bench, chromium)
    visit.page.set_viewport_size({"width": 1280, "height": 760})
    answer(visit, y, 30, wrong=(9, 14))
    visit.go("doubt")
    take(visit.page, "doubt")
    visit.go("classes")
    for cell, belief in (("0 1", "merge"), ("2 2", "split")):
        visit.page.click(f"[data-cell='{cell}']")
        visit.page.click(f".menu [data-belief={belief}]")
    visit.page.click("#run-classes")
    visit.page.wait_for_selector("#accept-classes")
    visit.page.evaluate("document.activeElement.blur()")
    visit.page.mouse.move(640, 740)
    take(visit.page, "classes")
    visit.close()
    bench.kill()


def strip() -> None:
    """Four of the pictures side by side, for the README."""
    height, gap = 350, 12
    parts = [
        Image.open(TARGET / f"{name}.png").convert("RGB") for name in ("answer", "see", "classes", "phone")
    ]
    parts = [
        part.resize((round(part.width * height / part.height), height), Image.Resampling.LANCZOS)
        for part in parts
    ]
    whole = Image.new("RGB", (sum(part.width + gap for part in parts) + gap, height + 2 * gap), "#e3e6ea")
    left = gap
    for part in parts:
        whole.paste(part, (left, gap))
        left += part.width + gap
    whole.quantize(255, dither=Image.Dither.NONE).save(TARGET / "strip.png", optimize=True)


def main() -> None:
    """Draw all of them."""
    with browser() as chromium, TemporaryDirectory() as one, TemporaryDirectory() as other:
        about_digits(chromium, Path(one))
        about_wine(chromium, Path(other))
    strip()


if __name__ == "__main__":
    main()
