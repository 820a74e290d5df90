"""An oracle that answers questions about pairs from known classes, with errors and "unsure" if wanted."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise._validation import as_generator, check_number, label_codes


class LabelOracle:
    """Answer questions about pairs from known classes: a stand-in for a person in experiments and tests.

    An answer depends on the pair and on ``random_state`` alone. Asked twice, in either order of the two rows,
    the oracle gives the same answer, right or wrong, and it does not matter which other pairs were asked
    before.

    Parameters
    ----------
    y : (n,) array_like
        Class of each row. -1, NaN or None: unknown, and a question about such a row raises ValueError.
    error_rate : float, default 0.0
        Share of the answers that say "different" for "same" and the reverse, in [0, 1].
    unsure_rate : float, default 0.0
        Share of the questions answered with "unsure", in [0, 1]. Errors are among the rest.
    random_state : int, RandomState, Generator or None, default None
        Decides which pairs get a wrong or an unsure answer. A Generator is used once, here.

    Attributes
    ----------
    n_asked : int
        Number of questions answered so far, repeated ones included.

    Examples
    --------
    >>> from linkwise.active import LabelOracle
    >>> oracle = LabelOracle(["oak", "oak", "elm"])
    >>> oracle(0, 1), oracle(1, 2)
    ('same', 'different')
    >>> oracle.n_asked
    2
    >>> doubtful = LabelOracle([0] * 100, error_rate=0.1, unsure_rate=0.2, random_state=0)
    >>> answers = [doubtful(0, j) for j in range(1, 100)]
    >>> answers == [doubtful(j, 0) for j in range(1, 100)]
    True
    """

    def __init__(
        self, y: ArrayLike, *, error_rate: float = 0.0, unsure_rate: float = 0.0, random_state: Any = None
    ) -> None:
        self._codes, _ = label_codes(y, "y")
        self.error_rate = _check_rate(error_rate, "error_rate")
        self.unsure_rate = _check_rate(unsure_rate, "unsure_rate")
        self._key = as_generator(random_state).integers(2**64, size=2, dtype=np.uint64)
        self.n_asked = 0

    def __call__(self, i: int, j: int) -> str:
        """Answer whether two rows are of one class.

        Parameters
        ----------
        i, j : int
            Row numbers.

        Returns
        -------
        str
            "same", "different" or "unsure".
        """
        low, high = sorted((self._row(i, "i"), self._row(j, "j")))
        if low == high:
            raise ValueError(f"the pair is ({i}, {j}): a row cannot be compared with itself; pass two rows")
        self.n_asked += 1
        unsure, error = self._draws(low, high)
        if unsure < self.unsure_rate:
            return "unsure"
        same = bool(self._codes[low] == self._codes[high])
        return "same" if same != (error < self.error_rate) else "different"

    def _draws(self, low: int, high: int) -> tuple[float, float]:
        """Two uniform numbers of the pair; with both rates 0 none are needed."""
        if self.error_rate == self.unsure_rate == 0:
            return 1.0, 1.0
        rng = np.random.Generator(np.random.Philox(counter=[0, 0, low, high], key=self._key))
        unsure, error = rng.random(2)
        return float(unsure), float(error)

    def _row(self, row: Any, name: str) -> int:
        """A row number whose class is known."""
        n_samples = len(self._codes)
        whole = isinstance(row, numbers.Integral) and not isinstance(row, bool | np.bool_)
        if not whole or not 0 <= row < n_samples:
            raise ValueError(f"{name} is {row!r}: rows are numbered 0..{n_samples - 1}; pass one of them")
        if self._codes[row] < 0:
            raise ValueError(
                f"y[{row}] is missing: the oracle cannot answer about row {row}; fill in its class, or leave "
                "rows without a class out of the data"
            )
        return int(row)

    def __repr__(self) -> str:
        return (
            f"LabelOracle({len(self._codes)} rows, error_rate={self.error_rate}, "
            f"unsure_rate={self.unsure_rate})"
        )


def _check_rate(value: Any, name: str) -> float:
    """A share in [0, 1]."""
    rate = check_number(value, name)
    if rate > 1:
        raise ValueError(f"{name} is {value}: it is a share; pass a number from 0 to 1")
    return rate
