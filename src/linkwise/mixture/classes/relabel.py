"""Train a classifier on new labels and apply it to every row that has none."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from linkwise._arrays import Floats, Ints
from linkwise._threads import one_thread_if_small
from linkwise._validation import as_generator, check_whole_number, label_codes

# Early stopping holds back a tenth of the rows of each class: with fewer there is nothing to hold back.
_SMALLEST_STOPPED = 20
# Up to here waking threads for every node of a tree takes longer than what they do.
ROWS_OF_ONE_THREAD = 20_000


@dataclass(frozen=True)
class Relabelling:
    """Labels of all rows and how far to trust them; made by :func:`relabel`.

    Attributes
    ----------
    labels : (n,) ndarray
        Of the rows of X (given labels stay) or of X_new.
    confidence : (n,) float64
        Probability of that label. For rows that were trained on it is that of a classifier which had not seen
        them, so a low value marks a given label that the others contradict.
    accuracy, accuracy_std : float
        Mean and standard deviation over the folds of the share of held-out rows that get their label back.
    fold_accuracies : (cv,) float64
    n_trained : int
        Labelled rows.
    classifier : HistGradientBoostingClassifier
        Trained on all labelled rows; its classes are the labels.
    """

    labels: NDArray[Any]
    confidence: NDArray[np.float64]
    accuracy: float
    accuracy_std: float
    fold_accuracies: NDArray[np.float64]
    n_trained: int
    classifier: HistGradientBoostingClassifier

    def __repr__(self) -> str:
        return (
            f"Relabelling({len(self.labels)} rows, {len(self.classifier.classes_)} classes, cross-validated "
            f"accuracy {self.accuracy:.3f} ± {self.accuracy_std:.3f} on {self.n_trained} labelled rows)"
        )


def relabel(
    X: Any, labels: ArrayLike, X_new: Any = None, *, cv: int = 5, random_state: Any = None
) -> Relabelling:
    """Spread new labels, of CPPC for example, to rows that have none.

    Trains gradient-boosted trees on the labelled rows, cross-validates them, and predicts the others
    (Preston et al. 2010, section 3.3, who boosted C4.5 trees).

    Parameters
    ----------
    X : (n_samples, n_features) array_like or DataFrame
        NaN is a value that trees can use.
    labels : (n_samples,) array_like
        New labels; -1, NaN or None for rows to be predicted.
    X_new : (n_new, n_features) array_like or DataFrame, optional
        Other rows to predict. Without it, the unlabelled rows of X are predicted.
    cv : int, default=5
        Folds of the cross-validation, each with its share of every label. A label with fewer rows than that
        is missing from some folds, and one with a single row can never be predicted when it is held out:
        the labels concerned are named in a warning, and their rows count as they come out.
    random_state : int, Generator, RandomState or None
        Of the folds and the trees.

    Returns
    -------
    Relabelling

    Raises
    ------
    ValueError
        If fewer than two labels are there, every label has fewer rows than ``cv``, or labels mix numbers and
        strings.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.mixture.classes.relabel import relabel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(240, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 80, axis=0)
    >>> labels = np.repeat(["crops (a)", "crops (b)", "forest"], 80).astype(object)
    >>> labels[::2] = None
    >>> result = relabel(X, labels, cv=2, random_state=0)
    >>> result.labels[[0, 80, 160]]
    array(['crops (a)', 'crops (b)', 'forest'], dtype='<U9')
    >>> result.accuracy > 0.9
    True
    """
    n_samples = len(X)
    codes, classes = label_codes(labels)
    if len(codes) != n_samples:
        raise ValueError(
            f"labels has {len(codes)} entries, but X has {n_samples} rows; pass one label per row"
        )
    trained = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[trained], minlength=len(classes))
    _check(classes, counts, cv)
    rng = as_generator(random_state)
    folds = StratifiedKFold(cv, shuffle=True, random_state=int(rng.integers(2**31)))
    classifier = boosted_trees(counts, int(rng.integers(2**31)))
    data, truth = _take(X, trained), codes[trained]
    with one_thread_if_small(len(trained), ROWS_OF_ONE_THREAD):
        accuracies, held_out = _cross_validate(classifier, data, truth, len(classes), folds)
        classifier.fit(data, classes[truth])
        if X_new is None:
            wanted = np.flatnonzero(codes < 0)
            found = classes[np.where(codes < 0, 0, codes)]
            confidence = np.empty(n_samples)
            confidence[trained] = held_out
            if len(wanted):
                found[wanted], confidence[wanted] = _predict(classifier, _take(X, wanted))
        else:
            found, confidence = _predict(classifier, X_new)
    return Relabelling(
        labels=found,
        confidence=confidence,
        accuracy=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)),
        fold_accuracies=accuracies,
        n_trained=len(trained),
        classifier=classifier,
    )


def boosted_trees(counts: Ints, seed: int) -> HistGradientBoostingClassifier:
    """Make the trees for labels of these counts (K,)."""
    return HistGradientBoostingClassifier(
        random_state=seed,
        # Without it a label with a single row makes the trees diverge: accuracy 0.64 where 1.00 is right.
        l2_regularization=1.0,
        early_stopping="auto" if counts.min() >= _SMALLEST_STOPPED else False,
    )


def _cross_validate(
    classifier: Any, data: Any, truth: Ints, n_classes: int, folds: StratifiedKFold
) -> tuple[Floats, Floats]:
    """Return the accuracy of each fold, and for each row the probability of its label when held out."""
    with warnings.catch_warnings():
        # Small labels were named already.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        splits = list(folds.split(np.zeros(len(truth)), truth))
    accuracies, held_out = np.empty(len(splits)), np.empty(len(truth))
    for number, (train, test) in enumerate(splits):
        model = clone(classifier).fit(_take(data, train), truth[train])
        probability = np.zeros((len(test), n_classes))
        probability[:, model.classes_] = model.predict_proba(_take(data, test))
        accuracies[number] = np.mean(probability.argmax(axis=1) == truth[test])
        held_out[test] = probability[np.arange(len(test)), truth[test]]
    return accuracies, held_out


def _check(classes: NDArray[Any], counts: Ints, cv: int) -> None:
    """Refuse what cannot be cross-validated, and name labels that are too small for the folds."""
    check_whole_number(cv, "cv", 2)
    if len(classes) < 2:
        found = f"all labelled rows are {classes[0]!r}" if len(classes) else "no row is labelled"
        raise ValueError(f"{found}; a classifier needs at least two labels: label more rows")
    if classes.dtype.kind == "O":
        raise ValueError(
            f"labels mix kinds of names, {classes.tolist()[:5]!r}; use numbers only or strings only"
        )
    if counts.max() < cv:
        raise ValueError(
            f"no label has {cv} rows, the largest has {counts.max()}; use cv <= {max(int(counts.max()), 2)} "
            "or label more rows"
        )
    small = [
        f"{name!r} ({count})" for name, count in zip(classes.tolist(), counts, strict=True) if count < cv
    ]
    if small:
        warnings.warn(
            f"labels with fewer rows than the {cv} folds: {', '.join(small)}. They are missing from some "
            "folds, and the accuracy says little about them; merge them or label more rows.",
            UserWarning,
            stacklevel=3,
        )


def _take(X: Any, rows: Ints) -> Any:
    """Take rows of an array or of a DataFrame, which keeps its column names."""
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]


def _predict(classifier: Any, X: Any) -> tuple[NDArray[Any], Floats]:
    probability = classifier.predict_proba(X)
    return classifier.classes_[probability.argmax(axis=1)], probability.max(axis=1)
