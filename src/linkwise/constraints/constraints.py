"""Constraints: the links of n samples, the only carrier of pairs in linkwise."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise._arrays import Floats, Ints
from linkwise._validation import as_generator, check_pairs, check_whole_number, label_codes, refuse_masked
from linkwise.constraints import builders
from linkwise.constraints import io as _link_io
from linkwise.constraints import labels as row_labels
from linkwise.constraints.evidence import (
    Judgements,
    canonical,
    check_source,
    link_strength,
    sorted_judgements,
)
from linkwise.constraints.ids import RowIds, contradiction_by_id
from linkwise.constraints.labels import RowLabels
from linkwise.constraints.summary import html, summary
from linkwise.exceptions import FeasibilityWarning, InfeasibleConstraints, Witness
from linkwise.graph import check_feasibility, group_labels, unique_pairs


class Constraints:
    """Links between pairs of samples: must-links and cannot-links, each hard or with a weight.

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
    must_link, cannot_link : (m, 2) array_like
        Pairs of row numbers, or of ids if there is an ``index``.
    weight : float or array_like, optional
        Strength abs(W) >= 0 of each link, in the units of Lu & Leen (2007): a violated link costs 2 abs(W)
        nats. One value for all, or one per pair (must-links first, then cannot-links). ``inf`` is hard.
    certainty : float or array_like, optional
        Instead of ``weight``: the probability g in [0.5, 1] that the link is right,
        abs(W) = 0.5 log(g / (1 - g)) (their Eq. 2.15). With neither, links are hard.
    source : str or array_like of str, optional
        Who said it: one name, or one per pair. A pair that several sources judged keeps all its judgements.
    index : array_like, optional
        Id of each row, all different: ``frame.index``, or a column such as ``frame["id"]``. Estimators then
        match the links with the rows of a DataFrame by id, in whatever order the rows are.

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
    judgements : Judgements
        ``pairs`` (J, 2), ``weights`` (J,) and ``source`` (J,): what every source said. Without sources the
        links.
    source : (J,) str or None
        Who gave each of the judgements; "" names nobody.
    index : (n_samples,) or None
        Id of each row.
    classes : (L,) or None
        Names of the classes, if the links were built from labels; ``row_classes`` (n_samples,) has the
        number of each row's class, -1 where it is unknown.

    Notes
    -----
    Repeated rows, as in a bootstrap sample: a repeated row becomes several samples. Every copy of i is
    linked to every copy of j as i was to j; copies of the same row are not linked to one another. The
    number of links grows with the product of the repetitions.

    Labels: the links among the rows taken are those that the labels of these rows give. Where labels were
    linked through a row that is left out, another row of the class replaces it.

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

    By id, from two people who disagree about one pair:

    >>> links = Constraints(
    ...     3, must_link=[("a", "b")], cannot_link=[("a", "b"), ("b", "c")], certainty=[0.9, 0.6, 0.8],
    ...     source=["Ann", "Bob", "Bob"], index=["a", "b", "c"],
    ... )
    >>> links
    Constraints(3 samples by id, 1 must-link, 1 cannot-link; 0 chunklets; 3 judgements of 2 sources)
    >>> links.source
    array(['Ann', 'Bob', 'Bob'], dtype='<U3')
    """

    __iter__ = None  # a container of samples by row number, not a sequence of links
    __slots__ = ("_ids", "_judgements", "_labels", "_n_samples", "_pairs", "_weights")

    _n_samples: int
    _pairs: NDArray[np.int64]
    _weights: NDArray[np.float64]
    _judgements: Judgements | None
    _ids: RowIds | None
    _labels: RowLabels | None

    def __init__(
        self,
        n_samples: int,
        must_link: ArrayLike = (),
        cannot_link: ArrayLike = (),
        *,
        weight: float | ArrayLike | None = None,
        certainty: float | ArrayLike | None = None,
        source: str | Sequence[Any] | NDArray[Any] | None = None,
        index: Any = None,
    ) -> None:
        n_samples = check_whole_number(n_samples, "n_samples", 0)
        ids = None if index is None else RowIds.of(index, n_samples)
        if ids is None:
            must = check_pairs(must_link, n_samples, "must_link")
            cannot = check_pairs(cannot_link, n_samples, "cannot_link")
        else:
            must, cannot = ids.pairs(must_link, "must_link"), ids.pairs(cannot_link, "cannot_link")
        strength = link_strength(len(must), len(cannot), weight, certainty)
        names = None if source is None else check_source(source, len(must), len(cannot))
        sign = np.repeat([1.0, -1.0], [len(must), len(cannot)])
        self._combine(n_samples, np.concatenate([must, cannot]), sign * strength, names, ids)

    def _combine(
        self,
        n_samples: int,
        pairs: Ints,
        weights: Floats,
        source: NDArray[np.str_] | None = None,
        ids: RowIds | None = None,
        labels: RowLabels | None = None,
    ) -> None:
        """Put judgements together: soft evidence adds up, hard contradictions are refused."""
        judgements = None
        if source is not None:
            judgements = sorted_judgements(pairs, weights, source)
            pairs, weights, _ = judgements  # in this order the sums do not depend on that of the rows
        try:
            pairs, weights = canonical(n_samples, pairs, weights)
        except InfeasibleConstraints as error:
            raise contradiction_by_id(error, ids) from None
        self._set(n_samples, pairs, weights, judgements, ids, labels)

    def _set(
        self,
        n_samples: int,
        pairs: Ints,
        weights: Floats,
        judgements: Judgements | None = None,
        ids: RowIds | None = None,
        labels: RowLabels | None = None,
    ) -> None:
        for array in (pairs, weights, *(judgements or ()), *(labels or ())):
            if array is not None:
                array.flags.writeable = False
        self._n_samples, self._pairs, self._weights = n_samples, pairs, weights
        self._judgements, self._ids, self._labels = judgements, ids, labels

    @classmethod
    def _restore(cls, *parts: Any) -> Self:
        """Links from parts that are known to be in order."""
        links = cls.__new__(cls)
        links._set(*parts)
        return links

    @classmethod
    def _from_signed(cls, n_samples: int, pairs: Ints, weights: Floats, *parts: Any) -> Self:
        """Links from pairs of row numbers and signed weights; the further parts are those of ``_combine``."""
        links = cls.__new__(cls)
        links._combine(n_samples, pairs, weights, *parts)
        return links

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

    @property
    def judgements(self) -> Judgements:
        """What every source said about pairs; without sources the links themselves."""
        return Judgements(self._pairs, self._weights, None) if self._judgements is None else self._judgements

    @property
    def source(self) -> NDArray[np.str_] | None:
        """Who gave each of the judgements, (J,); None if no sources were given."""
        return self.judgements.source

    @property
    def index(self) -> NDArray[Any] | None:
        """Id of each row, (n_samples,), or None."""
        return None if self._ids is None else self._ids.values

    @property
    def index_name(self) -> Hashable:
        """Name of the column that the index was taken from, or None."""
        return None if self._ids is None else self._ids.name

    @property
    def classes(self) -> NDArray[Any] | None:
        """Names of the classes, (L,), if the links were built from labels."""
        return None if self._labels is None else self._labels.classes

    @property
    def row_classes(self) -> NDArray[np.int64] | None:
        """Number of each row's class, (n_samples,), -1 where it is unknown; None without labels."""
        return None if self._labels is None else self._labels.codes

    def __len__(self) -> int:
        return self._n_samples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        said = zip(self.judgements, other.judgements, strict=True)
        return (
            self._n_samples == other._n_samples
            and np.array_equal(self._pairs, other._pairs)
            and np.array_equal(self._weights, other._weights)
            and all(a is b or (not (a is None or b is None) and np.array_equal(a, b)) for a, b in said)
            and _both_none_or_same(self._ids, other._ids)
            and _both_none_or_same(self._labels, other._labels)
        )

    def __hash__(self) -> int:
        return hash((self._n_samples, self._pairs.tobytes(), self._weights.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._judgements, self._ids, self._labels)
        return type(self)._restore, (self._n_samples, self._pairs, self._weights, *parts)

    def __repr__(self) -> str:
        return f"Constraints({summary(self)})"

    def _repr_html_(self) -> str:
        return html(self)

    def __getitem__(self, key: Any) -> Self:
        rows = builders.row_numbers(key, self._n_samples)
        said = self.judgements
        ids = None if self._ids is None else self._ids.take(rows)
        if self._labels is None:
            pairs, kept = builders.links_among(said.pairs, rows, self._n_samples)
            source = None if said.source is None else said.source[kept]
            return self._from_signed(len(rows), pairs, said.weights[kept], source, ids)
        groups = row_labels.labelled_groups(self.chunklets(), self._labels.codes)
        between = row_labels.stand_ins(groups, rows)[said.pairs]
        pairs, kept = builders.links_among(between, rows, self._n_samples)
        apart = pairs[:, 0] != pairs[:, 1]
        pairs, kept = pairs[apart], kept[apart]
        labels, left_out = self._labels.take(rows), np.ones(self._n_samples, dtype=bool)
        left_out[rows] = False
        lost = labels if left_out[self._labels.codes >= 0].any() else labels._replace(certainty=None)
        added, added_weights = row_labels.lost_label_links(lost, groups[rows], pairs, said.weights[kept])
        weights = np.concatenate([said.weights[kept], added_weights])
        source = None if said.source is None else np.append(said.source[kept], np.full(len(added), ""))
        return self._from_signed(len(rows), np.concatenate([pairs, added]), weights, source, ids, labels)

    def align(self, ids: Any) -> Self:
        """The links of the rows with these ids, in this order.

        Parameters
        ----------
        ids : array_like
            Some or all ids of the index, each once, such as ``frame.index``.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> links = Constraints(3, must_link=[("a", "b")], index=["a", "b", "c"])
        >>> links.align(["c", "b", "a"]).pairs
        array([[1, 2]])
        """
        if self._ids is None:
            raise ValueError(
                "the links have no index to find ids in; build them with Constraints(..., index=ids)"
            )
        wanted = RowIds.of(ids)
        return self if self._ids.same_as(wanted) else self[self._ids.order_of(wanted)]

    def _for_rows(self, ids: Any) -> Self:
        """The links in the order of exactly these ids, those of the rows of X."""
        assert self._ids is not None
        wanted = RowIds.unchecked(ids, "the index of X")
        if self._ids.same_as(wanted):  # also where rows repeat, as in a bootstrap sample
            return self
        order = self._ids.order_of(wanted, "the index of X")
        if len(order) < self._n_samples:
            missing = np.setdiff1d(np.arange(self._n_samples), order)
            raise ValueError(
                f"X has no rows {self._ids.listed(missing)}, which are in the index of the "
                "links; pass the links of these rows, constraints.align(X.index), or all rows"
            )
        return self[order]

    def with_index(self, index: Any) -> Self:
        """The same links, with an id for each row; None takes the ids away."""
        ids = None if index is None else RowIds.of(index, self._n_samples)
        return self._restore(self._n_samples, self._pairs, self._weights, self._judgements, ids, self._labels)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Constraints):
            return NotImplemented
        if self._n_samples != other._n_samples:
            raise ValueError(
                f"cannot add links of {self._n_samples} samples to links of {other._n_samples} samples; "
                "build both with the same n_samples, about the same rows"
            )
        if self._ids is not None and other._ids is not None:
            other = other[other._ids.order_of(self._ids, "the index of the first links")]
        mine, theirs = self.judgements, other.judgements
        source = None
        if mine.source is not None or theirs.source is not None:
            # Whoever was not named stays without a name.
            names = [
                np.full(len(said.pairs), "") if said.source is None else said.source
                for said in (mine, theirs)
            ]
            source = np.concatenate(names)
        return self._from_signed(
            self._n_samples,
            np.concatenate([mine.pairs, theirs.pairs]),
            np.concatenate([mine.weights, theirs.weights]),
            source,
            other._ids if self._ids is None else self._ids,
            row_labels.joined_labels(self._labels, other._labels),
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
            self._refuse(found.witness, n_clusters)
        if found.status == "unknown":
            warnings.warn(
                f"could not decide within the search budget whether {n_clusters} clusters can satisfy the "
                "hard cannot-links; more clusters or fewer links make the question easier",
                FeasibilityWarning,
                stacklevel=2,
            )

    def _refuse(self, witness: Witness, n_clusters: int | None) -> NoReturn:
        """Raise InfeasibleConstraints that says which classes are too many, or names rows by their ids."""
        if n_clusters is not None and self._labels is not None:
            self._labels.refuse_few_clusters(n_clusters, witness)
        raise contradiction_by_id(InfeasibleConstraints(witness), self._ids)

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
    def from_labels(cls, y: ArrayLike, *, certainty: float | ArrayLike | None = None) -> Self:
        """Make links from the labels of some rows; the names of the classes are kept in ``classes``.

        Sure members of a class are chained by hard must-links, and one member of each class is linked apart
        from one of every other class. Their closure is that of all labelled pairs, with n + L² links at
        most. A doubtful member is linked to the surest member of its class, so that it keeps its own
        certainty and does not inherit doubts along a chain: both labels g and h are right, or both wrong,
        with certainty g h + (1 - g) (1 - h).

        Parameters
        ----------
        y : (n,) array_like
            Class labels; ``-1``, NaN, None or masked mean unknown.
        certainty : float or (n,) array_like, optional
            Probability in [0.5, 1] that a label is right; by default all are. Of unknown labels it is not
            read.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> links = Constraints.from_labels(["a", None, "b", "a"])
        >>> links.must_link.tolist(), links.cannot_link.tolist()
        ([[0, 3]], [[0, 2]])
        >>> links.classes
        array(['a', 'b'], dtype='<U1')
        """
        labels = RowLabels.of(y, certainty)
        return cls._from_signed(len(labels.codes), *row_labels.label_links(labels), None, None, labels)

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
    def from_frame(
        cls,
        frame: Any,
        n_samples: int | None = None,
        *,
        index: Any = None,
        left: str | None = None,
        right: str | None = None,
        ignore_columns: Sequence[str] = (),
        certainty: float | None = None,
    ) -> Self:
        """Links from a table with a row for each judgement.

        The columns are the two points of a link, ``kind`` and, if wanted, ``weight`` or ``certainty`` and
        ``source`` (or ``annotator``). The points are the columns ``i`` and ``j``, or ``left`` and ``right``,
        or the only two columns that are nothing else. A column of any other name is refused, so that no
        knowledge is overlooked. :meth:`read_csv` and the command read files by the same rules.

        ``kind`` is ``must_link`` (``must``, ``same``, ``yes``, ``1``) or ``cannot_link`` (``cannot``,
        ``different``, ``no``, ``0`` or ``-1``). ``weight`` is abs(W), ``inf`` for a hard link; ``certainty``
        is as in :class:`Constraints`. Links are hard if the table has neither column.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, pyarrow Table, or mapping from names to columns
        n_samples : int, optional
            Number of rows of the data; the points are then row numbers.
        index : array_like, optional
            Ids of the rows of the data instead, such as ``data.index``; the points are then ids.
        left, right : str, optional
            The columns of the points.
        ignore_columns : sequence of str
            Columns to leave out.
        certainty : float, optional
            Of links that have neither weight nor certainty of their own.

        Raises
        ------
        ValueError
            Naming the row, the value and the fix.

        Examples
        --------
        >>> from linkwise import Constraints
        >>> table = {"one": ["a", "a"], "other": ["b", "c"], "kind": ["yes", "no"], "source": ["Ann", "Bob"]}
        >>> links = Constraints.from_frame(table, index=["a", "b", "c"])
        >>> links.must_link.tolist(), links.source.tolist()
        ([[0, 1]], ['Ann', 'Bob'])
        """
        lines = _link_io.frame_records("frame", frame, _link_io.Columns(left, right, ignore_columns))
        return cls._from_lines("frame", lines, n_samples, index, certainty)

    @classmethod
    def read_csv(
        cls,
        path: str | os.PathLike[str],
        n_samples: int | None = None,
        *,
        index: Any = None,
        left: str | None = None,
        right: str | None = None,
        ignore_columns: Sequence[str] = (),
        certainty: float | None = None,
    ) -> Self:
        """Links from a file, by the rules of :meth:`from_frame`.

        Names of columns may be in capitals, and ``kept`` and ``violation_probability``, which ``linkwise
        fit`` writes, may stay.

        Parameters
        ----------
        path : path-like
            Text in UTF-8 with commas, semicolons (then numbers may have a decimal comma) or tabs, packed if
            it ends in ``.gz``; or ``.parquet``, or the first sheet of an ``.xlsx``.
        n_samples, index, left, right, ignore_columns, certainty
            As in :meth:`from_frame`.

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
        lines = _link_io.records(path, _link_io.Columns(left, right, ignore_columns))
        return cls._from_lines(path, lines, n_samples, index, certainty)

    @classmethod
    def _from_lines(
        cls,
        name: object,
        lines: Iterable[_link_io.Record],
        n_samples: int | None,
        index: Any,
        certainty: float | None,
    ) -> Self:
        """Links of a table by row number or, if there is an index, by id."""
        if (n_samples is None) == (index is None):
            raise ValueError(
                "give the number of rows, n_samples, if the points are row numbers, or the ids of the rows, "
                "index; pass one of the two"
            )
        if certainty is not None:
            link_strength(1, 0, None, certainty)  # refuses what is no certainty
        if index is None:
            n_samples, ids = check_whole_number(n_samples, "n_samples", 0), None
            find = _link_io.by_row(n_samples, "write row numbers counted from 0, or give index= for ids")
        else:
            ids = RowIds.of(index)
            find = _link_io.by_id(_link_io.id_places(ids.values.tolist()))
            n_samples = len(ids)
        return cls._from_list(_link_io.link_list(name, lines, find, certainty=certainty), n_samples, ids)

    @classmethod
    def _from_list(cls, found: _link_io.LinkList, n_samples: int, ids: RowIds | None = None) -> Self:
        """Put the lines of a table together."""
        source = None if found.source is None else np.array(found.source, dtype=np.str_)
        names = found.row_labels(n_samples)
        labels = None
        if names is not None:
            codes, classes = label_codes(names)
            labels = RowLabels(classes, codes)
        return cls._from_signed(n_samples, found.pairs, found.weights, source, ids, labels)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the links with the columns ``i, j, kind, weight``; numbers survive the round trip.

        ``i`` and ``j`` are ids if there is an index. With sources there is a line for every judgement, and a
        column ``source``. Links made of labels have the columns ``class_i`` and ``class_j``.

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
        said = self.judgements
        source = None if said.source is None else said.source.tolist()
        ids = None if self._ids is None else self._ids.values.tolist()
        classes = None if self._labels is None else self._labels.row_names()
        _link_io.write(path, said.pairs, said.weights, source=source, ids=ids, classes=classes)


def _both_none_or_same(mine: Any, theirs: Any) -> bool:
    return mine is theirs or (mine is not None and theirs is not None and mine.same_as(theirs))
