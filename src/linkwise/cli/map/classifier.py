"""Classifiers of pixels by the new classes, and how well they do on held-out samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Floats, Ints
from linkwise._threads import one_thread_if_small
from linkwise._validation import listed
from linkwise.cli.map.legend import NewLegend
from linkwise.cli.output import Output

if TYPE_CHECKING:
    from linkwise.raster import TrainingRows

#: From bands (n, d) and new classes (n,), 0 to K - 1, to a fitted model with ``predict_proba``.
Fit = Callable[[Floats, Ints], Any]

_FOLDS = 5


class Classifier(StrEnum):
    """What ``--classifier`` may be."""

    mixture = "mixture"
    trees = "trees"


def mixture_by_labels(legend: NewLegend, seed: int) -> Fit:
    """Fit one Gaussian for each new class; the classes stay as they are."""
    from linkwise.mixture.cppc import CPPC

    names = ("covariance_type", "reg_covar", "shrinkage")
    settings = {name: getattr(legend.mixture, name) for name in names}

    def fit(X: Floats, labels: Ints) -> Any:
        model = CPPC(int(labels.max()) + 1, random_state=seed, **settings)
        return legend.after_scaling(model.fit(legend.preparation.scaled(X), labels))

    return fit


def trees_by_labels(seed: int) -> Fit:
    """Fit the boosted trees of Preston et al. 2010, section 3.3."""
    from linkwise.mixture.classes.relabel import ROWS_OF_ONE_THREAD, boosted_trees

    def fit(X: Floats, labels: Ints) -> Any:
        with one_thread_if_small(len(X), ROWS_OF_ONE_THREAD):
            return boosted_trees(np.bincount(labels), seed).fit(X, labels)

    return fit


@dataclass(frozen=True)
class HeldOut:
    """Samples, classified by what others taught: map by new class (K, K), and by given class (L, K)."""

    confusion: Ints
    classes: list[str]
    by_class: Ints
    n_folds: int
    n_groups: int

    @property
    def accuracy(self) -> float:
        """Share of the samples that get their new class."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """Interval of 95 % (Wilson), as if the samples were drawn at random; not empty if all are right."""
        z, n, share = 1.96, float(self.confusion.sum()), self.accuracy
        middle = (share + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
        half = z * np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2)) / (1.0 + z**2 / n)
        return float(middle - half), float(min(middle + half, 1.0))


def held_out(
    fit: Fit, X: Floats, labels: Ints, given: NDArray[Any], groups: NDArray[Any], *, n_classes: int, seed: int
) -> HeldOut | None:
    """Classify samples by what other ``groups`` (n,) taught; None for one group. ``given``: old classes."""
    _, group = np.unique(groups, return_inverse=True)
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        return None
    folds = _folds(min(_FOLDS, n_groups), labels, group, seed)
    found = np.empty(len(labels), dtype=np.int64)
    for train, test in folds:
        known, codes = np.unique(labels[train], return_inverse=True)
        found[test] = known[0]
        if len(known) > 1:
            found[test] = known[fit(X[train], codes).predict_proba(X[test]).argmax(axis=1)]
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (found, labels), 1)
    names, codes = np.unique(given, return_inverse=True)
    by_class = np.zeros((len(names), n_classes), dtype=np.int64)
    np.add.at(by_class, (codes, found), 1)
    return HeldOut(confusion, [str(name) for name in names], by_class, len(folds), n_groups)


def _folds(n_folds: int, labels: Ints, groups: Ints, seed: int) -> list[tuple[Ints, Ints]]:
    """Divide the groups into folds with a share of every class where it has enough of them."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    rows = np.zeros(len(labels))
    with warnings.catch_warnings():
        # A class of few groups is not in every fold; the command names those of one group.
        warnings.simplefilter("ignore", UserWarning)
        if np.bincount(labels).max() < n_folds:
            folds = GroupKFold(n_folds).split(rows, labels, groups)
        else:
            shuffled = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
            folds = shuffled.split(rows, labels, groups)
        return [(train, test) for train, test in folds if len(train) and len(test)]


def tested_classifier(
    out: Output, legend: NewLegend, rows: TrainingRows, kind: Classifier, seed: int
) -> tuple[Any, HeldOut | None]:
    """Make the model for the pixels, and test one like it on held-out samples."""
    labels = legend.labels
    assert labels is not None
    trees = kind is Classifier.trees
    fit = trees_by_labels(seed) if trees else mixture_by_labels(legend, seed)
    with out.progress("classifying held-out samples"):
        checked = held_out(fit, rows.X, labels, rows.y, rows.groups, n_classes=len(legend.names), seed=seed)
    if checked is None:
        out.warn("all samples are of one point or polygon, so none can be held out; errors are not known")
    else:
        groups = [len(np.unique(rows.groups[labels == k])) for k in range(len(legend.names))]
        alone = [name for name, count in zip(legend.names, groups, strict=True) if count < 2]
        if alone:
            out.warn(
                f"all samples of {listed(alone)} are of one point or polygon, so none can be held out; add "
                "samples elsewhere to learn its errors"
            )
    return fit(rows.X, labels) if trees else legend.after_scaling(legend.mixture), checked
