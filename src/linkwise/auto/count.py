"""How many clusters: by links, and by the shape of the data where links leave it open or there are none.

The shape is measured by the silhouette of K-means: how much nearer rows are to their own cluster than to the
next. Without links, on half A of the leaderboard's sets, the clusterings with this K had a mean adjusted Rand
index of .384, with the true K of .306, and with the lowest BIC of a mixture (tied, diagonal, full) of .235,
.337 and .346; on half B of .405, .492, .405, .413 and .302.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from linkwise.auto.choice import agreement
from linkwise.auto.search import Trial
from linkwise.mixture.ppc import PPC
from linkwise.model_selection.held_out import Questions

__all__ = ["n_clusters_by_links", "n_clusters_by_shape", "silhouettes"]

#: An agreement lower by less than this many standard errors leaves a number of clusters possible.
_CAUTION = 0.5
_STARTS = 4
#: One cluster is compared with so many by mixtures.
_FEW = (1, 2, 3)


def n_clusters_by_links(trials: Sequence[Trial], questions: Questions, shape: dict[int, float]) -> int:
    """The number of clusters that keeps most held-out links, must-links and cannot-links counting half.

    Numbers whose best trial is not worse by more than one link, or half a standard error of the difference if
    both were as good (McNemar), are possible, too; of these the one with the highest value in ``shape`` is
    taken.
    """
    weight = questions.trust.copy()
    for kind in (questions.same, ~questions.same):
        weight[kind] /= max(weight[kind].sum(), 1e-12)
    best_of: dict[int, tuple[float, Trial]] = {}
    for trial in trials:
        value = agreement(trial.kept, weight)[0]
        k = trial.n_clusters
        if not trial.failure and (k not in best_of or value > best_of[k][0]):
            best_of[k] = (value, trial)
    if not best_of:
        raise ValueError(f"no candidate could be fitted: {trials[0].failure}; pass other candidates")
    _, best = max(best_of.values(), key=lambda entry: entry[0])
    possible = []
    for k in sorted(best_of):
        difference = best.kept - best_of[k][1].kept
        asked = np.isfinite(difference)
        by_link = weight[asked] * difference[asked]
        # A single link decides nothing.
        if by_link.sum() <= max(_CAUTION * np.linalg.norm(by_link), np.abs(by_link).max(initial=0.0)):
            possible.append(k)
    return max(possible, key=lambda k: shape[k])


def n_clusters_by_shape(X: NDArray[np.floating], counts: Sequence[int], seed: int) -> int:
    """The number of clusters without links: the highest silhouette, or one if mixtures find no second."""
    if counts[0] == 1 and (len(counts) == 1 or _is_one(X, seed)):
        return 1
    shape = silhouettes(X, [k for k in counts if k > 1], seed)
    return max(shape, key=lambda k: shape[k])


def silhouettes(X: NDArray[np.floating], counts: Sequence[int], seed: int) -> dict[int, float]:
    """Mean silhouette of K-means by number of clusters; -1 where it is not defined."""
    found = {}
    for k in counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct rows than clusters
            labels = KMeans(min(k, len(X)), n_init=_STARTS, random_state=seed).fit_predict(X)
        n_found = len(np.unique(labels))
        found[k] = float(silhouette_score(X, labels)) if 1 < n_found < len(X) and n_found == k else -1.0
    return found


def _is_one(X: NDArray[np.floating], seed: int) -> bool:
    """Whether both kinds of mixtures, with common and with own covariances, are best with one cluster."""
    for kind in ("tied", "full"):
        values = []
        for k in _FEW:
            if k <= len(X):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    values.append(PPC(k, covariance_type=kind, random_state=seed).fit(X).bic(X))
        if int(np.argmin(values)):
            return False
    return True
