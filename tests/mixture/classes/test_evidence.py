"""Evidence for dividing and joining classes, against enumeration, explicit densities and known numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from linkwise.mixture.classes.evidence import (
    best_counts,
    class_divisions,
    joined,
    joining_cost,
    moments_of,
    pair_loss,
)
from tests.repeats import LONG

SHAPES = ["full", "tied", "diag", "spherical"]


def test_best_counts_are_those_of_enumeration():
    rng = np.random.default_rng(0)
    impossible = 0
    for _ in range(300):
        costs = [rng.normal(size=rng.integers(1, 4)) for _ in range(rng.integers(1, 5))]
        total = int(rng.integers(1, 12))
        ways = [way for way in product(*(range(1, len(cost) + 1) for cost in costs)) if sum(way) == total]
        found = best_counts(costs, total)
        if not ways:
            assert found is None
            impossible += 1
            continue

        def value(way, costs=costs):
            return sum(cost[k - 1] for cost, k in zip(costs, way, strict=True))

        assert found is not None
        assert sum(found) == total
        assert value(found) == pytest.approx(min(map(value, ways)))
    assert 20 < impossible < 280


def test_pair_loss_counts_the_pairs_that_are_parted():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_classes, n_parts, n = rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 12)
        codes, parts = rng.integers(n_classes, size=n), rng.integers(n_parts, size=n)
        weights = rng.normal(size=(n_classes, n_classes))
        weights = weights + weights.T
        lost = sum(
            weights[codes[i], codes[j]] for i in range(n) for j in range(i) if parts[i] != parts[j]
        )  # every unordered pair once
        table = np.zeros((n_classes, n_parts), dtype=int)
        np.add.at(table, (codes, parts), 1)
        assert pair_loss(table, weights) == pytest.approx(lost)


def shrunk(covariance, n, pooled, covariance_type, nu):
    fitted = pooled if covariance_type == "tied" else (nu * pooled + n * covariance) / (nu + n)
    if covariance_type == "diag":
        fitted = np.diag(np.diag(fitted))
    if covariance_type == "spherical":
        fitted = np.eye(len(fitted)) * np.trace(fitted) / len(fitted)
    return fitted


@pytest.mark.parametrize("covariance_type", SHAPES)
@pytest.mark.parametrize("nu", [1.0, 6.0])
def test_cost_of_joining_is_that_of_explicit_densities(covariance_type, nu):
    rng = np.random.default_rng(0)
    for _ in range(10):
        d = int(rng.integers(1, 4))
        a, b = rng.normal(size=(30, d)), rng.normal(size=(45, d)) * 1.5 + rng.normal(size=d)
        both = np.concatenate([a, b])
        pooled = (len(a) * np.cov(a.T, bias=True) + len(b) * np.cov(b.T, bias=True)) / len(both)
        pooled = np.atleast_2d(pooled)
        fits, entries = [], []
        full = {"full": d * (d + 1) / 2, "diag": d, "spherical": 1, "tied": 0}[covariance_type]
        for rows in (a, b, both):
            covariance = np.atleast_2d(np.cov(rows.T, bias=True))
            fitted = shrunk(covariance, len(rows), pooled, covariance_type, nu)
            fits.append(multivariate_normal(rows.mean(axis=0), fitted).logpdf(rows).sum())
            entries.append(full * len(rows) / (len(rows) + nu))
        saved = d + entries[0] + entries[1] - entries[2]
        expected = 2 * (fits[0] + fits[1] - fits[2]) - saved * np.log(len(both))
        ours = joining_cost(moments_of(a), moments_of(b), pooled, covariance_type, nu)
        assert ours == pytest.approx(expected)


def test_moments_of_two_sets_of_rows_together():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 3)) + 1e3, rng.normal(size=(12, 3))
    ours, expected = joined(moments_of(a), moments_of(b)), moments_of(np.concatenate([a, b]))
    assert ours.n_rows == expected.n_rows
    np.testing.assert_allclose(ours.mean, expected.mean)
    np.testing.assert_allclose(ours.covariance, expected.covariance, rtol=1e-9)


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_far_blobs_are_found_and_are_stable(covariance_type):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 50, axis=0)
    found = class_divisions(X, 6, covariance_type, 1e-6, 3.0, 0)
    best = min(found, key=lambda one: one.criterion)
    assert best.n_parts == 3
    assert best.stability == 1.0
    assert [len(set(best.labels[start : start + 50])) for start in (0, 50, 100)] == [1, 1, 1]
    assert found[0].stability == 1.0
    assert (found[0].labels == 0).all()


def test_one_gaussian_is_one_part_or_unstable():
    rng = np.random.default_rng(0)
    for _ in range(5 if LONG else 2):
        found = class_divisions(rng.normal(size=(200, 3)), 4, "full", 1e-6, 6.0, 0)
        best = min(found, key=lambda one: one.criterion)
        assert best.n_parts == 1
        assert all(one.stability < 0.85 for one in found[1:])


def test_what_is_not_judged_has_no_stability_and_all_numbers():
    X = np.random.default_rng(0).normal(size=(100, 2))
    found = class_divisions(X, 5, "full", 1e-6, 3.0, 0, judge=False)
    assert [one.n_parts for one in found] == [1, 2, 3, 4, 5]
    assert np.isnan([one.stability for one in found[1:]]).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_rows_is_one_part(n):
    found = class_divisions(np.random.default_rng(0).normal(size=(n, 4)), 5, "full", 1e-6, 10.0, 0)
    assert [one.n_parts for one in found] == [1]
    assert len(found[0].labels) == n


def test_large_classes_are_looked_at_in_part_and_labelled_in_full():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 9])
    best = min(class_divisions(X, 3, "full", 1e-6, 3.0, 0), key=lambda one: one.criterion)
    assert best.n_parts == 2
    assert len(best.labels) == 6000
    assert len(set(best.labels[:3000])) == len(set(best.labels[3000:])) == 1
