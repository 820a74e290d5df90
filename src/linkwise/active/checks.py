"""What a user may pass to a session, and what a strategy may return; all else is refused in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_array

from linkwise._arrays import Ints
from linkwise._validation import check_whole_number


def checked_rows(X: Any, metric: Any) -> NDArray[Any]:
    """Rows as a finite array; distances as a square one."""
    if np.ndim(X) != 2 or np.iscomplexobj(X):
        what = "complex numbers" if np.iscomplexobj(X) else f"{np.ndim(X)} dimensions"
        raise ValueError(f"X has {what}; pass a table of real numbers with one line for each row")
    rows = check_array(
        X, dtype=[np.float64, np.float32], ensure_min_samples=2, ensure_all_finite=False, input_name="X"
    )
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(
            f"X[{row}, {column}] is {rows[row, column]}; fill in a number, or leave row {row} out"
        )
    if isinstance(metric, str) and metric == "precomputed":
        _check_distances(rows)
    return np.asarray(rows)


def _check_distances(distances: NDArray[Any]) -> None:
    """Refuse what cannot be the distances of all pairs of rows."""
    if distances.shape[0] != distances.shape[1]:
        raise ValueError(
            f"with metric='precomputed' X holds the distances of all pairs, but has shape {distances.shape}; "
            "pass a square array"
        )
    if (distances < 0.0).any():
        row, column = np.argwhere(distances < 0.0)[0]
        raise ValueError(f"X[{row}, {column}] is a negative distance; pass distances, not similarities")
    own = np.diag(distances)
    if own.max() > 1e-6 * distances.max():
        row = int(own.argmax())
        raise ValueError(
            f"X[{row}, {row}] is {own[row]:.6g}, but a row is at distance 0 from itself; pass distances, not "
            "similarities"
        )


def checked_metric(metric: Any, rows: NDArray[Any]) -> Any:
    """A metric that gives distances of a few of the rows."""
    if isinstance(metric, str) and metric in ("euclidean", "precomputed"):
        return metric
    reason = "it is neither a name nor a function"
    if isinstance(metric, str) or callable(metric):
        try:
            few = rows[: 1000 if isinstance(metric, str) else 3]
            found = np.asarray(pairwise_distances(few, metric=metric), dtype=np.float64)
            if np.isfinite(found).all() and found.min() > -1e-9:
                return metric
            reason = f"two of the first rows have the distance {found[~(found > -1e-9)][0]}"
        except (ValueError, TypeError) as error:
            reason = str(error).split(". ")[0].splitlines()[0]
            if " among " in reason:  # a list of all names
                reason = "there is no metric of that name"
    raise ValueError(
        f"metric={metric!r} gives no distances ({reason}); pass a name that scikit-learn "
        "knows as a metric, a function of two rows, or 'precomputed'"
    )


def checked_pairs(pairs: Any, n_samples: int) -> Ints:
    """Questions as the strategy gave them, (q, 2), if they are about pairs of rows."""
    found = np.asarray(pairs)
    if found.size and (found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu"):
        raise ValueError(
            f"the strategy returned an array of shape {found.shape} and type {found.dtype}; let it give "
            "pairs of row numbers"
        )
    found = found.reshape(-1, 2).astype(np.int64)
    bad = (found < 0).any(axis=1) | (found >= n_samples).any(axis=1) | (found[:, 0] == found[:, 1])
    if bad.any():
        i, j = found[bad][0]
        raise ValueError(
            f"the strategy asks about ({i}, {j}); let it give two different rows of 0..{n_samples - 1}"
        )
    return found


def checked_count(n_clusters: Any, n_samples: int) -> int | None:
    """Number of clusters, or None if it is to be found."""
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            raise ValueError(f"n_clusters={n_clusters!r} is not known; pass a number or 'auto'")
        return None
    count = check_whole_number(n_clusters, "n_clusters")
    if count > n_samples:
        raise ValueError(f"n_clusters={count} clusters cannot be made of {n_samples} rows; ask for fewer")
    return count
