"""What boundaries between clusters are worth: the likelihood of the links, and information about the rows.

A softmax of linear functions of row features phi (n, b) gives the probabilities of the clusters,

    p_i = softmax(phi_i W),      P(i and j are together) = sum_k p_ik p_jk = s_ij,

so that a link of certainty g has the likelihood g s + (1 - g) (1 - s), or g (1 - s) + (1 - g) s apart. The
objective is that of regularised information maximisation (Gomes, Krause & Perona 2010) with links beside it:

    J(W) = sum_links log P(link) + a [ H(mean_i p_i) - mean_i H(p_i) ] - 1/2 sum_b c_b |W_b|^2

The bracket is the mutual information of rows and clusters in nats: clusters are to have many rows each, and
boundaries are to pass where there are few rows. ``a`` says how many links it is worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from linkwise._arrays import Bools, Floats, Ints

#: Certainty of a hard link here. A boundary cannot obey every link, and one that it breaks must not outweigh
#: all others; labels are made to keep hard links afterwards.
_SUREST = 0.99
_TINY = 1e-12
#: The first boundaries answer with about this many nats for the cluster that the start gives a row.
_START_MARGIN = 2.0
_START_PENALTY = 1e-3


class LinkTable(NamedTuple):
    """Links of m pairs: ends as selections (m, n), whether together, certainty, and how often each counts.

    ``to_first`` and ``to_second`` (n, m) are the selections transposed.
    """

    first: sparse.csr_array
    second: sparse.csr_array
    to_first: sparse.csc_array
    to_second: sparse.csc_array
    together: Bools
    certainty: Floats
    times: Floats


#: Features (n, r), their penalty (r,), and the way back (b, r) to the given ones, None if they are these.
RowSpace = tuple[Floats, Floats, Floats | None]


class Boundaries(NamedTuple):
    """Coefficients (b, K) that were found, the objective after every step, and whether it came to rest."""

    coefficients: Floats
    objectives: Floats
    converged: bool


def link_table(n_rows: int, pairs: Ints, weights: Floats, count: Floats | None = None) -> LinkTable:
    """Links with weights (m,) between rows (m, 2), counted ``count`` (m,) times, for the objective."""
    m = len(pairs)
    ends = [sparse.csr_array((np.ones(m), column, np.arange(m + 1)), shape=(m, n_rows)) for column in pairs.T]
    certainty = np.minimum(1.0 / (1.0 + np.exp(-2.0 * np.abs(weights))), _SUREST)
    count = np.ones(m) if count is None else count
    return LinkTable(ends[0], ends[1], ends[0].T, ends[1].T, weights > 0, certainty, count)


def information(log_prob: Floats, sample_weight: Floats | None = None) -> float:
    """Mutual information of rows and clusters in nats, given log-probabilities (n, K)."""
    prob = np.exp(log_prob)
    mean = np.average(prob, axis=0, weights=sample_weight)
    doubt = -(prob * log_prob).sum(axis=1)
    return float(-(mean * np.log(mean + _TINY)).sum() - np.average(doubt, weights=sample_weight))


def boundary_objective(
    coefficients: Floats, features: Floats, links: LinkTable, information_weight: float, penalty: Floats
) -> tuple[float, Floats]:
    """J(W) and its gradient (b, K), for coefficients (b, K), features (n, b) and a penalty (b,) of each."""
    log_prob = log_softmax(features @ coefficients, axis=1)
    prob = np.exp(log_prob)
    n = len(prob)
    first, second = links.first @ prob, links.second @ prob
    same = (first * second).sum(axis=1)
    share = np.where(links.together, same, 1.0 - same)
    likelihood = links.certainty * share + (1.0 - links.certainty) * (1.0 - share) + _TINY
    slope = np.where(links.together, 1.0, -1.0) * (2.0 * links.certainty - 1.0) * links.times / likelihood
    by_prob = links.to_first @ (slope[:, np.newaxis] * second) + links.to_second @ (
        slope[:, np.newaxis] * first
    )
    mean = prob.mean(axis=0)
    by_prob += information_weight / n * (log_prob - np.log(mean + _TINY))
    value = float(
        links.times @ np.log(likelihood)
        + information_weight * information(log_prob)
        - 0.5 * (penalty @ coefficients**2).sum()
    )
    by_score = prob * (by_prob - (by_prob * prob).sum(axis=1, keepdims=True))
    return value, features.T @ by_score - penalty[:, np.newaxis] * coefficients


def learn_boundaries(
    features: Floats,
    links: LinkTable,
    start: Ints,
    n_clusters: int,
    information_weight: float,
    penalty: Floats,
    *,
    max_iter: int,
    tol: float,
    space: RowSpace | None = None,
) -> Boundaries:
    """Climb J(W) by L-BFGS, from the linear functions that tell the start labels (n,) apart best.

    ``space`` is what :func:`in_row_space` makes of the features, if that is known.
    """
    features, penalty, basis = in_row_space(features, penalty) if space is None else space
    b = features.shape[1]
    target = _START_MARGIN * (2.0 * np.eye(n_clusters)[start] - 1.0)
    ridge = _START_PENALTY * len(features) * np.eye(b)
    first = np.linalg.solve(features.T @ features + ridge, features.T @ target).astype(np.float64).ravel()

    def descend(flat: Floats) -> tuple[float, Floats]:
        value, gradient = boundary_objective(
            flat.reshape(b, n_clusters), features, links, information_weight, penalty
        )
        return -value, -gradient.ravel()

    objectives = [-descend(first)[0]]
    found = minimize(
        descend,
        first,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: objectives.append(-float(intermediate_result.fun)),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "ftol": tol, "gtol": 1e-6},
    )
    coefficients = found.x.reshape(b, n_clusters)
    if basis is not None:
        coefficients = basis @ coefficients
    return Boundaries(coefficients, np.array(objectives), bool(found.status == 0))


def in_row_space(features: Floats, penalty: Floats) -> RowSpace:
    """Fewer features (n, r) with the same best boundaries, their penalty (r,), and the way back (b, r).

    Features beyond the number of rows only repeat what the rows span: of all coefficients with the same
    values at the rows, the penalty prefers those in the span. Features with the same penalty may be rotated,
    so the steps of L-BFGS stay the same, too. The basis is None where nothing is gained. On 400 rows with the
    20,100 products of 200 columns a fit takes 4 s instead of 175 s.
    """
    if features.shape[1] <= len(features) + 1:
        return features, penalty, None
    tables, penalties, parts = [], [], []
    for value in np.unique(penalty):
        of_value = np.flatnonzero(penalty == value)
        directions, table = np.linalg.qr(features[:, of_value].T)
        part = np.zeros((features.shape[1], directions.shape[1]))
        part[of_value] = directions
        tables.append(table.T)
        penalties.append(np.full(directions.shape[1], value))
        parts.append(part)
    return np.concatenate(tables, axis=1), np.concatenate(penalties), np.concatenate(parts, axis=1)
