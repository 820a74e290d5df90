"""The files of the tutorial are what their script writes, and its notebook runs."""

import json
import runpy
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parents[1] / "docs"
START = DOCS / "start"


def test_files_are_up_to_date():
    """Otherwise run ``python docs/make_tutorial.py``."""
    script = runpy.run_path(str(DOCS / "make_tutorial.py"))
    for name, text in script["files"]().items():
        assert (START / name).read_text(encoding="utf-8") == text


def test_notebook_runs(monkeypatch):
    monkeypatch.chdir(START)
    book = json.loads((START / "tutorial.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert isinstance(names["table"], pd.DataFrame)
    assert names["table"]["cluster"].nunique() == 4
