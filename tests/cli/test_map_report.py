"""The report of ``linkwise map`` in a browser: everything is visible, and nothing is fetched."""

from __future__ import annotations

import shutil

import pytest
from typer.testing import CliRunner

from linkwise.cli.app import app
from tests.cli.map_scene import make_scene, two_folds

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-extensions"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    scene = make_scene(folder)
    arguments = ["--samples", scene.points, "--label", "label", "--beliefs", scene.beliefs, "--repeats", 1]
    arguments += ["-o", folder / "map <b>.tif"]
    with two_folds():
        result = CliRunner().invoke(app, ["map", *map(str, [scene.raster, *arguments])])
    assert result.exit_code == 0, result.output
    return folder / "map <b>_files" / "report.html"


@pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed")
def test_report_in_a_browser(report):
    api = pytest.importorskip("playwright.sync_api")
    requests, problems = [], []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(report.as_uri())
        assert page.title() == "Map map <b>.tif"
        pictures = page.locator("img")
        assert pictures.count() == 2
        for picture in pictures.all():
            assert picture.is_visible()
            # A picture that is broken has no size of its own.
            assert picture.evaluate("image => image.naturalWidth") > 500
            assert picture.evaluate("image => image.getBoundingClientRect().right <= innerWidth")
        headings = page.locator("h2").all_inner_texts()
        assert headings == [
            "The legend",
            "What was split, merged and kept",
            "Areas",
            "Errors on held-out samples",
            "Confidence",
            "How it was made",
        ]
        tables = page.locator("table")
        assert all(table.is_visible() for table in tables.all())
        legend = tables.nth(0)
        names = legend.locator("tbody tr td:nth-child(3)").all_inner_texts()
        assert sorted(names) == ["forest", "open (a)", "open (b)", "water"]
        colours = {
            swatch.evaluate("one => getComputedStyle(one).backgroundColor")
            for swatch in legend.locator("span").all()
        }
        assert len(colours) == 4
        assert "split" in tables.nth(2).inner_text()
        assert "hectares" in tables.nth(3).inner_text()
        assert "open (a)" in tables.nth(4).inner_text()
        browser.close()
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []
    assert requests[0].startswith("file://")
    assert problems == []


def test_report_links_to_nothing_outside(report):
    text = report.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "<script" not in text
    assert "map <b>" not in text
