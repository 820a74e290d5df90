"""The demo runs, and its report holds what it promises without outside help."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import io
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

EXAMPLE = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(demo, tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "new" / "folder"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        demo.main([str(output)])
    return output, printed.getvalue()


def test_report_is_self_contained(run):
    output, printed = run
    page = (output / "report.html").read_text(encoding="utf-8")
    (image,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    png = base64.b64decode(image, validate=True)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png == (output / "links.png").read_bytes()
    assert not re.findall(r"(?:https?:)?//\w|<script|<link|@import|url\(", page.replace(image, ""))
    assert f"Report: {output / 'report.html'}" in printed


def test_table_is_in_the_report_and_on_the_terminal(demo, run):
    output, printed = run
    page = (output / "report.html").read_text(encoding="utf-8")
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    names = [row[0] for row in rows if row]
    assert names == ["KMeans", "GaussianMixture", "PPC with the links", "the true species"]
    for row in filter(None, rows):
        assert re.search(r"\s+".join(map(re.escape, row)), printed)
    truth = rows[-1]
    assert truth[2:] == ["1.000", "1.000"]


def test_numbers_of_the_table(demo):
    """Against a double loop over the links, which shares nothing with the metrics."""
    X, y = load_iris(return_X_y=True)
    links = demo.draw_links(y)
    assert links.n_pairs == demo.N_LINKS
    assert np.allclose(np.abs(links.weights), 0.5 * np.log(9))
    rows = demo.compare(X, y, links)
    for row in rows:
        kept = sum(
            (row.labels[i] == row.labels[j]) == (weight > 0)
            for (i, j), weight in zip(links.pairs, links.weights, strict=True)
        )
        assert row.links_kept == f"{kept} of {demo.N_LINKS}"
    assert all(0.8 < row.accuracy < 1 for row in rows[:3])


def test_refusals_name_the_points(demo, run):
    output, printed = run
    page = (output / "report.html").read_text(encoding="utf-8")
    chain, clusters = demo.refusals().values()
    assert chain == "3 and 17 must be together (3-8-17) but are linked apart"
    assert clusters.startswith("0, 50 and 100 are pairwise linked apart: they need 3 clusters")
    assert chain in page
    assert chain in printed
    assert clusters in printed


def test_refusal_of_good_links_is_an_error(demo):
    with pytest.raises(AssertionError, match="meant to contradict"):
        demo.refusal(lambda: None)
