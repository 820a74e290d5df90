"""Experiments of Lu & Leen (2007): hard links, noisy links, and how noisy they are."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from linkwise.constraints import Constraints
from linkwise.datasets import load_bundled
from linkwise.metrics import clustering_accuracy, match_clusters
from linkwise.mixture.ppc import PPC

__all__ = ["iris_hard_links", "iris_noise_level", "noisy_links"]

Table = tuple[list[str], list[list[float]]]


def _fit(
    model: PPC | GaussianMixture, X: NDArray[np.float64], links: Constraints | None = None
) -> NDArray[np.int64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(model, PPC):
            return model.fit_predict(X, constraints=links)
        return np.asarray(model.fit_predict(X))


def iris_hard_links(
    n_draws: int = 20, n_init: int = 5, n_pairs: tuple[int, ...] = (0, 10, 20, 40, 60), init: str = "random"
) -> Table:
    """Train and test accuracy on Iris against the number of hard, disjoint pairs (experiment 1).

    Parameters
    ----------
    n_draws : int
        Splits into 90 % training and 10 % test rows; links are drawn among the training rows.
    n_init : int
        Starts of both methods.
    n_pairs : tuple of int
    init : str
        ``init_params`` of PPC. ``random`` is comparable with the paper; the mixture without links uses its
        own random starts.

    Returns
    -------
    head, rows
        Pairs, then train and test accuracy of PPC and of the mixture without links. Clusters are matched to
        classes on the training rows.

    Examples
    --------
    >>> from linkwise.experiments import iris_hard_links
    >>> head, rows = iris_hard_links(n_draws=1, n_init=1, n_pairs=(10,))
    >>> head
    ['pairs', 'ppc train', 'ppc test', 'gmm train', 'gmm test']
    """
    X, y = load_bundled("iris")
    rows = []
    for pairs in n_pairs:
        scores = []
        for seed in range(n_draws):
            X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=seed)
            links = Constraints.sample(y_train, pairs, random_state=seed)
            row: list[float] = []
            for model, known in (
                (PPC(3, n_init=n_init, init_params=init, random_state=seed), links),
                (GaussianMixture(3, n_init=n_init, init_params="random_from_data", random_state=seed), None),
            ):
                matching = match_clusters(y_train, _fit(model, X_train, known))
                row += [matching.accuracy, matching.score(y_test, model.predict(X_test))]
            scores.append(row)
        rows.append([pairs, *np.mean(scores, axis=0).tolist()])
    return ["pairs", "ppc train", "ppc test", "gmm train", "gmm test"], rows


def noisy_links(
    data: str = "iris",
    covariance_type: str = "full",
    n_draws: int = 20,
    n_init: int = 10,
    init: str = "kmeans",
    flips: tuple[float, ...] = (0.15, 0.3),
) -> Table:
    """Accuracy with half of the points in pairs of which a share is wrong (experiment 2).

    Parameters
    ----------
    data : str
        A bundled data set; its classes are the truth.
    covariance_type : str
    n_draws : int
    n_init : int
        Starts of every method; the best by its own likelihood is kept.
    init : str
        ``init_params``. With many random starts the highest likelihood is a spurious one, of a few rows that
        lie in a plane: the mixture without links then falls to .76 on Iris (best of 40).
    flips : tuple of float
        Share of wrong pairs, known to the soft method.

    Returns
    -------
    head, rows
        Flip rate, accuracy without links, with soft links and with hard links.

    Examples
    --------
    >>> from linkwise.experiments import noisy_links
    >>> head, rows = noisy_links(n_draws=1, n_init=1, flips=(0.15,))
    >>> head
    ['flip', 'gmm', 'soft ppc', 'hard ppc']
    """
    X, y = load_bundled(data)
    n_classes, n_pairs = len(np.unique(y)), len(y) // 4
    model = PPC(n_classes, covariance_type=covariance_type, n_init=n_init, init_params=init)
    rows = []
    for flip in flips:
        scores = []
        for seed in range(n_draws):
            soft = Constraints.sample(y, n_pairs, flip=flip, certainty=1 - flip, random_state=seed)
            hard = Constraints(len(y), soft.must_link, soft.cannot_link)
            model.set_params(random_state=seed)
            labels = [_fit(model, X, links) for links in (None, soft, hard)]
            scores.append([clustering_accuracy(y, found) for found in labels])
        rows.append([flip, *np.mean(scores, axis=0).tolist()])
    return ["flip", "gmm", "soft ppc", "hard ppc"], rows


def iris_noise_level(
    n_draws: int = 10, n_init: int = 10, flips: tuple[float, ...] = (0.0, 0.15, 0.3)
) -> Table:
    """Flip rate learned from 37 pairs on Iris, beside the rate that was realised.

    Parameters
    ----------
    n_draws : int
    n_init : int
    flips : tuple of float

    Returns
    -------
    head, rows
        Flip rate of the draw, share of pairs actually wrong, and what ``learn_noise`` estimates; means.

    Examples
    --------
    >>> from linkwise.experiments import iris_noise_level
    >>> head, rows = iris_noise_level(n_draws=1, n_init=1, flips=(0.0,))
    >>> head
    ['flip', 'realised', 'learned']
    """
    X, y = load_bundled("iris")
    rows = []
    for flip in flips:
        found = []
        for seed in range(n_draws):
            links = Constraints.sample(y, 37, flip=flip, certainty=0.8, random_state=seed)
            model = PPC(3, n_init=n_init, learn_noise=True, random_state=seed)
            _fit(model, X, links)
            found.append([links.violations(y).mean(), model.noise_])
        rows.append([flip, *np.mean(found, axis=0).tolist()])
    return ["flip", "realised", "learned"], rows
