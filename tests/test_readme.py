"""The figures of the README are those of the tables in the repository, and its links lead to files of it."""

import csv
import doctest
import re
import runpy
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


def test_number_of_data_sets():
    """Of the tables behind the rows about links, labels and classes."""
    first, last = map(int, re.search(r"means over (\d+) to (\d+) public data sets", README).groups())
    names = ("leaderboard_standings", "few_labels")
    texts = [(ROOT / "docs" / "results" / f"{name}.inc").read_text(encoding="utf-8") for name in names]
    numbers = [int(re.search(r"(\d+) of \d+ sets", text)[1]) for text in texts]
    with (ROOT / "docs" / "results" / "coarse_classes.csv").open(encoding="utf-8") as file:
        numbers.append(len({row["set"] for row in csv.DictReader(file)}))
    assert (min(numbers), max(numbers)) == (first, last)


def test_first_fit_is_that_of_the_tutorial():
    """Its figures are printed there by code that a test runs."""
    tutorial = (ROOT / "docs" / "start" / "tutorial.md").read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_examples(tutorial)
    (gain,) = [example.want for example in examples if example.want.startswith("gain ")]
    assert gain in README
    (scores,) = [example.want.split() for example in examples if "clustering_accuracy(" in example.source]
    alone, linked = (f"{float(score):.0%}".replace("%", " %") for score in scores)
    assert f"{linked} of the scans are with their digit, {alone} by k-means" in README


def test_picture_shows_what_its_description_says():
    script = runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))
    titles = [ax.get_title() for ax in script["picture_of_links"]().axes]
    number, without, linked = (int(re.search(r"\d+", title)[0]) for title in titles)
    text = f"points with {number} links. Middle: a mixture without the links breaks {without} of them."
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (README, index):
        assert text in page
        assert linked == 0
        assert "PPC with the links breaks none." in page


def test_badges_are_true():
    """Otherwise run ``python docs/make_pictures.py`` and write what they say beside them."""
    badges = runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))["badges"]()
    for name, text in badges.items():
        assert (ROOT / "docs" / "_static" / "badges" / f"{name}.svg").read_text(encoding="utf-8") == text
        title = re.search("<title>(.*)</title>", text)[1]
        assert f"![{title}]({RAW}docs/_static/badges/{name}.svg)" in README


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
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    date = re.search(rf"^## {re.escape(linkwise.__version__)} \((.*)\)$", changelog, flags=re.MULTILINE)[1]
    assert f"\ndate-released: {date}\n" in citation
