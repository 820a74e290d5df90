"""Choose the number of clusters: fit over a range of K, several times each, and compare criteria.

Held-out links tell which K agrees with what people mean by a cluster, but there are few of them, so that
several K agree equally well. The likelihood (BIC) uses all rows, but counts Gaussians: a class of two modes
is two of them, and two classes that overlap are one. So links exclude the K that they contradict, and BIC
chooses among the rest. Without a likelihood it is the K with the fewest broken links: unlike a likelihood,
their share rises again when K is too large, so that nothing favours large K.

Measured with 20 and 60 links on iris, wine, five digits and two sets of blobs (30 sweeps of K = 2 .. 7): PPC
finds the number of classes in 3 sweeps by BIC, in 20 by links, in 19 by both; PCKMeans in 19 by links, in 15
if it takes the smallest K within a standard error.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from linkwise._arrays import Bools, Floats
from linkwise._running import warn_once
from linkwise._validation import align_rows, as_generator, check_constraints, check_whole_number
from linkwise.constraints import Constraints
from linkwise.exceptions import InfeasibleConstraints
from linkwise.model_selection.held_out import HeldOut, both_kinds, corrected_error, hold_out, takes_links

#: Criteria that mixtures offer as methods of the data.
_METHODS = ("bic", "aic", "icl")
_LINKS = "held_out_links"

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

    ``seed`` is the ``random_state`` of the run: the same estimator with it gives the same fit. ``objective``
    is ``lower_bound_`` of mixtures and minus ``objective_`` of K-means, so that higher is better, and NaN for
    others. ``contingency`` (L, K) has the rows of each class in each cluster (CPPC). ``second`` is the other
    of two criteria, such as BIC in "held_out_links+bic".
    """

    n_components: int
    repeat: int
    seed: int
    criterion: float
    objective: float
    n_occupied: int
    converged: bool
    contingency: NDArray[np.int64] | None = None
    second: float = np.nan


class ComponentSweep:
    """Criterion and fitted models for a range of numbers of components; made by :func:`sweep_components`.

    Attributes
    ----------
    criterion : str
        Two are joined by "+".
    runs : tuple of SweepRun
        All runs, by K and repeat.
    table : structured array, one record for each K
        ``n_components``; ``mean``, ``std`` (NaN for one repeat) and ``best`` (lowest) of the criterion, the
        first of two; ``n_occupied``, mean number of clusters that hold a row; ``converged``, the share of
        converged runs; ``second``, mean of the second criterion, if there are two.
    typical : dict
        For each K the fitted run whose criterion (the second of two) is nearest the mean.
    best_runs : dict
        For each K the fitted run with the highest objective.
    plausible : tuple of int
        The K among which the choice was made: those whose held-out links are broken hardly more often than
        those of the best K, by no more than a standard error. All K for other criteria.
    best_n_components : int
        The plausible K with the lowest mean of the second criterion, or the K with the lowest mean of the
        only one; of several the smallest.
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
    ...     PPC(shrinkage=0), X, n_components=range(1, 5), n_repeats=2, random_state=0
    ... )
    >>> print(sweep)
    bic over 1 .. 4 components, 2 runs each: lowest mean at 2
       K     mean       std     best  occupied  converged
       1  829.978         0  829.978         1       100%
    *  2  574.018         0  574.018         2       100%
       3      ...
    """

    def __init__(
        self, criterion: str, runs: tuple[SweepRun, ...], typical: dict[int, Any], best_runs: dict[int, Any]
    ) -> None:
        self.criterion = criterion
        self.runs = runs
        self.typical = typical
        self.best_runs = best_runs
        self.table = _table(runs, two_criteria="+" in criterion)
        if np.isnan(self.table["mean"]).all():
            raise ValueError(f"{criterion} is NaN for every number of components; choose another criterion")
        chosen, plausible = _choice(criterion, self.table, runs)
        self.plausible = tuple(self.table["n_components"][plausible].tolist())
        self.best_n_components = int(self.table["n_components"][chosen])
        self.best = typical[self.best_n_components]
        self.at_edge: str | None = None
        if len(self.table) > 1:
            if chosen == len(self.table) - 1:
                self.at_edge = "upper"
            elif chosen == 0 and self.best_n_components > 1:
                self.at_edge = "lower"

    @property
    def _reason(self) -> str:
        second = self.criterion.partition("+")[2]
        if not second:
            return f"lowest mean at {self.best_n_components}"
        among = ", ".join(map(str, self.plausible))
        return f"lowest {second} of the plausible {among}: {self.best_n_components}"

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame with the number of components as its index."""
        import pandas

        return pandas.DataFrame(self.table).set_index("n_components")

    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion of every run, its mean and spread, the chosen K and the occupied clusters.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        CriterionDisplay
            With the axes in ``ax_``.
        """
        from linkwise.displays import CriterionDisplay

        return CriterionDisplay.from_sweep(self, ax=ax)

    def __repr__(self) -> str:
        k = self.table["n_components"]
        return (
            f"ComponentSweep({self.criterion} over {k[0]} .. {k[-1]} components, {len(self.runs)} runs, "
            f"{self._reason})"
        )

    def __str__(self) -> str:
        k, second = self.table["n_components"], self.criterion.partition("+")[2]
        lines = [
            f"{self.criterion} over {k[0]} .. {k[-1]} components, {len(self.runs) // len(k)} runs each: "
            f"{self._reason}" + (f", the {self.at_edge} edge of the range" if self.at_edge else ""),
            f"{'K':>4} {'mean':>10} {'std':>9} {'best':>10} {'occupied':>9} {'converged':>10}"
            + (f" {second:>10}" if second else ""),
        ]
        for row in self.table:
            mark = "*" if row["n_components"] == self.best_n_components else " "
            lines.append(
                f"{mark}{row['n_components']:>3} {row['mean']:>10.6g} {row['std']:>9.3g} "
                f"{row['best']:>10.6g} {row['n_occupied']:>9.3g} {row['converged']:>10.0%}"
                + (f" {row['second']:>10.6g}" if second else "")
            )
        return "\n".join(lines)


def _table(runs: tuple[SweepRun, ...], *, two_criteria: bool) -> NDArray[Any]:
    """Make one record for each K, in order."""
    columns = [*_COLUMNS, ("second", np.float64)] if two_criteria else _COLUMNS
    table = np.zeros(len({run.n_components for run in runs}), dtype=columns)
    for row, k in zip(table, sorted({run.n_components for run in runs}), strict=True):
        mine = [run for run in runs if run.n_components == k]
        values = np.array([run.criterion for run in mine])
        with np.errstate(invalid="ignore"):
            row["std"] = values.std(ddof=1) if len(values) > 1 else np.nan
        row["n_components"] = k
        row["mean"] = values.mean()
        row["best"] = values.min()
        if two_criteria:
            row["second"] = np.mean([run.second for run in mine])
        row["n_occupied"] = np.mean([run.n_occupied for run in mine])
        row["converged"] = np.mean([run.converged for run in mine])
    return table


def _choice(criterion: str, table: NDArray[Any], runs: tuple[SweepRun, ...]) -> tuple[int, Bools]:
    """Row of the table that is chosen, and which rows (k,) are plausible (see the top of this module)."""
    first, _, second = criterion.partition("+")
    lowest = int(np.nanargmin(table["mean"]))  # the first of several
    plausible = ~np.isnan(table["mean"])
    if first != _LINKS:
        return lowest, plausible
    # The same links were held out for all K, so that differences vary less than errors.
    errors = np.array([run.criterion for run in runs]).reshape(len(table), -1)
    for row, differences in enumerate(errors - errors[lowest]):
        plausible[row] &= differences.mean() <= corrected_error(differences) + 1e-12
    if second:
        return int(np.where(plausible, table["second"], np.inf).argmin()), plausible
    return lowest, plausible


def sweep_components(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    n_components: int | Iterable[int],
    constraints: Constraints | None = None,
    criterion: str = "auto",
    n_repeats: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ComponentSweep:
    """Fit an estimator for every number of clusters, several times each, and compare a criterion.

    The protocol of Preston et al. 2010: average the criterion over the repeats of each K, choose the K with
    the lowest average, and look at the run nearest that average, because the best of many runs favours the K
    that varies most. The run with the highest objective is kept as well. Where links are held out, K that
    they contradict are excluded first, and the likelihood chooses among the rest.

    Parameters
    ----------
    estimator : estimator of linkwise, or a mixture of scikit-learn
        Never fitted itself. Needs a parameter ``n_components`` or ``n_clusters``; ``random_state`` is set for
        every run.
    X : (n_samples, n_features) array_like
        Scale the features first: preprocessing does not depend on K.
    y : (n_samples,) array_like, optional
        Class labels, for CPPC.
    n_components : int or iterable of int
        The values of K.
    constraints : Constraints, optional
        Passed to ``fit``.
    criterion : str, default="auto"
        Lower is better. An entry of the fitted ``criteria_`` (CPPC), "bic", "icl" or "aic" for mixtures, or
        "held_out_links" for estimators that take links: a fifth of the must-links and of the cannot-links is
        left out of a second fit, and the criterion is the share of them that its labels break, averaged over
        the two kinds (must-links alone would choose K = 1). Left-out links that follow from the others do
        not count. "held_out_links+bic" (or another in place of bic) takes both: of the K that break hardly
        more links than the best one, by at most a standard error, that with the lowest BIC. ``auto`` is
        "cbic" for CPPC; for other mixtures "held_out_links+bic", or "bic" without links of both kinds;
        "held_out_links" for K-means and spectral clustering.
    n_repeats : int, default=10
        Runs for each K.
    random_state : int, Generator, RandomState or None
        Every run has a seed of its own that depends on this, on K and on the number of the repeat, not on
        the range of K or on ``n_jobs``.
    n_jobs : int or None
        Runs at the same time, in threads unless ``joblib.parallel_config`` says otherwise.
    verbose : int, default=0
        1 prints a line whenever a K is done.

    Returns
    -------
    ComponentSweep

    Warns
    -----
    UserWarning
        If the minimum lies at the edge of the range: the best K may lie beyond. If hard links need more
        clusters than some K, which is then left out.
    ConvergenceWarning
        If runs did not converge, with their number for each K, instead of one warning a run.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from linkwise import PPC
    >>> from linkwise.model_selection import sweep_components
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.6, random_state=1)
    >>> sweep = sweep_components(PPC(), X, n_components=range(2, 7), n_repeats=3, random_state=0)
    >>> sweep.best_n_components, sweep.at_edge
    (4, None)
    >>> sweep.best.means_.shape
    (4, 2)
    """
    candidates = _candidates(estimator, n_components)  # before the data are looked at
    n_repeats = check_whole_number(n_repeats, "n_repeats")
    X, constraints = align_rows(X, constraints)
    links = check_constraints(constraints, None, y)
    links = None if links is None else links.with_index(None)  # in the order of the rows from here on
    wanted, candidates = candidates, _feasible(candidates, links)
    entropy = as_generator(random_state).integers(2**32, size=4).tolist()
    held_out: list[HeldOut] | None = None
    by_default = criterion == "auto"
    if by_default:
        criterion = _default_criterion(estimator, links)
    if criterion.partition("+")[0] == _LINKS:
        # The same links are held out for every K, so that their criteria can be compared.
        try:
            held_out = _hold_outs(estimator, links, [_child_seed(entropy, 0, r) for r in range(n_repeats)])
        except ValueError:
            if not by_default or "+" not in criterion:
                raise
            criterion = criterion.partition("+")[2]  # too few links to spare any
    tasks = [(k, repeat, _child_seed(entropy, k, repeat)) for k in candidates for repeat in range(n_repeats)]

    def fits() -> Iterator[tuple[SweepRun, Any]]:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        yield from parallel(
            delayed(_fit_once)(estimator, X, y, links, criterion, held_out and held_out[task[1]], *task)
            for task in tasks
        )

    runs: list[SweepRun] = []
    typical: dict[int, Any] = {}
    best_runs: dict[int, Any] = {}
    waiting: list[tuple[SweepRun, Any]] = []
    with warn_once() as summed_up:
        for run, model in fits():
            waiting.append((run, model))
            if len(waiting) == n_repeats:
                # Only two models of each K survive: one holds n_samples x K responsibilities.
                done, models = [entry[0] for entry in waiting], [entry[1] for entry in waiting]
                typical[run.n_components] = models[_nearest_average(done)]
                best_runs[run.n_components] = models[_highest_objective(done)]
                runs += done
                waiting = []
                if verbose:
                    print(_progress(criterion, done))
        if not all(run.converged for run in runs):
            summed_up.add(ConvergenceWarning)
    sweep = ComponentSweep(criterion, tuple(runs), typical, best_runs)
    if sweep.at_edge == "lower" and candidates[0] > wanted[0]:
        sweep.at_edge = None  # there is nothing beyond
    _warn(sweep)
    return sweep


def _default_criterion(estimator: Any, links: Constraints | None) -> str:
    if "beliefs" in estimator.get_params(deep=False):
        return "cbic"
    if not callable(getattr(estimator, "bic", None)):
        return _LINKS
    return f"{_LINKS}+bic" if both_kinds(links) and takes_links(estimator) else "bic"


def _feasible(candidates: list[int], links: Constraints | None) -> list[int]:
    """Leave out numbers of clusters that hard links rule out, with a warning; refuse if none is left."""
    if links is None:
        return candidates
    error: InfeasibleConstraints | None = None
    possible = []
    for k in candidates:
        try:
            links.check(k)
        except InfeasibleConstraints as found:
            error = found
        else:
            possible.append(k)
    if error is not None and not possible:
        raise error
    if error is not None:
        out = ", ".join(str(k) for k in candidates if k not in possible)
        warnings.warn(f"hard links need more than K = {out} clusters; left out.", UserWarning, stacklevel=3)
    return possible


def _criterion_value(model: Any, X: Any, criterion: str) -> float:
    """Return a criterion of a fitted mixture: an entry of ``criteria_``, or a method of the data."""
    recorded = dict(getattr(model, "criteria_", {}))
    if criterion in recorded:
        return float(recorded[criterion])
    methods = [name for name in _METHODS if callable(getattr(model, name, None)) and name not in recorded]
    if criterion in methods:
        return float(getattr(model, criterion)(X))
    there = [*recorded, *methods] + [_LINKS] * takes_links(model)
    raise ValueError(
        f"{type(model).__name__} has no criterion {criterion!r}; "
        + (f"choose one of {', '.join(map(repr, there))}" if there else "pass an estimator of linkwise")
    )


def _hold_outs(estimator: Any, links: Constraints | None, seeds: list[int]) -> list[HeldOut]:
    """One hold-out for each seed, or an error that says why links cannot be held out."""
    name = type(estimator).__name__
    if not takes_links(estimator):
        raise ValueError(f"{name} takes no links, so that none can be held out; choose another criterion")
    if links is None or not both_kinds(links):
        raise ValueError(
            "criterion 'held_out_links' needs must-links and cannot-links: pass both in constraints="
            + ("" if callable(getattr(estimator, "bic", None)) else f"; {name} has no other criterion")
        )
    return [hold_out(links, seed) for seed in seeds]


def _size_parameter(estimator: Any) -> str:
    """Return the name of the parameter for the number of clusters."""
    for name in ("n_components", "n_clusters"):
        if name in estimator.get_params(deep=False):
            return name
    raise ValueError(
        f"{type(estimator).__name__} has no parameter n_components or n_clusters; pass the estimator itself, "
        "and for a pipeline transform X first: X = pipeline[:-1].fit_transform(X)"
    )


def _candidates(estimator: Any, n_components: int | Iterable[int]) -> list[int]:
    """Return the values of K, sorted, each once."""
    _size_parameter(estimator)
    values = [n_components] if isinstance(n_components, numbers.Integral) else list(n_components)  # type: ignore[arg-type]
    for value in values:
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"n_components must be whole numbers >= 1, got {value!r}; pass for example range(2, 11)"
            )
    if not values:
        raise ValueError("n_components is empty; pass for example range(2, 11)")
    return sorted({int(value) for value in values})


def _child_seed(entropy: list[int], n_components: int, repeat: int) -> int:
    words = np.random.SeedSequence([*entropy, n_components, repeat]).generate_state(1)
    return int(words[0]) % 2**31


def _fit_once(
    estimator: Any,
    X: Any,
    y: Any,
    constraints: Constraints | None,
    criterion: str,
    held_out: HeldOut | None,
    n_components: int,
    repeat: int,
    seed: int,
) -> tuple[SweepRun, Any]:
    """Fit a clone and note what the comparison needs of it."""
    model = clone(estimator).set_params(**{_size_parameter(estimator): n_components})
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=seed)
    try:
        model.fit(X, y) if constraints is None else model.fit(X, y, constraints=constraints)
        first, _, second = criterion.partition("+")
        if held_out is None:
            value = _criterion_value(model, X, first)
        else:
            value = held_out.error(clone(model).fit(X, y, constraints=held_out.kept).labels_)
        other = _criterion_value(model, X, second) if second else np.nan
    except Exception as error:
        error.add_note(f"in sweep_components, repeat {repeat} with n_components={n_components}")
        raise
    if hasattr(model, "n_occupied_"):
        n_occupied = int(model.n_occupied_)
    else:
        n_occupied = len(np.unique(model.labels_ if hasattr(model, "labels_") else model.predict(X)))
    contingency = getattr(model, "contingency_", None)
    run = SweepRun(
        n_components=n_components,
        repeat=repeat,
        seed=seed,
        criterion=value,
        objective=_objective(model),
        n_occupied=n_occupied,
        converged=bool(getattr(model, "converged_", True)),
        contingency=None if contingency is None else np.array(contingency),
        second=other,
    )
    return run, model


def _objective(model: Any) -> float:
    """Return the objective that repeats are compared by, higher is better; NaN where there is none."""
    if hasattr(model, "lower_bound_"):
        return float(model.lower_bound_)
    # The objective of spectral clustering is that of its affinity, the same for every repeat.
    return -float(model.objective_) if hasattr(model, "cluster_centers_") else float("nan")


def _nearest_average(runs: list[SweepRun]) -> int:
    """Return the run whose criterion is nearest the mean; of several the first."""
    # What is held out differs between repeats, the second criterion is that of the model itself.
    values = np.array([run.criterion if np.isnan(run.second) else run.second for run in runs])
    mean = values.mean()
    with np.errstate(invalid="ignore"):
        # The difference of two infinities is NaN, but they are as near as can be.
        distance = np.where(values == mean, 0.0, np.abs(values - mean))
    return int(np.where(np.isnan(distance), np.inf, distance).argmin())


def _highest_objective(runs: list[SweepRun]) -> int:
    """Return the run with the highest objective, or with the lowest criterion where there is none."""
    objective = np.array([run.objective for run in runs])
    if np.isnan(objective).all():
        objective = -np.array([run.criterion for run in runs])
    return int(np.where(np.isnan(objective), -np.inf, objective).argmax())


def _progress(criterion: str, runs: list[SweepRun]) -> str:
    values: Floats = np.array([run.criterion for run in runs])
    occupied = np.mean([run.n_occupied for run in runs])
    n_converged = sum(run.converged for run in runs)
    return (
        f"K = {runs[0].n_components}: {criterion} {values.mean():.6g} (best {values.min():.6g}), "
        f"{occupied:g} occupied, {n_converged} of {len(runs)} converged"
    )


def _warn(sweep: ComponentSweep) -> None:
    """Warn of what the user has to know before trusting the choice."""
    failed = {
        k: sum(not run.converged for run in sweep.runs if run.n_components == k)
        for k in sweep.table["n_components"].tolist()
    }
    if any(failed.values()):
        parts = ", ".join(f"{count} for K = {k}" for k, count in failed.items() if count)
        warnings.warn(
            f"{sum(failed.values())} of {len(sweep.runs)} runs did not converge ({parts}); their criterion "
            "may still fall. Raise max_iter of the estimator.",
            ConvergenceWarning,
            stacklevel=3,
        )
    undefined = sweep.table["n_components"][np.isnan(sweep.table["mean"])].tolist()
    if undefined:
        warnings.warn(
            f"{sweep.criterion} is NaN in some run with K = {', '.join(map(str, undefined))}; "
            "these K were not considered.",
            UserWarning,
            stacklevel=3,
        )
    if sweep.at_edge is not None:
        beyond = "larger" if sweep.at_edge == "upper" else "smaller"
        warnings.warn(
            f"{sweep.criterion} chooses K = {sweep.best_n_components}, the {sweep.at_edge} edge of the "
            f"range: the best K may lie beyond. Add {beyond} values to n_components; if the criterion keeps "
            "falling, clusters of this shape do not fit the data (another covariance_type or distortion?).",
            UserWarning,
            stacklevel=3,
        )
