"""Errors and warnings of linkwise, and the witness that proves a contradiction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ApproximationWarning",
    "FeasibilityWarning",
    "InfeasibleConstraints",
    "InferenceBudgetExceeded",
    "ModelFileError",
    "SharedClusterWarning",
    "Witness",
]


@dataclass(frozen=True)
class Witness:
    """A few of the user's own links that no labelling with ``n_clusters`` labels can satisfy.

    To check it, keep only these links and try every labelling.

    Attributes
    ----------
    kind : {"path", "single_cluster", "odd_ring", "clique", "subgraph"}
        ``path``: a chain of must-links joins two points that a cannot-link separates (wrong for
        every number of clusters). ``single_cluster``: a cannot-link with one cluster.
        ``odd_ring``: with two clusters, an odd number of cannot-links in a ring. ``clique``: more
        groups than clusters, pairwise linked apart. ``subgraph``: a part of the cannot-links
        that exhaustive search could not colour.
    must_link, cannot_link : tuple of (int, int)
        The links of the proof, in the numbering of the caller, i < j.
    n_clusters : int or None
        The number of clusters it is about; None when no number of clusters would do.
    message : str
        The same in a sentence.
    points : tuple of int
        For ``path`` the chain in order (its ends are the separated pair); for ``odd_ring`` the ring
        in order; otherwise the points involved, sorted.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> from linkwise.exceptions import InfeasibleConstraints
    >>> links = Constraints(3, cannot_link=[(0, 1), (1, 2), (0, 2)])
    >>> try:
    ...     links.check(n_clusters=2)
    ... except InfeasibleConstraints as error:
    ...     print(error.witness.kind, error.witness.cannot_link)
    odd_ring ((0, 1), (0, 2), (1, 2))
    """

    kind: str
    must_link: tuple[tuple[int, int], ...]
    cannot_link: tuple[tuple[int, int], ...]
    n_clusters: int | None
    message: str
    points: tuple[int, ...] = field(default=())


class InfeasibleConstraints(ValueError):
    """The hard links contradict each other, or need more clusters than there are.

    Parameters
    ----------
    witness : Witness
        The contradicting links; the message is its sentence.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> Constraints(18, must_link=[(3, 8), (8, 17)], cannot_link=[(3, 17)])
    Traceback (most recent call last):
    ...
    linkwise.exceptions.InfeasibleConstraints: 3 and 17 must be together (3-8-17) but are linked apart...
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness.message)
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.witness,)


class InferenceBudgetExceeded(RuntimeError):
    """Exact inference would need larger tables than allowed; nothing was computed.

    Parameters
    ----------
    message : str
    width : int
        Width of the elimination order found: tables have K ** (width + 1) entries.

    Examples
    --------
    >>> from linkwise.exceptions import InferenceBudgetExceeded
    >>> InferenceBudgetExceeded("too wide", width=40).width
    40
    """

    def __init__(self, message: str, width: int) -> None:
        super().__init__(message)
        self.width = width

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.width)


class ModelFileError(ValueError):
    """A stored model is damaged, was changed, or was not written by linkwise; nothing of it was loaded.

    Parameters
    ----------
    file : str
        The file.
    entry : str or None
        What in it is wrong, such as ``fitted/means_``; None for the file as a whole.
    reason : str

    Examples
    --------
    >>> from linkwise.exceptions import ModelFileError
    >>> error = ModelFileError("iris/model.json", "fitted/means_", "its shape is (2, 4), not (3, 4)")
    >>> print(error)
    iris/model.json, entry fitted/means_: its shape is (2, 4), not (3, 4); fit the model again and save it
    """

    def __init__(self, file: str, entry: str | None, reason: str) -> None:
        where = file if entry is None else f"{file}, entry {entry}"
        remedy = "" if "; " in reason else "; fit the model again and save it"
        super().__init__(" ".join(f"{where}: {reason}{remedy}".split()))
        self.file, self.entry, self.reason = file, entry, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.entry, self.reason)


class FeasibilityWarning(UserWarning):
    """The search for a labelling that satisfies the hard links ran out of budget: unknown."""


class ApproximationWarning(UserWarning):
    """Part of a result is approximate in a way the caller may not expect, e.g. links were dropped."""


class SharedClusterWarning(UserWarning):
    """Rows that were labelled as different classes are in one cluster."""
