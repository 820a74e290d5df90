"""How many components: fits over a range of K, repeated, and the criterion that chooses among them."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from linkwise._run_warnings import warn_once
from linkwise._validation import as_generator, check_constraints, check_whole_number
from linkwise.constraints import Constraints
from linkwise.model_selection.component_sweep import ComponentSweep, SweepRun

__all__ = ["ComponentSweep", "SweepRun", "criterion_value", "sweep_components"]

# Criteria that mixtures offer as methods of the data.
_METHODS = ("bic", "aic")


def sweep_components(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    n_components: int | Iterable[int],
    constraints: Constraints | None = None,
    criterion: str = "cbic",
    n_repeats: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ComponentSweep:
    """Fit a mixture for every number of components, several times each, and compare a criterion.

    The protocol of Preston et al. 2010: average the criterion over the repeats of each K, choose the K with
    the lowest average, and look at the run nearest that average, because the best of many runs flatters
    the K that varies most. The run with the highest objective is kept as well.

    Parameters
    ----------
    estimator : CPPC, PPC, ConstrainedEM or another mixture
        Never fitted itself. Needs a parameter ``n_components``; ``random_state`` is set for every run.
    X : (n_samples, n_features) array_like
        Scale the features first: preprocessing does not depend on K.
    y : (n_samples,) array_like, optional
        Class labels, for CPPC.
    n_components : int or iterable of int
        The values of K.
    constraints : Constraints, optional
        Passed to ``fit``.
    criterion : str, default="cbic"
        Lower is better: an entry of the fitted ``criteria_`` (CPPC), or "bic" or "aic" for mixtures with
        these methods.
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
        If the minimum lies at the edge of the range: the best K may lie beyond.
    ConvergenceWarning
        If runs did not converge, with their number for each K, instead of one warning a run.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from linkwise import PPC
    >>> from linkwise.model_selection import sweep_components
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.6, random_state=1)
    >>> sweep = sweep_components(
    ...     PPC(), X, n_components=range(2, 7), criterion="bic", n_repeats=3, random_state=0
    ... )
    >>> sweep.best_n_components, sweep.at_edge
    (4, None)
    >>> sweep.best.means_.shape
    (4, 2)
    """
    candidates = _candidates(estimator, n_components)
    n_repeats = check_whole_number(n_repeats, "n_repeats")
    links = check_constraints(constraints, None, y)
    entropy = as_generator(random_state).integers(2**32, size=4).tolist()
    tasks = [(k, repeat, _child_seed(entropy, k, repeat)) for k in candidates for repeat in range(n_repeats)]

    def fits() -> Iterator[tuple[SweepRun, Any]]:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        yield from parallel(delayed(_fit_once)(estimator, X, y, links, criterion, *task) for task in tasks)

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
    _warn(sweep)
    return sweep


def criterion_value(model: Any, X: Any, criterion: str) -> float:
    """Value of a criterion of a fitted mixture: an entry of ``criteria_``, or a method of the data.

    Parameters
    ----------
    model : fitted mixture
    X : (n_samples, n_features) array_like
        The rows it was fitted to.
    criterion : str

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Listing the criteria there are.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import PPC
    >>> from linkwise.model_selection.sweep import criterion_value
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = PPC(1).fit(X)
    >>> criterion_value(model, X, "aic") == model.aic(X)
    True
    """
    recorded = dict(getattr(model, "criteria_", {}))
    if criterion in recorded:
        return float(recorded[criterion])
    if criterion in _METHODS and callable(getattr(model, criterion, None)):
        return float(getattr(model, criterion)(X))
    methods = [name for name in _METHODS if callable(getattr(model, name, None)) and name not in recorded]
    there = ", ".join(repr(name) for name in [*recorded, *methods])
    raise ValueError(
        f"{type(model).__name__} has no criterion {criterion!r}; "
        + (
            f"choose one of {there}"
            if there
            else "it has neither criteria_ nor a method bic or aic, so pass a mixture"
        )
    )


def _candidates(estimator: Any, n_components: int | Iterable[int]) -> list[int]:
    """The values of K, sorted, each once."""
    if "n_components" not in estimator.get_params(deep=False):
        raise ValueError(
            f"{type(estimator).__name__} has no parameter n_components; pass the mixture itself, and for a "
            "pipeline transform X first: X = pipeline[:-1].fit_transform(X)"
        )
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
    n_components: int,
    repeat: int,
    seed: int,
) -> tuple[SweepRun, Any]:
    """Fit a clone and note what the comparison needs of it."""
    model = clone(estimator).set_params(n_components=n_components)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=seed)
    try:
        model.fit(X, y) if constraints is None else model.fit(X, y, constraints=constraints)
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
        criterion=criterion_value(model, X, criterion),
        objective=float(getattr(model, "lower_bound_", np.nan)),
        n_occupied=n_occupied,
        converged=bool(getattr(model, "converged_", True)),
        contingency=None if contingency is None else np.array(contingency),
    )
    return run, model


def _nearest_average(runs: list[SweepRun]) -> int:
    """The run whose criterion is nearest the mean; of several the first."""
    values = np.array([run.criterion for run in runs])
    mean = values.mean()
    with np.errstate(invalid="ignore"):
        # The difference of two infinities is NaN, but they are as near as can be.
        distance = np.where(values == mean, 0.0, np.abs(values - mean))
    return int(np.where(np.isnan(distance), np.inf, distance).argmin())


def _highest_objective(runs: list[SweepRun]) -> int:
    """The run with the highest objective, or the lowest criterion where no objective is known."""
    objective = np.array([run.objective for run in runs])
    if np.isnan(objective).all():
        objective = -np.array([run.criterion for run in runs])
    return int(np.where(np.isnan(objective), -np.inf, objective).argmax())


def _progress(criterion: str, runs: list[SweepRun]) -> str:
    values: NDArray[np.float64] = np.array([run.criterion for run in runs])
    occupied = np.mean([run.n_occupied for run in runs])
    n_converged = sum(run.converged for run in runs)
    return (
        f"K = {runs[0].n_components}: {criterion} {values.mean():.6g} (best {values.min():.6g}), "
        f"{occupied:g} occupied, {n_converged} of {len(runs)} converged"
    )


def _warn(sweep: ComponentSweep) -> None:
    """Say what the user has to know before trusting the choice."""
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
            f"{sweep.criterion} is lowest at K = {sweep.best_n_components}, the {sweep.at_edge} edge of the "
            f"range: the best K may lie beyond. Add {beyond} values to n_components; if the criterion keeps "
            "falling, the shape of the clusters does not fit the data (another covariance_type?).",
            UserWarning,
            stacklevel=3,
        )
