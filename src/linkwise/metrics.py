"""Scores of a clustering against true classes, against links and against class beliefs.

Every score works from the table of class and cluster counts, never from the n (n - 1) / 2 pairs.

Labels may be integers, strings, floats or a mixture of them; two labels are equal when Python says
so (``1 == 1.0``, ``1 != "1"``). NaN, None and ``pandas.NA`` are refused. The scores of this module
treat -1 as a label like any other, as scikit-learn does: drop unlabelled rows before scoring.
Only :func:`separability`, whose ``y`` is the ``y`` of :class:`linkwise.CPPC`, leaves out rows
that are -1, NaN or None.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from linkwise._arrays import Floats, Ints
from linkwise._validation import (
    align_rows,
    as_vector,
    check_constraints,
    check_same_length,
    encode,
    encode_pair,
    pack,
    unlabelled,
)

if TYPE_CHECKING:
    from linkwise.constraints import Constraints

__all__ = [
    "ClusterMatching",
    "LinksScorer",
    "belief_adherence",
    "clustering_accuracy",
    "constraint_satisfaction",
    "contingency_table",
    "links_scorer",
    "match_clusters",
    "pairwise_f1",
    "rand_score",
    "separability",
]

# The square of a larger total leaves int64.
_INT64_SAFE_TOTAL = 3_037_000_499
# Cells are counted in a dense table up to this many times the sample size; beyond it, by sorting.
_DENSE_FACTOR = 8


def contingency_table(
    y: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Count the samples of every class in every cluster.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    classes : ndarray of shape (L,)
        The distinct classes, sorted (numbers before strings).
    clusters : ndarray of shape (K,)
        The distinct clusters, sorted likewise.
    table : ndarray of shape (L, K)
        ``table[a, k]`` is the number of samples of class ``classes[a]`` in ``clusters[k]``.

    Examples
    --------
    >>> from linkwise.metrics import contingency_table
    >>> classes, clusters, table = contingency_table(["a", "a", "b"], [5, 7, 7])
    >>> table
    array([[1, 1],
           [0, 1]])
    """
    (classes, class_codes), (clusters, cluster_codes) = encode_pair(y, labels)
    return classes, clusters, _cross_tabulate(class_codes, cluster_codes, len(classes), len(clusters))


def pairwise_f1(y: ArrayLike, labels: ArrayLike) -> float:
    """F-measure of the pairs put together, counted over all pairs of samples.

    With tp the pairs together in both, P = tp / pairs together in ``labels``, R = tp / pairs together
    in ``y`` and F = 2 P R / (P + R) = 2 tp / (pairs in ``labels`` + pairs in ``y``). This is the
    score f_{1/2} of Shental et al. 2003: van Rijsbergen's measure with alpha = 1/2, not beta = 1/2.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        Between 0 and 1; 0 when neither ``y`` nor ``labels`` puts any pair together.

    Examples
    --------
    >>> from linkwise.metrics import pairwise_f1
    >>> pairwise_f1([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> pairwise_f1([0, 0, 0, 1], [0, 0, 1, 1])
    0.4
    """
    _, both, predicted, true = _pair_counts(y, labels)
    return 2 * both / (predicted + true) if predicted + true else 0.0


def rand_score(y: ArrayLike, labels: ArrayLike) -> float:
    """Rand index: the share of pairs on which ``y`` and ``labels`` agree (together or apart).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        Between 0 and 1, not corrected for chance; 1 for a single sample.

    Examples
    --------
    >>> from linkwise.metrics import rand_score
    >>> rand_score([0, 0, 1, 1], [0, 0, 1, 2])  # 5 of 6 pairs
    0.8333333333333334
    """
    total, both, predicted, true = _pair_counts(y, labels)
    return (total + 2 * both - predicted - true) / total if total else 1.0


def clustering_accuracy(y: ArrayLike, labels: ArrayLike) -> float:
    """Share of samples in the right class under the best one-to-one match of clusters and classes.

    Clusters in excess of the classes stay unmatched and their samples count as wrong, so splitting a
    class costs. On held-out data use :meth:`ClusterMatching.score` of the training match instead: a
    match fitted to the test rows is optimistic.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from linkwise.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    return match_clusters(y, labels).accuracy


def match_clusters(y: ArrayLike, labels: ArrayLike) -> ClusterMatching:
    """Match clusters to classes one to one so that most samples agree (Hungarian method).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    ClusterMatching
        The match, to be applied to other rows. If several matches are equally good, it is any one of them.

    Examples
    --------
    >>> from linkwise.metrics import match_clusters
    >>> matching = match_clusters(["a", "a", "b", "b"], [1, 1, 0, 2])
    >>> matching.mapping
    {0: 'b', 1: 'a'}
    >>> matching.score(["a", "b"], [1, 1])
    0.5
    """
    classes, clusters, table = contingency_table(y, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    class_values, cluster_values = classes.tolist(), clusters.tolist()
    order = np.argsort(columns)
    mapping = {cluster_values[columns[k]]: class_values[rows[k]] for k in order}
    accuracy = int(table[rows, columns].sum()) / int(table.sum())
    return ClusterMatching(mapping=mapping, accuracy=accuracy, classes=tuple(class_values))


@dataclass(frozen=True)
class ClusterMatching:
    """A one-to-one match of clusters to classes, made by :func:`match_clusters`.

    Attributes
    ----------
    mapping : dict
        Cluster to class. The smaller of the two sides is matched completely.
    accuracy : float
        Share of the fitted samples whose cluster is matched to their class.
    classes : tuple
        All classes of the fitted ``y``, sorted.

    Examples
    --------
    >>> from linkwise.metrics import match_clusters
    >>> train = match_clusters([4, 4, 9, 9], [0, 0, 1, 1])
    >>> train.apply([1, 0, 2])  # cluster 2 was not there
    array([ 9,  4, -1])
    >>> train.score([9, 4, 4], [1, 0, 2])
    0.6666666666666666
    """

    mapping: dict[Hashable, Hashable]
    accuracy: float
    classes: tuple[Hashable, ...]

    def apply(self, labels: ArrayLike) -> NDArray[Any]:
        """Translate clusters into classes.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Clusters.

        Returns
        -------
        ndarray of shape (n_samples,)
            The matched classes. A cluster without a class gives -1 where all classes are integers
            other than -1, and None otherwise.
        """
        clusters, codes = encode(as_vector(labels, "labels"), "labels")
        matched = [self.mapping.get(cluster) for cluster in clusters.tolist()]
        integer_classes = all(
            isinstance(c, numbers.Integral) and not isinstance(c, bool) for c in self.classes
        )
        if integer_classes and -1 not in self.classes:
            matched = [-1 if value is None else value for value in matched]
        return pack(matched)[codes]

    def score(self, y: ArrayLike, labels: ArrayLike) -> float:
        """Share of samples whose cluster is matched to their class.

        Samples of unmatched clusters and of classes that were not in the fitted ``y`` count as wrong.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True classes.
        labels : array-like of shape (n_samples,)
            Clusters, from the same model as the fitted ones.

        Returns
        -------
        float
            Between 0 and 1.
        """
        (classes, class_codes), (clusters, cluster_codes) = encode_pair(y, labels)
        code_of_class = {value: code for code, value in enumerate(classes.tolist())}
        wanted = [code_of_class.get(self.mapping.get(cluster), -1) for cluster in clusters.tolist()]
        return float(np.mean(np.array(wanted)[cluster_codes] == class_codes))


def constraint_satisfaction(labels: ArrayLike, constraints: Constraints) -> float:
    """Share of the links that a labelling respects, each counted once; 1 if there are none.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Clusters.
    constraints : Constraints
        Links among the same samples.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> from linkwise.metrics import constraint_satisfaction
    >>> links = Constraints(4, must_link=[(0, 1)], cannot_link=[(1, 2)])
    >>> constraint_satisfaction(["a", "a", "a", "b"], links)
    0.5
    """
    if not hasattr(constraints, "satisfaction"):
        raise ValueError(
            f"constraints is a {type(constraints).__name__}; pass a linkwise.Constraints, e.g. "
            "Constraints(n_samples, must_link=pairs)"
        )
    _, codes = encode(as_vector(labels, "labels"), "labels")
    if len(codes) != constraints.n_samples:
        raise ValueError(
            f"labels has {len(codes)} samples but constraints has {constraints.n_samples}; pass the links of "
            "the same rows, e.g. constraints[rows]"
        )
    return float(constraints.satisfaction(codes))


class LinksScorer:
    """Scorer of scikit-learn: the share of links among the predicted rows that a model keeps; it needs no
    ``y``.

    The score is the share of must-links and the share of cannot-links that ``predict`` keeps, averaged over
    the two kinds: 1/2 for one cluster of all rows and for clusters of one row each. A soft link of certainty
    g counts 2 g - 1. Rows that carry no links do not count.

    :data:`links_scorer` is one without links of its own. Under metadata routing scikit-learn gives it those
    of the test rows.

    Parameters
    ----------
    constraints : Constraints, optional
        Links with an index, for use without metadata routing, when scikit-learn passes nothing to scorers:
        the test rows are then found by the index of the DataFrame X.

    See Also
    --------
    linkwise.model_selection.ConstraintKFold : folds that cut no link.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from linkwise import PCKMeans, Constraints
    >>> from linkwise.metrics import LinksScorer, links_scorer
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> links = Constraints.sample(y, 300, overlap=True, certainty=0.95, random_state=0)
    >>> folds = KFold(3, shuffle=True, random_state=0)
    >>> grid = {"n_clusters": [2, 3, 5]}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(PCKMeans(n_init=2, random_state=0), grid, scoring=links_scorer, cv=folds)
    ...     search = search.fit(X, constraints=links)
    >>> search.best_params_
    {'n_clusters': 3}

    Without routing, by the index of the rows:

    >>> named = links.with_index(X.index)
    >>> search = GridSearchCV(PCKMeans(n_init=2, random_state=0), grid, scoring=LinksScorer(named), cv=folds)
    >>> search.fit(X, constraints=named).best_params_
    {'n_clusters': 3}
    """

    def __init__(self, constraints: Constraints | None = None) -> None:
        self.constraints = constraints

    def __call__(
        self, estimator: Any, X: Any, y: Any = None, *, constraints: Constraints | None = None
    ) -> float:
        """Score a fitted estimator on rows X and the links among them; y is ignored."""
        links = self._links_of(X, constraints)
        labels = np.asarray(estimator.predict(X))
        if links is None or links.n_pairs == 0:
            raise ValueError(
                "no two of the rows to score are linked; pass more links, fewer folds, or folds that cut no "
                "link: ConstraintKFold(constraints=links)"
            )
        kept, worth = ~links.violations(labels), np.tanh(np.abs(links.weights))
        kinds = [kind for kind in (links.weights > 0, links.weights < 0) if kind.any()]
        return float(np.mean([np.average(kept[kind], weights=worth[kind]) for kind in kinds]))

    def _links_of(self, X: Any, constraints: Constraints | None) -> Constraints | None:
        """Links in the order of the rows of X: those given with them, or a part of its own."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if constraints is not None:
            return check_constraints(align_rows(X, constraints)[1], n_rows)
        own = check_constraints(self.constraints, None)
        if own is None:
            raise ValueError(
                "the scorer got no links: call sklearn.set_config(enable_metadata_routing=True) and pass "
                "constraints= (to fit of a search, in params= of cross_validate), or use LinksScorer(links) "
                "with links that have an index"
            )
        if own.index is not None and hasattr(X, "iloc"):
            return own.align(X.index)
        if len(own) != n_rows:
            raise ValueError(
                f"LinksScorer has links of {len(own)} rows, but {n_rows} are to be scored: give the links an "
                "index, links.with_index(X.index), and X as a DataFrame, so that the rows can be found"
            )
        return own

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that the scorer needs ``constraints``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="constraints", alias=True)
        return request

    def __repr__(self) -> str:
        return f"LinksScorer({'' if self.constraints is None else repr(self.constraints)})"


#: Scorer for ``scoring=`` of scikit-learn's searches, see :class:`LinksScorer`.
links_scorer = LinksScorer()


def separability(y: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """How much each two classes share their clusters: +1 always together, -1 never.

    S(a, b) = 2 together(a, b) / pairs(a, b) - 1 over the pairs of distinct samples with one in class a
    and the other in class b (Preston et al. 2010, Eq. 9-10; for a = b the pairs are unordered with
    i != j). The diagonal says how whole a class stayed.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes; rows that are -1, NaN or None are unlabelled and left out.
    labels : array-like of shape (n_samples,)
        Clusters.

    Returns
    -------
    ndarray of shape (L, L)
        Symmetric, rows and columns in the order of the sorted classes. The diagonal of a class with
        a single sample is NaN: it has no pairs.

    Examples
    --------
    >>> from linkwise.metrics import separability
    >>> separability(["a", "a", "b", "b", None], [0, 0, 0, 1, 1])
    array([[ 1.,  0.],
           [ 0., -1.]])
    """
    class_vector, cluster_vector = as_vector(y, "y"), as_vector(labels, "labels")
    check_same_length(class_vector, cluster_vector)
    labelled = ~unlabelled(class_vector)
    if not labelled.any():
        raise ValueError("y has no labelled sample (all are -1, NaN or None); label at least one")
    clusters, cluster_codes = encode(cluster_vector, "labels")
    classes, class_codes = encode(class_vector[labelled], "y")
    return separability_of_counts(
        _cross_tabulate(class_codes, cluster_codes[labelled], len(classes), len(clusters))
    )


def separability_of_counts(contingency: NDArray[np.integer]) -> Floats:
    """The same from the number (L, K) of samples of each class in each cluster."""
    table = contingency.astype(float)
    sizes = table.sum(axis=1)
    together = table @ table.T
    pairs = np.outer(sizes, sizes)
    # The ordered pairs of a class with itself include every sample paired with itself.
    diagonal = np.diag_indices(len(table))
    together[diagonal] -= sizes
    pairs[diagonal] -= sizes
    with np.errstate(invalid="ignore"):
        return 2.0 * together / pairs - 1.0


def belief_adherence(beliefs: ArrayLike, separability: ArrayLike, *, normalize: bool = False) -> float:
    """Squared distance G of class beliefs and separability; 0 if the clustering follows the beliefs.

    G = sum over all a, b of (C(a, b) - S(a, b))**2 (Preston et al. 2010, Eq. 14): both triangles
    count. Entries of S that are NaN (the diagonal of single-sample classes) are left out of the sum.

    Parameters
    ----------
    beliefs : array-like of shape (L, L), or ClassBeliefs
        The matrix C, entries in [-1, 1], in the order of the sorted classes.
    separability : array-like of shape (L, L)
        The matrix S of :func:`separability`.
    normalize : bool, default=False
        Return G / (4 L**2), which is between 0 and 1: the form used in cBIC.

    Returns
    -------
    float
        G, or G / (4 L**2).

    Examples
    --------
    >>> from linkwise.metrics import belief_adherence
    >>> belief_adherence([[1, -1], [-1, 1]], [[1.0, 0.0], [0.0, -1.0]])
    6.0
    >>> belief_adherence([[1, -1], [-1, 1]], [[1.0, 0.0], [0.0, -1.0]], normalize=True)
    0.375
    """
    believed, observed = np.asarray(beliefs, dtype=float), np.asarray(separability, dtype=float)
    for name, matrix in (("beliefs", believed), ("separability", observed)):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise ValueError(f"{name} has shape {matrix.shape}; pass a square matrix, one row per class")
    if believed.shape != observed.shape:
        raise ValueError(
            f"beliefs is about {len(believed)} classes but separability about {len(observed)}; "
            "pass both for the same classes"
        )
    if not np.isfinite(believed).all():
        raise ValueError("beliefs has entries that are not finite; write 0 where there is no opinion")
    distance = float(np.nansum((believed - observed) ** 2))
    return distance / (4.0 * believed.size) if normalize else distance


def _pair_counts(y: ArrayLike, labels: ArrayLike) -> tuple[int, int, int, int]:
    """Numbers of pairs: all, together in both, together in ``labels``, together in ``y``.

    scikit-learn's ``pair_confusion_matrix`` took 1.2 ms for 150 rows and 194 ms for a million (here 0.06 and
    29).
    """
    (classes, class_codes), (clusters, cluster_codes) = encode_pair(y, labels)
    n_samples = len(class_codes)
    if len(classes) * len(clusters) <= _DENSE_FACTOR * n_samples:
        cells = _cross_tabulate(class_codes, cluster_codes, len(classes), len(clusters)).ravel()
    else:
        cells = np.unique(class_codes * len(clusters) + cluster_codes, return_counts=True)[1]
    return (
        n_samples * (n_samples - 1) // 2,
        _pairs_within(cells),
        _pairs_within(np.bincount(cluster_codes)),
        _pairs_within(np.bincount(class_codes)),
    )


def _pairs_within(counts: NDArray[np.integer[Any]]) -> int:
    """Exact sum of c (c - 1) / 2 over the counts, of any size."""
    if counts.sum() <= _INT64_SAFE_TOTAL:
        return int(np.dot(counts, counts - 1)) // 2
    return sum(count * (count - 1) // 2 for count in counts.tolist())


def _cross_tabulate(rows: NDArray[np.intp], columns: NDArray[np.intp], n_rows: int, n_columns: int) -> Ints:
    """Counts of every pair of codes, (n_rows, n_columns)."""
    counts = np.bincount(rows * n_columns + columns, minlength=n_rows * n_columns)
    return counts.reshape(n_rows, n_columns)
