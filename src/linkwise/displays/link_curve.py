"""Learning curves: how a score grows with the number of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from linkwise._arrays import Floats, Ints
from linkwise._validation import as_generator
from linkwise.constraints import Constraints
from linkwise.displays._drawing import axes_or_new, line_style, name_axes, place_legend
from linkwise.displays._inputs import curve
from linkwise.metrics import clustering_accuracy


class LinkCurve(NamedTuple):
    """One curve: centre and spread (k,) of the scores at each number of links, and the number of runs."""

    n_links: Floats
    centre: Floats
    low: Floats
    high: Floats
    n_runs: Ints


class LinkCurveDisplay:
    """Score against the number of links, with its spread over repeats, for several methods.

    Parameters
    ----------
    n_links : (r,) array_like
        Number of links of each run.
    score : (r,) array_like
        Its score.
    method : (r,) array_like, optional
        Its method; curves come in the order of first appearance.
    spread : {"std", "quartiles"}, default="std"
        Mean and a band of one standard deviation (ddof=1) to either side, or median and quartiles. A number
        of links with a single run has no band.
    score_name : str, default="score"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    curves_ : dict
        Method to :class:`LinkCurve`.
    lines_, bands_ : dict
        Method to Line2D; method to the band, for methods with repeats.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from linkwise.displays import LinkCurveDisplay
    >>> runs = {
    ...     "method": ["PPC"] * 4 + ["k-means"] * 2,
    ...     "n_links": [0, 0, 50, 50, 0, 50],
    ...     "score": [0.7, 0.8, 0.9, 0.94, 0.7, 0.7],
    ... }
    >>> display = LinkCurveDisplay.from_table(runs)
    >>> display.curves_["PPC"].centre
    array([0.75, 0.92])
    >>> list(display.bands_)
    ['PPC']

    Or let it do the runs:

    >>> from sklearn.datasets import load_iris
    >>> from linkwise import PPC
    >>> X, y = load_iris(return_X_y=True)
    >>> display = LinkCurveDisplay.from_estimator(
    ...     {"PPC": PPC(3)}, X, y, n_links=(0, 60), n_repeats=3, random_state=0
    ... )
    >>> bool(display.curves_["PPC"].centre[1] > display.curves_["PPC"].centre[0])
    True
    """

    def __init__(
        self,
        n_links: ArrayLike,
        score: ArrayLike,
        method: ArrayLike | None = None,
        *,
        spread: str = "std",
        score_name: str = "score",
    ) -> None:
        self.n_links, self.score = curve(n_links, "n_links"), curve(score, "score")
        self.method = np.full(len(self.n_links), "score") if method is None else np.asarray(method)
        self.spread = spread
        self.score_name = score_name
        if not len(self.n_links) == len(self.score) == len(self.method):
            raise ValueError(
                f"n_links, score and method must have one entry for each run, got {len(self.n_links)}, "
                f"{len(self.score)} and {len(self.method)}"
            )
        for name, values in (("n_links", self.n_links), ("score", self.score)):
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                raise ValueError(f"{name} of run {row} is {values[row]}; leave failed runs out of the table")
        if spread not in ("std", "quartiles"):
            raise ValueError(f"spread must be 'std' or 'quartiles', got {spread!r}; pass one of them")

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        n_links: str = "n_links",
        score: str = "score",
        method: str | None = "method",
        spread: str = "std",
        ax: Any = None,
    ) -> Self:
        """Draw a tidy table: a row for each run.

        Parameters
        ----------
        table : DataFrame, mapping of columns, structured array or list of dict
        n_links, score : str
            Names of the columns.
        method : str or None, default="method"
            None if there is one method.
        spread : {"std", "quartiles"}, default="std"
        ax : matplotlib Axes, optional

        Returns
        -------
        LinkCurveDisplay
        """
        columns = _columns(table)
        wanted = [name for name in (n_links, score, method) if name is not None]
        for name in wanted:
            if name not in columns:
                raise ValueError(
                    f"the table has no column {name!r}; its columns are {', '.join(map(repr, columns))}"
                    ": name one of these"
                )
        methods = None if method is None else columns[method]
        display = cls(columns[n_links], columns[score], methods, spread=spread, score_name=score)
        return display.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_links: Iterable[int],
        n_repeats: int = 5,
        metric: Callable[[Any, Any], float] = clustering_accuracy,
        certainty: float | None = None,
        flip: float = 0.0,
        random_state: Any = None,
        spread: str = "std",
        ax: Any = None,
    ) -> Self:
        """Draw links from known classes, fit, and score the clusters against the classes.

        Pairs are drawn anew for every repeat and number of links; all estimators see the same ones.

        Parameters
        ----------
        estimator : estimator or dict of name to estimator
            Cloned, never fitted itself; fits need ``constraints`` and ``labels_``.
        X : (n, n_features) array_like
        y : (n,) array_like
            Known classes.
        n_links : iterable of int
        n_repeats : int, default=5
        metric : callable, default=clustering_accuracy
            ``metric(y, labels)``.
        certainty, flip : float, optional
            As in :meth:`linkwise.Constraints.sample`.
        random_state : int, RandomState, Generator or None
        spread : {"std", "quartiles"}, default="std"
        ax : matplotlib Axes, optional

        Returns
        -------
        LinkCurveDisplay
        """
        estimators = estimator if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
        sizes = sorted({int(size) for size in n_links})
        if not sizes or sizes[0] < 0 or n_repeats < 1:
            raise ValueError(
                f"n_links needs numbers >= 0 and n_repeats at least 1, got {sizes} and {n_repeats}"
                "; pass such numbers"
            )
        rng = as_generator(random_state)
        runs = []
        for _ in range(n_repeats):
            seed = int(rng.integers(2**31))
            for size in sizes:
                links = Constraints.sample(
                    y, size, overlap=True, flip=flip, certainty=certainty, random_state=seed
                )
                for name, model in estimators.items():
                    one = clone(model)
                    if "random_state" in one.get_params():
                        one.set_params(random_state=seed)
                    labels = one.fit(X, constraints=links).labels_
                    runs.append((name, size, float(metric(y, labels))))
        names, counts, scores = zip(*runs, strict=True)
        score_name = getattr(metric, "__name__", "score").replace("_", " ")
        order = [position for name in estimators for position, run in enumerate(runs) if run[0] == name]
        return cls(
            np.array(counts)[order],
            np.array(scores)[order],
            np.array(names)[order],
            spread=spread,
            score_name=score_name,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones; returns the display."""
        axes = axes_or_new(ax)
        self.curves_: dict[Any, LinkCurve] = {}
        self.lines_: dict[Any, Any] = {}
        self.bands_: dict[Any, Any] = {}
        for number, name in enumerate(dict.fromkeys(self.method.tolist())):
            mine = self.method == name
            found = _summary(self.n_links[mine], self.score[mine], self.spread)
            style = line_style(number)
            (line,) = axes.plot(found.n_links, found.centre, label=str(name), markersize=6, **style)
            if (found.n_runs > 1).any():
                self.bands_[name] = axes.fill_between(
                    found.n_links, found.low, found.high, color=style["color"], alpha=0.18, linewidth=0
                )
            self.curves_[name], self.lines_[name] = found, line
        around = "mean ± standard deviation" if self.spread == "std" else "median and quartiles"
        name_axes(
            axes, "number of links", f"{self.score_name} ({around})" if self.bands_ else self.score_name
        )
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        if len(self.lines_) > 1:
            place_legend(axes, list(self.lines_.values()))
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _summary(n_links: Floats, score: Floats, spread: str) -> LinkCurve:
    sizes = np.unique(n_links)
    rows = []
    for size in sizes:
        values = score[n_links == size]
        if spread == "quartiles":
            low, centre, high = np.quantile(values, (0.25, 0.5, 0.75))
        else:
            centre = values.mean()
            deviation = values.std(ddof=1) if len(values) > 1 else 0.0
            low, high = centre - deviation, centre + deviation
        rows.append((centre, low, high, len(values)))
    centre, low, high, n_runs = (np.array(column) for column in zip(*rows, strict=True))
    return LinkCurve(sizes, centre, low, high, n_runs)


def _columns(table: Any) -> dict[str, NDArray[Any]]:
    """Columns by name of the tables :meth:`LinkCurveDisplay.from_table` accepts."""
    if isinstance(table, list) and table and all(isinstance(row, Mapping) for row in table):
        names = list(table[0])
        for number, row in enumerate(table):
            if set(row) != set(names):
                raise ValueError(
                    f"row {number} has the keys {sorted(row)}, but row 0 has {sorted(names)}"
                    "; give all rows the same keys"
                )
        return {name: np.asarray([row[name] for row in table]) for name in names}
    if hasattr(table, "columns"):
        names = list(table.columns)
    elif isinstance(table, Mapping):
        names = list(table)
    elif getattr(getattr(table, "dtype", None), "names", None):
        names = list(table.dtype.names)
    else:
        raise TypeError(
            f"table is a {type(table).__name__}; pass a DataFrame, a dict of columns or a list of dicts"
        )
    return {name: np.asarray(table[name]) for name in names}
