"""The EM loop of all mixtures: it iterates until the objective stands still and keeps the best restart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from linkwise._arrays import Floats
from linkwise._compat import FitTask
from linkwise.mixture.gaussian.gaussians import Gaussians, relative_shifts

AnyRun = TypeVar("AnyRun", bound="EMRun")

#: Runs whose values are this near to each other, as a share of them, have met: the first of them is kept.
_MEETING = 1e-11


class MixtureParameters(NamedTuple):
    """Everything an EM step changes."""

    log_weights: Floats
    """(K,)"""
    gaussians: Gaussians
    covariances: Floats
    """In the shape of the covariance type."""
    coupling: Floats
    """(m,) Strength of the links, or (J,) of the answers about them if their noise is learned."""

    def fitted_attributes(self) -> dict[str, Floats]:
        """Return the attributes that a fitted estimator predicts from."""
        return {
            "weights_": np.exp(self.log_weights),
            "means_": self.gaussians.means,
            "precisions_cholesky_": self.gaussians.factors,
            "covariances_": self.covariances,
        }


class Step(Protocol):
    """One EM iteration: the objective at the given parameters, and better parameters."""

    def __call__(self, parameters: MixtureParameters) -> tuple[MixtureParameters, float]:
        """Return (new parameters, objective at the old ones, per sample)."""


@dataclass
class EMRun:
    """One run of EM."""

    parameters: MixtureParameters
    """After the last M-step."""
    lower_bounds: list[float]
    """Objective at the start of each iteration, per sample."""
    converged: bool
    n_decreases: int
    """Iterations that lowered the objective by more than rounding: 0 with exact inference and
    ``reg_covar=0``; regularisation and approximate inference can lower it."""
    stopped: bool = False
    """Whether a callback ended the run."""
    start: MixtureParameters | None = None
    judged: float | None = None
    """Objective per sample at the last parameters by another engine, if the one of the run has none."""

    link_evidence: float = 0.0
    """How well the mixture predicts the links, see ``LinkedStep.link_evidence``; 0 for a single run."""

    @property
    def merit(self) -> float:
        """The value that runs are compared by: the links count in full, the objective as one row does."""
        return self.objective + self.link_evidence

    @property
    def objective(self) -> float:
        """The objective of the run: the last one, or ``judged``; -inf if not finite."""
        last = self.lower_bounds[-1] if self.lower_bounds else -np.inf
        if self.judged is not None:
            last = self.judged
        return last if np.isfinite(last) else -np.inf


def run_em(
    step: Step,
    start: MixtureParameters,
    *,
    tol: float,
    max_iter: int,
    patience: int = 1,
    settle: bool = False,
    escape: Callable[[MixtureParameters, float], MixtureParameters | None] | None = None,
    verbose: int = 0,
    task: FitTask | None = None,
    resume: EMRun | None = None,
    after: Callable[[EMRun], None] | None = None,
) -> EMRun:
    """Iterate until the objective per sample changes by less than ``tol`` over ``patience`` iterations.

    With ``settle`` the parameters must stand still as well, see ``parameter_shift``: a few linked rows can
    pull the solution over while the mean over all rows hardly changes.
    Where inference yields no objective (Gibbs), the change is that of the parameters. ``escape`` is called
    when the objective stands still, with the parameters and their objective: it returns others to go on
    from, or None if EM has converged. Callbacks follow ``task``; an iteration is a stage of it.
    ``resume`` is a run that was interrupted, to go on with; ``after`` is called after every iteration. A run
    with ``escape`` cannot be resumed.
    """
    run = EMRun(start, [], converged=False, n_decreases=0, start=start) if resume is None else resume
    since, previous = 0, run.lower_bounds[-1] if run.lower_bounds else -np.inf
    for iteration in range(len(run.lower_bounds), 0 if run.converged else max_iter):
        subtask = None if task is None else task.subtask("iteration", iteration)
        new, bound = step(run.parameters)
        run.lower_bounds.append(bound)
        window = run.lower_bounds[since:]
        change = bound - window[-1 - patience] if len(window) > patience else np.inf
        if not np.isfinite(bound):
            change = _parameter_change(run.parameters, new)
        run.n_decreases += bool(np.isfinite(previous) and bound - previous < -1e-10 * max(abs(bound), 1.0))
        if verbose:
            print(f"  iteration {iteration + 1}: objective {bound:.8f}, change {change:.3g}", flush=True)
        if escape is not None and change < tol:
            onward = escape(run.parameters, bound)
            run.converged = onward is None
            since, previous = iteration + 1, -np.inf
            new = run.parameters if onward is None else onward
        else:
            run.converged = bool(abs(change) < tol)
            if run.converged and settle and tol > 0.0:
                run.converged = parameter_shift(run.parameters, new) < tol
            previous = bound
        run.parameters = new
        if after is not None:
            after(run)
        run.stopped = subtask is not None and subtask.end(new.fitted_attributes) and not run.converged
        if run.converged or run.stopped:
            break
    return run


def parameter_shift(old: MixtureParameters, new: MixtureParameters) -> float:
    """The largest change of any component, in units that no scale of the data changes.

    Of its weight, of its mean in standard deviations, and of its covariance relative to what it was; the last
    two count with the root of the weight, because an empty component may be anywhere.
    """
    weights = np.exp(new.log_weights)
    moves, shapes = relative_shifts(old.gaussians, new.gaussians, new.covariances)
    root = np.sqrt(weights)
    changes = np.abs(weights - np.exp(old.log_weights))
    return float(max(changes.max(), (root * moves).max(), (root * shapes).max()))


def _parameter_change(old: MixtureParameters, new: MixtureParameters) -> float:
    """Return the mean change of the weights, or of the means in units of their spread if that is larger."""
    spread = old.gaussians.means.std(axis=0).max() + np.finfo(float).tiny
    of_means = np.abs(new.gaussians.means - old.gaussians.means).mean() / spread
    of_weights = np.abs(np.exp(new.log_weights) - np.exp(old.log_weights)).mean()
    return float(max(of_means, of_weights))


def best_run(
    run: Callable[[Any], AnyRun],
    starts: Sequence[Any],
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    verbose: int = 0,
    warn: bool = True,
) -> AnyRun:
    """Run EM from every start, side by side in threads, and keep the run with the highest objective.

    A start that ends in a degenerate covariance is left out with a warning while another one survives.
    ``warn`` of a best run that did not converge; ``tol`` and ``max_iter`` are for this warning.
    """
    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(attempt)(run, start) for start in starts)
    failures = [result for result in results if isinstance(result, ValueError)]
    runs = [result for result in results if not isinstance(result, ValueError)]
    if not runs:
        raise failures[0]
    if failures:
        warnings.warn(
            f"{len(failures)} of {len(starts)} starts ended in a degenerate covariance and were left out: "
            f"{failures[0]}",
            ConvergenceWarning,
            stacklevel=2,
        )
    if verbose:
        print(
            "objectives of the starts: " + ", ".join(f"{result.objective:.6f}" for result in runs), flush=True
        )
    best = _first_best(runs)
    if warn:
        warn_unless_converged(best, tol, max_iter)
    return best


def attempt(run: Callable[[Any], AnyRun], start: Any) -> AnyRun | ValueError:
    """The run of EM from a start, or the error if it ends in a degenerate covariance."""
    try:
        return run(start)
    except np.linalg.LinAlgError as error:
        return ValueError(str(error))
    except ValueError as error:
        if "positive definite" not in str(error):
            raise
        return error


def warn_unless_converged(run: EMRun, tol: float, max_iter: int) -> None:
    """Warn of a run that was neither at its end nor stopped by a callback."""
    if not run.converged and not run.stopped and max_iter > 0:
        warnings.warn(
            f"EM did not converge in max_iter={max_iter} iterations: the objective still changes by more "
            f"than tol={tol}. Raise max_iter or tol, try n_init > 1, scale the features, or use fewer "
            "components.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _first_best(runs: Sequence[AnyRun]) -> AnyRun:
    """Return the run of the highest merit; rounding, which the order of sums changes, does not decide."""
    needed = needed_merit(runs)
    return next(run for run in runs if run.merit >= needed)


def needed_merit(runs: Sequence[AnyRun]) -> float:
    """Return the merit from which on a run counts as good as the best of these; more runs never lower it."""
    highest = max(run.merit for run in runs)
    return highest - (_MEETING * abs(highest) if np.isfinite(highest) else 0.0)
