"""An immutable, canonical list of links that can be added, subset and checked."""

from __future__ import annotations

import warnings
from types import EllipsisType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise import _link_builders as builders
from linkwise import _link_io
from linkwise._link_evidence import canonical, link_strength
from linkwise._validation import check_pairs, check_whole_number, refuse_masked
from linkwise.exceptions import FeasibilityWarning, InfeasibleConstraints
from linkwise.graph import check_feasibility, group_labels

__all__ = ["Links"]


class Links:
    """The list of links itself; :class:`linkwise.Constraints` adds builders and files to it."""

    __iter__ = None  # a container of samples by row number, not a sequence of links
    __slots__ = ("_n_samples", "_pairs", "_weights")

    def __init__(
        self,
        n_samples: int,
        must_link: ArrayLike = (),
        cannot_link: ArrayLike = (),
        weight: float | ArrayLike | None = None,
        certainty: float | ArrayLike | None = None,
    ) -> None:
        n_samples = check_whole_number(n_samples, "n_samples", 0)
        must = check_pairs(must_link, n_samples, "must_link")
        cannot = check_pairs(cannot_link, n_samples, "cannot_link")
        strength = link_strength(len(must), len(cannot), weight, certainty)
        sign = np.repeat([1.0, -1.0], [len(must), len(cannot)])
        self._set(n_samples, *canonical(n_samples, np.concatenate([must, cannot]), sign * strength))

    def _set(self, n_samples: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        pairs.flags.writeable = False
        weights.flags.writeable = False
        self._n_samples, self._pairs, self._weights = n_samples, pairs, weights

    @classmethod
    def _from_canonical(cls, n_samples: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Self:
        links = cls.__new__(cls)
        links._set(n_samples, pairs, weights)
        return links

    @classmethod
    def _from_signed(cls, n_samples: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> Self:
        return cls._from_canonical(n_samples, *canonical(n_samples, pairs, weights))

    # What it holds

    @property
    def n_samples(self) -> int:
        """Number of samples the links are about."""
        return self._n_samples

    @property
    def n_pairs(self) -> int:
        """Number of links."""
        return len(self._pairs)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_samples)``: what scikit-learn reads the number of rows from."""
        return self._n_samples, self._n_samples

    @property
    def pairs(self) -> NDArray[np.int64]:
        """(m, 2) read-only array of links, i < j, rows sorted."""
        return self._pairs

    @property
    def weights(self) -> NDArray[np.float64]:
        """(m,) read-only array of signed weights W."""
        return self._weights

    @property
    def must_link(self) -> NDArray[np.int64]:
        """The pairs that belong together."""
        return self._pairs[self._weights > 0]

    @property
    def cannot_link(self) -> NDArray[np.int64]:
        """The pairs that do not belong together."""
        return self._pairs[self._weights < 0]

    def __len__(self) -> int:
        return self._n_samples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Links):
            return NotImplemented
        return (
            self._n_samples == other._n_samples
            and np.array_equal(self._pairs, other._pairs)
            and np.array_equal(self._weights, other._weights)
        )

    def __hash__(self) -> int:
        return hash((self._n_samples, self._pairs.tobytes(), self._weights.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_canonical, (self._n_samples, self._pairs, self._weights)

    def __repr__(self) -> str:
        return f"Constraints({_link_io.summary(self)})"

    def _repr_html_(self) -> str:
        return _link_io.html(self)

    # Parts and unions

    def __getitem__(self, key: Any) -> Self:
        rows = self._rows(key)
        copies = np.bincount(rows, minlength=self._n_samples)
        if copies.max(initial=0) > 1:
            pairs, weights = builders.copy_links(self._pairs, self._weights, rows, copies)
        else:
            place = np.full(self._n_samples, -1)
            place[rows] = np.arange(len(rows))
            ends = place[self._pairs]
            kept = (ends >= 0).all(axis=1)
            pairs, weights = ends[kept], self._weights[kept]
        return self._from_signed(len(rows), pairs, weights)

    def _rows(self, key: Any) -> NDArray[np.int64]:
        """Row numbers meant by an index array, slice, mask, or the tuples scikit-learn passes."""
        if isinstance(key, tuple):
            rest = key[1:]
            if any(not isinstance(part, EllipsisType) and part != slice(None) for part in rest):
                raise IndexError(
                    "links are selected by rows only: write links[rows], not links[rows, columns]"
                )
            key = key[0]
        if not isinstance(key, slice):
            refuse_masked(key, "rows")
            key = np.asarray(key)
            if key.ndim != 1:
                raise IndexError(
                    "links[rows] needs a list of rows, a slice or a mask; for one row write links[[i]]"
                )
            if key.size == 0:
                key = key.astype(np.int64)
            self._refuse_rows(key)
        return np.arange(self._n_samples)[key]

    def _refuse_rows(self, key: NDArray[Any]) -> None:
        """Refuse row numbers that there are not, and masks of another length."""
        n = self._n_samples
        if key.dtype.kind == "b":
            if len(key) != n:
                raise IndexError(
                    f"rows is a mask of {len(key)} entries, but there are {n} samples; pass one each"
                )
        elif key.dtype.kind not in "iu":
            raise IndexError(f"rows[0] is {key[0]!r}: pass row numbers, a slice or a mask")
        elif len(key) and (key.min() < -n or key.max() >= n):
            place = int(np.argmax((key < -n) | (key >= n)))
            raise IndexError(f"rows[{place}] is {key[place]}, but rows are numbered 0..{n - 1}; correct it")

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Links):
            return NotImplemented
        if self._n_samples != other._n_samples:
            raise ValueError(
                f"cannot add links of {self._n_samples} samples to links of {other._n_samples} samples; "
                "build both with the same n_samples, about the same rows"
            )
        return self._from_signed(
            self._n_samples,
            np.concatenate([self._pairs, other._pairs]),
            np.concatenate([self._weights, other._weights]),
        )

    # Structure

    def chunklets(self) -> NDArray[np.int64]:
        """Groups of samples joined by hard must-links.

        Returns
        -------
        (n_samples,) int64
            Group of each sample, numbered in order of first appearance; a free sample is its own group.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(4, must_link=[(1, 3)]).chunklets()
        array([0, 1, 2, 1])
        """
        return group_labels(self._n_samples, self._pairs[self._weights == np.inf])[0]

    def components(self) -> NDArray[np.int64]:
        """Groups of samples joined by links of any kind: what must be inferred together.

        Returns
        -------
        (n_samples,) int64
            Numbered in order of first appearance.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(4, must_link=[(1, 3)], cannot_link=[(0, 1)]).components()
        array([0, 0, 1, 0])
        """
        return group_labels(self._n_samples, self._pairs.copy())[0]  # a writeable copy: numba types differ

    def check(self, n_clusters: int | None = None) -> None:
        """Make sure that some labelling satisfies all hard links.

        Parameters
        ----------
        n_clusters : int, optional
            Number of labels to do it with; without it any number is allowed.

        Raises
        ------
        InfeasibleConstraints
            With ``witness``, a few links that cannot be satisfied together.

        Warns
        -----
        FeasibilityWarning
            If the search ran out of budget, so that feasibility is unknown (only possible for three or
            more clusters, where the question is NP-hard).

        Examples
        --------
        >>> from linkwise import Constraints
        >>> links = Constraints(10, cannot_link=[(0, 4), (4, 9), (0, 9)])
        >>> links.check(n_clusters=3)
        >>> links.check(n_clusters=1)
        Traceback (most recent call last):
        ...
        linkwise.exceptions.InfeasibleConstraints: 0 and 4 are linked apart...
        """
        if n_clusters is not None:
            n_clusters = check_whole_number(n_clusters, "n_clusters")
        found = check_feasibility(self._n_samples, self._pairs, self._weights, n_clusters)
        if found.witness is not None:
            raise InfeasibleConstraints(found.witness)
        if found.status == "unknown":
            warnings.warn(
                f"could not decide within the search budget whether {n_clusters} clusters can satisfy the "
                "hard cannot-links; more clusters or fewer links make the question easier",
                FeasibilityWarning,
                stacklevel=2,
            )

    def violations(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """Which links a labelling breaks.

        Parameters
        ----------
        labels : (n_samples,) array_like

        Returns
        -------
        (n_pairs,) bool
            In the order of ``pairs``.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(3, must_link=[(0, 1)], cannot_link=[(1, 2)]).violations(["a", "b", "b"])
        array([ True,  True])
        """
        refuse_masked(labels, "labels", "give every row a label, or take some: links[rows]")
        values = np.asarray(labels)
        if values.shape != (self._n_samples,):
            raise ValueError(
                f"labels has shape {values.shape}, but the links are about {self._n_samples} samples; "
                "pass one label per row, or links[rows]"
            )
        equal = values[self._pairs[:, 0]] == values[self._pairs[:, 1]]
        return np.asarray(equal != (self._weights > 0), dtype=bool)

    def satisfaction(self, labels: ArrayLike) -> float:
        """Share of the links that a labelling satisfies; 1 if there are none.

        Parameters
        ----------
        labels : (n_samples,) array_like

        Returns
        -------
        float

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(3, must_link=[(0, 1)], cannot_link=[(1, 2)]).satisfaction([0, 0, 0])
        0.5
        """
        violated = self.violations(labels)
        return float(1.0 - violated.mean()) if violated.size else 1.0
