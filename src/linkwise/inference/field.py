"""The Potts field: labels scored by points and by links."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise._arrays import Floats
from linkwise._validation import check_pairs, refuse_masked


class PottsField:
    """n points, K labels, a score for each point and label, and links between points.

    ::

        score(z) = sum_i unary[i, z_i] - sum_{links, c > 0}  c  [z_i != z_j]
                                       - sum_{links, c < 0} |c| [z_i == z_j]

    A coupling of ``+inf`` is a hard must-link, ``-inf`` a hard cannot-link. The distribution of the
    field is p(z) proportional to exp(score(z)).

    Parameters
    ----------
    unary : (n, K) array_like
        Score of each point under each label, e.g. log pi_k + log N(x_i; k). ``-inf`` forbids a label.
    pairs : (m, 2) array_like of int
        Links, in any order and orientation. Links on the same two points add up.
    coupling : (m,) or (m, K) array_like
        With one value per link, its cost when violated, signed as above. With one value per link and
        label, the cost depends on the labels (clusters with metrics of their own, Bilenko & Basu 2004):
        a must-link between different labels a, b costs (c_a + c_b) / 2, a cannot-link on two points of
        label a costs abs(c_a). A row with ``+inf`` must be ``+inf`` throughout.

    Examples
    --------
    >>> from linkwise.inference import PottsField
    >>> field = PottsField([[0.0, 1.0], [2.0, 0.0]], pairs=[(0, 1)], coupling=[0.5])
    >>> field.score([1, 0])
    2.5
    """

    def __init__(self, unary: ArrayLike, pairs: ArrayLike, coupling: ArrayLike) -> None:
        self.unary = _checked_unary(unary)
        self.pairs = check_pairs(pairs, len(self.unary), "pairs:")
        self.coupling = _checked_coupling(coupling, len(self.pairs), self.n_labels)
        #: What inference worked out from the links alone, shared by the fields that ``with_unary`` made.
        self.link_cache: dict[Any, Any] | None = None

    def with_unary(self, unary: ArrayLike) -> PottsField:
        """The same links with other scores.

        Inference works out once for all fields made this way what depends on the links alone (contraction,
        components, elimination orders), which is most of the work where the field is small.

        Parameters
        ----------
        unary : (n, K) array_like
            If costs do not depend on labels, K may differ.

        Returns
        -------
        PottsField

        Examples
        --------
        >>> from linkwise.inference import PottsField, marginals
        >>> links = PottsField([[0.0], [0.0]], pairs=[(0, 1)], coupling=[2.0])
        >>> for score in (0.0, 1.0):
        ...     print(marginals(links.with_unary([[score, 0.0], [0.0, 0.0]])).prob[1].round(3))
        [0.5 0.5]
        [0.676 0.324]
        """
        table = _checked_unary(unary)
        if len(table) != self.n_points or (self.coupling.ndim == 2 and table.shape[1] != self.n_labels):
            raise ValueError(
                f"unary has shape {table.shape}, but the links need {self.unary.shape}; pass that shape"
            )
        if self.link_cache is None:
            self.link_cache = {}
        field = copy(self)
        field.unary = table
        return field

    @property
    def n_points(self) -> int:
        """Number of points, n."""
        return self.unary.shape[0]

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return self.unary.shape[1]

    def score(self, labels: ArrayLike) -> float:
        """Score of one labelling (n,), ``-inf`` if it breaks a hard link."""
        z = np.asarray(labels, dtype=np.int64)
        if z.shape != (self.n_points,):
            raise ValueError(
                f"labels has shape {z.shape}, but the field has {self.n_points} points; pass one each"
            )
        if z.size and (z.min() < 0 or z.max() >= self.n_labels):
            row = int(np.argmax((z < 0) | (z >= self.n_labels)))
            raise ValueError(
                f"labels must lie in 0..{self.n_labels - 1}, but labels[{row}] is {z[row]}; correct it"
            )
        first, second = z[self.pairs[:, 0]], z[self.pairs[:, 1]]
        equal = first == second
        if self.coupling.ndim == 1:
            violated = np.where(self.coupling > 0, ~equal, equal)
            cost = np.abs(self.coupling[violated]).sum()
        else:
            rows = np.arange(len(self.pairs))
            at_first, at_second = self.coupling[rows, first], self.coupling[rows, second]
            apart = 0.5 * (np.maximum(at_first, 0) + np.maximum(at_second, 0))
            cost = apart[~equal].sum() - np.minimum(at_first, 0)[equal].sum()
        return float(self.unary[np.arange(self.n_points), z].sum() - cost)

    def __repr__(self) -> str:
        infinite = np.isinf(self.coupling)
        hard = infinite if infinite.ndim == 1 else infinite.all(axis=1)
        links = f"{len(self.pairs)} links ({int(hard.sum())} hard)"
        return f"PottsField({self.n_points} points, {self.n_labels} labels, {links})"


def _checked_unary(unary: ArrayLike) -> Floats:
    refuse_masked(unary, "unary")
    table = np.ascontiguousarray(unary, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(
            f"unary must have shape (n_points, n_labels) with at least one label, got {table.shape}; "
            "reshape it"
        )
    # Largest and smallest tell of most tables that nothing is wrong, without another table to say so.
    if table.size == 0 or (np.isfinite(table.max()) and np.isfinite(table.min())):
        return table
    bad = np.isnan(table) | (table == np.inf)
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise ValueError(
            f"unary[{row}, {label}] is {table[row, label]}: write a finite score, or -inf to forbid a label"
        )
    empty = np.flatnonzero(np.all(table == -np.inf, axis=1))
    if empty.size:
        raise ValueError(
            f"row {empty[0]} of unary is -inf throughout: allow at least one label for the point"
        )
    return table


def _checked_coupling(coupling: ArrayLike, n_pairs: int, n_labels: int) -> Floats:
    refuse_masked(coupling, "coupling")
    table = np.ascontiguousarray(coupling, dtype=np.float64)
    if table.size == 0 and n_pairs == 0:
        return np.empty(0)
    if table.shape not in {(n_pairs,), (n_pairs, n_labels)}:
        raise ValueError(
            f"coupling must have shape ({n_pairs},) or ({n_pairs}, {n_labels}) to match pairs and labels, "
            f"got {table.shape}; pass one number per pair"
        )
    rows = table.reshape(n_pairs, -1)
    missing = np.flatnonzero(np.isnan(rows).any(axis=1))
    if missing.size:
        raise ValueError(f"coupling of pair {missing[0]} is NaN: remove the pair, or give it a number")
    partly = np.flatnonzero((rows == np.inf).any(axis=1) & ~(rows == np.inf).all(axis=1))
    if partly.size:
        raise ValueError(
            f"coupling of pair {partly[0]} is +inf for some labels only: "
            "write +inf for every label, as a hard must-link needs"
        )
    return table
