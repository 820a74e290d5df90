"""Draw without a window, and leave no figures behind."""

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    from matplotlib import pyplot

    yield
    pyplot.close("all")
