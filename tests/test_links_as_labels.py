"""Links given by position land in ``y``: every method that takes ``y`` refuses them."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, Constraints, COPKMeans
from linkwise._exports import ESTIMATORS
from linkwise.model_selection import ConstraintKFold, sweep_components

X, LABELS = (table[::3] for table in load_iris(return_X_y=True))
LINKS = Constraints.sample(LABELS, 20, random_state=0)


def estimator_class(name):
    return getattr(importlib.import_module(ESTIMATORS[name]), name)


def methods_with_labels():
    """Every public method of every estimator that has a parameter y."""
    found = []
    for name in sorted(ESTIMATORS):
        for method, function in inspect.getmembers(estimator_class(name), callable):
            if method.startswith("_"):
                continue
            if "y" in inspect.signature(function).parameters:
                found.append((name, method))
    return found


METHODS = methods_with_labels()


@pytest.fixture(scope="module")
def fitted():
    return {name: estimator_class(name)(3, random_state=0).fit(X, LABELS) for name in ESTIMATORS}


def test_the_enumeration_sees_the_methods():
    assert {name for name, _ in METHODS} == set(ESTIMATORS)
    assert {"fit", "fit_predict", "score", "fit_transform", "report"} <= {method for _, method in METHODS}


@pytest.mark.parametrize(("name", "method"), METHODS)
@pytest.mark.parametrize("by_name", [False, True])
def test_links_in_place_of_labels_are_refused(fitted, name, method, by_name):
    call = getattr(fitted[name], method)
    with pytest.raises(TypeError, match="constraints=links"):
        call(X, y=LINKS) if by_name else call(X, LINKS)


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"CPPC"}))
@pytest.mark.parametrize("pairs", [[(0, 5), (7, 9)], np.array([[0, 5], [7, 9]]), [[0, 5]]], ids=repr)
def test_raw_pairs_in_place_of_labels_are_refused(name, pairs):
    model = estimator_class(name)(3, random_state=0)
    for method in ("fit", "fit_predict"):
        with pytest.raises(TypeError, match="constraints=links"):
            getattr(model, method)(X, pairs)


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"CPPC"}))
def test_labels_stay_ignored_and_raw_constraints_keep_their_message(name):
    model = estimator_class(name)(3, random_state=0)
    two_targets = np.column_stack([LABELS, LABELS])
    without = model.fit_predict(X)
    for y in (LABELS, LABELS.tolist(), two_targets, LABELS.astype(str)):
        np.testing.assert_array_equal(model.fit_predict(X, y), without)
    with pytest.raises(TypeError, match=r"constraints must be a linkwise\.Constraints, got list"):
        model.fit(X, constraints=[(0, 5), (7, 9)])


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_inside_a_pipeline(name):
    pipeline = Pipeline([("scale", StandardScaler()), ("model", estimator_class(name)(3, random_state=0))])
    for method in ("fit", "fit_predict"):
        with pytest.raises(TypeError, match="constraints=links"):
            getattr(pipeline, method)(X, LINKS)
    pipeline.fit(X, LABELS)
    if hasattr(pipeline, "score"):
        with pytest.raises(TypeError, match="constraints=links"):
            pipeline.score(X, LINKS)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", ["COPKMeans", "HMRFKMeans", "PPC", "CPPC"])
def test_under_cross_validation(name, routing):
    model = estimator_class(name)(3, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        for run in (cross_validate, cross_val_score, cross_val_predict):
            options = {} if run is cross_val_predict else {"error_score": "raise"}
            with pytest.raises(TypeError, match="constraints=links"):
                run(model, X, LINKS, cv=3, **options)
        with pytest.raises(ValueError, match="constraints=links"):
            # With scikit-learn's default the fits fail one by one; all of them failing is an error.
            cross_validate(model, X, LINKS, cv=3)
        search = GridSearchCV(model, {"n_init": [1, 2]}, cv=3, error_score="raise")
        with pytest.raises(TypeError, match="constraints=links"):
            search.fit(X, LINKS)


def test_helpers_of_model_selection():
    with pytest.raises(TypeError, match="constraints=links"):
        sweep_components(PPC(), X, LINKS, n_components=[2, 3], criterion="bic")
    folds = ConstraintKFold(3, constraints=LINKS)
    for arguments in ((X, LINKS), (X, None, LINKS)):
        with pytest.raises(TypeError, match="constraints=links"):
            next(folds.split(*arguments))
        with pytest.raises(TypeError, match="constraints=links"):
            folds.get_n_splits(*arguments)
    with pytest.raises(TypeError, match="constraints=links"):
        # The splitter works on the links given as labels, but would leave them out of the fits.
        cross_validate(COPKMeans(3), X, LINKS, cv=folds, error_score="raise")
