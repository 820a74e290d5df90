"""Which belief, changed least, would flip a decision of a class-level clustering.

The objective of CPPC is linear in every belief (:mod:`linkwise.mixture.soft_grouping`):

    F(q; C) = G(q) + sum_{a <= b} g_ab(q) C(a, b),    g_ab = (2 - [a = b]) lambda w_ab m_ab(q),

with w_ab = 1 or 1 / sqrt(N_a N_b) (``normalize="class"``); log Omega is left out, as in CPPC. A decision is
compared with the rivals that reverse it by giving what one class has in some clusters to another cluster:

* split: all parts of the class go to one cluster, any of the K;
* merged: one of the two classes leaves the shared clusters for one that does not hold the other;
* kept: the class goes to a cluster that holds another class, or another class comes to its cluster.

A rival q' draws level with the fit where one belief C(a, b) changes by (F(q') - F(q)) / (g_ab(q) - g_ab(q')).
The flip of the decision is the smallest such change over all rivals and beliefs, if possible one that ends in
[-1, 1].

The rival moves as a block and is not fitted further, so where clusters overlap the change is overstated. On
three draws of the eleven Gaussians of Preston et al. (11 clusters), refits with other beliefs ended the split
of class 1 between 0.66 and 0.86, above 0.99, and between 0.41 and 0.61, where flips said 0.56, 0.89 and 0.51;
but the merge of classes 2 and 3 between 0.1 and 0.3 each time, where flips said -0.5.
That a class kept whole might be split is not examined: it is no move of a whole class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.mixture.class_pull import pair_weights
from linkwise.mixture.soft_grouping import Rival, SoftGrouping
from linkwise.mixture.split_merge import Decision, held

__all__ = ["Flip", "find_flips", "find_rivals", "smallest_flip"]

# Slopes below this share of the largest are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Flip:
    """The smallest change of one belief that would reverse a decision.

    Attributes
    ----------
    decision : Decision
    entry : (name, name)
        The two classes of the belief; equal ones for the diagonal.
    belief : float
        Its present value.
    value : float
        Where the rival draws level; beyond it the rival has the higher objective.
    margin : float
        Objective of the fit less that of the rival, in nats. Not above 0: the rival is as good already
        (EM stopped at a local maximum), and ``value`` is the present belief.
    mover : name
        The rival: rows of this class leave the clusters ``sources`` for ``target``.
    sources : tuple of int
    target : int
    """

    decision: Decision
    entry: tuple[Hashable, Hashable]
    belief: float
    value: float
    margin: float
    mover: Hashable
    sources: tuple[int, ...]
    target: int

    @property
    def change(self) -> float:
        """``value - belief``."""
        return self.value - self.belief

    @property
    def possible(self) -> bool:
        """Whether ``value`` is a belief, in [-1, 1]."""
        return abs(self.value) <= 1.0

    @property
    def order(self) -> tuple[bool, float, float]:
        """Easy flips first: possible ones, the smallest change, rivals that are as good already."""
        return not self.possible, abs(self.change), self.margin


def find_rivals(
    decision: Decision, contingency: NDArray[np.integer], classes: Sequence[Hashable], threshold: float
) -> Iterator[Rival]:
    """Moves of one class that reverse a decision.

    Parameters
    ----------
    decision : Decision
    contingency : (L, K) int
        Rows of each class in each cluster.
    classes : sequence of length L
    threshold : float
        As the decision was found with.

    Yields
    ------
    Rival

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.belief_flips import find_rivals
    >>> from linkwise.mixture.split_merge import find_decisions
    >>> table = np.array([[60, 40, 0], [0, 0, 90]])
    >>> split, _ = find_decisions(table, ["crops", "water"])
    >>> list(find_rivals(split, table, ["crops", "water"], 0.15))[0]
    Rival(class_code=0, sources=(1,), target=0)
    """
    holds = held(contingency, threshold)
    n_classes, n_clusters = holds.shape
    places = [classes.index(name) for name in decision.classes]

    def moved(a: int, sources: Sequence[int], target: int) -> Iterator[Rival]:
        leaving = tuple(source for source in sources if source != target)
        if leaving:
            yield Rival(a, leaving, target)

    if decision.kind == "split":
        for target in range(n_clusters):
            yield from moved(places[0], decision.clusters, target)
    elif decision.kind == "merged":
        for leaver, stayer in (places, places[::-1]):
            for target in np.flatnonzero(~holds[stayer]).tolist():
                yield from moved(leaver, decision.clusters, target)
    elif decision.kind == "kept":
        (a,), (home,) = places, decision.clusters
        others = [b for b in range(n_classes) if b != a]
        for target in np.flatnonzero(holds[others].any(axis=0)).tolist():
            yield from moved(a, [home], target)
        for b in others:
            yield from moved(b, np.flatnonzero(holds[b]).tolist(), home)


def smallest_flip(
    decision: Decision,
    rivals: Sequence[Rival],
    grouping: SoftGrouping,
    classes: Sequence[Hashable],
    beliefs: NDArray[np.float64],
    pair_weight: NDArray[np.float64],
) -> Flip | None:
    """The belief that reverses a decision with the smallest change.

    Parameters
    ----------
    decision : Decision
    rivals : sequence of Rival
        Moves that reverse it.
    grouping : SoftGrouping
        The fit.
    classes : sequence of length L
    beliefs : (L, L)
    pair_weight : (L, L)
        lambda w.

    Returns
    -------
    Flip or None
        None if there is no rival or no belief has any weight.
    """
    rows, columns = np.triu_indices(len(classes))
    believed = beliefs[rows, columns]
    factor = np.where(rows == columns, 1.0, 2.0) * pair_weight[rows, columns]
    present, mass = grouping.data_term(), grouping.pair_mass()
    flips: list[Flip] = []
    for rival in rivals:
        slope = factor * (mass - grouping.pair_mass(rival))[rows, columns]
        margin = present - grouping.data_term(rival) + float((slope * believed).sum())
        entries = np.flatnonzero(np.abs(slope) > _ROUNDING * np.abs(slope).max())
        if not np.isfinite(margin) or not entries.size:
            continue
        change = np.zeros(len(entries)) if margin <= 0.0 else -margin / slope[entries]
        value = believed[entries] + change
        first = int(np.lexsort((-np.abs(slope[entries]), np.abs(change), np.abs(value) > 1.0))[0])
        entry = entries[first]
        flips.append(
            Flip(
                decision=decision,
                entry=(classes[int(rows[entry])], classes[int(columns[entry])]),
                belief=float(believed[entry]),
                value=float(value[first]),
                margin=float(margin),
                mover=classes[rival.class_code],
                sources=rival.sources,
                target=rival.target,
            )
        )
    return min(flips, key=lambda flip: flip.order, default=None)


def find_flips(
    decisions: Sequence[Decision],
    X: NDArray[np.floating],
    codes: NDArray[np.integer],
    responsibilities: NDArray[np.floating],
    contingency: NDArray[np.integer],
    classes: Sequence[Hashable],
    beliefs: NDArray[np.float64],
    threshold: float,
    *,
    confidence: float,
    normalize: str,
    covariance_type: str,
    reg_covar: float,
) -> tuple[Flip, ...]:
    """The smallest flip of each decision that has one, smallest change first, impossible ones last.

    Parameters
    ----------
    decisions : sequence of Decision
    X : (n, d)
    codes : (n,) int
        Class of each row, -1 where unlabelled.
    responsibilities : (n, K)
    contingency : (L, K) int
    classes : sequence of length L
    beliefs : (L, L)
    threshold : float
        As the decisions were found with.
    confidence, normalize, covariance_type, reg_covar
        Parameters of :class:`linkwise.CPPC`.

    Returns
    -------
    tuple of Flip
    """
    sizes = np.asarray(contingency, dtype=np.int64).sum(axis=1)
    weight = pair_weights(np.ones_like(beliefs), confidence, sizes, normalize) / 2.0
    grouping = SoftGrouping(X, codes, len(classes), responsibilities, covariance_type, reg_covar)
    found = [
        smallest_flip(
            decision,
            list(find_rivals(decision, contingency, classes, threshold)),
            grouping,
            classes,
            beliefs,
            weight,
        )
        for decision in decisions
    ]
    return tuple(sorted((flip for flip in found if flip is not None), key=lambda flip: flip.order))
