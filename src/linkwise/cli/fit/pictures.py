"""The pictures in the report of ``linkwise fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._pages import new_figure, png_of

if TYPE_CHECKING:
    from linkwise.constraints import Constraints
    from linkwise.model_selection import ComponentSweep

# Beyond this a scatter plot takes long and shows no more.
_MOST_POINTS = 20_000


def clusters_png(X: Any, labels: ArrayLike, links: Constraints | None, *, seed: int = 0) -> bytes:
    """Draw rows by cluster with the links; a random part of the rows if they are very many."""
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
    """Choose linked rows first, then others at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if links is not None and links.n_pairs:
        linked = np.zeros(n_rows, dtype=bool)
        linked[links.pairs.ravel()] = True
        order = order[np.argsort(~linked[order], kind="stable")]
    return np.sort(order[:_MOST_POINTS])


def criterion_png(sweep: ComponentSweep, criterion: str) -> bytes:
    """Draw a criterion over the numbers of clusters."""
    from linkwise.displays import CriterionDisplay

    figure, ax = new_figure(size=(7.2, 3.8))
    CriterionDisplay.from_sweep(sweep, criterion=criterion, ax=ax)
    return png_of(figure)


def annotators_png(model: Any, links: Constraints) -> bytes:
    """Draw the error rate of each source."""
    from linkwise.displays import AnnotatorDisplay

    figure, ax = new_figure(size=(7.2, 1.4 + 0.4 * len(model.noise_)))
    AnnotatorDisplay.from_estimator(model, constraints=links, ax=ax)
    return png_of(figure)


def convergence_png(model: Any) -> bytes | None:
    """Draw the objective over the iterations, for estimators that keep it."""
    from linkwise.displays import ConvergenceDisplay

    if len(getattr(model, "objectives_", ())) < 2:
        return None
    figure, ax = new_figure(size=(7.2, 3.4))
    ConvergenceDisplay.from_estimator(model, ax=ax)
    return png_of(figure)
