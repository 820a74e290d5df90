"""Points by cluster, with the links among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise._validation import check_constraints
from linkwise.constraints import Constraints
from linkwise.displays._drawing import (
    axes_or_new,
    draw_links,
    draw_points,
    link_states,
    name_axes,
    place_legend,
    thin_links,
)
from linkwise.displays._inputs import check_points, codes_if_any, plane_of, training_labels


class ClusterDisplay:
    """Points by cluster with the links drawn: which were kept, which violated.

    Must-links are solid, cannot-links dashed; violated ones are red, thick and carry a cross. The legend
    counts them. More than two features are projected onto their first two principal components, and the
    axis labels say so; a single feature is drawn against the row number.

    Parameters
    ----------
    points : (n, 2) array_like
        Places in the picture; :meth:`from_predictions` makes them of any number of features.
    labels : (n,) array_like, optional
        Clusters: numbers or strings; -1, NaN or None for none. Without labels the links are neither
        kept nor violated.
    constraints : Constraints, optional
    axis_labels : (str, str)
    max_links : int, default=300
        If there are more, this many are drawn: the violated ones first, then must- and cannot-links in
        proportion, at even distances in the order of ``constraints.pairs``. The legend says how many of
        how many.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    scatters_ : dict
        Label to the PathCollection of its points (None: points without a label).
    lines_ : dict
        ``(kind, state)`` to a LineCollection; kinds ``must_link``, ``cannot_link``; states ``kept``,
        ``violated``, and ``open`` where an end has no label.
    crosses_ : PathCollection or None
        On the violated links.
    drawn_ : (n_pairs,) bool
        Which links are drawn.

    Examples
    --------
    A mixture without the links breaks some; PPC keeps them:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import PPC, Constraints
    >>> from linkwise.displays import ClusterDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Constraints.sample(y, 30, random_state=0)
    >>> model = PPC(3, shrinkage=0, n_init=1, random_state=0).fit(X)
    >>> display = ClusterDisplay.from_estimator(model, X, constraints=links)
    >>> sum(len(lines.get_segments()) for lines in display.lines_.values())
    30
    >>> bool(("must_link", "violated") in display.lines_)
    True
    >>> model.fit(X, constraints=links)
    PPC(...)
    >>> sorted(ClusterDisplay.from_estimator(model, X, constraints=links).lines_)
    [('cannot_link', 'kept'), ('must_link', 'kept')]
    >>> display.ax_.get_xlabel()
    'principal component 1 (92% of variance)'
    """

    def __init__(
        self,
        points: ArrayLike,
        labels: ArrayLike | None = None,
        constraints: Constraints | None = None,
        *,
        axis_labels: tuple[str, str] = ("", ""),
        max_links: int = 300,
    ) -> None:
        self.points = check_points(points)
        self.labels = labels
        self.constraints = check_constraints(constraints, len(self.points))
        self.axis_labels = axis_labels
        self.max_links = max_links
        self._codes, self._names = codes_if_any(labels, len(self.points))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        constraints: Constraints | None = None,
        features: Sequence[Any] | None = None,
        max_links: int = 300,
        ax: Any = None,
    ) -> Self:
        """Draw the clusters of a fitted estimator or Pipeline: ``labels_``, or what it predicts.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
        X : (n, n_features) array_like, sparse matrix or DataFrame
            The rows it was fitted to.
        constraints : Constraints, optional
        features : two column numbers or names, optional
            Draw these features instead of principal components.
        max_links : int, default=300
        ax : matplotlib Axes, optional
        """
        labels = training_labels(estimator, X)
        return cls.from_predictions(
            X, labels, constraints=constraints, features=features, max_links=max_links, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        features: Sequence[Any] | None = None,
        max_links: int = 300,
        ax: Any = None,
    ) -> Self:
        """Draw rows with given labels, or without any; parameters as in :meth:`from_estimator`."""
        plane = plane_of(X, features)
        display = cls(plane.points, labels, constraints, axis_labels=plane.axis_labels, max_links=max_links)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        self.scatters_, handles = draw_points(axes, self.points, self._codes, self._names)
        self.lines_: dict[tuple[str, str], Any] = {}
        self.crosses_ = None
        self.drawn_ = np.zeros(0, dtype=bool)
        if self.constraints is not None:
            states = link_states(self.constraints, self._codes)
            self.drawn_ = thin_links(self.constraints.weights, states, self.max_links)
            self.lines_, self.crosses_, entries = draw_links(
                axes, self.points, self.constraints, states, self.drawn_
            )
            handles += entries
        name_axes(axes, *self.axis_labels)
        place_legend(axes, handles)
        self.ax_, self.figure_ = axes, axes.figure
        return self
