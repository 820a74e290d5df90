"""The curve that chooses the number of components."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.displays._drawing import COLOURS, VIOLATED, axes_or_new, place_legend
from linkwise.displays._inputs import curve


class CriterionDisplay:
    """A criterion against the number of components: every run, mean, spread and the choice.

    Parameters
    ----------
    n_components : (k,) array_like of int
        Rising.
    values : (k,) or (k, n_repeats) array_like
        Criterion of every run. A K with a run that is not finite is left out of the curve, and the legend
        says so.
    n_occupied : (k,) array_like, optional
        Mean number of clusters that hold a row, drawn on a second axis at the right.
    criterion : str, default="criterion"
        Its name.
    chosen : int, optional
        The K to mark; that with the lowest mean by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    right_ax_ : matplotlib Axes or None
        Of the occupied clusters.
    line_ : Line2D
        The means.
    band_ : PolyCollection or None
        Mean plus and minus standard deviation (ddof=1), if there are repeats.
    runs_ : PathCollection or None
        The runs, if there are repeats.
    chosen_ : int

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import PPC
    >>> from linkwise.displays import CriterionDisplay
    >>> from linkwise.model_selection import sweep_components
    >>> X, _ = load_iris(return_X_y=True)
    >>> sweep = sweep_components(
    ...     PPC(), X, n_components=range(1, 5), criterion="bic", n_repeats=2, random_state=0
    ... )
    >>> display = CriterionDisplay.from_sweep(sweep)
    >>> display.chosen_, display.ax_.get_ylabel()
    (2, 'bic (lower is better)')
    >>> CriterionDisplay([1, 2, 3], [830.0, 574.0, 581.0]).plot().chosen_
    2
    """

    def __init__(
        self,
        n_components: ArrayLike,
        values: ArrayLike,
        *,
        n_occupied: ArrayLike | None = None,
        criterion: str = "criterion",
        chosen: int | None = None,
    ) -> None:
        self.n_components = curve(n_components, "n_components")
        self.values = np.asarray(values, dtype=np.float64)
        if self.values.ndim == 1:
            self.values = self.values[:, np.newaxis]
        if self.values.ndim != 2 or len(self.values) != len(self.n_components) or self.values.size == 0:
            raise ValueError(
                f"values has shape {np.shape(values)}, but there are {len(self.n_components)} numbers of "
                "components; pass one row for each of them"
            )
        if (np.diff(self.n_components) <= 0).any():
            raise ValueError("n_components must rise; sort it, and values with it")
        self.n_occupied = None if n_occupied is None else curve(n_occupied, "n_occupied")
        if self.n_occupied is not None and len(self.n_occupied) != len(self.n_components):
            raise ValueError(
                f"n_occupied has {len(self.n_occupied)} entries, but there are {len(self.n_components)} "
                "numbers of components; pass one for each"
            )
        self._defined = np.isfinite(self.values).all(axis=1)
        if not self._defined.any():
            raise ValueError(
                f"no {criterion} is finite for any number of components"
                "; leave out what failed and pass the rest"
            )
        if chosen is not None and chosen not in self.n_components:
            raise ValueError(f"chosen is {chosen}, which is not among n_components; pass one of them")
        self.criterion = criterion
        self.chosen = chosen

    @classmethod
    def from_sweep(cls, sweep: Any, *, criterion: str | None = None, ax: Any = None) -> Self:
        """Draw what :func:`linkwise.model_selection.sweep_components` returns.

        Where two criteria chose together, ``criterion`` names the one to draw, the first by default.
        """
        if not hasattr(sweep, "runs") or not hasattr(sweep, "best_n_components"):
            raise TypeError(
                f"sweep is a {type(sweep).__name__}; pass what sweep_components returns, or arrays: "
                "CriterionDisplay(n_components, values)"
            )
        ks = sweep.table["n_components"].tolist()
        names = sweep.criterion.split("+")
        wanted = names[0] if criterion is None else criterion
        if wanted not in names:
            raise ValueError(
                f"criterion must be one of {', '.join(names)}, got {criterion!r}; pass one of them"
            )
        field = "criterion" if wanted == names[0] else "second"
        values = [[getattr(run, field) for run in sweep.runs if run.n_components == k] for k in ks]
        display = cls(
            ks, values, n_occupied=sweep.table["n_occupied"], criterion=wanted, chosen=sweep.best_n_components
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax, size=(7.4, 4.8))
        from matplotlib.lines import Line2D
        from matplotlib.ticker import MaxNLocator

        k, values = self.n_components[self._defined], self.values[self._defined]
        mean, n_repeats = values.mean(axis=1), values.shape[1]
        self.chosen_ = int(k[mean.argmin()]) if self.chosen is None else int(self.chosen)
        (self.line_,) = axes.plot(
            k,
            mean,
            "o-",
            color=COLOURS[0],
            zorder=3,
            label="mean of runs" if n_repeats > 1 else self.criterion,
        )
        handles: list[Any] = [self.line_]
        self.band_ = self.runs_ = self.right_ax_ = None
        if n_repeats > 1:
            spread = values.std(axis=1, ddof=1)
            self.band_ = axes.fill_between(
                k, mean - spread, mean + spread, color=COLOURS[0], alpha=0.2, linewidth=0, label="± std"
            )
            self.runs_ = axes.scatter(
                np.repeat(k, n_repeats), values.ravel(), marker=".", s=14, color="0.35", zorder=2.5,
                linewidths=0, label=f"runs ({n_repeats} each)",
            )  # fmt: skip
            handles += [self.band_, self.runs_]
        mark = axes.axvline(
            self.chosen_, color=VIOLATED, linestyle="--", linewidth=1.4, label=f"chosen: {self.chosen_}"
        )
        handles.append(mark)
        if self.n_occupied is not None:
            self.right_ax_ = axes.twinx()
            (occupied,) = self.right_ax_.plot(
                self.n_components,
                self.n_occupied,
                "s:",
                color="0.45",
                markersize=4,
                label="occupied clusters",
            )
            self.right_ax_.set_ylabel("occupied clusters")
            self.right_ax_.set_ylim(0.0, None)
            handles.append(occupied)
            axes.set_zorder(self.right_ax_.get_zorder() + 1)
            axes.patch.set_visible(False)
        if not self._defined.all():
            missing = ", ".join(f"{int(value)}" for value in self.n_components[~self._defined])
            handles.append(Line2D([], [], linestyle="none", label=f"not finite: K = {missing}"))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number of components")
        axes.set_ylabel(f"{self.criterion} (lower is better)")
        place_legend(axes, handles, gap=0.02 if self.right_ax_ is None else 0.16)
        self.ax_, self.figure_ = axes, axes.figure
        return self
