"""Features of rows: closed forms, the same at known and new rows, and what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from linkwise.discriminative.features import FEATURES, feature_rows, learn_features, scaled_rows

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 2.0, 0.5] + [5.0, -3.0, 0.0]


def test_linear_features_are_columns_in_one_unit():
    found = feature_rows(learn_features(X, "linear", 1.0), X)
    unit = np.sqrt(X.var(axis=0).mean())
    np.testing.assert_allclose(found, np.column_stack([(X - X.mean(axis=0)) / unit, np.ones(40)]))


def test_quadratic_features_have_all_products():
    found = feature_rows(learn_features(X, "quadratic", 1.0), X)
    rows = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    assert found.shape == (40, 3 + 6 + 1)
    for number, (i, j) in enumerate([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]):
        expected = rows[:, i] * rows[:, j]
        np.testing.assert_allclose(found[:, 3 + number], expected / expected.std())


def test_inner_products_of_rbf_features_are_the_kernel():
    learned = learn_features(X, "rbf", 0.7)
    found = feature_rows(learned, X)[:, :-1]
    rows = (X - learned.centre) / learned.unit
    # 40 eigenvectors are all there are.
    np.testing.assert_allclose(found @ found.T, rbf_kernel(rows, gamma=0.5 / learned.width**2), atol=1e-6)


def test_width_is_relative_to_the_median_distance():
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    for width in (0.5, 2.0):
        learned = learn_features(X, "rbf", width)
        assert learned.width * learned.unit == pytest.approx(width * np.median(distances[distances > 0]))


def test_graph_features_of_a_known_row_are_its_own_and_of_a_new_one_between_its_neighbours():
    learned = learn_features(X, "graph", 1.0)
    found = feature_rows(learned, X)
    np.testing.assert_allclose(found[:, :-1], learned.table, atol=1e-9)
    new = feature_rows(learned, X[:1] + 1e-6)
    np.testing.assert_allclose(new, found[:1], atol=1e-3)
    assert (np.abs(feature_rows(learned, X + 0.3)) <= np.abs(found).max(axis=0) + 1e-9).all()


def test_graph_features_tell_two_groups_apart_that_no_edge_joins():
    groups = np.repeat([0, 1], 30)
    rows = np.random.default_rng(1).normal(size=(60, 2)) + 100.0 * groups[:, None]
    found = feature_rows(learn_features(rows, "graph", 1.0), rows)[:, :-1]
    similarity = found @ found.T
    assert np.abs(similarity[groups == 0][:, groups == 1]).max() < 1e-6
    assert (similarity[groups == 0][:, groups == 0] > 0.1).all()


@pytest.mark.parametrize("kind", FEATURES)
def test_a_common_unit_and_an_origin_change_nothing(kind):
    before = feature_rows(learn_features(X, kind, 1.0), X)
    after = feature_rows(learn_features(1000.0 * X + 7.0, kind, 1.0), 1000.0 * X + 7.0)
    np.testing.assert_allclose(np.abs(after), np.abs(before), atol=1e-5)


@pytest.mark.parametrize("kind", FEATURES)
def test_whitened_features_do_not_depend_on_the_units_of_columns(kind):
    stretched = X @ np.array([[3.0, 1.0, 0.0], [0.0, 0.2, 5.0], [1.0, 0.0, 1.0]])
    rows, others = (scaled_rows(learn_features(T, kind, 1.0, whiten=True), T) for T in (X, stretched))
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(rows @ rows.T, others @ others.T, atol=1e-8)


def test_whitening_leaves_out_directions_with_few_rows_or_no_spread():
    rng = np.random.default_rng(3)
    few = rng.normal(size=(30, 20))
    assert learn_features(few, "linear", 1.0, whiten=True).directions.shape == (20, 6)
    flat = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    assert learn_features(flat, "linear", 1.0, whiten=True).directions.shape == (3, 2)


@pytest.mark.parametrize("kind", FEATURES)
def test_rows_that_are_all_alike_are_whitened_to_finite_features(kind):
    learned = learn_features(np.ones((12, 3)), kind, 1.0, whiten=True)
    np.testing.assert_allclose(np.linalg.norm(learned.directions, axis=0), 1.0)
    assert np.isfinite(feature_rows(learned, X)).all()


@pytest.mark.parametrize("kind", FEATURES)
def test_equal_rows_and_more_rows_than_a_band(kind):
    equal = np.ones((12, 2))
    assert np.isfinite(feature_rows(learn_features(equal, kind, 1.0), equal)).all()
    many = np.random.default_rng(2).normal(size=(5000, 3))
    learned = learn_features(X, kind, 1.0)
    some = [0, 4095, 4096, 4999]
    np.testing.assert_allclose(
        feature_rows(learned, many)[some], feature_rows(learned, many[some]), atol=1e-9
    )
