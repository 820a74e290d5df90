"""Constraints: the links of n samples, the only carrier of pairs in linkwise."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Iterable
from types import EllipsisType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._validation import as_generator, check_pairs, check_whole_number, label_codes, refuse_masked
from linkwise.constraints import builders
from linkwise.constraints import io as _link_io
from linkwise.constraints.evidence import canonical, link_strength
from linkwise.exceptions import FeasibilityWarning, InfeasibleConstraints
from linkwise.graph import check_feasibility, group_labels, unique_pairs

__all__ = ["Constraints"]


class Constraints:
    """What is known about pairs of samples: who belongs together, who does not, and how surely.

    An immutable, canonical list of links: i < j, sorted, one row per unordered pair. A pair given
    twice is independent evidence and adds up; evidence that cancels to zero (or a certainty of 0.5)
    says nothing and is no link. Hard links that contradict each other, directly or through a chain of
    must-links, are refused with the chain that proves it.

    The object behaves like an array of ``n_samples`` rows under scikit-learn's splitters:
    ``links[rows]`` keeps the links among these rows and renumbers them.

    Parameters
    ----------
    n_samples : int
        Number of rows of the data the links are about.
    must_link, cannot_link : (m, 2) array_like of int
        Pairs of row numbers.
    weight : float or array_like, optional
        Strength abs(W) >= 0 of each link, in the units of Lu & Leen (2007): a violated link costs 2 abs(W)
        nats. One value for all, or one per pair (must-links first, then cannot-links). ``inf`` is hard.
    certainty : float or array_like, optional
        Instead of ``weight``: the probability g in [0.5, 1] that the link is right,
        abs(W) = 0.5 log(g / (1 - g)) (their Eq. 2.15). With neither, links are hard.

    Attributes
    ----------
    pairs : (m, 2) int64
        The links, i < j, rows sorted.
    weights : (m,) float64
        > 0 must-link, < 0 cannot-link, +-inf hard.
    must_link, cannot_link : (., 2) int64
        The rows of ``pairs`` of either kind.
    n_samples, n_pairs : int
    shape : (int, int)
        ``(n_samples, n_samples)``.

    Notes
    -----
    Repeated rows, as in a bootstrap sample: a repeated row becomes several samples. Every copy of i is
    linked to every copy of j as i was to j; copies of the same row are not linked to one another. The
    number of links grows with the product of the repetitions.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> links = Constraints(6, must_link=[(0, 5), (4, 1)], cannot_link=[(0, 3)], certainty=[0.9, 1.0, 0.8])
    >>> links
    Constraints(6 samples, 2 must-links (1 hard), 1 cannot-link; 1 chunklet)
    >>> links.pairs
    array([[0, 3], [0, 5], [1, 4]])
    >>> links.violations([0, 0, 0, 1, 0, 1])
    array([False,  True, False])
    >>> links[[1, 3, 4]].must_link
    array([[0, 2]])
    """

    __iter__ = None  # a container of samples by row number, not a sequence of links
    __slots__ = ("_n_samples", "_pairs", "_weights")

    def __init__(
        self,
        n_samples: int,
        must_link: ArrayLike = (),
        cannot_link: ArrayLike = (),
        *,
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
        if not isinstance(other, Constraints):
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
        if not isinstance(other, Constraints):
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

    def chunklets(self) -> NDArray[np.int64]:
        """Group of each sample, (n_samples,): samples joined by hard must-links share one.

        Groups are numbered in order of first appearance; a sample without hard must-links is its own group.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(4, must_link=[(1, 3)]).chunklets()
        array([0, 1, 2, 1])
        """
        return group_labels(self._n_samples, self._pairs[self._weights == np.inf])[0]

    def components(self) -> NDArray[np.int64]:
        """Group of each sample, (n_samples,): samples joined by links of any kind, to be inferred together.

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
        found = check_feasibility(self._n_samples, self._pairs, self._weights, n_clusters, labelling=False)
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
        """Whether each link is broken by the labels (n_samples,); in the order of ``pairs``.

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
        """Share of the links that the labels (n_samples,) satisfy; 1 if there are none.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints(3, must_link=[(0, 1)], cannot_link=[(1, 2)]).satisfaction([0, 0, 0])
        0.5
        """
        violated = self.violations(labels)
        return float(1.0 - violated.mean()) if violated.size else 1.0

    @classmethod
    def from_labels(cls, y: ArrayLike) -> Self:
        """Hard links that say exactly what partial labels say.

        Members of a class are chained by must-links and one member of each class is linked apart from
        one of every other class. Their closure is that of all labelled pairs, with n + L² links at most.

        Parameters
        ----------
        y : (n,) array_like
            Class labels; ``-1``, NaN, None or masked mean unknown.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> links = Constraints.from_labels(["a", None, "b", "a"])
        >>> links.must_link.tolist(), links.cannot_link.tolist()
        ([[0, 3]], [[0, 2]])
        """
        codes, classes = label_codes(y)
        must, cannot = builders.label_links(codes, len(classes))
        return cls(len(codes), must, cannot)

    @classmethod
    def sample(
        cls,
        y: ArrayLike,
        n_pairs: int,
        *,
        overlap: bool = False,
        flip: float = 0.0,
        certainty: float | ArrayLike | None = None,
        random_state: Any = None,
    ) -> Self:
        """Random pairs labelled by the truth, some of them wrongly: a simulated annotator.

        Parameters
        ----------
        y : (n,) array_like
            True classes; unknown rows (``-1``, NaN, None) are not drawn.
        n_pairs : int
        overlap : bool, default=False
            If False, no sample is in two pairs (Lu & Leen 2007, experiments 1 and 2). If True, pairs
            are drawn uniformly from all pairs, without replacement.
        flip : float, default=0.0
            Probability that the relation of a pair is reported wrongly.
        certainty : float or array_like, optional
            As in :class:`Constraints`, one value or one per pair drawn; None makes hard links. Hard links
            that overlap and are flipped may contradict each other, which raises InfeasibleConstraints.
        random_state : int, RandomState, Generator or None

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints.sample([0, 0, 0, 1, 1, 1], 3, certainty=0.9, random_state=0).n_pairs
        3
        """
        codes, _ = label_codes(y)
        rng = as_generator(random_state)
        if not isinstance(flip, numbers.Real) or not 0.0 <= flip <= 1.0:
            raise ValueError(
                f"flip must lie in [0, 1], got {flip!r}; pass the probability of a wrong relation"
            )
        pairs = builders.draw_pairs(np.flatnonzero(codes >= 0), n_pairs, overlap, rng)
        together = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        together ^= rng.random(len(pairs)) < flip
        strength = link_strength(len(pairs), 0, None, certainty)
        return cls._from_signed(len(codes), pairs, np.where(together, strength, -strength))

    @classmethod
    def from_teachers(
        cls, y: ArrayLike, n_teachers: int, subset_size: int, *, random_state: Any = None
    ) -> Self:
        """Links of several teachers, each of whom sorts a random subset into groups.

        The "distributed learning" protocol of Shental et al. (2003): every pair of a subset becomes a
        hard must-link or cannot-link; teachers do not coordinate and their subsets may overlap.

        Parameters
        ----------
        y : (n,) array_like
            True classes; unknown rows are not shown to teachers.
        n_teachers : int
        subset_size : int
            Number of samples each teacher sorts.
        random_state : int, RandomState, Generator or None

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints.from_teachers([0, 0, 1, 1], 1, 4, random_state=0).must_link.tolist()
        [[0, 1], [2, 3]]
        """
        codes, _ = label_codes(y)
        pairs = builders.teacher_pairs(
            np.flatnonzero(codes >= 0), n_teachers, subset_size, as_generator(random_state)
        )
        together = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        pairs, row_of = unique_pairs(max(len(codes), 1), pairs)
        weights = np.empty(len(pairs))
        weights[row_of] = np.where(together, np.inf, -np.inf)
        return cls._from_signed(len(codes), pairs, weights)

    @classmethod
    def from_partial_classes(cls, groups: ArrayLike, *, per_point: int = 6, random_state: Any = None) -> Self:
        """Hard cannot-links from coarse groups that may each hold several classes.

        Experiment 3 of Lu & Leen (2007): an expert marks snow and no snow, but not the kinds of snow.
        For every two groups, each point of the smaller one is linked apart from ``per_point`` points of
        the larger one, drawn without replacement, so that the links form disjoint stars. When the
        larger group is used up, the remaining points get no links.

        Parameters
        ----------
        groups : (n,) array_like
            Coarse group of each sample; ``-1``, NaN or None mean unknown.
        per_point : int, default=6
        random_state : int, RandomState, Generator or None

        Examples
        --------
        >>> from linkwise import Constraints
        >>> links = Constraints.from_partial_classes(["snow"] * 6 + ["land"], random_state=0)
        >>> links
        Constraints(7 samples, 0 must-links, 6 cannot-links (6 hard); 0 chunklets)
        """
        codes, classes = label_codes(groups, "groups")
        per_point = check_whole_number(per_point, "per_point")
        cannot = builders.star_links(codes, len(classes), per_point, as_generator(random_state))
        return cls(len(codes), cannot_link=cannot)

    @classmethod
    def from_grid(
        cls,
        shape: Iterable[int],
        *,
        weight: float | None = None,
        certainty: float | None = None,
        connectivity: int | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """Must-links between neighbouring cells of an image or volume (Lu & Leen 2007, experiment 4).

        Parameters
        ----------
        shape : (height, width) or (depth, height, width)
            Cells are numbered in C order, as by ``image.reshape(-1, n_features)``.
        weight, certainty : float, optional
            As in :class:`Constraints`.
        connectivity : {4, 8} in two dimensions, {6} in three, optional
            Number of neighbours of an inner cell; 4 or 6 by default.
        mask : bool array of this shape, optional
            Cells to keep; the samples are then the kept cells in C order, as in ``image[mask]``.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints.from_grid((2, 2), certainty=0.9).pairs.tolist()
        [[0, 1], [0, 2], [1, 3], [2, 3]]
        """
        pairs, n_samples = builders.grid_links(shape, connectivity, mask)
        return cls(n_samples, pairs, weight=weight, certainty=certainty)

    @classmethod
    def from_sequence(
        cls,
        n_samples: int,
        *,
        breaks: Iterable[int] = (),
        weight: float | None = None,
        certainty: float | None = None,
    ) -> Self:
        """Must-links between consecutive samples of a time series or transect.

        Parameters
        ----------
        n_samples : int
        breaks : iterable of int
            Rows at which a new sequence starts: row b is not linked to row b - 1.
        weight, certainty : float, optional
            As in :class:`Constraints`.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints.from_sequence(5, breaks=[3], weight=1.0).pairs.tolist()
        [[0, 1], [1, 2], [3, 4]]
        """
        return cls(n_samples, builders.sequence_links(n_samples, breaks), weight=weight, certainty=certainty)

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str], n_samples: int) -> Self:
        """Links from a file with the columns ``i, j, kind`` and, if wanted, ``weight`` or ``certainty``.

        The command reads files by the same rules. Names of columns may be in capitals; a column of any other
        name is refused, so that no knowledge is overlooked (but ``kept`` and ``violation_probability``, which
        ``linkwise fit`` writes, may stay).

        Parameters
        ----------
        path : path-like
            CSV in UTF-8; tabs in a ``.tsv`` file; packed if it ends in ``.gz``. ``kind`` is ``must_link``
            (``must``, ``same``) or ``cannot_link`` (``cannot``, ``different``); ``weight`` is abs(W), ``inf``
            for a hard link; ``certainty`` as in :class:`Constraints`. A link with neither is hard.
        n_samples : int

        Raises
        ------
        ValueError
            Naming the file, the line, the value and the fix.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from linkwise import Constraints
        >>> links = Constraints(4, must_link=[(0, 2)], cannot_link=[(1, 3)], weight=[0.1, float("inf")])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "links.csv"
        >>> links.to_csv(path)
        >>> Constraints.read_csv(path, 4) == links
        True
        """
        n_samples = check_whole_number(n_samples, "n_samples", 0)
        lines = _link_io.link_list(path, _link_io.records(path), _link_io.by_row(n_samples))
        return cls._from_signed(n_samples, lines.pairs, lines.weights)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the links with the columns ``i, j, kind, weight``; numbers survive the round trip.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from linkwise import Constraints
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "links.csv"
        >>> Constraints(4, must_link=[(0, 2)], weight=0.5).to_csv(path)
        >>> print(path.read_text())
        i,j,kind,weight
        0,2,must_link,0.5
        """
        _link_io.write(path, self._pairs, self._weights)
