"""The graph of the links: chunklets, components and cannot-links."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from linkwise._arrays import Bools, Floats, Ints
from linkwise._validation import check_constraints
from linkwise.constraints import Constraints
from linkwise.displays._drawing import (
    COLOURS,
    axes_or_new,
    cluster_handle,
    contrasting,
    draw_links,
    link_states,
    place_legend,
    point_style,
)
from linkwise.displays._inputs import codes_if_any, fitted_step, needed
from linkwise.graph import group_labels

# Stress majorisation needs n x n tables and their pseudo-inverse.
_LARGEST_STRESS = 500
_SWEEPS = 60
# More row numbers than these cannot be read.
_MOST_NUMBERS = 80
# Triangles are wide enough for a number only beside their middle; in points.
_TEXT_SHIFT = {"^": -2.5, "v": 2.5}


class ConstraintGraphDisplay:
    """The graph of the links, component by component: those with violated links first, then the largest.

    Must-links are solid, cannot-links dashed. Chunklets (rows joined by hard must-links) stand on grey
    ground. With labels, rows have the colour and marker of their cluster, and violated links are red and
    crossed. Rows without links are not drawn; the legend counts them.

    Parameters
    ----------
    constraints : Constraints
    labels : (n,) array_like, optional
        Clusters; -1, NaN or None for none.
    max_points : int, default=200
        Components are drawn in this order as long as they fit into this number of rows. The legend counts
        what is not drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    rows_ : (p,) int64
        Rows drawn.
    places_ : (p, 2)
        Where.
    lines_ : dict
        ``(kind, state)`` to a LineCollection, as in :class:`ClusterDisplay`.
    chunklet_lines_ : LineCollection or None
        Grey ground under the hard must-links.
    n_components_ : int
        Components with links.
    n_components_drawn_ : int

    Notes
    -----
    Components of up to 500 rows are laid out by stress majorisation, cannot-links twice as long as
    must-links; larger ones on a circle.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise import Constraints
    >>> from linkwise.displays import ConstraintGraphDisplay
    >>> links = Constraints(9, must_link=[(0, 1), (1, 2), (4, 5)], cannot_link=[(2, 3), (3, 6)])
    >>> display = ConstraintGraphDisplay.from_constraints(links)
    >>> display.n_components_, display.rows_.tolist()
    (2, [0, 1, 2, 3, 6, 4, 5])
    >>> {kind: len(lines.get_segments()) for (kind, _), lines in display.lines_.items()}
    {'must_link': 3, 'cannot_link': 2}
    """

    def __init__(
        self, constraints: Constraints, labels: ArrayLike | None = None, *, max_points: int = 200
    ) -> None:
        checked = check_constraints(constraints, None)
        if checked is None:
            raise TypeError("constraints is None; pass the links to draw")
        if max_points < 1:
            raise ValueError(f"max_points must be at least 1, got {max_points}; pass max_points=1 or more")
        self.constraints = checked
        self.labels = labels
        self.max_points = max_points
        self._codes, self._names = codes_if_any(labels, len(checked))

    @classmethod
    def from_constraints(
        cls,
        constraints: Constraints,
        *,
        labels: ArrayLike | None = None,
        max_points: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw links, with labels of the rows if they are given."""
        return cls(constraints, labels, max_points=max_points).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, constraints: Constraints, *, max_points: int = 200, ax: Any = None
    ) -> Self:
        """Draw links with the ``labels_`` of the estimator fitted with them."""
        labels = needed(fitted_step(estimator), "labels_", "pass from_constraints(constraints, labels=...)")
        return cls(constraints, labels, max_points=max_points).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax, size=(8.0, 5.2))
        states = link_states(self.constraints, self._codes)
        self._lay_out(states == 2)
        everywhere = np.full((len(self.constraints), 2), np.nan)
        everywhere[self.rows_] = self.places_
        drawn = np.isfinite(everywhere[self.constraints.pairs]).all(axis=(1, 2))
        self._draw_chunklets(axes, everywhere, drawn)
        self.lines_, self.crosses_, link_handles = draw_links(
            axes, everywhere, self.constraints, states, drawn
        )
        handles = self._draw_rows(axes) + link_handles + self._notes()
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.06)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        place_legend(axes, handles)
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _lay_out(self, violated: Bools) -> None:
        """Choose the components to draw and give their rows places."""
        pairs, weights = self.constraints.pairs, self.constraints.weights
        linked, ends = np.unique(pairs, return_inverse=True)
        ends = ends.reshape(-1, 2).astype(np.int64)
        component, self.n_components_ = group_labels(len(linked), ends)
        sizes = np.bincount(component, minlength=self.n_components_)
        layouts: list[Floats] = []
        chosen: list[Ints] = []
        left = self.max_points
        n_violated = np.bincount(component[ends[violated, 0]], minlength=self.n_components_)
        for number in np.lexsort([-sizes, n_violated == 0]).tolist():
            if sizes[number] > left:
                continue
            left -= int(sizes[number])
            members = np.flatnonzero(component == number)
            place = np.full(len(linked), -1)
            place[members] = np.arange(len(members))
            inside = component[ends[:, 0]] == number
            edges = place[ends[inside]]
            lengths = np.where(weights[inside] > 0, 1.0, 2.0)
            chosen.append(linked[members])
            layouts.append(
                stress_layout(len(members), edges, lengths)
                if len(members) <= _LARGEST_STRESS
                else circle(len(members))
            )
        self.n_components_drawn_ = len(chosen)
        self._n_linked = len(linked)
        self.rows_ = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
        self.places_ = np.concatenate(pack(layouts, gap=1.2)) if layouts else np.empty((0, 2))

    def _draw_chunklets(self, axes: Any, everywhere: Floats, drawn: Bools) -> None:
        from matplotlib.collections import LineCollection

        hard = drawn & (self.constraints.weights == np.inf)
        self.chunklet_lines_ = None
        if hard.any():
            segments = everywhere[self.constraints.pairs[hard]]
            width = 20.0 if len(self.rows_) <= _MOST_NUMBERS else 11.0
            self.chunklet_lines_ = axes.add_collection(
                LineCollection(segments, color="0.87", linewidth=width, capstyle="round", zorder=1.0)
            )

    def _draw_rows(self, axes: Any) -> list[Any]:
        """Draw the rows with their numbers; return entries for the legend."""
        numbered = len(self.rows_) <= _MOST_NUMBERS
        size = 190.0 if numbered else 40.0
        codes = np.full(len(self.rows_), -1) if self._codes is None else self._codes[self.rows_]
        handles = []
        for number in np.unique(codes).tolist():
            style = point_style(number) if number >= 0 else {"color": "white", "marker": "o"}
            # The bodies of triangles and stars are smaller than those of other markers.
            area = size if style["marker"] in "osDPph" else 1.5 * size
            axes.scatter(
                *self.places_[codes == number].T,
                s=area,
                edgecolors="0.15",
                linewidths=0.8,
                zorder=4.0,
                **style,
            )
            if self._codes is not None:
                handles.append(cluster_handle(self._names.tolist()[number], number))
        if numbered:
            for row, (x, y), code in zip(
                self.rows_.tolist(), self.places_.tolist(), codes.tolist(), strict=True
            ):
                colour = "black" if code < 0 else contrasting(COLOURS[code % len(COLOURS)])
                marker = "o" if code < 0 else point_style(code)["marker"]
                axes.annotate(
                    str(row), (x, y), (0.0, _TEXT_SHIFT.get(marker, 0.0)), textcoords="offset points",
                    ha="center", va="center_baseline", fontsize=7, color=colour, zorder=4.1,
                )  # fmt: skip
        return handles

    def _notes(self) -> list[Any]:
        """Make legend entries for chunklets and for what is not drawn."""
        from matplotlib.lines import Line2D

        handles = []
        if self.chunklet_lines_ is not None:
            sizes = np.bincount(self.constraints.chunklets()[self.rows_])
            label = f"chunklets ({int((sizes > 1).sum())})"
            handles.append(Line2D([], [], color="0.87", linewidth=8.0, label=label))
        hidden = self._n_linked - len(self.rows_)
        if hidden:
            n_hidden = self.n_components_ - self.n_components_drawn_
            text = (
                f"not drawn: {n_hidden} of {self.n_components_} components\n({hidden} rows; raise max_points)"
            )
            handles.append(Line2D([], [], linestyle="none", label=text))
        free = len(self.constraints) - self._n_linked
        if free:
            handles.append(Line2D([], [], linestyle="none", label=f"{free} rows without links"))
        return handles


def circle(n_nodes: int) -> Floats:
    """Put nodes one unit apart on a circle, (n, 2)."""
    angle = 2.0 * np.pi * np.arange(n_nodes) / n_nodes
    return n_nodes / (2.0 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])


def stress_layout(n_nodes: int, pairs: Ints, lengths: Floats) -> Floats:
    """Place the nodes of a connected graph, (n, 2), by the lengths (m,) of edges.

    Minimises sum_{i<j} (|x_i - x_j| - d_ij)^2 / d_ij^2 by majorisation (Gansner, Koren and North 2004), from
    classical scaling; nothing is random.
    """
    if n_nodes < 3:
        return np.column_stack([np.arange(n_nodes) * lengths.max(initial=1.0), np.zeros(n_nodes)])
    graph = sparse.coo_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    distance = shortest_path(graph, directed=False)
    places = _classical_scaling(distance)
    weight = 1.0 / np.where(distance > 0.0, distance, np.inf) ** 2
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(_SWEEPS):
        apart = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
        ratio = weight * distance / np.maximum(apart, 1e-9)
        places = inverse @ (ratio.sum(axis=1)[:, np.newaxis] * places - ratio @ places)
    # Lengthwise, so that rows of components fill the width.
    centred = places - places.mean(axis=0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2].T)


def _classical_scaling(distance: Floats) -> Floats:
    squares = distance**2
    means = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (squares - means - means[:, np.newaxis] + means.mean()))
    return np.asarray(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))


def pack(layouts: list[Floats], gap: float = 1.0) -> list[Floats]:
    """Move layouts so that their boxes stand in rows in the given order, at least ``gap`` apart."""
    sizes = [np.ptp(layout, axis=0) + gap for layout in layouts]
    area = sum(float(width * height) for width, height in sizes)
    row_width = max(1.5 * area**0.5, max((float(size[0]) for size in sizes), default=0.0))
    moved = []
    x = y = row_height = 0.0
    for layout, (width, height) in zip(layouts, sizes, strict=True):
        if x > 0.0 and x + width > row_width:
            x, y, row_height = 0.0, y - row_height, 0.0
        corner = np.array([layout[:, 0].min(), layout[:, 1].max()])
        moved.append(layout - corner + np.array([x, y]))
        x += float(width)
        row_height = max(row_height, float(height))
    return moved
