"""Recommend an estimator to try first, from what is known before fitting."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Recommendation", "recommend_method"]

#: Links per row between the measured 0.05 and 0.15.
_MANY_LINKS = 0.1

#: Share of wrong links between the measured 0 and 0.1.
_DOUBTFUL = 0.05

#: Kind and number of the links, and the estimator that half A of the leaderboard chooses.
CHOICES = {
    "hard, many": "ConstrainedEM",
    "hard, few": "PPC",
    "soft, sure, many": "ConstrainedSpectralClustering",
    "soft, sure, few": "HMRFKMeans",
    "soft, doubtful, many": "HMRFKMeans",
    "soft, doubtful, few": "HMRFKMeans",
}

#: What replaces a mixture whose covariances would be singular.
_INSTEAD_OF_MIXTURES = {"hard": "COPKMeans", "soft": "HMRFKMeans"}


class Recommendation(NamedTuple):
    """Name of an estimator of linkwise, and why it is the one to try first."""

    estimator: str
    reason: str


def recommend_method(
    n_samples: int,
    n_features: int,
    n_links: int,
    hard: bool,
    *,
    n_clusters: int = 2,
    wrong_share: float = 0.0,
) -> Recommendation:
    """The estimator to try first; ``linkwise fit --method auto`` takes it.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data.
    n_links : int
    hard : bool
        Whether every link must hold.
    n_clusters : int, default=2
    wrong_share : float, default=0.0
        Share of the links that may be wrong, if ``hard`` is False.

    Returns
    -------
    Recommendation

    Raises
    ------
    ValueError
        For counts that are not positive, and a share outside [0, 0.5].

    Notes
    -----
    In each situation, half A of the leaderboard chooses: the highest mean adjusted Rand index on rows without
    links, among estimators with their defaults that gain on average and that links make worse (by more than
    0.01) in at most a fifth of the settings. The page "Leaderboard" shows the choice beside what it gains on
    half B, which had no part in it: with many links that are right the choice holds there, otherwise it gains
    nothing. Few links are fewer than 0.1 per row, doubtful ones wrong in more than 5 % of the cases.

    Two rules are not measured. Below ``n_clusters * (n_features + 1)`` rows the covariances of a mixture
    would be singular, and a k-means is named instead. Without links there is nothing to listen to, and the
    plain mixture is named.

    Examples
    --------
    >>> from linkwise.model_selection.recommendation import recommend_method
    >>> recommend_method(1000, 5, 300, hard=True)
    Recommendation(estimator='ConstrainedEM', reason='hard, many links')
    >>> recommend_method(1000, 300, 300, hard=True, n_clusters=10).reason
    '1000 rows are too few for full covariances of 300 features in 10 clusters'
    """
    for name, count in (("n_samples", n_samples), ("n_features", n_features), ("n_clusters", n_clusters)):
        if count < 1:
            raise ValueError(f"{name} is {count}; it must be at least 1: correct it")
    if n_links < 0:
        raise ValueError(f"n_links is {n_links}; it must not be negative: pass 0 or more")
    if not 0.0 <= wrong_share <= 0.5:
        raise ValueError(f"wrong_share is {wrong_share}; it must be between 0 and 0.5: correct it")
    kind = "hard" if hard else "soft"
    if n_links == 0:
        estimator, reason = "PPC", "no links"
    else:
        doubt = "" if hard else ", doubtful" if wrong_share > _DOUBTFUL else ", sure"
        situation = f"{kind}{doubt}, {'many' if n_links >= _MANY_LINKS * n_samples else 'few'}"
        estimator, reason = CHOICES[situation], f"{situation} links"
    if estimator in ("PPC", "ConstrainedEM") and n_samples < n_clusters * (n_features + 1):
        rows = f"{n_samples} rows are too few for full covariances of {n_features} features"
        return Recommendation(_INSTEAD_OF_MIXTURES[kind], f"{rows} in {n_clusters} clusters")
    return Recommendation(estimator, reason)
