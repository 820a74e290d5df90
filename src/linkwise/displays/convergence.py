"""The objective after every iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Floats, Ints
from linkwise.displays._drawing import VIOLATED, axes_or_new, line_style, place_legend
from linkwise.displays._inputs import curve, fitted_step

# Rounding of a sum over many rows; smaller steps backwards are not worth a mark.
_ROUNDING = 1e-9
_PER_SAMPLE = "objective per sample"


class ConvergenceDisplay:
    """Trace of an objective over the iterations; steps in the wrong direction are marked.

    Parameters
    ----------
    traces : (t,) array_like, or dict of name to (t,) array_like
    rising : bool, default=True
        Whether the objective should rise (a lower bound) or fall (a cost).
    steps : int or dict of name to int, default=1
        Values of a trace to an iteration.
    objective : str, default="objective"
        Label of the axis.
    converged : dict of name to bool, optional
        Traces that did not converge are marked so in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    lines_ : dict
        Name to Line2D.
    setbacks_ : dict
        Name to the places in its trace reached by a step in the wrong direction, beyond rounding.

    Notes
    -----
    The objective of CPPC falls where a random disturbance is tried, which is no error.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import PPC
    >>> from linkwise.displays import ConvergenceDisplay
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = PPC(3, random_state=0).fit(X)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> len(display.lines_["PPC"].get_ydata()) == len(model.lower_bounds_)
    True
    >>> display.setbacks_["PPC"].tolist()
    []
    """

    def __init__(
        self,
        traces: ArrayLike | Mapping[str, ArrayLike],
        *,
        rising: bool = True,
        steps: int | Mapping[str, int] = 1,
        objective: str = "objective",
        converged: Mapping[str, bool] | None = None,
    ) -> None:
        named = traces if isinstance(traces, Mapping) else {"objective": traces}
        if not named:
            raise ValueError("traces is empty; pass at least one")
        self.traces: dict[str, Floats] = {
            str(name): curve(values, f"trace {name!r}") for name, values in named.items()
        }
        self.rising = rising
        self.steps = dict(steps) if isinstance(steps, Mapping) else dict.fromkeys(self.traces, steps)
        for name, number in self.steps.items():
            if number < 1:
                raise ValueError(f"steps of {name!r} must be at least 1, got {number}; pass 1 or more")
        self.objective = objective
        self.converged = dict(converged or {})

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw ``objectives_`` of fitted estimators.

        Parameters
        ----------
        estimator : fitted estimator, or dict of name to fitted estimator
            Several must have the same kind of objective.
        ax : matplotlib Axes, optional

        Returns
        -------
        ConvergenceDisplay
        """
        several = estimator if isinstance(estimator, Mapping) else None
        models = (
            {str(name): fitted_step(model) for name, model in several.items()}
            if several is not None
            else {type(fitted_step(estimator)).__name__: fitted_step(estimator)}
        )
        converged = {name: bool(getattr(model, "converged_", True)) for name, model in models.items()}
        kinds = {_objective_of(model) for model in models.values()}
        if len(kinds) > 1 or None in kinds:
            raise ValueError(
                f"{', '.join(type(model).__name__ for model in models.values())}: all estimators need "
                "objectives_ of one kind; otherwise pass ConvergenceDisplay(traces)"
            )
        traces = {name: model.objectives_ for name, model in models.items()}
        # K-means has several values an iteration, after that of the start: assignment, centres and metric.
        steps = {
            name: max(1, (len(trace) - 1) // max(1, int(getattr(models[name], "n_iter_", 1))))
            for name, trace in traces.items()
        }
        objective, rising = kinds.pop() or ("", True)
        if objective == _PER_SAMPLE:
            steps = dict.fromkeys(steps, 1)
        return cls(traces, rising=rising, steps=steps, objective=objective, converged=converged).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        from matplotlib.ticker import MaxNLocator

        self.lines_: dict[str, Any] = {}
        self.setbacks_: dict[str, Ints] = {}
        handles: list[Any] = []
        for number, (name, trace) in enumerate(self.traces.items()):
            iteration = np.arange(len(trace)) / self.steps.get(name, 1)
            label = name if self.converged.get(name, True) else f"{name} (not converged)"
            style = {**line_style(number), "markevery": max(1, len(trace) // 25), "markersize": 4}
            (self.lines_[name],) = axes.plot(iteration, trace, label=label, **style)
            change = np.diff(trace) if self.rising else -np.diff(trace)
            setbacks = 1 + np.flatnonzero(change < -_ROUNDING * np.maximum(np.abs(trace[1:]), 1.0))
            self.setbacks_[name] = setbacks
            handles.append(self.lines_[name])
            if len(setbacks):
                verb = "fell" if self.rising else "rose"
                handles.append(
                    axes.scatter(
                        iteration[setbacks],
                        trace[setbacks],
                        marker="x",
                        s=40,
                        linewidths=1.8,
                        color=VIOLATED,
                        zorder=3,
                        label=f"{verb} ({len(setbacks)} of {len(trace) - 1} steps)",
                    )
                )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("iteration")
        axes.set_ylabel(self.objective + (" (higher is better)" if self.rising else " (lower is better)"))
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        place_legend(axes, handles)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _objective_of(model: Any) -> tuple[str, bool] | None:
    """What an estimator optimises, and whether it rises; None if it keeps no objectives."""
    if not hasattr(model, "objectives_"):
        return None
    if hasattr(model, "lower_bounds_"):
        return _PER_SAMPLE, True
    if hasattr(model, "eigenvalues_"):
        return "sum of eigenvalues", getattr(model, "solver_", "") != "signed_laplacian"
    return "cost", False
