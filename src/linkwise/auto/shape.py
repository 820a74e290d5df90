"""How many clusters, and whether every cluster is one Gaussian, as far as links and the shape of rows tell.

The number is chosen by links, and by the shape where links leave it open or there are none. The shape is
measured by the silhouette of K-means: how much nearer rows are to their own cluster than to the next. Without
links, on half A of the leaderboard's sets, the clusterings with this K had a mean adjusted Rand index of
.384, with the true K of .306, and with the lowest BIC of a mixture (tied, diagonal, full) of .235, .337 and
.346; on half B of .405, .492, .405, .413 and .302.

If clusters are Gaussians, a mixture of K of them foretells new rows at least as well as one of 2 K, which has
more parameters to learn. If clusters are bent, or of several parts, 2 K foretell better.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.model_selection import KFold

from linkwise._threads import one_thread_if_small
from linkwise.auto.choice import agreement
from linkwise.auto.search import Trial
from linkwise.mixture.ppc import PPC
from linkwise.model_selection.held_out import Questions

__all__ = ["gaussian_nats", "n_clusters_by_links", "n_clusters_by_shape", "paired_t", "silhouettes"]

_FOLDS = 5
#: Nats that the vote of a mixture gains for each standard error by which K Gaussians foretell rows better
#: than 2 K, and at most. Half A of the leaderboard and 13 other sets, six kinds of links, one draw: mean
#: adjusted Rand index .526 with at most 2 nats, .525 with 1, .518 without; the share of cases that are worse
#: by .02 than the best clustering without links fell from .20 to .13. Punishing mixtures where 2 K foretell
#: better lost: .518 and .515 with 1 and 2 nats.
_NATS_OF_AN_ERROR = 0.5
_MOST_NATS = 2.0
#: No more folds are asked for once the rows so far are this many standard errors beyond those that bring the
#: most nats, or beyond 0 where none are brought. On 400 rows of indian_pines a fold takes four seconds (26
#: covariances of 200 columns); t is 6.8 after the first fold, 13.0 after all.
_CLEARLY = 2.0
#: Rows are described by so many principal components, where they have more columns. With many columns 2 K
#: Gaussians cannot be learned from few rows, and K foretold rows better whatever the clusters were: two moons
#: turned into 122 columns brought 2 nats. On 11 sets with 17 to 159 columns, which no table has (section
#: "Sets that decided nothing" of the leaderboard), two draws: mean adjusted Rand index .388 with all columns,
#: .389 so; worse by .02 than without links in 8 and 5 of 198 cases; processor seconds of a choice 4.0, 2.8.
_MOST_COMPONENTS = 10
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


def gaussian_nats(X: NDArray[np.floating], n_clusters: int, seed: int) -> float:
    """Nats by which votes of mixtures grow on rows (n, d); 0 if 2 K Gaussians foretell rows better."""
    if len(X) < _FOLDS or (1.0 - 1.0 / _FOLDS) * len(X) < 4 * n_clusters:
        return 0.0
    X = _leading_components(X)
    try:
        with warnings.catch_warnings(), one_thread_if_small(len(X)):
            warnings.simplefilter("ignore")
            t = paired_t(_left_out_gains(X, n_clusters, seed))
    except (ValueError, RuntimeError):  # rows that repeat, for example: they tell nothing about the shape
        return 0.0
    return float(np.clip(_NATS_OF_AN_ERROR * t, 0.0, _MOST_NATS))


def _leading_components(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Rows (n, d) along their ten widest principal directions; as they are if they have no more columns."""
    if X.shape[1] <= _MOST_COMPONENTS:
        return X
    left, spread, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return np.asarray(left[:, :_MOST_COMPONENTS] * spread[:_MOST_COMPONENTS])


def paired_t(differences: NDArray[np.float64]) -> float:
    """Mean of differences (n,) in units of its standard error; 0 if they do not vary."""
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() / error) if error > 0 else 0.0


def _left_out_gains(X: NDArray[np.floating], n_clusters: int, seed: int) -> NDArray[np.float64]:
    """How much better K Gaussians foretell rows (m,) than 2 K, of folds until it is clear."""
    gains = np.full(len(X), np.nan)
    for kept, left_out in KFold(_FOLDS, shuffle=True, random_state=seed).split(X):
        few, many = (
            PPC(k, random_state=seed).fit(X[kept]).score_samples(X[left_out])
            for k in (n_clusters, 2 * n_clusters)
        )
        gains[left_out] = few - many
        known = gains[np.isfinite(gains)]
        if not -_CLEARLY < paired_t(known) < _MOST_NATS / _NATS_OF_AN_ERROR + _CLEARLY:
            break
    return known
