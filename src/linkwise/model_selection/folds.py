"""Cross-validation that never cuts a link: linked samples go into the same fold."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from linkwise._arrays import Ints
from linkwise._validation import (
    align_rows,
    as_generator,
    check_constraints,
    check_whole_number,
    refuse_links_as_labels,
)
from linkwise.constraints import Constraints

# A fold that a component fills beyond this many times its fair share is worth a warning.
_LARGE_FOLD = 2


class ConstraintKFold(BaseCrossValidator):
    """K folds in which samples joined by links, of any kind, stay together.

    A link between a training and a test row would make a score on the test rows too optimistic, and it is
    lost for training. Here every connected component of the links lies in one fold. Components are dealt out
    largest first, each to the smallest fold so far; unlinked samples fill the folds up evenly.

    Parameters
    ----------
    n_splits : int, default=5
        At least 2.
    constraints : Constraints, optional
        Links among the rows that will be split. May be given to :meth:`split` instead; with scikit-learn's
        metadata routing that happens by itself.
    shuffle : bool, default=False
        Deal out components of equal size, and the unlinked samples, in random order.
    random_state : int, Generator, RandomState or None
        Only for ``shuffle=True``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from linkwise import PPC, Constraints
    >>> from linkwise.model_selection import ConstraintKFold
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Constraints.sample(y, 60, overlap=True, certainty=0.95, random_state=0)
    >>> folds = ConstraintKFold(5, constraints=links, shuffle=True, random_state=0)
    >>> sum(links[train].n_pairs + links[test].n_pairs for train, test in folds.split(X)) == 5 * links.n_pairs
    True
    >>> scores = cross_validate(PPC(3, random_state=0), X, cv=folds, params={"constraints": links})
    >>> len(scores["test_score"])
    5
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"constraints": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        constraints: Constraints | None = None,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_splits = n_splits
        self.constraints = constraints
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, *, constraints: Constraints | None = None
    ) -> int:
        """Return the number of folds."""
        _refuse_links(y, groups)
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, constraints: Constraints | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield row numbers of training and test set, fold by fold; y and groups are ignored.

        ``constraints`` replaces the links of the constructor. If the links leave fewer components than folds,
        ValueError says how many folds are possible.
        """
        _refuse_links(y, groups)
        n_samples = len(X) if hasattr(X, "__len__") else int(X.shape[0])
        X, constraints = align_rows(X, self.constraints if constraints is None else constraints)
        links = check_constraints(constraints, n_samples)
        if links is None:
            raise ValueError(
                "ConstraintKFold has no links to keep: pass ConstraintKFold(n_splits, constraints=links) or "
                "split(X, constraints=links); without links use scikit-learn's KFold"
            )
        n_splits = check_whole_number(self.n_splits, "n_splits", 2)
        rng = as_generator(self.random_state) if self.shuffle else None
        fold_of = assign_folds(links.components(), n_splits, rng)
        rows = np.arange(n_samples)
        for fold in range(n_splits):
            chosen = fold_of == fold
            yield rows[~chosen], rows[chosen]


def _refuse_links(*ignored: Any) -> None:
    """Refuse links that were given by position and would be ignored."""
    for value in ignored:
        refuse_links_as_labels(value)


def assign_folds(component_of: Ints, n_splits: int, rng: np.random.Generator | None = None) -> Ints:
    """Assign every sample (n,) to a fold: whole components, largest first, each into the smallest fold.

    The largest fold is at most 4/3 as large as in the best possible division (Graham 1969).
    """
    sizes = np.bincount(component_of)
    n_components, n_samples = len(sizes), len(component_of)
    if n_components < n_splits:
        raise ValueError(
            f"the links join the {n_samples} samples into {n_components} groups, the largest of "
            f"{sizes.max()}: too few for {n_splits} folds. Use n_splits <= {n_components}, or fewer links."
        )
    if sizes.max() > _LARGE_FOLD * n_samples / n_splits:
        warnings.warn(
            f"links join {sizes.max()} of {n_samples} samples into one group, which fills a fold of its own; "
            f"a fair fold has {n_samples / n_splits:.0f}. Scores of that fold come from little training "
            "data: use fewer folds or fewer links.",
            UserWarning,
            stacklevel=3,
        )
    order = np.arange(n_components) if rng is None else rng.permutation(n_components)
    order = order[np.argsort(-sizes[order], kind="stable")]
    n_linked = int((sizes > 1).sum())
    fold_of_component = np.empty(n_components, dtype=np.int64)
    loads = np.zeros(n_splits, dtype=np.int64)
    smallest = [(0, fold) for fold in range(n_splits)]
    for component in order[:n_linked].tolist():
        load, fold = heapq.heappop(smallest)
        fold_of_component[component] = fold
        loads[fold] = load + sizes[component]
        heapq.heappush(smallest, (int(loads[fold]), fold))
    # Single samples in one go: a heap would take seconds for millions of them.
    fold_of_component[order[n_linked:]] = np.repeat(
        np.arange(n_splits), _fill_up(loads, n_components - n_linked)
    )
    return fold_of_component[component_of]


def _fill_up(loads: Ints, n_units: int) -> Ints:
    """Count the units added to each load when every unit goes to the smallest load, the first of equals."""
    level, high = int(loads.min()), int(loads.max()) + n_units
    while level < high:
        middle = (level + high + 1) // 2
        if np.maximum(middle - loads, 0).sum() <= n_units:
            level = middle
        else:
            high = middle - 1
    added = np.maximum(level - loads, 0)
    left = n_units - int(added.sum())
    added[np.flatnonzero(loads + added == level)[:left]] += 1
    return added
