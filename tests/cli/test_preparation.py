"""The file of columns beside a model: what does not fit the model is refused in one line."""

from __future__ import annotations

import json

import pytest

CHANGES = [
    lambda c: c.pop("scales"),
    lambda c: c.update(more=1),
    lambda c: c.update(columns="sepal_width"),
    lambda c: c.update(columns=[1, 2, 3, 4]),
    lambda c: c["columns"].pop(),
    lambda c: c.update(centres={"a": 1}),
    lambda c: c["centres"].append(0.0),
    lambda c: c.update(centres=["0"] * 4),
    lambda c: c.update(scales=[0.0] * 4),
    lambda c: c.update(scales=[True] * 4),
    lambda c: c.update(medians=None),
    lambda c: c.update(medians=[1e999] * 4),
    lambda c: c["clusters"].pop(),
    lambda c: c.update(clusters=[["0"], ["1"], ["2"]]),
]


@pytest.fixture
def folder(invoke, files, tmp_path):
    done = invoke(
        "fit",
        files / "iris.csv",
        "-k",
        3,
        "--ignore",
        "flower,species",
        "-m",
        "ppc",
        "--starts",
        1,
        "-o",
        "out",
    )
    assert done.exit_code == 0
    return tmp_path / "out"


def test_columns_that_do_not_fit_the_model(folder, refused, files):
    file = folder / "model" / "columns.json"
    whole = file.read_text()
    for change in CHANGES:
        content = json.loads(whole)
        change(content)
        file.write_text(json.dumps(content))
        assert "columns.json" in refused("predict", "out", files / "iris.csv"), content
    for text in ("[]", "3", "{", "[" * 100_000):
        file.write_text(text)
        assert "columns.json" in refused("predict", "out", files / "iris.csv"), text[:10]
    file.write_bytes(b"\xff\xfe")
    assert "columns.json" in refused("predict", "out", files / "iris.csv")
