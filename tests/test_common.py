"""scikit-learn's own checks of every estimator, and its tools around them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from linkwise import PPC, ConstrainedEM, Constraints

ESTIMATORS = [
    PPC(random_state=0),
    ConstrainedEM(n_init=2, random_state=0),
    PPC(2, components_per_cluster=2, n_init=2, random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, Constraints.sample(y, 60, overlap=True, certainty=0.95, random_state=0)


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


MODELS = [
    PPC(3, n_init=1, max_iter=20, random_state=0),
    ConstrainedEM(3, sampling="points", n_init=1, max_iter=20, random_state=0),
]


@pytest.mark.parametrize("estimator", MODELS)
class TestInScikitLearn:
    def test_grid_search_over_a_pipeline_has_finite_scores(self, estimator, iris, routing):
        X, _, links = iris
        pipeline = Pipeline([("scale", StandardScaler()), ("model", clone(estimator))])
        search = GridSearchCV(pipeline, {"model__covariance_type": ["full", "diag"]}, cv=3)
        search.set_params(error_score="raise")
        search.fit(X, **{"constraints" if routing else "model__constraints": links})
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_["model"].responsibilities_.shape == (150, 3)

    def test_cross_validate(self, estimator, iris, routing):
        X, _, links = iris
        result = cross_validate(estimator, X, cv=3, params={"constraints": links}, error_score="raise")
        assert np.isfinite(result["test_score"]).all()

    @pytest.mark.parametrize(("library", "names"), [(pd, "columns"), (pl, "schema")])
    def test_pickle_clone_and_frames(self, estimator, iris, library, names):
        X, _, links = iris
        frame = library.DataFrame(X, **{names: ["a", "b", "c", "d"]})
        model = clone(estimator).fit(frame, constraints=links)
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        twin = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))
        assert not hasattr(clone(model), "means_")
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c", "d"]])
