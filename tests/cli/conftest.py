"""Data files made once, and two ways to run the command: in this process, and as users do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_iris, load_wine
from typer.testing import CliRunner

from linkwise import Constraints, _pages
from linkwise.auto import candidates
from linkwise.cli.fit import report as fit_report
from linkwise.cli.map import report as map_report
from linkwise.datasets import make_noisy_objects
from linkwise.mixture.classes.report import page as classes_page
from tests import warm_python
from tests.first_clusterings import fit_once


@pytest.fixture(autouse=True)
def fitted_once(monkeypatch):
    """Tests fit the same rows with the same links: to fit the same candidates again was a quarter of it."""
    fit_once(monkeypatch)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """A folder with iris (ids f000 ..), links by row and by id, wine under a bad legend, and an image."""
    folder = tmp_path_factory.mktemp("files")
    iris = load_iris(as_frame=True)
    frame = iris.data.set_axis(["sepal_length", "sepal_width", "petal_length", "petal_width"], axis=1)
    frame.insert(0, "flower", [f"f{row:03d}" for row in range(150)])
    frame["species"] = iris.target_names[iris.target]
    frame.to_csv(folder / "iris.csv", index=False)
    frame.to_parquet(folder / "iris.parquet", index=False)
    links = Constraints.sample(iris.target, 30, random_state=0)
    links.to_csv(folder / "links.csv")
    by_id = pd.read_csv(folder / "links.csv")[["i", "j", "kind"]]
    by_id[["i", "j"]] = by_id[["i", "j"]].map(lambda row: f"f{row:03d}")
    by_id.to_csv(folder / "links_by_id.csv", index=False)

    wine = load_wine(as_frame=True)
    y = wine.target.to_numpy()
    halves = np.where(np.arange(len(y)) % 2 == 0, "sweet", "dessert")
    wine.data.assign(kind=np.where(y == 2, halves, "table")).to_csv(folder / "wine.csv", index=False)

    image, truth = make_noisy_objects(random_state=0)
    pixels = np.uint8(255 * image)
    Image.fromarray(pixels).save(folder / "objects.png")
    np.save(folder / "objects_truth.npy", truth)
    Constraints.sample(truth.ravel(), 40, overlap=True, random_state=0).to_csv(folder / "pixel_links.csv")
    return folder


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command in this process, in an empty folder; returns exit_code, stdout, stderr."""
    from linkwise.cli.app import app

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert "Traceback" not in result.output
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


#: Tests of commands that look at pictures, or that make one of every kind.
RENDERED = ("test_commands.py", "test_demo.py", "test_map_report.py")


@pytest.fixture(autouse=True)
def not_rendered(request, monkeypatch):
    """Figures of reports are made, but rendered only in a few tests: it was a fifth of the time."""
    if request.path.name not in RENDERED and "rendered" not in request.fixturenames:
        monkeypatch.setattr(fit_report, "png_of", lambda figure: b"\x89PNG\r\n\x1a\n")
        monkeypatch.setattr(map_report, "png_of", lambda figure: b"\x89PNG\r\n\x1a\n")
        monkeypatch.setattr(_pages, "png_of", lambda figure: b"\x89PNG\r\n\x1a\n")
        monkeypatch.setattr(classes_page, "svg_of", lambda figure: "<svg></svg>")


@pytest.fixture
def rendered():
    """For a test whose pictures must be drawn, in spite of the fixture above."""


@pytest.fixture
def three_candidates(monkeypatch):
    """A quick choice among one candidate of each kind, all of which can be stored."""
    monkeypatch.setattr(candidates, "_QUICK", ("spectral, near", "mixture, tied", "k-means, no links"))


@pytest.fixture
def refused(invoke):
    """Run a command that must fail with one line on standard error, and return that line."""

    def run(*arguments, code=1):
        result = invoke(*arguments)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("linkwise: ")
        return lines[0].removeprefix("linkwise: ")

    return run


@pytest.fixture(scope="session")
def process():
    """Run the command as a process of its own; standard output and error are pipes.

    A ``fresh`` one has to import everything first, as users know it.
    """

    def start(*arguments, fresh=False, **options):
        environment = {
            key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")
        }
        return (subprocess if fresh else warm_python).Popen(
            [sys.executable, "-m", "linkwise", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            **options,
        )

    return start


@pytest.fixture(scope="session")
def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    return found
