"""Methods of the spectral experiments: ours, the paper's setting, and the methods it competes with."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from experiments.framework.starts import CONVERGED, best_fit, mixture_starts, random_centres
from experiments.framework.summary import Row
from linkwise.constraints import Constraints
from linkwise.kmeans.cop_kmeans import COPKMeans
from linkwise.metrics import rand_score
from linkwise.mixture.ppc import PPC
from linkwise.spectral.constrained import ConstrainedSpectralClustering
from linkwise.spectral.kernels import local_scale
from linkwise.spectral.learning import SpectralLearning

__all__ = [
    "IMAGE_METHODS",
    "TEXT_METHODS",
    "VECTOR_METHODS",
    "Method",
    "compare",
    "draw_links",
    "fitted_labels",
]

#: Certainty of a link of weight 1, as strong as a hard link for the spectral methods. Hard links that are
#: partly wrong would contradict each other.
_CERTAINTY = 0.5 + 0.5 * math.tanh(1.0)


class Method(NamedTuple):
    """An estimator and its settings.

    Attributes
    ----------
    estimator : type
    settings : dict
    width : float or None
        Width of the Gaussian as a multiple of the local scale.
    hard : bool
        Needs links that can all hold.
    from_random_rows : bool
        A mixture that starts as in the experiments of PPC, and is the best of several by its objective.
    """

    estimator: type
    settings: dict[str, Any]
    width: float | None = None
    hard: bool = False
    from_random_rows: bool = False


#: Links and labels as in the paper: hard links are evidence that the labels may break, a certainty counts as
#: it is, and there are as many eigenvectors as clusters; A for two clusters, else B.
_PLAIN = {
    "diffusion_time": 20.0,
    "n_extra_eigenvectors": 0,
    "base_rates": None,
    "keep_hard_links": False,
}
_PAPER = {"softness": 1e-5, **_PLAIN}

#: The paper's algorithms with softened links.
_SOFT = {"affinity": "heat", "softness": 0.1, **_PLAIN}

#: Kamvar's method does not enforce links either.
_KAMVAR = {"keep_hard_links": False}

_OURS = {
    "default": Method(ConstrainedSpectralClustering, {}),
    "softness 0.3": Method(ConstrainedSpectralClustering, {"softness": 0.3}),
    "A heat": Method(ConstrainedSpectralClustering, {"algorithm": "A", **_SOFT}),
    "B heat": Method(ConstrainedSpectralClustering, {"algorithm": "B", **_SOFT}),
}
_RELIABILITY = Method(ConstrainedSpectralClustering, {"softness": 0.3, "reliability_subsets": 5})

#: The competitors without a kernel, as their papers have them, each the best of five starts without links.
#: EM stops at 1e-4, where the labels no longer change: on rings it takes a thousand steps to 1e-6, and the
#: objective is then higher by 1e-5.
_N_STARTS = 5
_COP = Method(COPKMeans, {"init": "k-means++", "n_init": _N_STARTS, "time_limit": 2.0}, hard=True)
_MIXTURE = Method(PPC, {**CONVERGED, "tol": 1e-4}, from_random_rows=True)

#: Widths of the Gaussian, as multiples of the local scale. The paper's is "suitable" and not published; with
#: fewer widths the best one was often the widest or the narrowest.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)

#: Pixels are closer to each other than objects are wide, so images have wider ones.
_IMAGE_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)


def _paper(widths: tuple[float, ...]) -> dict[str, Method]:
    return {
        f"paper x{width:g}": Method(ConstrainedSpectralClustering, {"affinity": "rbf", **_PAPER}, width)
        for width in widths
    }


#: Sets of vectors.
VECTOR_METHODS: dict[str, Method] = {
    **_OURS,
    "reliability": _RELIABILITY,
    **_paper(_WIDTHS),
    **{f"Kamvar x{width:g}": Method(SpectralLearning, _KAMVAR, width) for width in _WIDTHS},
    "COPKMeans": _COP,
    "PPC": _MIXTURE,
}

#: Documents, for which the paper takes the heat kernel.
TEXT_METHODS: dict[str, Method] = {
    **_OURS,
    "reliability": _RELIABILITY,
    "paper": Method(ConstrainedSpectralClustering, {"affinity": "heat", **_PAPER}),
    # The paper does not say whether its softness is relative to the kernel, whose diagonal is small.
    "paper, softness 0.001": Method(
        ConstrainedSpectralClustering, {"affinity": "heat", **_PLAIN, "softness": 1e-3}
    ),
    # Nor how its graph is weighted, on which it depends how far the kernel reaches in a time of 20.
    "paper, time 5": Method(
        ConstrainedSpectralClustering, {"affinity": "heat", **_PAPER, "diffusion_time": 5.0}
    ),
    "Kamvar heat": Method(SpectralLearning, {"affinity": "heat", **_KAMVAR}),
    "Kamvar x0.5": Method(SpectralLearning, _KAMVAR, 0.5),
    "Kamvar x1": Method(SpectralLearning, _KAMVAR, 1.0),
}

#: Images: the paper's Gaussian, and the heat kernel.
IMAGE_METHODS: dict[str, Method] = {
    **_OURS,
    **_paper(_IMAGE_WIDTHS),
    "Kamvar x2": Method(SpectralLearning, _KAMVAR, 2.0),
    "Kamvar heat": Method(SpectralLearning, {"affinity": "heat", **_KAMVAR}),
}


def draw_links(y: NDArray[Any], n_links: int, flip: float, rng: np.random.Generator) -> Constraints:
    """Random pairs with the relation of the truth, a share of them reversed.

    Parameters
    ----------
    y : (n,) ndarray
    n_links : int
    flip : float
        With a positive share links have weight 1, else they are hard.
    rng : Generator

    Returns
    -------
    Constraints
    """
    certainty = _CERTAINTY if flip else None
    return Constraints.sample(y, n_links, overlap=True, flip=flip, certainty=certainty, random_state=rng)


def compare(
    methods: dict[str, Method], X: Any, y: NDArray[Any], links: Constraints | None, seed: int
) -> list[Row]:
    """Rand index, plain and adjusted, of every method with the same links and seed.

    Methods that need hard links are left out if the links are soft.

    Parameters
    ----------
    methods : dict of str to Method
    X : (n, d) array or sparse matrix
    y : (n,) ndarray
    links : Constraints or None
    seed : int

    Returns
    -------
    list of dict
        "rand", "ari".

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.datasets import make_rings
    >>> from experiments.spectral.methods import VECTOR_METHODS, compare, draw_links
    >>> X, y = make_rings(60, random_state=0)
    >>> links = draw_links(y, 60, 0.0, np.random.default_rng(0))
    >>> methods = {name: VECTOR_METHODS[name] for name in ("softness 0.3", "Kamvar x2")}
    >>> ours, kamvar = compare(methods, X, y, links, seed=0)
    >>> ours["rand"] > 0.8 > kamvar["rand"]
    True
    """
    soft = links is not None and bool(np.isfinite(links.weights).any())
    rows = []
    for name, method in methods.items():
        if method.hard and soft:
            continue
        labels = fitted_labels(method, X, len(np.unique(y)), links, seed)
        rows.append({"method": name, "rand": rand_score(y, labels), "ari": adjusted_rand_score(y, labels)})
    return rows


def fitted_labels(
    method: Method, X: Any, n_clusters: int, links: Constraints | None, seed: int
) -> NDArray[np.int64]:
    """Labels of the rows by a method.

    Parameters
    ----------
    method : Method
    X : (n, d) array or sparse matrix
    n_clusters : int
    links : Constraints or None
        An empty set of links counts as none.
    seed : int

    Returns
    -------
    (n,) int64
    """
    given = links if links is not None and links.n_pairs else None
    if method.from_random_rows:
        centres = random_centres(X, n_clusters, _N_STARTS, np.random.default_rng(seed))
        mixture = method.estimator(n_clusters, **method.settings)
        best = best_fit(mixture, X, given, mixture_starts(X, centres), lambda fitted: fitted.lower_bound_)
        found: NDArray[np.int64] = best.labels_
        return found
    settings = dict(method.settings)
    if method.width is not None:
        settings["sigma"] = method.width * local_scale(NearestNeighbors().fit(X))
    model = method.estimator(n_clusters, random_state=seed, **settings)
    with warnings.catch_warnings():
        # Hard links and narrow widths are compared because the papers use them; the warnings say why not to.
        warnings.simplefilter("ignore", UserWarning)
        labels: NDArray[np.int64] = model.fit(X, constraints=given).labels_
    return labels
