"""Pictures of the reports, as PNG in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = ["clusters_png", "convergence_png", "new_figure", "png_of"]

_DPI = 110
# Beyond this a scatter plot takes long and shows no more.
_MOST_POINTS = 20_000


def new_figure(n_columns: int = 1, size: tuple[float, float] = (7.2, 4.8)) -> tuple[Any, Any]:
    """A figure that no window system needs to know of, and its axes side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(n_columns * size[0], size[1]), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, n_columns)


def png_of(figure: Any) -> bytes:
    """The figure as the content of a PNG file, without date or version in it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def clusters_png(X: Any, labels: ArrayLike, links: Constraints | None, *, seed: int = 0) -> bytes:
    """Rows by cluster, with the links; a random part of them if they are very many."""
    from linkwise.displays import ClusterDisplay

    shown, names = X, np.asarray(labels)
    if len(names) > _MOST_POINTS:
        rows = _rows_to_show(len(names), links, seed)
        shown, names = (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), names[rows]
        links = None if links is None else links[rows]
    figure, ax = new_figure()
    ClusterDisplay.from_predictions(shown, names, constraints=links, ax=ax)
    return png_of(figure)


def _rows_to_show(n_rows: int, links: Constraints | None, seed: int) -> NDArray[np.int64]:
    """Linked rows first, then others at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if links is not None and links.n_pairs:
        linked = np.zeros(n_rows, dtype=bool)
        linked[links.pairs.ravel()] = True
        order = order[np.argsort(~linked[order], kind="stable")]
    return np.sort(order[:_MOST_POINTS])


def convergence_png(model: Any) -> bytes | None:
    """The objective over the iterations, for estimators that keep it."""
    from linkwise.displays import ConvergenceDisplay

    if not (hasattr(model, "lower_bounds_") or hasattr(model, "objective_history_")):
        return None
    figure, ax = new_figure(size=(7.2, 3.4))
    ConvergenceDisplay.from_estimator(model, ax=ax)
    return png_of(figure)
