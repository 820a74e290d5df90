"""Chunks are not merged unless a test asks for it: small data would be one chunk, and nothing tested."""

import dask
import pytest

from linkwise.dask import passes


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(passes, "_FEWEST_NUMBERS", 1)
    with dask.config.set(scheduler="synchronous"):
        yield
