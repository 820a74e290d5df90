"""Likely wrong labels: against plain loops, in closed form, and where the truth is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from linkwise.mixture.classes import mislabelled
from linkwise.mixture.classes.mislabelled import FEWEST_ROWS, LIKELY, label_errors, read_labels


def far_classes(seed=0, n=100, distance=12.0, n_classes=3, n_features=2):
    """Gaussian classes on a line that nobody could confuse."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n)
    return rng.normal(size=(len(y), n_features)) + distance * y[:, np.newaxis], y


def flipped(y, rate, seed=0):
    """Labels of which a share is wrong, and which."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.permutation(len(y))[: round(rate * len(y))]] = True
    n_classes = int(y.max()) + 1
    return np.where(wrong, (y + rng.integers(1, n_classes, len(y))) % n_classes, y), wrong


# The slow way: everything row by row, full covariances.


def one_rate(e, n_classes):
    """Probabilities of labels (columns) for classes (rows) if all errors are as likely."""
    return np.where(np.eye(n_classes) > 0, 1 - e, e / (n_classes - 1))


def oracle_posterior(densities, owners, label, confusion, b):
    """Posteriors of clusters and classes for one row; densities are pi_k N(x; k)."""
    n_classes = max(owners) + 1
    of_class = [
        sum(d for d, owner in zip(densities, owners, strict=True) if owner == c) for c in range(n_classes)
    ]
    joint = [of_class[c] ** b * confusion[c][label] for c in range(n_classes)]
    classes = [value / sum(joint) for value in joint]
    clusters = [
        classes[owner] * density / of_class[owner] for density, owner in zip(densities, owners, strict=True)
    ]
    return np.array(clusters), np.array(classes), np.array(of_class)


def oracle_fit(X, weights, pooled, variances, reg):
    """Means, shrunk covariances and mixing weights of rows with responsibilities (n, K)."""
    d = X.shape[1]
    pseudo = d * (d + 1) / 2
    counts = weights.sum(axis=0)
    means = (weights.T @ X) / counts[:, None]
    own = [
        np.cov(X.T, aweights=weights[:, k], bias=True).reshape(d, d) + reg * np.eye(d)
        for k in range(len(counts))
    ]
    if pooled is None:
        pooled = sum(n * covariance for n, covariance in zip(counts, own, strict=True)) / counts.sum()
    shrunk = [
        (pseudo * 15 / 16 * pooled + pseudo / 16 * np.diag(variances) + n * covariance) / (pseudo + n)
        for n, covariance in zip(counts, own, strict=True)
    ]
    return means, shrunk, (counts + 0.5) / (counts + 0.5).sum()


def oracle_errors(X, y, clusters, fold, n_iterations, reg=1e-6):
    """``label_errors`` for clusters of one class each and known folds."""
    n, n_clusters, n_classes = len(X), clusters.max() + 1, y.max() + 1
    owners = [int(y[clusters == k][0]) for k in range(n_clusters)]
    variances = X.var(axis=0) + reg
    responsibilities = np.eye(n_clusters)[clusters]
    e, b, fits = 1 / 20, 1.0, {}
    confusion = one_rate(e, n_classes)
    for iteration in range(n_iterations + 1):
        for f in np.unique(fold):
            used = fold != f if fold.any() else np.ones(n, dtype=bool)
            pooled = None
            if f in fits:
                pooled = np.linalg.inv(np.mean([np.linalg.inv(s) for s in fits[f][1]], axis=0))
            fits[f] = oracle_fit(X[used], responsibilities[used], pooled, variances, reg)
        slope = curvature = 0.0
        counts = np.zeros((n_classes, n_classes))
        probability = np.empty(n)
        new = np.empty_like(responsibilities)
        for i in range(n):
            means, covariances, shares = fits[fold[i]]
            densities = [
                share * multivariate_normal(mean, covariance).pdf(X[i])
                for mean, covariance, share in zip(means, covariances, shares, strict=True)
            ]
            new[i], classes, of_class = oracle_posterior(densities, owners, y[i], confusion, b)
            probability[i] = 1 - classes[y[i]]
            scores = np.log(of_class) - np.log(of_class).max()
            told = of_class**b / (of_class**b).sum()
            counts[:, y[i]] += classes
            slope += classes @ scores - told @ scores
            curvature += told @ scores**2 - (told @ scores) ** 2
        if iteration < n_iterations:
            responsibilities = new
            e = (counts.sum() - np.trace(counts) + 1) / (n + 20)
            confusion = counts + 100 * one_rate(e, n_classes)
            confusion /= confusion.sum(axis=1, keepdims=True)
            b *= np.exp(np.clip((b * slope - np.log(b)) / (b * b * curvature + 1), -1, 1))
    return probability, e, b


def test_posterior_is_that_of_plain_loops():
    rng = np.random.default_rng(1)
    owners = np.array([0, 0, 1, 2, 2, 2])
    log_density = rng.normal(scale=3.0, size=(40, 6))
    labels = rng.integers(0, 3, 40)
    confusion = rng.dirichlet(np.ones(3), 3)
    reading = read_labels(log_density, owners, labels, confusion, 0.6)
    for i in range(40):
        clusters, classes, _ = oracle_posterior(
            np.exp(log_density[i]), owners.tolist(), labels[i], confusion, 0.6
        )
        assert reading.responsibilities[i] == pytest.approx(clusters, rel=1e-10)
        assert reading.classes[i] == pytest.approx(classes, rel=1e-10)


def test_slope_and_curvature_are_derivatives():
    rng = np.random.default_rng(2)
    owners, labels = np.array([0, 1, 2]), rng.integers(0, 3, 50)
    log_density = rng.normal(scale=2.0, size=(50, 3))
    fixed = read_labels(log_density, owners, labels, one_rate(0.1, 3), 0.8).classes

    def expected(b):
        scores = b * log_density
        return (fixed * (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))).sum()

    reading = read_labels(log_density, owners, labels, one_rate(0.1, 3), 0.8)
    h = 1e-4
    assert reading.slope == pytest.approx((expected(0.8 + h) - expected(0.8 - h)) / (2 * h), rel=1e-6)
    second = (expected(0.8 + h) - 2 * expected(0.8) + expected(0.8 - h)) / h**2
    assert reading.curvature == pytest.approx(-second, rel=1e-4)


@pytest.mark.parametrize(("n_iterations", "n_folds"), product([0, 1, 3], [4, 1]))
def test_iterations_are_those_of_plain_loops(monkeypatch, n_iterations, n_folds):
    rng = np.random.default_rng(3)
    clusters = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.array([[0.0, 0.0], [4.0, 0.0], [1.5, 2.5]])[clusters]
    y = np.array([0, 0, 1])[clusters]
    # Rows are dealt in the order of class and of a sum of standardised features.
    order = np.lexsort(((X / X.std(axis=0)) @ np.cos([1.0, 4.0]), y))
    fold = np.empty(60, dtype=int)
    fold[order] = np.arange(60) % n_folds
    monkeypatch.setattr(mislabelled, "first_clusters", lambda *arguments: clusters)
    found = label_errors(X, y, n_iterations=n_iterations, n_folds=n_folds)
    probability, e, b = oracle_errors(X, y, clusters, fold, n_iterations)
    assert found.probability == pytest.approx(probability, rel=1e-6, abs=1e-10)
    assert found.error_rate == pytest.approx(e, rel=1e-8)
    assert found.sharpness == pytest.approx(b, rel=1e-8)
    assert found.owners.tolist() == [0, 0, 1]


def test_two_equal_densities_leave_the_rate_of_errors():
    """Where both classes are as likely, the label is wrong with probability e; d nats for it: a logistic."""
    owners = np.array([0, 1])
    log_density = np.array([[-3.0, -3.0], [-3.0, -5.0], [-5.0, -3.0], [-900.0, -3.0]])
    classes = read_labels(log_density, owners, np.zeros(4, dtype=int), one_rate(0.2, 2), 1.0).classes
    nats = np.log(0.2 / 0.8) + np.array([0.0, -2.0, 2.0, 897.0])
    assert classes[:, 1] == pytest.approx(1 / (1 + np.exp(-nats)), rel=1e-12)


def test_a_label_that_no_density_supports_is_wrong():
    """Differences beyond the reach of exp neither divide by zero nor lose the answer."""
    reading = read_labels(
        np.array([[-1e6, 0.0, -1e7], [-1e9, -1e9 - 1, 0.0]]),
        np.array([0, 1, 2]),
        np.array([0, 0]),
        one_rate(0.05, 3),
        1.0,
    )
    assert reading.classes == pytest.approx(np.array([[0, 1, 0], [0, 0, 1]]), abs=1e-12)
    assert np.isfinite(reading.responsibilities).all()
    assert np.isfinite([reading.slope, reading.curvature]).all()


@pytest.mark.parametrize(
    ("covariance_type", "rate"), product(["full", "tied", "diag", "spherical"], [0.02, 0.1, 0.2])
)
def test_flipped_labels_of_far_classes_are_found(covariance_type, rate):
    X, y = far_classes()
    given, wrong = flipped(y, rate)
    found = label_errors(X, given, covariance_type=covariance_type)
    assert ((found.probability > LIKELY) == wrong).all()
    assert (found.told[wrong] == y[wrong]).all()
    assert (found.told != given).all()
    assert found.probability[wrong].min() > 0.95
    # Beta(1, 19) counts as twenty labels, one of them wrong.
    assert found.error_rate == pytest.approx((wrong.sum() + 1) / (len(y) + 20), rel=0.05)


def test_wrong_labels_that_are_all_the_same_are_found():
    """A tenth of class 0 is called 1 and of class 1 is called 2: the likeliest errors of people."""
    X, y = far_classes(seed=4, n=200, distance=4.0)
    wrong = (np.random.default_rng(4).random(len(y)) < 0.1) & (y < 2)
    found = label_errors(X, np.where(wrong, y + 1, y))
    flagged = found.probability > LIKELY
    assert wrong[flagged].mean() > 0.9
    assert flagged[wrong].mean() > 0.9


def test_the_rate_is_learned_where_classes_touch():
    X, y = far_classes(seed=5, n=400, distance=3.0)
    given, wrong = flipped(y, 0.1, seed=5)
    found = label_errors(X, given)
    assert found.error_rate == pytest.approx(0.1, abs=0.025)
    flagged = found.probability > LIKELY
    assert wrong[flagged].mean() > 0.85
    assert flagged[wrong].mean() > 0.85
    # Probabilities mean what they say.
    assert found.probability.sum() == pytest.approx(wrong.sum(), rel=0.25)


def test_right_labels_of_far_classes_are_left_alone():
    X, y = far_classes(seed=6)
    found = label_errors(X, y)
    assert found.probability.max() < 0.05
    assert found.error_rate < 0.01


def test_labels_without_meaning_are_not_called_wrong():
    """Where the features say nothing about the label no row is told another; cross-fitting sees to it."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(120, 12)), rng.integers(0, 3, 120)
    assert (label_errors(X, y).probability < LIKELY).mean() > 0.97


def test_units_and_order_do_not_matter():
    X, y = far_classes(seed=8, distance=2.5, n_features=3)
    given, _ = flipped(y, 0.1)
    found = label_errors(X, given, reg_covar=0.0)
    scaled = label_errors(X * [1e4, 1.0, 1e-3] + [0.0, 50.0, -1.0], given, reg_covar=0.0)
    assert scaled.probability == pytest.approx(found.probability, rel=1e-5, abs=1e-8)
    assert (scaled.told == found.told).all()
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = label_errors(X[order], given[order], reg_covar=0.0)
    assert shuffled.probability == pytest.approx(found.probability[order], rel=1e-8, abs=1e-10)
    assert (shuffled.told == found.told[order]).all()
    again = label_errors(X, given, reg_covar=0.0)
    assert np.array_equal(again.probability, found.probability)


def test_names_of_classes_do_not_matter():
    X, y = far_classes(seed=9, distance=2.5)
    given, _ = flipped(y, 0.1)
    names = np.array([4, 0, 9])
    found, renamed = label_errors(X, given), label_errors(X, names[given])
    # Folds follow the order of the classes, so that figures differ a little.
    assert renamed.probability == pytest.approx(found.probability, abs=0.2)
    assert np.abs(renamed.probability - found.probability).mean() < 0.01
    assert (names[found.told] == renamed.told)[found.probability > 0.5].all()


def test_a_class_of_several_clusters_is_not_wrong_in_its_smaller_one():
    rng = np.random.default_rng(10)
    places = np.array([[0.0, 0.0], [20.0, 0.0], [10.0, 0.0]])
    part = np.repeat([0, 1, 2], [150, 30, 150])
    X = rng.normal(size=(330, 2)) + places[part]
    found = label_errors(X, np.array([0, 0, 1])[part])
    assert found.probability.max() < 0.5
    assert found.owners.tolist().count(0) >= 2


def test_two_names_of_one_class_are_both_right():
    """Classes that the beliefs merged share a cluster: neither name is wrong."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(400, 2)) + np.repeat([[0.0, 0.0], [15.0, 0.0]], 200, axis=0)
    y = np.where(np.arange(400) < 200, rng.integers(0, 2, 400), 2)
    y[395:] = 0
    found = label_errors(X, y)
    assert (found.probability[:395] < 0.3).all()
    assert (found.probability[395:] > 0.9).all()
    assert (found.told[395:] == 2).all()


def test_few_rows_in_one_place_do_not_defend_their_label():
    """Wrong rows in the place of their true class are few; they must not stay a cluster of their own."""
    X, y = far_classes(seed=12, n_classes=2)
    given = y.copy()
    given[:4] = 1
    found = label_errors(X, given)
    assert np.flatnonzero(found.probability > LIKELY).tolist() == [0, 1, 2, 3]
    assert len(found.owners) == 2


def test_unlabelled_rows_and_small_classes_are_skipped():
    X, y = far_classes(seed=13)
    given, wrong = flipped(y, 0.1)
    found = label_errors(X, given)
    more = np.vstack([X, np.random.default_rng(0).normal(size=(30 + FEWEST_ROWS - 1, 2)) * 50])
    labels = np.concatenate([given, np.full(30, -1), np.full(FEWEST_ROWS - 1, 7)])
    among = label_errors(more, labels)
    assert np.array_equal(among.probability[: len(X)], found.probability)
    assert (among.probability[len(X) :] == 0.0).all()
    assert (among.told[len(X) :] == -1).all()
    assert ((among.probability > LIKELY)[: len(X)] == wrong).all()


@pytest.mark.parametrize("codes", [np.zeros(40), np.full(40, -1), np.r_[np.zeros(37), [1, 1, 2]]])
def test_with_one_class_there_is_nothing_to_tell(codes):
    found = label_errors(np.random.default_rng(0).normal(size=(40, 2)), codes.astype(int))
    assert (found.probability == 0.0).all()
    assert (found.told == -1).all()
    assert np.isnan(found.error_rate)


def test_a_class_of_few_rows_in_many_features_is_judged():
    rng = np.random.default_rng(14)
    y = np.repeat([0, 1, 2], [80, 80, FEWEST_ROWS])
    X = rng.normal(size=(len(y), 20)) + 6.0 * y[:, np.newaxis]
    given = y.copy()
    given[[0, 100]] = [1, 0]
    found = label_errors(X, given)
    assert np.flatnonzero(found.probability > LIKELY).tolist() == [0, 100]


def test_single_precision_constant_features_and_equal_rows():
    X, y = far_classes(seed=15)
    given, wrong = flipped(y, 0.1)
    X = np.column_stack([X, np.full(len(X), 3.0)])
    X[:50] = X[0]
    found = label_errors(X.astype(np.float32), given)
    assert ((found.probability > LIKELY) == wrong).all()
