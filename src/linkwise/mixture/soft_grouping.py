"""Parts of CPPC's objective for a table of responsibilities, and for its rivals in which a class moves.

With responsibilities q, class sums T(a, k) = sum of q_ik over class a, and mixing weights, means and
covariances that are the M-step of q, the objective is F = G(q) + sum_ab weight_ab C(a, b) m_ab(q) with

    G = sum_ik q_ik (log pi_k + log N(x_i; k) - log q_ik),
    m_ab = sum_k T_ak T_bk - [a = b] sum_{i in a} |q_i|^2.

A rival gives the mass that one class has in some clusters to another cluster and leaves everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

__all__ = ["Rival", "SoftGrouping"]

_LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Rival(NamedTuple):
    """A class whose rows leave some clusters for another one.

    Attributes
    ----------
    class_code : int
    sources : tuple of int
        Clusters, without the target.
    target : int
    """

    class_code: int
    sources: tuple[int, ...]
    target: int


class SoftGrouping:
    """Objective of responsibilities and of their rivals.

    Parameters
    ----------
    X : (n, d) float
    codes : (n,) int
        Class of each row, -1 where unlabelled.
    n_classes : int
    responsibilities : (n, K)
        Rows sum to 1.
    covariance_type : {"full", "tied", "diag", "spherical"}
    reg_covar : float
        Added to the variances.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.soft_grouping import Rival, SoftGrouping
    >>> X, codes = np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([0, 0, 1, 1])
    >>> grouping = SoftGrouping(X, codes, 2, np.eye(2)[codes])
    >>> grouping.data_term() > grouping.data_term(Rival(1, (1,), 0))  # class 1 moves to cluster 0
    True
    >>> grouping.pair_mass()
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        codes: NDArray[np.integer],
        n_classes: int,
        responsibilities: NDArray[np.floating],
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
    ) -> None:
        data = np.asarray(X, dtype=np.float64)
        self._X = data - data.mean(axis=0)
        self._q = np.asarray(responsibilities)
        self._codes = codes
        self._type, self._reg_covar = covariance_type, reg_covar
        self._rows = [np.flatnonzero(codes == a) for a in range(n_classes)]
        self._sums = np.array([self._q[rows].sum(axis=0, dtype=np.float64) for rows in self._rows])
        self._squares = np.array([np.square(self._q[rows]).sum(dtype=np.float64) for rows in self._rows])
        self._clusters = [self._moments(slice(None), k) for k in range(self._q.shape[1])]
        self._terms = [self._cluster_term(moments) for moments in self._clusters]
        self._parts: dict[tuple[int, int, bool], _Moments] = {}
        self._entropy = -sum(float(xlogy(column, column).sum(dtype=np.float64)) for column in self._q.T)

    def data_term(self, rival: Rival | None = None) -> float:
        """G, of the present responsibilities or of a rival; -inf if a covariance is singular.

        Parameters
        ----------
        rival : Rival, optional

        Returns
        -------
        float
        """
        changed: dict[int, _Moments] = {}
        entropy = self._entropy
        if rival is not None:
            a, sources, target = rival
            changed[target] = self._clusters[target]
            for source in sources:
                changed[target] += self._part(a, source, inside=True)
                # Taking the class out of the sums would lose the digits of the little that is left.
                changed[source] = self._part(a, source, inside=False)
            moved = self._moved(rival)
            together = moved.sum(axis=1)
            entropy += float(xlogy(moved, moved).sum() - xlogy(together, together).sum())
        terms = [
            self._cluster_term(changed[k]) if k in changed else term for k, term in enumerate(self._terms)
        ]
        total = entropy + sum(terms)
        if self._type == "tied":
            clusters = [changed.get(k, moments) for k, moments in enumerate(self._clusters)]
            scatter = np.sum([_scatter(moments) for moments in clusters], axis=0)
            total += self._gaussian_term(float(len(self._X)), scatter)
        return total

    def pair_mass(self, rival: Rival | None = None) -> NDArray[np.float64]:
        """The expected number m of ordered pairs of different rows that are together, (L, L).

        Parameters
        ----------
        rival : Rival, optional

        Returns
        -------
        (L, L) float64
        """
        sums, squares = self._sums, self._squares
        if rival is not None:
            a, sources, target = rival
            sums, squares = sums.copy(), squares.copy()
            sums[a, target] += sums[a, list(sources)].sum()
            sums[a, list(sources)] = 0.0
            moved = self._moved(rival)
            squares[a] += np.square(moved.sum(axis=1)).sum() - np.square(moved).sum()
        mass = sums @ sums.T
        mass[np.diag_indices_from(mass)] -= squares
        return mass

    def _moved(self, rival: Rival) -> NDArray[np.float64]:
        """Responsibilities of the moving class for the clusters concerned."""
        columns = np.array([*rival.sources, rival.target])
        return self._q[self._rows[rival.class_code][:, np.newaxis], columns].astype(np.float64)

    def _part(self, a: int, k: int, *, inside: bool) -> _Moments:
        """Moments in cluster k of the rows of class a, or of all others."""
        key = (a, k, inside)
        if key not in self._parts:
            rows = self._rows[a] if inside else np.flatnonzero(self._codes != a)
            self._parts[key] = self._moments(rows, k)
        return self._parts[key]

    def _moments(self, rows: slice | NDArray[np.int64], k: int) -> _Moments:
        X, weights = self._X[rows], self._q[rows, k].astype(np.float64)
        weighted = X * weights[:, np.newaxis]
        diagonal = self._type in ("diag", "spherical")
        second = np.einsum("nd,nd->d", weighted, X) if diagonal else weighted.T @ X
        return _Moments(float(weights.sum()), weighted.sum(axis=0), second)

    def _cluster_term(self, moments: _Moments) -> float:
        """Expected log pi + log N of the rows of a cluster; without log N for a tied covariance."""
        mixing = float(xlogy(moments.count, moments.count / len(self._X)))
        return (
            mixing if self._type == "tied" else mixing + self._gaussian_term(moments.count, _scatter(moments))
        )

    def _gaussian_term(self, count: float, scatter: NDArray[np.float64]) -> float:
        """Log-density of ``count`` rows about their mean, under their own covariance plus reg_covar."""
        if count == 0.0:
            return 0.0
        covariance = scatter / count
        if self._type == "spherical":
            covariance = np.full_like(covariance, covariance.mean())
        if covariance.ndim == 1:
            fitted = np.maximum(covariance, 0.0) + self._reg_covar
            if not fitted.all():
                return -np.inf
            log_determinant = float(np.log(fitted).sum())
            trace = float((covariance / fitted).sum())
        else:
            fitted = covariance + self._reg_covar * np.eye(len(covariance))
            sign, log_determinant = np.linalg.slogdet(fitted)
            if sign <= 0 or not np.isfinite(log_determinant):
                return -np.inf
            trace = float(np.trace(np.linalg.solve(fitted, covariance)))
        return -0.5 * count * (len(covariance) * _LOG_TWO_PI + float(log_determinant) + trace)


@dataclass(frozen=True)
class _Moments:
    """Weight, weighted sum and second moments of rows, about the mean of all data."""

    count: float
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(self.count + other.count, self.first + other.first, self.second + other.second)


def _scatter(moments: _Moments) -> NDArray[np.float64]:
    """Second moments about the mean of the rows themselves, (d, d) or the diagonal."""
    if moments.count == 0.0:
        return np.zeros_like(moments.second)
    mean = moments.first / moments.count
    return moments.second - (
        mean * moments.first if moments.second.ndim == 1 else np.outer(mean, moments.first)
    )
