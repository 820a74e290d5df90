"""The figures of the README are those of the tables in the repository, and its links lead to files of it."""

import re
import tomllib
from pathlib import Path

import pytest

import linkwise

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REPOSITORY = "https://github.com/linkwise/linkwise/blob/main/"
RAW = "https://raw.githubusercontent.com/linkwise/linkwise/main/"
PAGES = "https://linkwise.readthedocs.io/en/latest/"


def table(name: str) -> dict[str, dict[str, float]]:
    """Rows of a generated table by their first cell; cells that are no numbers are left out."""
    lines = (ROOT / "docs" / "results" / f"{name}.inc").read_text(encoding="utf-8").splitlines()
    head, _, *rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return {
        first.strip(): {
            column.strip(): float(cell)
            for column, cell in zip(head[1:], cells, strict=True)
            if re.fullmatch(r" *[\d.]+ *", cell)
        }
        for first, *cells in rows
    }


def figures(row: str) -> tuple[str, ...]:
    """Scores in the row of the README that begins with some text."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {row} |")]
    return tuple(re.findall(r"\.\d\d", line))


def shown(*values: float) -> tuple[str, ...]:
    return tuple(f"{value:.2f}".lstrip("0") for value in values)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("pairs among 30 % of the rows", "30 %, right"),
        ("the same, 15 % of them wrong", "30 %, 15 % wrong"),
    ],
)
def test_gain_of_pairs(row, column):
    scores = table("leaderboard_standings")
    without = scores["best without links, chosen by the links"][column]
    assert figures(row) == shown(without, scores["LinkedClustering"][column])


def test_gain_of_labels():
    scores = table("few_labels")
    others = ("support vectors", "LabelSpreading", "random forest", "shrunk LDA")
    best = max(scores[name]["mean"] for name in others)
    assert best == scores["support vectors"]["mean"]
    assert figures("five labels of each class") == shown(best, scores["LinkedClustering"]["mean"])


def test_gain_of_redefined_classes():
    scores = table("coarse_classes")
    names = scores["the names as they are"]["mean"]
    assert figures("class names that are too coarse") == shown(names, scores["CPPC"]["mean"])


def test_speed():
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| em \| EM iteration, float64,.*", text)
    ratios = [float(row.split("|")[6]) for row in rows]
    assert len(ratios) == 4
    found = re.search(r"iteration is (\d+) to (\d+) times faster", README)
    assert tuple(map(int, found.groups())) == (int(min(ratios)), int(max(ratios)))


def test_commands_that_reproduce_exist():
    from experiments import EXPERIMENTS

    names = re.findall(r"python -m experiments (\w+) --full", README)
    assert len(names) == 3
    assert set(names) <= set(EXPERIMENTS)


def test_links_work_anywhere():
    """They are absolute, so that they work on PyPI, and lead to files of this repository."""
    addresses = re.findall(r"\]\(([^)]+)\)", README)
    assert len(addresses) > 10
    for address in addresses:
        if address.startswith(PAGES):
            page = address.removeprefix(PAGES) or "index.html"
            assert (ROOT / "docs" / page).with_suffix(".md").exists(), address
        else:
            (base,) = [base for base in (REPOSITORY, RAW) if address.startswith(base)]
            assert (ROOT / address.removeprefix(base)).exists(), address


def test_own_pairs_are_one_click_away():
    assert f"{PAGES}start/tutorial.html" in README
    tutorial = (ROOT / "docs" / "start" / "tutorial.md").read_text(encoding="utf-8")
    assert "**Your own pairs**" in tutorial


def test_one_version_and_one_address():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert PAGES.startswith(project["urls"]["Documentation"])
    assert REPOSITORY.startswith(project["urls"]["Source"])
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {linkwise.__version__}\n" in citation
    assert f"version = {{{linkwise.__version__}}}" in README
