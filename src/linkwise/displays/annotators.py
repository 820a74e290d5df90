"""How often each annotator errs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.constraints import Constraints
from linkwise.displays._drawing import COLOURS, LITERAL, axes_or_new
from linkwise.displays._inputs import fitted_step


class AnnotatorDisplay:
    """Error rate of each annotator with its interval, the most reliable at the top.

    Parameters
    ----------
    rates : dict of name to float
        Share of wrong answers, such as ``noise_`` of ``PPC(learn_noise="source")``. Names whose rate is NaN
        are left out.
    intervals : dict of name to (low, high), optional
        Such as ``noise_interval_``.
    n_answers : dict of name to int, optional
        Number of answers, written behind the name.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    names_ : list
        From top to bottom.
    points_ : Line2D
        The rates.
    bars_ : LineCollection or None
        The intervals.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise.displays import AnnotatorDisplay
    >>> display = AnnotatorDisplay(
    ...     {"Carl": 0.31, "Ann": 0.03}, {"Carl": (0.24, 0.39), "Ann": (0.01, 0.07)}
    ... ).plot()
    >>> display.names_
    ['Ann', 'Carl']
    """

    def __init__(
        self,
        rates: Mapping[Any, float],
        intervals: Mapping[Any, ArrayLike] | None = None,
        n_answers: Mapping[Any, int] | None = None,
    ) -> None:
        self.rates = {name: float(rate) for name, rate in rates.items() if np.isfinite(rate)}
        if not self.rates:
            raise ValueError("no annotator has a rate; give the links a certainty below 1, and sources")
        self.intervals = None
        if intervals is not None:
            self.intervals = {name: np.asarray(intervals[name], dtype=np.float64) for name in self.rates}
        self.n_answers = n_answers

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, constraints: Constraints | None = None, ax: Any = None
    ) -> Self:
        """Draw the rates that ``PPC(learn_noise="source")`` learned.

        Parameters
        ----------
        estimator : fitted PPC, or a pipeline that ends with it
        constraints : Constraints, optional
            The links of the fit, to count the answers.
        ax : matplotlib Axes, optional

        Returns
        -------
        AnnotatorDisplay
        """
        model = fitted_step(estimator)
        rates = getattr(model, "noise_", None)
        if not isinstance(rates, dict):
            raise ValueError(f'{type(model).__name__} learned no rates; fit PPC(learn_noise="source")')
        counts = None
        if constraints is not None and constraints.source is not None:
            counts = dict(zip(*np.unique(constraints.source, return_counts=True), strict=True))
        return cls(rates, model.noise_interval_, counts).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        names = sorted(self.rates, key=lambda name: self.rates[name])
        axes = axes_or_new(ax, size=(6.4, 1.4 + 0.4 * len(names)))
        places = np.arange(len(names))
        (self.points_,) = axes.plot([self.rates[name] for name in names], places, "o", color=COLOURS[0])
        self.bars_ = None
        if self.intervals is not None:
            low, high = np.array([self.intervals[name] for name in names]).T
            self.bars_ = axes.hlines(places, low, high, color=COLOURS[0], linewidth=2.0, alpha=0.6)
        counts = self.n_answers or {}
        texts = [
            f"{name or '(no name)'}" + (f" ({counts[name]})" if name in counts else "") for name in names
        ]
        axes.set_yticks(places, texts, **LITERAL)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0.0, 0.5)
        axes.set_xlabel("share of wrong answers" + (" (bar: 90 %)" if self.bars_ is not None else ""))
        axes.grid(axis="x", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_, self.names_ = axes, axes.figure, names
        return self
