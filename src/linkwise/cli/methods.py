"""The clustering methods of the command line: how each is built, and which one ``auto`` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = [
    "METHODS",
    "Covariance",
    "Method",
    "MethodName",
    "Settings",
    "choose_method",
    "hardened",
    "has_soft",
    "probabilities_of",
]


class MethodName(StrEnum):
    """What ``--method`` may be."""

    auto = "auto"
    ppc = "ppc"
    cem = "cem"
    hmrf = "hmrf"
    cop = "cop"
    spectral = "spectral"


class Covariance(StrEnum):
    """What ``--covariance`` may be."""

    full = "full"
    tied = "tied"
    diag = "diag"
    spherical = "spherical"


@dataclass(frozen=True)
class Settings:
    """What the user may choose about a method.

    Attributes
    ----------
    n_clusters : int
    covariance : str
        Of the mixtures.
    n_init : int
    seed : int
    soft : bool
        Whether some links are soft.
    """

    n_clusters: int
    covariance: str = "full"
    n_init: int = 10
    seed: int = 0
    soft: bool = False


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    title : str
    build : callable of Settings
        Makes the estimator; imports it only then.
    only_hard : bool
        Whether soft links are refused.
    """

    title: str
    build: Callable[[Settings], Any]
    only_hard: bool = False


def _ppc(settings: Settings) -> Any:
    from linkwise.mixture.ppc import PPC

    return PPC(
        settings.n_clusters,
        covariance_type=settings.covariance,
        n_init=settings.n_init,
        random_state=settings.seed,
    )


def _cem(settings: Settings) -> Any:
    from linkwise.mixture.constrained_em import ConstrainedEM

    return ConstrainedEM(
        settings.n_clusters,
        # Chunklets are made of hard must-links.
        sampling="points" if settings.soft else "chunklets",
        covariance_type=settings.covariance,
        n_init=settings.n_init,
        random_state=settings.seed,
    )


def _hmrf(settings: Settings) -> Any:
    from linkwise.kmeans.hmrf_kmeans import HMRFKMeans

    return HMRFKMeans(settings.n_clusters, n_init=settings.n_init, random_state=settings.seed)


def _cop(settings: Settings) -> Any:
    from linkwise.kmeans.cop_kmeans import COPKMeans

    return COPKMeans(settings.n_clusters, n_init=settings.n_init, random_state=settings.seed)


def _spectral(settings: Settings) -> Any:
    from linkwise.spectral.constrained import ConstrainedSpectralClustering

    return ConstrainedSpectralClustering(
        settings.n_clusters, n_init=settings.n_init, random_state=settings.seed
    )


METHODS = {
    "ppc": Method("Gaussian mixture, PPC", _ppc),
    "cem": Method("Gaussian mixture, constrained EM", _cem),
    "hmrf": Method("k-means with a learned metric", _hmrf),
    "cop": Method("k-means, every link kept", _cop, only_hard=True),
    "spectral": Method("spectral clustering", _spectral),
}


#: Method of the command line for each estimator that can be recommended.
_METHOD_OF = {
    "PPC": "ppc",
    "ConstrainedEM": "cem",
    "HMRFKMeans": "hmrf",
    "COPKMeans": "cop",
    "ConstrainedSpectralClustering": "spectral",
}


def choose_method(n_rows: int, n_features: int, n_clusters: int, links: Constraints) -> tuple[str, str]:
    """The method ``auto`` stands for, and why: see ``recommend_method``.

    Parameters
    ----------
    n_rows, n_features, n_clusters : int
    links : Constraints
        Soft ones are expected to be wrong as often as their weights say.

    Returns
    -------
    name, reason : str

    Examples
    --------
    >>> from linkwise import Constraints
    >>> from linkwise.cli.methods import choose_method
    >>> choose_method(150, 4, 3, Constraints(150, [(0, 1)]))
    ('ppc', 'hard, few links')
    """
    from linkwise.model_selection.recommendation import recommend_method

    strength = np.abs(links.weights)
    # The certainty of a pair of weight w is 1 / (1 + exp(-2 w)): a hard link is never wrong.
    wrong = expit(-2.0 * strength)
    chosen = recommend_method(
        n_rows,
        n_features,
        links.n_pairs,
        hard=not has_soft(links),
        n_clusters=n_clusters,
        wrong_share=float(wrong.sum() / max(1, links.n_pairs)),
    )
    return _METHOD_OF[chosen.estimator], chosen.reason


def has_soft(links: Constraints) -> bool:
    """Whether some links are soft."""
    return bool(np.isfinite(links.weights).any())


def hardened(links: Constraints) -> Constraints:
    """The same links, all of them hard."""
    from linkwise.constraints import Constraints

    return Constraints(links.n_samples, links.must_link, links.cannot_link)


def probabilities_of(model: Any, X: Any) -> NDArray[np.floating] | None:
    """Probabilities of the clusters for the training rows, (n, K); None where the method has none."""
    if hasattr(model, "responsibilities_"):
        return np.asarray(model.responsibilities_)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    return None
