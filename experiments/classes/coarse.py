"""Names that are too coarse, too fine, or right: does CPPC find the classes that are known?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from experiments.classes.tasks import (
    SETS,
    coarse_names,
    doubled_names,
    load_set,
    may_fall_apart,
    single_gaussians,
)
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from linkwise.metrics import contingency_table
from linkwise.mixture.cppc import CPPC

__all__ = [
    "AS_THEY_ARE", "AUTO", "BELIEFS", "BY_HAND", "CRITERIA", "EXPERIMENTS", "KINDS", "by_hand",
    "coarse_classes", "coarse_criteria", "distinct_classes", "doubled_classes", "nothing_to_do",
]  # fmt: skip

AS_THEY_ARE = "the names as they are"
BY_HAND = "each class by hand, BIC"
AUTO = "CPPC"
CRITERIA = ("bic", "icl", "cbic")
#: Beliefs about two names of one class: told that they may be one, and that they are two.
BELIEFS = (0.0, 0.1, 0.5, 1.0, -0.5, -1.0)
#: Those that let the data decide.
MAY_BE_ONE = (0.0, 0.1, 0.5)
#: What the rows of ``nothing_to_do`` are.
KINDS = ("true classes", "single Gaussians")
#: A method is worse than the names if its index is lower by more than this.
_MARGIN = 0.005
#: A class is whole if one cluster has this share of its rows.
_WHOLE = 0.95


def by_hand(X: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """What one would do without this library: a mixture for each class, with 1 to 4 parts as BIC says.

    Parameters
    ----------
    X : (n, d) float64
    y : (n,) int64
    seed : int

    Returns
    -------
    (n,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.coarse import by_hand
    >>> X = np.random.default_rng(0).normal(size=(150, 2)) + np.repeat([[0], [9], [0]], 50, axis=0)
    >>> np.bincount(by_hand(X, np.repeat([0, 0, 1], 50), 0)).tolist()
    [50, 50, 50]
    """
    labels = np.empty(len(y), dtype=np.int64)
    n_found = 0
    for name in np.unique(y):
        rows = X[y == name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start need not have converged
            models = [
                GaussianMixture(k, reg_covar=1e-3, n_init=3, random_state=seed).fit(rows)
                for k in range(1, min(4, len(rows)) + 1)
            ]
        best = min(models, key=lambda model: model.bic(rows))
        _, parts = np.unique(best.predict(rows), return_inverse=True)
        labels[y == name] = n_found + parts
        n_found += int(parts.max()) + 1
    return labels


def coarse_classes(draw: int, set: str, n_rows: int = 1500) -> list[Row]:
    """True classes found inside names that each cover two of them.

    Pairs of true classes get one name at random, a draw is a pairing. At most ten classes and 1500 rows, ten
    principal components of standardised features. Beliefs: -1 between names ("apart"), .1 within ("may be
    several"). CPPC has its defaults, so it finds the number of clusters. By hand: scikit-learn's
    GaussianMixture for each name, full covariances, 1 to 4 parts by BIC. The least stability of parts that
    CPPC requires, .85, was chosen on every other set (half A); the rest (half B) was not used for it.

    Parameters
    ----------
    draw : int
    set : str
        One of :data:`experiments.classes.tasks.SETS`.
    n_rows : int

    Returns
    -------
    list of dict
        For the names, the mixtures by hand and CPPC: "ari", the adjusted Rand index to the true classes;
        "clusters"; "strayed", the share of rows in clusters of another name; "below", whether the index is
        below that of the names by more than .005.

    Examples
    --------
    >>> from experiments.classes.coarse import coarse_classes
    >>> names, hand, found = coarse_classes(0, "wine")
    >>> bool(found["ari"] > names["ari"]), found["clusters"], found["strayed"]
    (True, 3, 0.0)
    """
    X, truth = load_set(set, n_rows)
    names = coarse_names(truth, draw)
    model = _fit(CPPC(beliefs=may_fall_apart(int(names.max()) + 1), random_state=draw), X, names)
    return _rows(truth, names, {BY_HAND: by_hand(X, names, draw), AUTO: model.labels_})


def coarse_criteria(draw: int, set: str, n_rows: int = 800) -> list[Row]:
    """The tasks of ``coarse_classes`` with 800 rows: the number of clusters by evidence, or by a criterion.

    CPPC by itself, and CPPC at each K from the number L of names to 3 L, of which BIC, ICL and cBIC choose.

    Parameters
    ----------
    draw : int
    set : str
    n_rows : int

    Returns
    -------
    list of dict
        As in :func:`coarse_classes`, for the names, CPPC, every criterion, and the K that is best in truth.
    """
    X, truth = load_set(set, n_rows)
    names = coarse_names(truth, draw)
    n_names = int(names.max()) + 1
    beliefs = may_fall_apart(n_names)
    found = {AUTO: _fit(CPPC(beliefs=beliefs, random_state=draw), X, names).labels_}
    fits = [
        _fit(CPPC(k, beliefs=beliefs, random_state=draw), X, names) for k in range(n_names, 3 * n_names + 1)
    ]
    for criterion in CRITERIA:
        best = min(fits, key=lambda fit: fit.criteria_[criterion])
        found[f"K by {criterion}"] = best.labels_
    found["best K, if known"] = max(fits, key=lambda fit: adjusted_rand_score(truth, fit.labels_)).labels_
    return _rows(truth, names, found)


def doubled_classes(draw: int, set: str, belief: float, n_rows: int = 800) -> list[Row]:
    """A class that was given two names at random: is it made one again, or left as told?

    A draw chooses the class and the half of its rows that gets the second name. All other beliefs keep the
    classes (1 and -1). At most ten classes and 800 rows, ten principal components; CPPC has its defaults.

    Parameters
    ----------
    draw : int
    set : str
    belief : float
        Belief that the two names are one.
    n_rows : int

    Returns
    -------
    list of dict
        "merged", whether most pairs of rows of the two names share a cluster (separability above .5);
        "apart", whether they hardly ever do (below -.9); "ari" to the true classes; "clusters".

    Examples
    --------
    >>> from experiments.classes.coarse import doubled_classes
    >>> [(row["merged"], row["apart"]) for b in (0.5, -1.0) for row in doubled_classes(0, "wine", b)]
    [(1.0, 0.0), (0.0, 1.0)]
    """
    X, truth = load_set(set, n_rows)
    names, doubled = doubled_names(truth, draw)
    return [_doubted(X, names, truth, (doubled, int(names.max())), belief, draw)]


def distinct_classes(draw: int, set: str, belief: float, n_rows: int = 800) -> list[Row]:
    """Two true classes of which it is believed that they may be one: the control of ``doubled_classes``.

    A method that always joins what may be one is good in `doubled_classes`, and bad here. A draw chooses the
    two classes; everything else is as in `doubled_classes`. Merging them is wrong, but a belief of .5 asks
    for it where the classes hardly differ.

    Parameters
    ----------
    draw : int
    set : str
    belief : float
        Belief that the two classes are one.
    n_rows : int

    Returns
    -------
    list of dict
        As in :func:`doubled_classes`.

    Examples
    --------
    >>> from experiments.classes.coarse import distinct_classes
    >>> [(row["merged"], row["ari"]) for row in distinct_classes(0, "wine", 0.0)]
    [(0.0, 1.0)]
    """
    X, truth = load_set(set, n_rows)
    first, second = np.random.default_rng(draw).permutation(int(truth.max()) + 1)[:2].tolist()
    return [_doubted(X, truth, truth, (first, second), belief, draw)]


def _doubted(
    X: NDArray[np.float64],
    names: NDArray[np.int64],
    truth: NDArray[np.int64],
    pair: tuple[int, int],
    belief: float,
    seed: int,
) -> Row:
    """What becomes of two names with this belief; all others are kept."""
    beliefs = 2.0 * np.eye(int(names.max()) + 1) - 1.0
    beliefs[pair] = beliefs[pair[::-1]] = belief
    model = _fit(CPPC(beliefs=beliefs, random_state=seed), X, names)
    shared = model.separability_[pair]
    return {
        "method": AUTO,
        "merged": float(shared > 0.5),
        "apart": float(shared < -0.9),
        "ari": float(adjusted_rand_score(truth, model.labels_)),
        "clusters": model.n_occupied_,
    }


def nothing_to_do(draw: int, set: str, kind: str, n_rows: int = 1500) -> list[Row]:
    """True classes that may fall apart, and classes that surely are one: how many are divided?

    Beliefs as in ``coarse_classes``, -1 between classes and .1 within. "true classes" are those of the set.
    They may have parts that nobody named, so a division need not be wrong. "single Gaussians" have the means,
    covariances and sizes of these classes, but each class is drawn from one Gaussian: there every division is
    wrong.

    Parameters
    ----------
    draw : int
        Seed of the Gaussians and of the fits.
    set : str
    kind : {"true classes", "single Gaussians"}
    n_rows : int

    Returns
    -------
    list of dict
        For the mixtures by hand and CPPC: "divided", the share of the classes of which no cluster has 95 %;
        "clusters"; "ari" to the classes.

    Examples
    --------
    >>> from experiments.classes.coarse import nothing_to_do
    >>> [row["divided"] for row in nothing_to_do(0, "wine", "single Gaussians")]
    [0.0, 0.0]
    """
    X, truth = load_set(set, n_rows)
    if kind == "single Gaussians":
        X = single_gaussians(X, truth, draw)
    model = _fit(CPPC(beliefs=may_fall_apart(int(truth.max()) + 1), random_state=draw), X, truth)
    return [
        {
            "method": method,
            "divided": divided_share(truth, labels),
            "clusters": len(np.unique(labels)),
            "ari": float(adjusted_rand_score(truth, labels)),
        }
        for method, labels in {BY_HAND: by_hand(X, truth, draw), AUTO: model.labels_}.items()
    ]


def divided_share(classes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Share of the classes of which no cluster has 95 % of the rows.

    Parameters
    ----------
    classes, labels : (n,) int64

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.classes.coarse import divided_share
    >>> divided_share(np.repeat([0, 1], 20), np.repeat([0, 2, 1], [10, 11, 19]))
    0.5
    """
    table = contingency_table(classes, labels)[2]
    return float(np.mean(table.max(axis=1) < _WHOLE * table.sum(axis=1)))


def _fit(model: CPPC, X: NDArray[np.float64], y: NDArray[np.int64]) -> CPPC:
    """A fit without warnings: what they tell is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def _rows(
    truth: NDArray[np.int64], names: NDArray[np.int64], found: dict[str, NDArray[np.int64]]
) -> list[Row]:
    """A row for the names and for each method."""
    given = float(adjusted_rand_score(truth, names))
    rows: list[Row] = []
    for method, labels in {AS_THEY_ARE: names, **found}.items():
        score = float(adjusted_rand_score(truth, labels))
        own = contingency_table(names, labels)[2].max(axis=0).sum()
        rows.append(
            {
                "method": method,
                "ari": score,
                "clusters": len(np.unique(labels)),
                "strayed": 1.0 - float(own) / len(names),
                "below": float(score < given - _MARGIN),
            }
        )
    return rows


def _settings(sets: Iterable[str], **others: Iterable[Any]) -> list[dict[str, Any]]:
    settings: list[dict[str, Any]] = [{"set": name} for name in sets]
    for key, values in others.items():
        settings = [{**setting, key: value} for setting in settings for value in values]
    return settings


_FEW = ("forest_types", "wine")
_MEASURES = ("ari", "clusters", "strayed", "below")
_BEYOND = "beyond the papers: CPPC where the truth is known"

EXPERIMENTS = (
    Experiment(
        "coarse_classes",
        "True classes found inside names that each cover two of them",
        f"{_BEYOND}, classes too coarse",
        coarse_classes,
        quick=Size(_settings(_FEW), 2),
        full=Size(_settings(SETS), 3),
        measures=_MEASURES,
        reference=AS_THEY_ARE,
    ),
    Experiment(
        "coarse_criteria",
        "Number of clusters inside coarse names: by evidence, or by a criterion over a range of K",
        f"{_BEYOND}, the choice of K",
        coarse_criteria,
        quick=Size(_settings(("wine",)), 1),
        full=Size(_settings(SETS), 3),
        measures=_MEASURES,
        reference=AUTO,
    ),
    Experiment(
        "doubled_classes",
        "A class with two names: joined again or left alone, as the beliefs say",
        f"{_BEYOND}, classes too fine",
        doubled_classes,
        quick=Size(_settings(_FEW, belief=BELIEFS), 2),
        full=Size(_settings(SETS, belief=BELIEFS), 10),
        measures=("merged", "apart", "ari", "clusters"),
    ),
    Experiment(
        "distinct_classes",
        "Two true classes with a belief that they may be one: how often they are joined",
        f"{_BEYOND}, the control of doubled_classes",
        distinct_classes,
        quick=Size(_settings(_FEW, belief=MAY_BE_ONE), 2),
        full=Size(_settings(SETS, belief=MAY_BE_ONE), 5),
        measures=("merged", "apart", "ari", "clusters"),
    ),
    Experiment(
        "nothing_to_do",
        "Classes divided although there is nothing to divide, or nothing known",
        f"{_BEYOND}, classes that are right",
        nothing_to_do,
        quick=Size(_settings(_FEW, kind=KINDS), 1),
        full=Size(_settings(SETS, kind=KINDS), 3),
        measures=("divided", "clusters", "ari"),
        reference=BY_HAND,
    ),
)
