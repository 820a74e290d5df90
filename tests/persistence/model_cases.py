"""Fitted models of every estimator that can be stored, under every setting that changes what is stored."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from sklearn.datasets import load_iris

from linkwise import (
    CPPC,
    PPC,
    ConstrainedEM,
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    DiscriminativeClustering,
    HMRFKMeans,
    LinkedClustering,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)

MEMBERS = ("mixture, tied", "spectral, near", "k-means, no links")
ONCE = {"random_state": 0, "n_init": 1}

CASES = {
    **{f"ppc-{c}": PPC(3, covariance_type=c, **ONCE) for c in ("full", "tied", "diag", "spherical")},
    "ppc-parts": PPC(2, components_per_cluster=2, covariance_type="diag", **ONCE),
    "ppc-noise": PPC(3, learn_noise=True, **ONCE),
    "ppc-noise-kind": PPC(3, learn_noise="kind", covariance_type="tied", **ONCE),
    "ppc-noise-source": PPC(3, learn_noise="source", covariance_type="spherical", **ONCE),
    "ppc-gibbs": PPC(2, inference="gibbs", covariance_type="diag", max_iter=5, **ONCE),
    "ppc-float32": PPC(2, covariance_type="diag", **ONCE),
    "em-chunklets": ConstrainedEM(3, covariance_type="diag", **ONCE),
    "em-points": ConstrainedEM(2, sampling="points", covariance_type="tied", **ONCE),
    "cppc-classes": CPPC(covariance_type="tied", **ONCE),
    "cppc-more": CPPC(4, covariance_type="diag", **ONCE),
    "cppc-sampled": CPPC(3, covariance_type="spherical", mixing="sampled", max_iter=20, **ONCE),
    **{
        f"hmrf-{distortion}-{metric}": HMRFKMeans(3, distortion=distortion, metric=metric, **ONCE)
        for distortion in ("euclidean", "cosine", "kl", "i_divergence")
        for metric in (None, "diag", "full", "per_cluster")
        if distortion == "euclidean" or metric in (None, "diag")
    },
    "hmrf-gap": HMRFKMeans(3, metric=None, compute_gap=True, weight=(1.0, 2.0), **ONCE),
    "pck": PCKMeans(3, **ONCE),
    "mpck": MPCKMeans(3, **ONCE),
    "cop": COPKMeans(3, **ONCE),
    **{
        f"spectral-{solver}": ConstrainedSpectralClustering(
            3, solver=solver, algorithm="A", n_landmarks=30, n_basis=8, **ONCE
        )
        for solver in ("dense", "landmark", "basis", "signed_laplacian")
    },
    "spectral-auto": ConstrainedSpectralClustering(3, n_neighbors=5, reliability_subsets=2, **ONCE),
    "spectral-learning": SpectralLearning(2, affinity="heat", n_neighbors=5, **ONCE),
    **{
        f"discriminative-{kind}": DiscriminativeClustering(3, features=kind, random_state=0)
        for kind in ("linear", "quadratic", "rbf", "graph")
    },
    "discriminative-whitened": DiscriminativeClustering(3, whiten=True, random_state=0),
    "linked": LinkedClustering(3, candidates=list(MEMBERS), cv=2, effort="quick", random_state=0),
    "linked-one": LinkedClustering(3, candidates=["mixture, tied"], cv=2, effort="quick", random_state=0),
    "linked-labels": LinkedClustering(candidates=list(MEMBERS), cv=2, effort="quick", random_state=0),
    **{
        f"linked-{one}": LinkedClustering(candidates=[f"{one} of groups"], cv=2, random_state=0)
        for one in ("discriminant", "forest")
    },
    "ppc-labels": PPC(n_clusters=4, covariance_type="diag", **ONCE),
    "em-labels": ConstrainedEM(n_clusters=3, covariance_type="diag", **ONCE),
    "hmrf-labels": HMRFKMeans(3, **ONCE),
    "cop-labels": COPKMeans(4, **ONCE),
    "spectral-labels": ConstrainedSpectralClustering(3, n_neighbors=5, **ONCE),
    "spectral-learning-labels": SpectralLearning(3, affinity="heat", n_neighbors=5, **ONCE),
}

#: Fitted to links that were built from labels.
NAMED = {
    "linked-labels",
    "linked-discriminant",
    "linked-forest",
    "ppc-labels",
    "em-labels",
    "hmrf-labels",
    "cop-labels",
    "spectral-labels",
    "spectral-learning-labels",
}


def data():
    """Every third flower, and its species."""
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


@functools.cache
def fitted(name):
    """The case with this name, fitted with links where it takes them."""
    model = CASES[name]
    X, y = data()
    if name == "ppc-float32":
        X = X.astype(np.float32)
    links = Constraints.sample(y, 12, random_state=0)
    soft = not isinstance(model, COPKMeans | ConstrainedEM)
    if soft:
        source = ["ann", "ben"] * 6
        links = Constraints(len(y), links.must_link, links.cannot_link, weight=1.0, source=source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, CPPC):
            names = np.array(["setosa", "versicolor", "virginica"])[y]
            return model.fit(X, names if name != "cppc-more" else y)
        if name in NAMED:
            names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
            names[np.arange(len(y)) % 4 > 0] = None
            links = Constraints.from_labels(names)
        return model.fit(X, constraints=links)
