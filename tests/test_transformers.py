"""Every estimator as a transformer, and the two names of the number of clusters."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import linkwise
from linkwise import CPPC, PPC, Constraints
from linkwise._exports import ESTIMATORS
from linkwise.model_selection import sweep_components
from linkwise.persistence import load_model, save_model

X, y = (table[::3] for table in load_iris(return_X_y=True))
LINKS = Constraints.sample(y, 20, random_state=0)
MIXTURES = ["CPPC", "ConstrainedEM", "PPC"]
SPECTRAL = [name for name in ESTIMATORS if "Spectral" in name]


def fit(name, data=X, method="fit", **options):
    model = getattr(linkwise, name)(3, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            getattr(model, method)(data, y)
            if name == "CPPC"
            else getattr(model, method)(data, constraints=LINKS)
        )


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_transform_under_links(name):
    model = fit(name)
    found = model.transform(X)
    np.testing.assert_allclose(fit(name, method="fit_transform"), found)
    columns = model.get_feature_names_out()
    assert found.shape == (len(X), len(columns))
    assert columns[0] == f"{name.lower()}0"
    new = model.transform(X[:7] + 0.01)
    assert new.shape == (7, len(columns))
    if name in MIXTURES:
        np.testing.assert_array_equal(found, model.predict_proba(X))
        np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    elif name in SPECTRAL:
        distances = ((new[:, np.newaxis] - model.embedding_centers_) ** 2).sum(axis=2)
        np.testing.assert_array_equal(distances.argmin(axis=1), model.predict(X[:7] + 0.01))


@pytest.mark.parametrize("name", SPECTRAL)
@pytest.mark.parametrize("affinity", ["heat", "rbf", "precomputed"])
def test_the_embedding_of_the_training_rows(name, affinity):
    data = X
    if affinity == "precomputed":
        data = np.exp(-((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    model = fit(name, data, affinity=affinity)
    alone = np.array([(row == X).all(axis=1).sum() == 1 for row in X])  # coinciding rows get their mean
    if name == "SpectralLearning":
        alone[LINKS.pairs.ravel()] = False  # as new rows they lack the entries that their links replaced
    np.testing.assert_allclose(model.transform(data)[alone], model.embedding_[alone], atol=1e-3)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_set_output(name):
    frame = pd.DataFrame(X, index=[f"f{row}" for row in range(len(X))], columns=list("abcd"))
    model = fit(name, frame).set_output(transform="pandas")
    found = model.transform(frame)
    assert found.index.equals(frame.index)
    assert found.columns.tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(model.predict(frame), model.set_output(transform="default").predict(frame))


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"CPPC"}))
def test_fit_transform_matches_by_id(name):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(flower=[f"f{row}" for row in range(len(X))])
    links = LINKS.with_index(frame["flower"])
    order = np.random.default_rng(0).permutation(len(X))
    model = getattr(linkwise, name)(3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(model).fit_transform(frame.iloc[order], constraints=links)
        np.testing.assert_allclose(found, clone(model).fit_transform(X[order], constraints=LINKS[order]))


@pytest.mark.parametrize("routing", [False, True])
def test_probabilities_as_features_of_a_classifier(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        pipeline = make_pipeline(StandardScaler(), PPC(3, random_state=0), LogisticRegression())
        pipeline.fit(X, y, **{"constraints" if routing else "ppc__constraints": LINKS})
    assert pipeline.score(X, y) > 0.9
    assert pipeline[:-1].get_feature_names_out().tolist() == ["ppc0", "ppc1", "ppc2"]


@pytest.mark.parametrize("name", MIXTURES)
class TestTwoNamesOfTheNumberOfClusters:
    def test_mean_the_same(self, name):
        kind = getattr(linkwise, name)
        one, other = fit(name), kind(n_clusters=3, random_state=0)
        other.fit(X, y) if name == "CPPC" else other.fit(X, constraints=LINKS)
        np.testing.assert_array_equal(one.responsibilities_, other.responsibilities_)
        assert other.get_params()["n_clusters"] == 3
        assert other.get_params()["n_components"] is None
        np.testing.assert_array_equal(
            clone(kind(3, n_clusters=3, random_state=0)).fit_predict(X, y),
            kind(3, random_state=0).fit_predict(X, y),
        )

    def test_two_numbers_are_refused(self, name):
        model = getattr(linkwise, name)(3, n_clusters=4)
        assert clone(model).get_params()["n_components"] == 3  # nothing is decided before fit
        with pytest.raises(ValueError, match="n_components=3 and n_clusters=4 are two names"):
            model.fit(X, y)
        with pytest.raises(ValueError, match="n_clusters must be a whole number"):
            getattr(linkwise, name)(n_clusters=0).fit(X, y)

    def test_the_last_one_set_holds(self, name):
        model = getattr(linkwise, name)(3, random_state=0)
        assert len(model.set_params(n_clusters=2).fit(X, y).weights_) == 2
        assert model.n_components is None
        assert len(model.set_params(n_components=4).fit(X, y).weights_) == 4
        model.n_clusters = 2
        assert len(model.fit(X, y).weights_) == 2
        model.set_params(n_components=2, n_clusters=2)
        assert (model.n_components, model.n_clusters) == (2, 2)

    def test_grid_search_over_either(self, name):
        for given in ({}, {"n_components": 5}, {"n_clusters": 5}):
            model = getattr(linkwise, name)(**given, covariance_type="diag", n_init=1, random_state=0)
            for parameter in ("n_components", "n_clusters"):
                pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
                search = GridSearchCV(pipeline, {f"model__{parameter}": [2, 3]}, cv=2, error_score="raise")
                search.fit(X, y)
                assert (
                    len(search.best_estimator_["model"].weights_)
                    == search.best_params_[f"model__{parameter}"]
                )

    def test_sweep_and_files(self, name, tmp_path):
        model = getattr(linkwise, name)(n_clusters=5, covariance_type="diag", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sweep = sweep_components(model, X, y, n_components=[2, 3], n_repeats=1, random_state=0)
        assert {k: len(run.weights_) for k, run in sweep.typical.items()} == {2: 2, 3: 3}
        model.set_params(n_clusters=3).fit(X, y)
        again = load_model(save_model(model, tmp_path / "model"))
        assert (again.n_components, again.n_clusters) == (None, 3)
        np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_defaults():
    assert len(PPC(random_state=0).fit(X).weights_) == 1
    assert len(CPPC(random_state=0).fit(X, y).weights_) == 3
