"""How often a class-level clustering decides the same when the rows are drawn anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from linkwise._label_coding import as_vector
from linkwise._run_warnings import warn_once
from linkwise._validation import as_generator, label_codes
from linkwise.mixture.split_merge import THRESHOLD, DecisionStability, count_decisions

__all__ = ["stability"]


def stability(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_bootstrap: int = 20,
    threshold: float = THRESHOLD,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> DecisionStability:
    """How often each decision occurs when the rows are drawn anew: bootstrap within each class.

    Parameters
    ----------
    estimator : CPPC
        Cloned for every sample; ``random_state`` is set.
    X : (n_samples, n_features) array_like
    y : (n_samples,) array_like
        Classes; -1, NaN or None where unlabelled.
    n_bootstrap : int, default=20
        Samples; every class, and the unlabelled rows, keep their number.
    threshold : float, default=0.15
    random_state : int, Generator, RandomState or None
    n_jobs : int or None
        Fits at the same time, in threads. The result does not depend on it.

    Returns
    -------
    DecisionStability

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CPPC
    >>> from linkwise.mixture.class_report import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [8, 0], [0, 8]], 30, axis=0)
    >>> y = np.repeat(["crops", "crops", "water"], 30)
    >>> found = stability(CPPC(3, beliefs=[[0, -1], [-1, 1]]), X, y, n_bootstrap=5, random_state=0)
    >>> found.shares
    {('split', ('crops',)): 1.0, ('kept', ('water',)): 1.0}
    """
    if n_bootstrap < 1:
        raise ValueError(f"n_bootstrap must be at least 1, got {n_bootstrap!r}; pass n_bootstrap=1 or more")
    data, classes = np.asarray(X), as_vector(y, "y")
    codes, names = label_codes(y)
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    # One seed a sample, drawn here, so that neither order nor threads matter.
    seeds = as_generator(random_state).integers(2**31, size=n_bootstrap).tolist()

    def resampled_table(seed: int) -> NDArray[np.int64]:
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.choice(group, len(group)) for group in groups])
        model = clone(estimator).set_params(random_state=seed)
        return np.array(model.fit(data[rows], classes[rows]).contingency_)

    with warn_once():
        tables = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(resampled_table)(seed) for seed in seeds)
    return count_decisions(tables, tuple(names.tolist()), threshold, "bootstrap samples")
