"""The clusterings that :class:`LinkedClustering` compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from linkwise._shared_work import SharedWork
from linkwise.auto.groups import GroupClassifier, mutual_groups
from linkwise.constraints import Constraints
from linkwise.discriminative.clustering import DiscriminativeClustering
from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.kmeans.variants import PCKMeans
from linkwise.mixture.constrained_em import ConstrainedEM
from linkwise.mixture.ppc import PPC
from linkwise.model_selection.held_out import takes_links
from linkwise.spectral.constrained import ConstrainedSpectralClustering

__all__ = ["CANDIDATES", "EFFORTS", "Candidate", "Effort", "own_candidates", "scouts", "usable"]


#: What a candidate may need: hard links alone, groups of rows under them, or many rows.
_HARD, _GROUPS, _ROWS = "hard", "groups", "rows"

#: Estimators whose fits may share work. A subclass may have a ``fit`` of its own.
_SHARING = (DiscriminativeClustering, ConstrainedSpectralClustering)


class Candidate(NamedTuple):
    """A clustering: ``build(n_clusters, seed)`` makes the estimator.

    ``uses_links`` tells whether it sees links. ``needs`` names what it is for: "hard" links alone, "groups"
    of rows that hard links tell apart, or more "rows" in a cluster than columns. ``gaussian`` tells whether
    it assumes that every cluster is one Gaussian.
    """

    name: str
    uses_links: bool
    build: Callable[[int, int], Any]
    needs: str = ""
    gaussian: bool = False

    def fit(self, X: Any, links: Any, n_clusters: int, seed: int, work: SharedWork | None = None) -> Any:
        """Fit the estimator to rows X (n, d), with the links if it uses them; it has ``labels_`` then.

        ``work`` has what fits to these rows share.
        """
        model = self.build(n_clusters, seed)
        links = links if self.uses_links else None
        if work is not None and type(model) in _SHARING:
            model = model._fit_sharing(work, X, links)
        else:
            model = model.fit(X) if links is None else model.fit(X, constraints=links)
        if not hasattr(model, "labels_"):  # mixtures of scikit-learn
            model.labels_ = model.predict(X)
        return model


class Effort(NamedTuple):
    """How much a choice may cost: rows to choose on, candidates that vote in the end."""

    n_rows: int
    n_members: int


#: What ``effort`` may be.
EFFORTS = {"quick": Effort(500, 5), "balanced": Effort(1000, 12), "thorough": Effort(3000, 18)}


def _spectral(**settings: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: ConstrainedSpectralClustering(k, random_state=seed, **settings)


def _boundaries(**settings: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: DiscriminativeClustering(k, random_state=seed, **settings)


#: Rows that a group must have on average to train classifiers. Disjoint hard pairs give two groups of one row
#: each: a forest of these guesses, and with few links to check it a lucky one may have half of the votes. On
#: 22 sets without it the mean adjusted Rand index was .490 with pairs over 5 % of the rows, .486 with it.
_ROWS_OF_A_GROUP = 2


#: Limit of the table and message entries of a mixture under hard links, instead of 4e8, with which one fit
#: may take eight seconds. As many hard pairs as among 5 and 10 % of the rows of eight sets with 3 to 26
#: clusters, three kinds of mixtures, one draw, 44 fits: mean adjusted Rand index .6245 in 17 processor
#: seconds with 4e8, .6242 in 14.6 with 1e8, .6250 in 11.3 with this, .6242 in 9.1 with 1e7.
_MIXTURE_WORK = 3e7


def _mixture(**settings: Any) -> Callable[[int, int], Any]:
    # Heavier linked rows help a mixture alone where clusters are no Gaussians. Here other candidates find
    # such clusters: with them scores were .560, without .566 (15 % wrong links over 10 % of the rows of the
    # leaderboard, 42 trials).
    def build(n_clusters: int, seed: int) -> PPC:
        model = PPC(n_clusters, random_state=seed, linked_weight=1.0, **settings)
        model._max_work = _MIXTURE_WORK
        return model

    return build


def _classifier(method: str) -> Callable[[int, int], Any]:
    return lambda k, seed: GroupClassifier(k, method, random_state=seed)


#: Candidates by name. The order decides between equals. Four boundaries follow the links more closely than
#: the default of the estimator does (a smaller ``information_weight``). Alone they are no better for it, but
#: votes of both kinds scored .538, with the default for all .535, with a smaller weight for all .534 (half A
#: of the leaderboard and 15 other sets, one draw): a difference within the noise.
CANDIDATES = {
    candidate.name: candidate
    for candidate in (
        Candidate("boundaries, smooth", True, _boundaries(information_weight=20.0)),
        Candidate("boundaries, fine", True, _boundaries(width=0.5, penalty=30.0)),
        Candidate("boundaries, graph", True, _boundaries(features="graph", information_weight=20.0)),
        Candidate("boundaries, whitened", True, _boundaries(whiten=True, penalty=3.0)),
        Candidate("boundaries, quadratic", True, _boundaries(features="quadratic", information_weight=40.0)),
        Candidate("boundaries, linear", True, _boundaries(features="linear", information_weight=20.0)),
        Candidate("spectral, near", True, _spectral(diffusion_time=2.0)),
        Candidate("spectral, far", True, _spectral(diffusion_time=20.0)),
        Candidate("spectral, wide graph", True, _spectral(n_neighbors=20)),
        Candidate("spectral, widest graph", True, _spectral(n_neighbors=40)),
        Candidate("mixture", True, _mixture(), _ROWS, gaussian=True),
        Candidate("mixture, tied", True, _mixture(covariance_type="tied"), gaussian=True),
        Candidate("mixture, diagonal", True, _mixture(covariance_type="diag"), gaussian=True),
        Candidate(
            "k-means under hard links", True, lambda k, seed: COPKMeans(k, n_init=4, random_state=seed), _HARD
        ),
        Candidate("discriminant of groups", True, _classifier("discriminant"), _GROUPS),
        Candidate("forest of groups", True, _classifier("forest"), _GROUPS),
        Candidate("k-means, no links", False, lambda k, seed: PCKMeans(k, n_init=4, random_state=seed)),
        Candidate("mixture, no links", False, _mixture(), _ROWS, gaussian=True),
        Candidate("mixture, tied, no links", False, _mixture(covariance_type="tied"), gaussian=True),
        Candidate("mixture, diagonal, no links", False, _mixture(covariance_type="diag"), gaussian=True),
        Candidate("mixture, not shrunk, no links", False, _mixture(shrinkage=0.0), _ROWS, gaussian=True),
        Candidate("spectral, near, no links", False, _spectral(diffusion_time=2.0)),
        Candidate("spectral, far, no links", False, _spectral(diffusion_time=20.0)),
        Candidate("boundaries, smooth, no links", False, _boundaries()),
        Candidate("boundaries, fine, no links", False, _boundaries(width=0.5, penalty=30.0)),
        Candidate("boundaries, graph, no links", False, _boundaries(features="graph")),
        Candidate("boundaries, whitened, no links", False, _boundaries(whiten=True, penalty=3.0)),
    )
}

#: Candidates that look for the number of clusters before all are compared. Mixtures with links are too slow
#: for ten numbers: exact inference on overlapping links takes seconds where clusters are many.
_SCOUTS = ("spectral, near", "mixture, no links", "mixture, tied, no links")

#: Those of a quick choice.
_QUICK = (
    "boundaries, smooth",
    "boundaries, graph",
    "spectral, near",
    "spectral, far",
    "mixture",
    "mixture, tied",
    "discriminant of groups",
    "k-means, no links",
    "mixture, no links",
)


def usable(
    candidates: Sequence[Candidate], links: Constraints | None, counts: Sequence[int], shape: tuple[int, int]
) -> list[Candidate]:
    """The candidates that links and rows of this shape are fit for; all of them if there is none.

    A cluster with fewer rows than columns has a covariance of shrinkage alone. 13 such clusters of 400 rows
    with 200 columns took 7 s a fit and had an adjusted Rand index of .08, below that of K-means (.21).
    """
    hard = links is not None and links.n_pairs > 0 and bool(np.isinf(links.weights).all())
    group = mutual_groups(links, counts[-1])
    sizes = np.bincount(group[group >= 0])
    groups = len(sizes) > 1 and sizes.sum() >= _ROWS_OF_A_GROUP * len(sizes)
    given = {"": True, _HARD: hard, _GROUPS: groups, _ROWS: shape[0] > counts[0] * shape[1]}
    return [one for one in candidates if given[one.needs]] or list(candidates)


def scouts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that look for K: three that are quick and differ, or the first two."""
    return [one for one in candidates if one.name in _SCOUTS] or list(candidates[:2])


def own_candidates(given: Any, effort: str) -> list[Candidate]:
    """Candidates as the user named them: "auto", names, estimators, or pairs (name, estimator)."""
    if isinstance(given, str) and given == "auto":
        names = _QUICK if effort == "quick" else tuple(CANDIDATES)
        return [CANDIDATES[name] for name in names]
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ValueError(
            f'candidates must be "auto" or a list of names and estimators, got {given!r}; pass for example '
            '["spectral, near", PPC(covariance_type="diag")]'
        )
    found = [_own_candidate(one) for one in given]
    own = [one.name for one in found]
    twice = next((name for name in own if own.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two candidates are named {twice!r}; pass pairs (name, estimator) with other names")
    return found


def _own_candidate(given: Any) -> Candidate:
    if isinstance(given, str):
        if given not in CANDIDATES:
            names = ", ".join(map(repr, CANDIDATES))
            raise ValueError(f"there is no candidate {given!r}; use one of {names}, or an estimator")
        found = CANDIDATES[given]
        # Who names a mixture gets it, however few the rows are.
        return found._replace(needs="") if found.needs == _ROWS else found
    name, estimator = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    clusters = hasattr(estimator, "fit_predict") and not isinstance(estimator, type)
    parameters = estimator.get_params(deep=False) if clusters and hasattr(estimator, "get_params") else {}
    count = next((key for key in ("n_clusters", "n_components") if key in parameters), None)
    if count is None:
        raise ValueError(
            f"candidate {given!r} is no clusterer with n_clusters or n_components; pass an estimator such as "
            "PPC(covariance_type='diag')"
        )

    def build(n_clusters: int, seed: int) -> Any:
        settings = {count: n_clusters}
        if parameters.get("random_state", 0) is None:
            settings["random_state"] = seed
        return clone(estimator).set_params(**settings)

    gaussian = isinstance(estimator, PPC | ConstrainedEM | GaussianMixture)
    return Candidate(str(name or estimator), takes_links(estimator), build, gaussian=gaussian)
