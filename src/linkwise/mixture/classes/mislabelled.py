"""Rows whose label is likely wrong: what the densities of all classes say about each row and its label.

Every class is a mixture of Gaussians of its own, f_c(x) = sum_{k of class c} pi_k N(x; mu_k, S_k). A row of
class c has the label y with probability T_cy:

    P(true class c | x, label y)  ~  f_c(x)^b T_cy.

Gaussians are too sure of themselves where they do not fit, so the densities of the classes are raised to a
power b, mostly below 1. T and b are learned from the labels. The prior of T is a single rate of errors e,
with 1 - e for the right label and e / (L - 1) for each other one; e is learned, too. EM fits everything: a
row counts for the clusters of a class as much as it is likely to be of that class, so rows with a wrong
label stop shaping the class they were given.

A row is never judged by Gaussians that it shaped. The rows are dealt into ten folds, and the Gaussians of a
fold are made from the sums of the nine others. Sums are additive, so this costs no more than plain EM: one
pass over the rows for each iteration, O(N K).

Measured at 10 % flipped labels (precision / recall of the rows above .5), with one rate e for all classes:
one Gaussian a class instead of several .61 / .88 for .76 / .89 (letters) and .90 / .96 for .97 / .98
(pendigits); b = 1 .72 / .90 and .94 / .99; five folds .74 / .89, twenty .77 / .90 (letters). If all wrong
labels of a class are the same one, one rate finds 15 % (Mato Grosso) and 71 % (letters) of them, T 80 % and
95 %.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from linkwise._arrays import AnyFloats, Bools, Floats, Ints
from linkwise.mixture.em import MixtureParameters
from linkwise.mixture.gaussian.data import Points, condition, points_of
from linkwise.mixture.gaussian.gaussians import Gaussians, Statistics, n_free_parameters
from linkwise.mixture.gaussian.passes import em_pass, log_density_pass, posterior_pass, statistics_pass
from linkwise.mixture.gaussian.shrinkage import (
    CovariancePrior,
    automatic_rows,
    covariance_prior,
    pooled_covariance,
)
from linkwise.mixture.links.em_step import new_parameters

#: A label is likely wrong above this probability.
LIKELY = 0.5
#: Rows of smaller classes are not judged: there is too little to compare them with.
FEWEST_ROWS = 5
#: Beta prior of the rate of wrong labels: as if so many wrong and right labels had been seen before.
_WRONG, _RIGHT = 1.0, 19.0
#: As if so many labels of each class had been seen before, wrong at the common rate. Share of right labels
#: that are flagged with 100 (one rate for all): Mato Grosso .007 (.002), forest types .025 (.019), 4000
#: letters .040 (.009); recall where all wrong labels of a class are the same .80 (.15), .98 (.98), .95 (.71).
_LABELS_BEFORE = 100.0
_N_FOLDS = 10
_N_ITERATIONS = 8
#: A place does not belong to a class if less than this share of the rows there have its label, or less than
#: this over the number of other classes: labels that are wrong at random leave a share of e / (L - 1).
#: Precision / recall with .6 (.25 alone, none) at 10 % flips: 4000 letters .71 / .90 (.52 / .91, .72 / .90),
#: Mato Grosso .93 / .93 (.93 / .93, .92 / .88).
_FEW, _FEW_OF_OTHERS = 0.25, 0.6
#: Numbers of one table that is held at a time.
_TABLE = 1 << 19


class MislabelledRow(NamedTuple):
    """A row (from 0) whose label is likely wrong, the class told instead, and the probability of it."""

    row: int
    label: Hashable
    told: Hashable
    probability: float


class LabelErrors(NamedTuple):
    """What the densities say about the labels.

    ``probability`` (n,) that each is wrong, ``told`` (n,) the most probable other class (-1: nothing),
    ``error_rate`` e (NaN with fewer than two classes), ``sharpness`` b, and ``owners`` (K,), the class of
    each cluster.
    """

    probability: Floats
    told: Ints
    error_rate: float
    sharpness: float
    owners: Ints


class Reading(NamedTuple):
    """Posteriors of rows: clusters (m, K), classes (m, L); derivatives of the log-likelihood by b."""

    responsibilities: Floats
    classes: Floats
    slope: float
    curvature: float


def label_errors(
    X: AnyFloats,
    codes: ArrayLike,
    *,
    covariance_type: str = "full",
    reg_covar: float = 1e-6,
    n_iterations: int = _N_ITERATIONS,
    n_folds: int = _N_FOLDS,
) -> LabelErrors:
    """Compute the probability that each label is wrong.

    ``codes`` (n,) are class numbers, -1 where unlabelled. The clusters of each class are found by BIC. The
    order of the rows and the units of the features do not matter.
    """
    given = np.asarray(codes, dtype=np.int64)
    probability, told = np.zeros(len(given)), np.full(len(given), -1, dtype=np.int64)
    judged, kept = _judged(given)
    if len(kept) < 2:
        return LabelErrors(probability, told, float("nan"), 1.0, np.empty(0, dtype=np.int64))
    labels = np.searchsorted(kept, given[judged])
    data = np.asarray(X)
    if len(judged) < len(data):
        data = data[judged]
    points, for_starts = condition(data, reg_covar)
    prior = covariance_prior(points, automatic_rows(points.n_features), reg_covar)
    assert prior is not None
    order = _order(for_starts, labels, prior.variances - reg_covar)
    # From here on rows come in an order that their place in the table has no part in.
    start = first_clusters(points, for_starts, labels, order, covariance_type, reg_covar)
    model = _Folds(points, labels, order, start, n_folds, prior, covariance_type, reg_covar)
    outvoted = model.outvoted()
    if outvoted.any():
        start = _without(start, outvoted)
        model = _Folds(points, labels, order, start, n_folds, prior, covariance_type, reg_covar)
    for _ in range(n_iterations):
        model.iterate()
    wrong, other = model.judge()
    probability[judged], told[judged] = wrong, kept[other]
    return LabelErrors(probability, told, model.error_rate, model.sharpness, kept[model.owners])


def find_mislabelled(
    X: AnyFloats,
    codes: Ints,
    classes: Sequence[Hashable],
    *,
    covariance_type: str = "full",
    reg_covar: float = 1e-6,
) -> tuple[MislabelledRow, ...]:
    """List the rows whose label is likely wrong, the surest first; ``classes`` are the names of the codes."""
    found = label_errors(X, codes, covariance_type=covariance_type, reg_covar=reg_covar)
    rows = np.flatnonzero(found.probability > LIKELY)
    rows = rows[np.argsort(-found.probability[rows], kind="stable")]
    return tuple(
        MislabelledRow(row, classes[codes[row]], classes[found.told[row]], float(found.probability[row]))
        for row in rows.tolist()
    )


def read_labels(
    log_density: Floats, owners: Ints, labels: Ints, confusion: Floats, sharpness: float
) -> Reading:
    """Read rows from log pi_k N(x; k) (m, K), classes of clusters (K,), labels (m,), and T (L, L)."""
    places = np.searchsorted(owners, np.arange(owners[-1] + 1))
    # Twice subtracting the highest: a class far from the row must not underflow to log 0.
    highest = np.maximum.reduceat(log_density, places, axis=1)
    within = np.exp(log_density - highest[:, owners])
    totals = np.add.reduceat(within, places, axis=1)
    scores = highest + np.log(totals)
    scores -= scores.max(axis=1, keepdims=True)
    told = np.exp(sharpness * scores)
    told /= told.sum(axis=1, keepdims=True)
    classes = told * confusion.T[labels]
    classes /= classes.sum(axis=1, keepdims=True)
    mean = np.einsum("ij,ij->i", told, scores)
    slope = float(np.einsum("ij,ij->", classes, scores) - mean.sum())
    curvature = float(np.einsum("ij,ij,ij->", told, scores, scores) - mean @ mean)
    return Reading(within * (classes / totals)[:, owners], classes, slope, curvature)


class _Folds:
    """The mixture of all classes, its Gaussians made once for each fold from the rows of the others."""

    def __init__(
        self,
        points: Points,
        labels: Ints,
        order: Ints,
        start: Ints,
        n_folds: int,
        prior: CovariancePrior,
        covariance_type: str,
        reg_covar: float,
    ) -> None:
        self.points, self.labels, self.prior = points, labels, prior
        self.covariance_type, self.reg_covar = covariance_type, reg_covar
        self.owners = np.zeros(int(start.max()) + 1, dtype=np.int64)
        self.owners[start[start >= 0]] = labels[start >= 0]
        self.folds = [order[fold::n_folds] for fold in range(n_folds)]
        self.error_rate, self.sharpness = _WRONG / (_WRONG + _RIGHT), 1.0
        n_classes = int(self.owners[-1]) + 1
        self.confusion = learned_confusion(np.zeros((n_classes, n_classes)), self.error_rate)
        self.gaussians: list[Gaussians] = []
        self.log_weights: list[Floats] = []
        centres = np.repeat(points.offset[np.newaxis], len(self.owners), axis=0)
        sums = []
        for rows in self.folds:
            total = self._nothing(centres)
            for some in self._chunks(rows[start[rows] >= 0]):
                known = np.zeros((len(some), len(self.owners)))
                known[np.arange(len(some)), start[some]] = 1.0
                total = total + statistics_pass(points, centres, known, covariance_type, rows=some)
            sums.append(total)
        self._make(sums)

    def iterate(self) -> None:
        """Run one EM iteration."""
        slope = curvature = 0.0
        counts, sums = np.zeros_like(self.confusion), []
        for fold, rows in enumerate(self.folds):
            total = self._nothing(self.centres)
            for some in self._chunks(rows):
                reading = self._read(fold, some)
                for place, of_class in enumerate(reading.classes.T):
                    counts[place] += np.bincount(self.labels[some], of_class, len(counts))
                slope, curvature = slope + reading.slope, curvature + reading.curvature
                total = total + statistics_pass(
                    self.points, self.centres, reading.responsibilities, self.covariance_type, rows=some
                )
            sums.append(total)
        self._make(sums)
        wrong = counts.sum() - np.trace(counts)
        self.error_rate = float((wrong + _WRONG) / (len(self.labels) + _WRONG + _RIGHT))
        self.confusion = learned_confusion(counts, self.error_rate)
        self.sharpness = sharpened(self.sharpness, slope, curvature)

    def outvoted(self) -> Bools:
        """Find clusters (K,) in whose place few rows have the label of the class; a class keeps its best.

        Wrong labels in one place look like a small cluster of their class, on top of a large one of another.
        """
        totals, own = np.zeros(len(self.owners)), np.zeros(len(self.owners))
        for fold, rows in enumerate(self.folds):
            for some in self._chunks(rows):
                posterior = self._log_density(fold, some)
                posterior -= posterior.max(axis=1, keepdims=True)
                np.exp(posterior, out=posterior)
                posterior /= posterior.sum(axis=1, keepdims=True)
                totals += posterior.sum(axis=0)
                posterior[self.labels[some][:, np.newaxis] != self.owners] = 0.0
                own += posterior.sum(axis=0)
        shares = own / np.maximum(totals, 1e-300)
        best = np.lexsort((own, self.owners))[np.append(np.diff(self.owners) > 0, True)]
        few = shares < min(_FEW, _FEW_OF_OTHERS / int(self.owners[-1]))
        few[best] = False
        return few

    def judge(self) -> tuple[Floats, Ints]:
        """Return the probability (n,) that a label is wrong, and the best class other than it (n,)."""
        wrong, other = np.empty(len(self.labels)), np.empty(len(self.labels), dtype=np.int64)
        for fold, rows in enumerate(self.folds):
            for some in self._chunks(rows):
                classes = self._read(fold, some).classes
                mine = np.arange(len(some)), self.labels[some]
                classes[mine] = 0.0
                wrong[some] = np.minimum(classes.sum(axis=1), 1.0)
                classes[mine] = -1.0
                other[some] = classes.argmax(axis=1)
        return wrong, other

    def _read(self, fold: int, rows: Ints) -> Reading:
        log_density = self._log_density(fold, rows)
        return read_labels(log_density, self.owners, self.labels[rows], self.confusion, self.sharpness)

    def _log_density(self, fold: int, rows: Ints) -> Floats:
        return log_density_pass(
            self.points, self.gaussians[fold], log_weights=self.log_weights[fold], rows=rows
        )

    def _make(self, sums: list[Statistics]) -> None:
        """Make the Gaussians of every fold from the sums of the others."""
        made = []
        self.log_weights = []
        for fold in range(len(sums)):
            others = [part for place, part in enumerate(sums) if place != fold] or sums
            total = others[0]
            for part in others[1:]:
                total = total + part
            # Half a row keeps a cluster without rows off log 0.
            log_weights = np.log((total.counts + 0.5) / (total.counts + 0.5).sum())
            pooled = pooled_covariance(self.gaussians[fold]) if self.gaussians else None
            made.append(
                new_parameters(
                    total, self.covariance_type, self.reg_covar, log_weights, np.empty(0), self.prior, pooled
                ).gaussians
            )
            self.log_weights.append(log_weights)
        self.gaussians = made
        # Sums are taken about points near all means of a cluster, so that they keep their digits.
        self.centres = np.mean([gaussians.means for gaussians in made], axis=0)

    def _nothing(self, centres: Floats) -> Statistics:
        none = np.empty(0, dtype=np.int64)
        return statistics_pass(
            self.points, centres, np.empty((0, len(centres))), self.covariance_type, rows=none
        )

    def _chunks(self, rows: Ints) -> list[Ints]:
        size = max(_TABLE // len(self.owners), 256)
        return [rows[first : first + size] for first in range(0, len(rows), size)]


def learned_confusion(counts: Floats, error_rate: float) -> Floats:
    """Estimate T from expected counts of classes (rows) and labels (columns), shrunk to one rate."""
    n_classes = len(counts)
    expected = np.full_like(counts, error_rate / (n_classes - 1))
    np.fill_diagonal(expected, 1.0 - error_rate)
    total = counts + _LABELS_BEFORE * expected
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def sharpened(sharpness: float, slope: float, curvature: float) -> float:
    """Take one step of Newton for log b, whose prior is a standard normal distribution."""
    log_value = float(np.log(sharpness))
    step = (sharpness * slope - log_value) / (sharpness**2 * max(curvature, 0.0) + 1.0)
    return float(np.exp(log_value + np.clip(step, -1.0, 1.0)))


def _judged(codes: Ints) -> tuple[Ints, Ints]:
    """Find the rows that can be judged, and the classes that are large enough."""
    labelled = codes >= 0
    counts = np.bincount(codes[labelled]) if labelled.any() else np.zeros(0, dtype=np.int64)
    kept = np.flatnonzero(counts >= FEWEST_ROWS)
    return np.flatnonzero(np.isin(codes, kept)), kept


def _order(X: AnyFloats, labels: Ints, variances: Floats) -> Ints:
    """Order the rows by class and sum of standardised features: neighbours fall into different folds."""
    turns = np.cos(np.arange(1, X.shape[1] + 1) ** 2)
    weights = turns / np.sqrt(np.where(variances > 0.0, variances, 1.0))
    return np.lexsort((X @ weights, labels))


def _without(start: Ints, dropped: Bools) -> Ints:
    """Leave out some clusters of a start; their rows are of none."""
    number = np.where(dropped, -1, np.cumsum(~dropped) - 1)
    return np.where(start >= 0, number[start], -1)


#: Gaussians of one class, and rows that each must have for each feature.
_MOST = 8
_ROWS_PER_FEATURE = 2
#: So many rows of a class choose its Gaussians; the others join them later.
_SAMPLE = 4000
_MOST_STEPS = 60
_TOL = 1e-4


def first_clusters(
    points: Points, X: AnyFloats, labels: Ints, order: Ints, covariance_type: str, reg_covar: float
) -> Ints:
    """Cluster the rows of each class, listed by ``order`` (n,), by BIC: clusters (n,) by class, or -1."""
    start = np.full(len(labels), -1, dtype=np.int64)
    ends = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    samples = [order[begin:end][:: -(-(end - begin) // _SAMPLE)] for begin, end in pairwise(ends.tolist())]
    spread = _spread_within([X[rows] for rows in samples])
    first = 0
    for rows in samples:
        own = points_of(np.ascontiguousarray(_taken(points, rows)), points.offset)
        # The class alone has to be told apart into parts, so it is its spread that covariances shrink to.
        alone = covariance_prior(own, automatic_rows(own.n_features), reg_covar)
        assert alone is not None
        parts = _best_parts(own, X[rows] / spread, alone, covariance_type, reg_covar)
        start[rows] = first + parts
        first += int(parts.max()) + 1
    return start


def _spread_within(samples: list[AnyFloats]) -> Floats:
    """Compute the standard deviation (d,) within classes: features in which classes differ weigh more."""
    total = sum(len(rows) * rows.var(axis=0, dtype=np.float64) for rows in samples)
    variances = np.asarray(total) / sum(len(rows) for rows in samples)
    return np.sqrt(np.where(variances > 0.0, variances, 1.0))


def _taken(points: Points, rows: Ints) -> AnyFloats:
    """Copy some rows (m, d) of the data."""
    columns = np.arange(points.n_features) * points.column_stride
    return np.asarray(points.values[rows[:, np.newaxis] * points.row_stride + columns])


def _best_parts(
    points: Points, scaled: AnyFloats, prior: CovariancePrior, covariance_type: str, reg_covar: float
) -> Ints:
    """Assign the rows of one class (n,) to the mixture with the lowest BIC."""
    n_rows, n_features = scaled.shape
    best, lowest, best_k = np.zeros(n_rows, dtype=np.int64), np.inf, 1
    most = min(_MOST, n_rows // (_ROWS_PER_FEATURE * n_features + 1), len(np.unique(scaled, axis=0)))
    for k in range(1, most + 1):
        if k > best_k + 2:
            break
        parts = np.zeros(n_rows, dtype=np.int64)
        if k > 1:
            parts = KMeans(k, n_init=1, random_state=0).fit(scaled).labels_.astype(np.int64)
        fitted, log_likelihood = _fit(points, parts, k, prior, covariance_type, reg_covar)
        bic = n_free_parameters(k, n_features, covariance_type) * np.log(n_rows) - 2.0 * log_likelihood
        if bic < lowest:
            found = posterior_pass(points, fitted.gaussians, fitted.log_weights, labels=True).labels
            assert found is not None
            lowest, best_k = bic, k
            best = np.unique(found, return_inverse=True)[1]
    return best


def _fit(
    points: Points,
    parts: Ints,
    n_components: int,
    prior: CovariancePrior,
    covariance_type: str,
    reg_covar: float,
) -> tuple[MixtureParameters, float]:
    """Run EM with shrunk covariances from an assignment; return the mixture and its log-likelihood."""
    known = np.zeros((len(parts), n_components))
    known[np.arange(len(parts)), parts] = 1.0
    centres = np.repeat(points.offset[np.newaxis], n_components, axis=0)
    statistics = statistics_pass(points, centres, known, covariance_type)
    pooled, previous = None, -np.inf
    for _ in range(_MOST_STEPS):
        log_weights = np.log((statistics.counts + 0.5) / (statistics.counts + 0.5).sum())
        fitted = new_parameters(
            statistics, covariance_type, reg_covar, log_weights, np.empty(0), prior, pooled
        )
        statistics = em_pass(points, fitted.gaussians, log_weights)
        if n_components == 1 or statistics.log_likelihood - previous < _TOL * len(parts):
            break
        previous, pooled = statistics.log_likelihood, pooled_covariance(fitted.gaussians)
    return fitted, statistics.log_likelihood
