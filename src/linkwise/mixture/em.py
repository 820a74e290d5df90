"""The EM loop, written once: steps until the objective stands still, restarts, the best of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from linkwise._compat import FitTask
from linkwise.mixture.gaussian.gaussians import Gaussians

__all__ = ["EMRun", "MixtureParameters", "Step", "best_run", "run_em"]


class MixtureParameters(NamedTuple):
    """Everything an EM step changes.

    Attributes
    ----------
    log_weights : (K,)
    gaussians : Gaussians
    covariances : array
        In the shape of the covariance type.
    coupling : (m,)
        Strength of the links; changes only when their noise is learned.
    """

    log_weights: NDArray[np.float64]
    gaussians: Gaussians
    covariances: NDArray[np.float64]
    coupling: NDArray[np.float64]

    def fitted_attributes(self) -> dict[str, NDArray[np.float64]]:
        """What a fitted estimator predicts from."""
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


class EMRun(NamedTuple):
    """One run of EM.

    Attributes
    ----------
    parameters : MixtureParameters
        After the last M-step.
    lower_bounds : list of float
        Objective at the start of each iteration, per sample.
    converged : bool
    n_decreases : int
        Iterations that lowered the objective by more than rounding: 0 with exact inference and
        ``reg_covar=0``; regularisation and approximate inference can lower it.
    stopped : bool
        Whether a callback ended the run.
    start : MixtureParameters or None
        Where it began; None if that was an assignment of the rows.
    judged : float or None
        Objective per sample at the last parameters by another engine, if the one of the run has none.
    """

    parameters: MixtureParameters
    lower_bounds: list[float]
    converged: bool
    n_decreases: int
    stopped: bool = False
    start: MixtureParameters | None = None
    judged: float | None = None

    @property
    def objective(self) -> float:
        """What runs are compared by: the last objective, or ``judged``; -inf if neither is finite."""
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
    verbose: int = 0,
    task: FitTask | None = None,
) -> EMRun:
    """Iterate until the objective changes by less than ``tol``, or the parameters do where there is none.

    Parameters
    ----------
    step : Step
    start : MixtureParameters
    tol : float
        On the objective per sample, as in scikit-learn. Where inference yields no objective (Gibbs), on the
        mean change of the weights and of the means in units of the spread of the means.
    max_iter : int
    verbose : int
        Print the objective of every iteration if positive.
    task : FitTask, optional
        The stage of fitting that callbacks follow; an iteration is a stage of it.

    Returns
    -------
    EMRun
    """
    parameters, bounds, n_decreases = start, [], 0
    previous = -np.inf
    for iteration in range(max_iter):
        subtask = None if task is None else task.subtask("iteration", iteration)
        new, bound = step(parameters)
        bounds.append(bound)
        change = bound - previous if np.isfinite(bound) else _parameter_change(parameters, new)
        n_decreases += bool(np.isfinite(previous) and change < -1e-10 * max(abs(bound), 1.0))
        if verbose:
            print(f"  iteration {iteration + 1}: objective {bound:.8f}, change {change:.3g}", flush=True)
        parameters, previous = new, bound
        if abs(change) < tol:
            _ended(subtask, parameters)
            return EMRun(parameters, bounds, True, n_decreases, start=start)
        if _ended(subtask, parameters):
            return EMRun(parameters, bounds, False, n_decreases, stopped=True, start=start)
    return EMRun(parameters, bounds, False, n_decreases, start=start)


def _ended(task: FitTask | None, parameters: MixtureParameters) -> bool:
    """Tell callbacks of the end of an iteration; whether one of them asks to stop."""
    return task is not None and task.end(parameters.fitted_attributes)


def _parameter_change(old: MixtureParameters, new: MixtureParameters) -> float:
    spread = old.gaussians.means.std(axis=0).max() + np.finfo(float).tiny
    of_means = np.abs(new.gaussians.means - old.gaussians.means).mean() / spread
    of_weights = np.abs(np.exp(new.log_weights) - np.exp(old.log_weights)).mean()
    return float(max(of_means, of_weights))


def best_run(
    run: Callable[[Any], EMRun],
    starts: Sequence[Any],
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> EMRun:
    """Run EM from every start and keep the run with the highest objective.

    A start that ends in a degenerate covariance is left out while another one survives; when all do, the
    error of the first is raised.

    Parameters
    ----------
    run : callable
        ``start -> EMRun``.
    starts : sequence
        Whatever ``run`` takes.
    tol, max_iter : float, int
        For the warning.
    n_jobs : int or None
        Starts run side by side in threads: kernels release the interpreter lock.
    verbose : int

    Returns
    -------
    EMRun

    Warns
    -----
    ConvergenceWarning
        If the best run stopped at ``max_iter``, or starts had to be left out.
    """

    def attempt(start: Any) -> EMRun | ValueError:
        try:
            return run(start)
        except np.linalg.LinAlgError as error:
            return ValueError(str(error))
        except ValueError as error:
            if "positive definite" not in str(error):
                raise
            return error

    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(attempt)(start) for start in starts)
    failures = [result for result in results if isinstance(result, ValueError)]
    runs = [result for result in results if isinstance(result, EMRun)]
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
    best = max(runs, key=lambda result: result.objective)
    if not best.converged and not best.stopped and max_iter > 0:
        warnings.warn(
            f"EM did not converge in max_iter={max_iter} iterations: the objective still changes by more "
            f"than tol={tol}. Raise max_iter or tol, try n_init > 1, scale the features, or use fewer "
            "components.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return best
