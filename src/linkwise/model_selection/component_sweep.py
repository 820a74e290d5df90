"""The result of a sweep over the number of components: a table, two models of each K, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise._heat_map import new_axes

__all__ = ["ComponentSweep", "SweepRun"]

_COLUMNS = [
    ("n_components", np.int64),
    ("mean", np.float64),
    ("std", np.float64),
    ("best", np.float64),
    ("n_occupied", np.float64),
    ("converged", np.float64),
]


@dataclass(frozen=True)
class SweepRun:
    """What a sweep keeps of every run.

    Attributes
    ----------
    n_components, repeat : int
    seed : int
        ``random_state`` of the run: the same estimator with it gives the same fit.
    criterion : float
    objective : float
        ``lower_bound_``, NaN where the estimator has none.
    n_occupied : int
        Clusters that hold a row.
    converged : bool
    contingency : (L, K) array or None
        Rows of each class in each cluster, for estimators that have it (CPPC).
    """

    n_components: int
    repeat: int
    seed: int
    criterion: float
    objective: float
    n_occupied: int
    converged: bool
    contingency: NDArray[np.int64] | None = None


class ComponentSweep:
    """Criterion and fitted models for a range of numbers of components; made by :func:`sweep_components`.

    Attributes
    ----------
    criterion : str
    runs : tuple of SweepRun
        All runs, by K and repeat.
    table : structured array, one record for each K
        ``n_components``; ``mean``, ``std`` (NaN for one repeat) and ``best`` (lowest) of the criterion;
        ``n_occupied``, mean number of clusters that hold a row; ``converged``, the share of converged runs.
    typical : dict
        For each K the fitted run whose criterion is nearest the mean.
    best_runs : dict
        For each K the fitted run with the highest objective.
    best_n_components : int
        K with the lowest mean.
    best : estimator
        ``typical[best_n_components]``.
    at_edge : {None, "lower", "upper"}
        Whether the minimum lies at an edge of the range, where the best K may lie beyond. A single K and
        K = 1 are no edges.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import PPC
    >>> from linkwise.model_selection import sweep_components
    >>> X, _ = load_iris(return_X_y=True)
    >>> sweep = sweep_components(
    ...     PPC(), X, n_components=range(1, 5), criterion="bic", n_repeats=2, random_state=0
    ... )
    >>> print(sweep)
    bic over 1 .. 4 components, 2 runs each: lowest mean at 2
       K     mean       std     best  occupied  converged
       1  829.978         0  829.978         1       100%
    *  2  574.018         0  574.018         2       100%
       3      ...
    """

    def __init__(
        self,
        criterion: str,
        runs: tuple[SweepRun, ...],
        typical: dict[int, Any],
        best_runs: dict[int, Any],
    ) -> None:
        self.criterion = criterion
        self.runs = runs
        self.typical = typical
        self.best_runs = best_runs
        self.table = _table(runs)
        if np.isnan(self.table["mean"]).all():
            raise ValueError(f"{criterion} is NaN for every number of components; choose another criterion")
        chosen = int(np.nanargmin(self.table["mean"]))
        self.best_n_components = int(self.table["n_components"][chosen])
        self.best = typical[self.best_n_components]
        self.at_edge: str | None = None
        if len(self.table) > 1:
            if chosen == len(self.table) - 1:
                self.at_edge = "upper"
            elif chosen == 0 and self.best_n_components > 1:
                self.at_edge = "lower"

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame with the number of components as its index.

        Returns
        -------
        DataFrame
        """
        import pandas

        return pandas.DataFrame(self.table).set_index("n_components")

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean criterion with its spread, the chosen K and the occupied clusters (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        matplotlib Axes
            Those of the criterion; the occupied clusters are on a second axis at the right.
        """
        axes = new_axes() if ax is None else ax
        k, mean = self.table["n_components"], self.table["mean"]
        spread = np.nan_to_num(self.table["std"])
        axes.fill_between(k, mean - spread, mean + spread, color="tab:blue", alpha=0.2, linewidth=0)
        (line,) = axes.plot(k, mean, "o-", color="tab:blue", label=f"{self.criterion} (mean ± std)")
        chosen = axes.axvline(
            self.best_n_components, color="tab:red", linestyle="--", label=f"chosen: {self.best_n_components}"
        )
        axes.set_xlabel("number of components")
        axes.set_ylabel(self.criterion)
        axes.xaxis.get_major_locator().set_params(integer=True)
        right = axes.twinx()
        (occupied,) = right.plot(
            k, self.table["n_occupied"], "s:", color="0.4", markersize=4, label="occupied"
        )
        right.set_ylabel("occupied clusters")
        axes.legend(handles=[line, chosen, occupied], loc="best")
        return axes

    def __repr__(self) -> str:
        k = self.table["n_components"]
        return (
            f"ComponentSweep({self.criterion} over {k[0]} .. {k[-1]} components, {len(self.runs)} runs, "
            f"lowest mean at {self.best_n_components})"
        )

    def __str__(self) -> str:
        k = self.table["n_components"]
        lines = [
            f"{self.criterion} over {k[0]} .. {k[-1]} components, {len(self.runs) // len(k)} runs each: "
            f"lowest mean at {self.best_n_components}"
            + (f", the {self.at_edge} edge of the range" if self.at_edge else ""),
            f"{'K':>4} {'mean':>10} {'std':>9} {'best':>10} {'occupied':>9} {'converged':>10}",
        ]
        for row in self.table:
            mark = "*" if row["n_components"] == self.best_n_components else " "
            lines.append(
                f"{mark}{row['n_components']:>3} {row['mean']:>10.6g} {row['std']:>9.3g} "
                f"{row['best']:>10.6g} {row['n_occupied']:>9.3g} {row['converged']:>10.0%}"
            )
        return "\n".join(lines)


def _table(runs: tuple[SweepRun, ...]) -> NDArray[Any]:
    """One record for each K, in order."""
    table = np.zeros(len({run.n_components for run in runs}), dtype=_COLUMNS)
    for row, k in zip(table, sorted({run.n_components for run in runs}), strict=True):
        mine = [run for run in runs if run.n_components == k]
        values = np.array([run.criterion for run in mine])
        with np.errstate(invalid="ignore"):
            row["std"] = values.std(ddof=1) if len(values) > 1 else np.nan
        row["n_components"] = k
        row["mean"] = values.mean()
        row["best"] = values.min()
        row["n_occupied"] = np.mean([run.n_occupied for run in mine])
        row["converged"] = np.mean([run.converged for run in mine])
    return table
