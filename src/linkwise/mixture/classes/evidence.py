"""What the data say about dividing and joining classes: the evidence behind the starts of CPPC.

*Dividing.* The rows of a class are fitted by mixtures of 1, 2, ... Gaussians of their own. A number of parts
is judged by the integrated classification likelihood

    ICL = -2 log L + p log n + 2 H,

H being the entropy of the memberships and p the number of parameters. Where covariances are to be full, those
of the parts may be diagonal: a class of few rows has no room for two full ones. A division has to be stable
as well: mixtures of two halves of the rows must find it again (adjusted Rand index). Densities of classes
that are no Gaussian gain from any number of parts; such parts differ from half to half.

*Joining.* Two clusters of different classes are compared with one Gaussian for the rows of both, given their
names, by 2 log(likelihood ratio) - (parameters saved) log n.

Beliefs add their own reward or cost, A n_a n_b nats for n_a and n_b rows put together (``pair_weights``).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.metrics import adjusted_rand_score

from linkwise._arrays import AnyFloats, Bools, Floats, Ints
from linkwise.mixture.gaussian.gaussians import n_free_parameters
from linkwise.mixture.ppc import PPC

#: Rows of a class that its divisions are looked for on.
_ROWS = 2000
_STARTS = 4
#: Shapes that the parts of a class may have, by the shape that is asked for.
_SHAPES = {"full": ("full", "diag")}
#: Divisions are looked for until this many numbers of parts in turn were no better.
_PATIENCE = 2
_LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Division(NamedTuple):
    """A class in parts: ``labels`` (n_l,), ICL and BIC (lower is better), and how stable the parts are."""

    n_parts: int
    labels: Ints
    criterion: float
    bic: float
    stability: float


def class_divisions(
    X: AnyFloats,
    most: int,
    covariance_type: str,
    reg_covar: float,
    shrinkage: float,
    seed: int,
    *,
    judge: bool = True,
) -> list[Division]:
    """Divisions of rows X (n, d) of one class into 1, 2, ... parts, at most ``most`` or until worse."""
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.permutation(len(X))[:_ROWS])
    rows, half = X[sample], rng.permutation(len(sample)) % 2 == 0
    found: list[Division] = []
    best = 0
    for k in range(1, max(1, min(most, len(rows) // (X.shape[1] + 2))) + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a start need not have converged
                tried = [
                    _division(X, rows, half if judge else None, k, shape, reg_covar, shrinkage, seed)
                    for shape in _SHAPES.get(covariance_type, (covariance_type,))
                ]
        except ValueError:
            if k == 1:  # too few rows for any Gaussian: the class is one part, and nothing can be told
                found.append(Division(1, np.zeros(len(X), dtype=np.int64), 0.0, 0.0, 1.0))
            break
        found.append(min(tried, key=lambda one: one.criterion))
        if found[-1].criterion < found[best].criterion:
            best = len(found) - 1
        elif judge and len(found) - 1 - best >= _PATIENCE:
            break
    return found


def _division(
    X: AnyFloats,
    rows: AnyFloats,
    half: Bools | None,
    k: int,
    covariance_type: str,
    reg_covar: float,
    shrinkage: float,
    seed: int,
) -> Division:
    """One mixture of k Gaussians, what it says of all rows X, and how a ``half`` agrees with it, or NaN."""

    def fitted(data: AnyFloats, n_init: int) -> PPC:
        return PPC(
            k, covariance_type=covariance_type, reg_covar=reg_covar, shrinkage=shrinkage, n_init=n_init,
            random_state=seed,
        ).fit(data)  # fmt: skip

    model = fitted(rows, _STARTS if k > 1 and half is not None else 1)
    probabilities = np.asarray(model.predict_proba(rows), dtype=np.float64)
    labels = probabilities.argmax(axis=1)
    entropy = float(entr(probabilities).sum())
    # A sample stands for all rows: beliefs count all of them, too.
    share = len(X) / len(rows)
    fit = -2.0 * float(model.score_samples(rows).sum())
    bic = share * fit + n_free_parameters(k, X.shape[1], covariance_type) * np.log(len(X))
    stability = 1.0 if k == 1 else np.nan
    if k > 1 and half is not None:
        again = [fitted(rows[part], 2).predict(rows) for part in (half, ~half)]
        stability = float(np.mean([adjusted_rand_score(labels, other) for other in again]))
    whole = labels if len(rows) == len(X) else model.predict(X)
    return Division(k, np.asarray(whole, dtype=np.int64), bic + 2.0 * share * entropy, bic, stability)


def pair_loss(table: NDArray[np.integer], weights: Floats) -> float:
    """Nats that beliefs A (m, m) lose when m classes fall into k parts, ``table`` (m, k) of rows."""
    counts = np.asarray(table, dtype=np.float64)
    whole = counts.sum(axis=1)
    return 0.5 * float((weights * (np.outer(whole, whole) - counts @ counts.T)).sum())


def best_counts(costs: list[Floats], total: int) -> list[int] | None:
    """Parts of each class, ``total`` in all, at the least sum of ``costs[l][k - 1]``; None if impossible."""
    best, choices = np.array([0.0]), []
    for cost in costs:
        reach = np.full(len(best) + len(cost), np.inf)
        choice = np.zeros(len(reach), dtype=np.int64)
        for k, value in enumerate(cost, start=1):
            candidate = best + value
            place = slice(k, k + len(best))
            better = candidate < reach[place]
            reach[place][better] = candidate[better]
            choice[place][better] = k
        best = reach
        choices.append(choice)
    if total >= len(best) or not np.isfinite(best[total]):
        return None
    counts: list[int] = []
    for choice in reversed(choices):
        counts.append(int(choice[total]))
        total -= counts[-1]
    return counts[::-1]


class Gaussian(NamedTuple):
    """Number of rows, their mean (d,) and their covariance (d, d): what joining two clusters needs."""

    n_rows: float
    mean: Floats
    covariance: Floats


def moments_of(rows: AnyFloats) -> Gaussian:
    """Moments of rows (n, d)."""
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    return Gaussian(float(len(rows)), mean, np.asarray(centred.T @ centred / len(rows), dtype=np.float64))


def joined(a: Gaussian, b: Gaussian) -> Gaussian:
    """Moments of the rows of both."""
    n = a.n_rows + b.n_rows
    gap = a.mean - b.mean
    between = np.outer(gap, gap) * (a.n_rows * b.n_rows / n**2)
    covariance = (a.n_rows * a.covariance + b.n_rows * b.covariance) / n + between
    return Gaussian(n, (a.n_rows * a.mean + b.n_rows * b.mean) / n, covariance)


def joining_cost(a: Gaussian, b: Gaussian, pooled: Floats, covariance_type: str, shrinkage: float) -> float:
    """Cost, in units of -2 log L, of one Gaussian instead of two, shrunk to ``pooled`` (d, d)."""
    both = joined(a, b)
    d = len(a.mean)
    saved = d + _own_entries(a.n_rows, d, covariance_type, shrinkage)
    saved += _own_entries(b.n_rows, d, covariance_type, shrinkage)
    saved -= _own_entries(both.n_rows, d, covariance_type, shrinkage)
    fits = [_fit(one, pooled, covariance_type, shrinkage) for one in (a, b, both)]
    return float(fits[2] - fits[0] - fits[1] - saved * np.log(both.n_rows))


def _own_entries(count: float, n_features: int, covariance_type: str, shrinkage: float) -> float:
    """Entries of a covariance that its own rows determine."""
    if covariance_type == "tied":
        return 0.0
    entries = {"full": n_features * (n_features + 1) / 2.0, "diag": n_features, "spherical": 1.0}
    return entries[covariance_type] * count / (count + shrinkage)


def _fit(one: Gaussian, pooled: Floats, covariance_type: str, shrinkage: float) -> float:
    """-2 log L of rows under their own mean and shrunk covariance."""
    d = len(one.mean)
    if covariance_type == "tied":
        fitted = pooled
    else:
        # A pseudo-row at least: fewer rows than features have no covariance of their own.
        nu = max(shrinkage, 1.0)
        fitted = (nu * pooled + one.n_rows * one.covariance) / (nu + one.n_rows)
    if covariance_type == "diag":
        fitted = np.diag(np.diagonal(fitted))
    elif covariance_type == "spherical":
        fitted = np.eye(d) * np.trace(fitted) / d
    log_det = float(np.linalg.slogdet(fitted)[1])
    return one.n_rows * (d * _LOG_TWO_PI + log_det + float(np.trace(np.linalg.solve(fitted, one.covariance))))
