"""Other packages that cluster with links, each called as its own documentation shows.

Nothing of linkwise is imported, and nothing of a peer before it is called: the file also runs as a script, in
an environment that has the peer alone. It then answers every line of JSON on its input (the name of a peer,
and data and links if it is to be fitted) by a line with version, labels and seconds, or with the error.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["PEER_FITS", "Links", "PeerFit", "fit_peer"]

#: Pairs of rows.
Links = list[tuple[int, int]]

#: Starts of scikit-learn's k-means after a metric was learnt, as many as the leaderboard gives it alone.
N_INIT = 10


class PeerFit(NamedTuple):
    """An algorithm of another package.

    Attributes
    ----------
    package, module : str
        Name on PyPI, name to import.
    algorithm : str
    links : {"soft", "hard"}
        Whether the algorithm may break links at a price, or must keep all.
    call : callable
        ``call(algorithm, X, must_link, cannot_link, n_clusters, seed)`` gives labels of shape (n,).
    """

    package: str
    module: str
    algorithm: str
    links: str
    call: Callable[[str, Any, Links, Links, int, int], Any]


def fit_peer(name: str, X: Any, must_link: Links, cannot_link: Links, n_clusters: int, seed: int) -> Any:
    """Labels that a peer gives the rows.

    Parameters
    ----------
    name : str
        A name of :data:`PEER_FITS`.
    X : (n, d) float64
    must_link, cannot_link : list of (int, int)
    n_clusters, seed : int
        Peers have no argument for the seed: the global generators of numpy and Python are set.

    Returns
    -------
    (n,) int64

    Examples
    --------
    >>> from experiments.leaderboard.peer_fits import PEER_FITS
    >>> PEER_FITS["PCKMeans (active-semi-supervised-clustering)"].links
    'soft'
    """
    peer = PEER_FITS[name]
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the only way to seed them)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = peer.call(peer.algorithm, X, must_link, cannot_link, n_clusters, seed)
    return np.asarray(labels, dtype=np.int64)


def _active(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    module = importlib.import_module("active_semi_clustering.semi_supervised.pairwise_constraints")
    return getattr(module, algorithm)(n_clusters=k).fit(X, ml=must, cl=cannot).labels_


def _metric(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    """A metric learnt from the links, then scikit-learn's k-means in it."""
    from sklearn.cluster import KMeans

    learner = getattr(importlib.import_module("metric_learn"), algorithm.partition(" ")[0])
    if learner.__name__ == "RCA":
        metric = learner().fit(X, _chunks(len(X), must))
    else:
        signs = np.repeat([1, -1], [len(must), len(cannot)])
        metric = learner(random_state=seed).fit(X[np.array([*must, *cannot])], signs)
    return KMeans(k, n_init=N_INIT, random_state=seed).fit_predict(metric.transform(X))


def _propagation(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    module = importlib.import_module("spectralcluster")
    options = module.ConstraintOptions(module.ConstraintName.ConstraintPropagation, True)
    model = module.SpectralClusterer(
        min_clusters=k, max_clusters=k, laplacian_type=module.LaplacianType.GraphCut, row_wise_renorm=True,
        constraint_options=options,
    )  # fmt: skip
    return model.predict(X, _matrix(len(X), must, cannot))


def _linkage(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    from scipy.cluster.hierarchy import fcluster
    from scipy.spatial.distance import pdist

    tree = importlib.import_module("constrained_linkage").constrained_linkage(
        pdist(X), "average", constraint_matrix=-_matrix(len(X), must, cannot), normalize_distances=True
    )
    return fcluster(tree, k, "maxclust")


def _copy_of_cop(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    """It gives up at the first row without a cluster; its own command tries ten times."""
    cop_kmeans = importlib.import_module("htcopkmeans.cop_kmeans").cop_kmeans
    for _ in range(10):
        labels, _centres = cop_kmeans(X, k, must, cannot)
        if labels is not None:
            return labels
    raise ValueError("no clustering found in ten runs")


def _gemini(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    module = importlib.import_module("gemclus")
    model = getattr(module.linear, algorithm)(n_clusters=k, random_state=seed)
    return module.add_mlcl_constraint(model, np.array(must), np.array(cannot)).fit_predict(X)


def _clustlib(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    place = {"COPKMeans": "kmean.copkmeans", "LCVQE": "fuzzy.lcvqe", "BRKGA": "gac.brkga"}[algorithm]
    estimator = getattr(importlib.import_module(f"clustlib.{place}"), algorithm)
    model = estimator(constraints=_matrix(len(X), must, cannot), n_clusters=k)
    model.fit(X)
    return model.labels_


def _interactive(algorithm: str, X: Any, must: Links, cannot: Links, k: int, seed: int) -> Any:
    from scipy.sparse import csr_matrix

    root = "cognitivefactory.interactive_clustering"
    make = importlib.import_module(f"{root}.clustering.factory").clustering_factory
    manager = importlib.import_module(f"{root}.constraints.factory").managing_factory(
        [str(row) for row in range(len(X))]
    )
    for pairs, kind in ((must, "MUST_LINK"), (cannot, "CANNOT_LINK")):
        for one, other in pairs:
            manager.add_constraint(str(one), str(other), kind)
    vectors = {str(row): csr_matrix(values) for row, values in enumerate(X)}
    found = make(algorithm, random_seed=seed).cluster(manager, vectors, nb_clusters=k)
    return [found[str(row)] for row in range(len(X))]


def _matrix(n: int, must: Links, cannot: Links) -> Any:
    """The (n, n) matrix with 1 at must-links and -1 at cannot-links."""
    matrix = np.zeros((n, n))
    for pairs, sign in ((must, 1.0), (cannot, -1.0)):
        for one, other in pairs:
            matrix[one, other] = matrix[other, one] = sign
    return matrix


def _chunks(n: int, must: Links) -> Any:
    """Number of the set of must-linked rows that a row is in, -1 for rows without must-links."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    pairs = np.array(must, dtype=int).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(n, n))
    component = connected_components(graph, directed=False)[1]
    chunks = np.full(n, -1)
    rows = np.unique(pairs)
    chunks[rows] = np.unique(component[rows], return_inverse=True)[1]
    return chunks


def _peers() -> list[PeerFit]:
    active, metric = "active-semi-supervised-clustering", "metric-learn"
    peers = [
        PeerFit(active, "active_semi_clustering", name, "soft", _active)
        for name in ("PCKMeans", "MPCKMeans", "MPCKMeansMF", "RCAKMeans", "MKMeans")
    ]
    peers.append(PeerFit(active, "active_semi_clustering", "COPKMeans", "hard", _active))
    peers += [
        PeerFit(metric, "metric_learn", f"{name} + KMeans", "soft", _metric)
        for name in ("ITML", "MMC", "SDML", "RCA")
    ]
    peers += [
        PeerFit("spectralcluster", "spectralcluster", "SpectralClusterer", "soft", _propagation),
        PeerFit("constrained-linkage", "constrained_linkage", "average linkage", "soft", _linkage),
        PeerFit("htcopkmeans", "htcopkmeans", "cop_kmeans", "hard", _copy_of_cop),
        PeerFit("gemclus", "gemclus", "LinearMMD", "soft", _gemini),
    ]
    peers += [
        PeerFit("clustlib", "clustlib", name, kind, _clustlib)
        for name, kind in (("COPKMeans", "hard"), ("LCVQE", "soft"), ("BRKGA", "soft"))
    ]
    interactive = "cognitivefactory-interactive-clustering"
    peers += [
        PeerFit(interactive, "cognitivefactory.interactive_clustering", name, "hard", _interactive)
        for name in ("kmeans", "hierarchical", "spectral")
    ]
    return peers


#: Every algorithm by "algorithm (package)".
PEER_FITS: dict[str, PeerFit] = {f"{peer.algorithm} ({peer.package})": peer for peer in _peers()}


def main() -> None:
    """Answer every line of the standard input; what peers print goes to the standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    """Version of the peer's package and, if the job has data, labels; or what went wrong."""
    peer = PEER_FITS[job["name"]]
    answer: dict[str, Any] = {}
    start = time.perf_counter()
    try:
        importlib.import_module(peer.module)
        answer["version"] = _version(peer.package)
        if "X" in job:
            must_link, cannot_link = [
                [(one, other) for one, other in job[kind]] for kind in ("must_link", "cannot_link")
            ]
            X = np.array(job["X"])
            start = time.perf_counter()
            labels = fit_peer(job["name"], X, must_link, cannot_link, job["n_clusters"], job["seed"])
            answer["labels"] = labels.tolist()
    except ModuleNotFoundError as error:
        missing = peer.module.split(".")[0] == (error.name or "").split(".")[0]
        answer |= {"missing": peer.package} if missing else {"error": _text(error)}
    except Exception as error:
        answer["error"] = _text(error)
    answer["seconds"] = time.perf_counter() - start
    return answer


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _text(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


if __name__ == "__main__":
    main()
