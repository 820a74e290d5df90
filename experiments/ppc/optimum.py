"""Where the objective of soft PPC is highest: at the classes, or where the mixture without links is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.framework.experiment import Experiment, Size
from experiments.framework.starts import (
    CONVERGED,
    N_STARTS,
    RIDGE,
    Start,
    best_fit,
    mixture_starts,
    random_centres,
)
from experiments.framework.summary import Row
from experiments.ppc.data import SETS, load_ppc_set
from linkwise.constraints import Constraints
from linkwise.metrics import clustering_accuracy
from linkwise.mixture.ppc import PPC

__all__ = ["EXPERIMENTS", "class_start", "ppc_soft_optimum"]


def class_start(X: NDArray[np.float64], y: NDArray[np.int64]) -> Start:
    """The start of a mixture at the classes themselves: their shares, means and covariances.

    Parameters
    ----------
    X : (n, d)
    y : (n,) int64

    Returns
    -------
    dict
        As of :func:`experiments.framework.starts.mixture_starts`.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.ppc.optimum import class_start
    >>> X = np.array([[0.0], [2.0], [8.0], [12.0]])
    >>> class_start(X, np.array([0, 0, 1, 1]))["means_init"].ravel()
    array([ 1., 10.])
    """
    ridge = RIDGE * float(X.var(axis=0).mean())
    n_features = X.shape[1]
    parts = [X[y == label] for label in range(int(y.max()) + 1)]
    covariances = [np.cov(part.T, bias=True).reshape(n_features, n_features) for part in parts]
    return {
        "weights_init": np.array([len(part) for part in parts]) / len(X),
        "means_init": np.array([part.mean(axis=0) for part in parts]),
        "precisions_init": np.array([np.linalg.inv(c + ridge * np.eye(n_features)) for c in covariances]),
        "reg_covar": ridge,
    }


def ppc_soft_optimum(draw: int, data: str, flip: float) -> list[Row]:
    """Soft PPC from the classes themselves, and from where the mixture without links ends.

    Data and links of ``ppc_noisy_links``. If the objective is higher at the end of the run from the classes,
    more starts would find better labels; if it is lower, no start can: the mixture then explains the data so
    much better in another way that links of this certainty do not make up for it. Such a start is possible
    only if the classes are known.

    Parameters
    ----------
    draw : int
    data : str
        One of :data:`experiments.ppc.data.SETS`.
    flip : float

    Returns
    -------
    list of dict
        For both starts "accuracy" and "objective", the penalised log-likelihood of all rows.
    """
    X, y = load_ppc_set(data, draw)
    rng = np.random.default_rng([draw, SETS.index(data), round(1000 * flip)])
    links = Constraints.sample(y, len(y) // 4, flip=flip, certainty=1.0 - flip, random_state=rng)
    starts = mixture_starts(X, random_centres(X, int(y.max()) + 1, N_STARTS, rng))
    model = PPC(int(y.max()) + 1, **CONVERGED)
    plain = best_fit(model, X, None, starts, _bound)
    there = {
        "weights_init": plain.weights_,
        "means_init": plain.means_,
        "precisions_init": np.linalg.inv(plain.covariances_),
        "reg_covar": starts[0]["reg_covar"],
    }
    fitted = {
        "from the mixture without links": best_fit(model, X, links, [there], _bound),
        "from the classes": best_fit(model, X, links, [class_start(X, y)], _bound),
    }
    return [
        {
            "method": method,
            "accuracy": clustering_accuracy(y, fit.labels_),
            "objective": len(X) * _bound(fit),
        }
        for method, fit in fitted.items()
    ]


def _bound(fitted: PPC) -> float:
    return float(fitted.lower_bound_)


_SETTINGS = [{"data": data, "flip": flip} for data in SETS for flip in (0.15, 0.3)]

EXPERIMENTS = (
    Experiment(
        "ppc_soft_optimum",
        "Where soft PPC ends from the classes, and from the mixture without links",
        "beyond the papers: why soft links change little in PPC's experiment 2",
        ppc_soft_optimum,
        quick=Size(_SETTINGS, 2),
        full=Size(_SETTINGS, 12),
        measures=("accuracy", "objective"),
        reference="from the mixture without links",
    ),
)
