"""The tutorial reads files that lie beside it."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def beside_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the folder of the files to download."""
    monkeypatch.chdir(Path(__file__).parent)
