"""Constraints: the links of n samples, the only carrier of pairs in linkwise."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise import _link_builders as builders
from linkwise import _link_io
from linkwise._link_evidence import link_strength
from linkwise._links import Links
from linkwise._validation import as_generator, check_whole_number, label_codes
from linkwise.graph import unique_pairs

__all__ = ["Constraints"]


class Constraints(Links):
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

    __slots__ = ()

    @classmethod
    def from_labels(cls, y: ArrayLike) -> Constraints:
        """Hard links that say exactly what partial labels say.

        Members of a class are chained by must-links and one member of each class is linked apart from
        one of every other class. Their closure is that of all labelled pairs, with n + L² links at most.

        Parameters
        ----------
        y : (n,) array_like
            Class labels; ``-1``, NaN, None or masked mean unknown.

        Returns
        -------
        Constraints

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
    ) -> Constraints:
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

        Returns
        -------
        Constraints

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
    ) -> Constraints:
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

        Returns
        -------
        Constraints

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
    def from_partial_classes(
        cls, groups: ArrayLike, *, per_point: int = 6, random_state: Any = None
    ) -> Constraints:
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

        Returns
        -------
        Constraints

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
    ) -> Constraints:
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

        Returns
        -------
        Constraints

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
    ) -> Constraints:
        """Must-links between consecutive samples of a time series or transect.

        Parameters
        ----------
        n_samples : int
        breaks : iterable of int
            Rows at which a new sequence starts: row b is not linked to row b - 1.
        weight, certainty : float, optional
            As in :class:`Constraints`.

        Returns
        -------
        Constraints

        Examples
        --------
        >>> from linkwise import Constraints
        >>> Constraints.from_sequence(5, breaks=[3], weight=1.0).pairs.tolist()
        [[0, 1], [1, 2], [3, 4]]
        """
        return cls(n_samples, builders.sequence_links(n_samples, breaks), weight=weight, certainty=certainty)

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str], n_samples: int) -> Constraints:
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

        Returns
        -------
        Constraints

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

        Parameters
        ----------
        path : path-like

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
