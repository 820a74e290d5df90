"""Models on disk: what comes back equals what was stored, and nothing else is loaded."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from linkwise import (
    CPPC,
    PPC,
    ClassBeliefs,
    ConstrainedEM,
    ConstrainedSpectralClustering,
    Constraints,
    COPKMeans,
    HMRFKMeans,
    LinkedClustering,
    MPCKMeans,
    PCKMeans,
    SpectralLearning,
)
from linkwise.auto import Consensus
from linkwise.auto.candidates import CANDIDATES
from linkwise.exceptions import ModelFileError
from linkwise.persistence import load_model, save_model


def equal(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, np.ndarray):
        same = left.dtype == right.dtype and left.shape == right.shape
        return same and all(map(equal, left.ravel().tolist(), right.ravel().tolist()))
    if isinstance(left, float):
        return left == right or (np.isnan(left) and np.isnan(right))
    return left == right


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    links = Constraints.sample(y, 30, certainty=0.9, random_state=0)
    names = ["a", "b"] * 15
    return X, y, Constraints(len(y), links.must_link, links.cannot_link, certainty=0.9, source=names)


@pytest.mark.parametrize(
    "model",
    [
        PPC(3, n_init=1, random_state=0),
        PPC(3, means_init=np.eye(3, 4), tol=0.01, random_state=np.random.RandomState(0)),
        PPC(2, components_per_cluster=2, learn_noise="kind", n_init=1, random_state=0),
        PPC(3, covariance_type="tied", learn_noise="source", n_init=1, random_state=0),
        ConstrainedEM(3, sampling="points", n_init=1, random_state=0),
    ],
)
def test_round_trip(model, iris, tmp_path):
    X, _, links = iris
    model.fit(X, constraints=links)
    twin = load_model(save_model(model, tmp_path / "a" / "model"))
    assert type(twin) is type(model)
    stored = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert stored.keys() == {key for key in vars(twin) if key.endswith("_")}
    for key, value in stored.items():
        assert equal(value, getattr(twin, key)), key
    parameters = {key: value for key, value in model.get_params().items() if key != "random_state"}
    for key, value in parameters.items():
        assert equal(value, getattr(twin, key)), key
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        twin.predict(X[X.columns[::-1]])


@pytest.mark.parametrize(
    "model",
    [
        CPPC(4, beliefs=ClassBeliefs.keep([0, 1, 2]).split(1), random_state=0),
        HMRFKMeans(3, n_init=1, random_state=0),
        HMRFKMeans(3, n_init=1, metric="per_cluster", weight=(1.0, 2.0), random_state=0),
        HMRFKMeans(3, n_init=1, distortion="cosine", random_state=0),
        PCKMeans(3, n_init=1, random_state=0),
        MPCKMeans(3, n_init=1, random_state=0),
        COPKMeans(3, n_init=1, random_state=0),
        ConstrainedSpectralClustering(3, n_init=1, random_state=0),
        SpectralLearning(3, affinity="heat", n_init=1, random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_predicts_the_same_after_loading(model, iris, tmp_path):
    X, y, _ = iris
    links = Constraints.sample(y, 20, random_state=0)
    model.fit(X, y, **({} if isinstance(model, CPPC) else {"constraints": links}))
    twin = load_model(save_model(model, tmp_path / "model"))
    new = X + 0.01
    np.testing.assert_array_equal(twin.predict(new), model.predict(new))
    assert equal(twin.labels_, model.labels_)
    if isinstance(model, CPPC):
        assert twin.beliefs == model.beliefs


@pytest.fixture(scope="module")
def several():
    X, y = (table[::3] for table in load_iris(return_X_y=True))
    links = Constraints.sample(y, 12, flip=0.3, certainty=0.7, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinkedClustering(
            3, candidates=["mixture", "mixture, tied"], cv=2, effort="quick", random_state=0
        ).fit(X, constraints=links)


def put(table, key, value):
    """Change an entry of a stored table."""
    next(pair for pair in table["pairs"] if pair[0] == key)[1] = value


class TestLinkedClustering:
    members = ("mixture", "mixture, tied", "spectral, near", "k-means, no links")

    def fit(self, iris, candidates, **known):
        X, _, links = iris
        known = known or {"constraints": links[::3]}
        return LinkedClustering(3, candidates=candidates, cv=2, effort="quick", random_state=0).fit(
            X[::3], **known
        )

    @pytest.mark.filterwarnings("ignore")
    def test_round_trip_of_several(self, iris, tmp_path):
        X, y, _ = iris
        links = Constraints.sample(y[::3], 12, flip=0.3, certainty=0.7, random_state=0)
        model = self.fit(iris, list(self.members), constraints=links)
        assert len(model.best_estimator_.names) > 1
        twin = load_model(save_model(model, tmp_path / "model"))
        assert twin.get_params() == model.get_params()
        np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        stored = {key for key in vars(model) if key.endswith("_")}
        assert stored == {key for key in vars(twin) if key.endswith("_")}
        for key in stored - {"best_estimator_"}:
            assert equal(getattr(model, key), getattr(twin, key)), key
        assert twin.table() == model.table()
        mine, theirs = model.best_estimator_, twin.best_estimator_
        assert (mine.names, mine.n_clusters) == (theirs.names, theirs.n_clusters)
        assert equal(mine.shares, theirs.shares)
        assert equal([one.labels_ for one in mine.estimators], [one.labels_ for one in theirs.estimators])
        assert isinstance(theirs, Consensus)
        again = load_model(save_model(twin, tmp_path / "again"))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_round_trip_of_one(self, iris, tmp_path):
        X, y, _ = iris
        labels = np.where(np.arange(50) % 4 == 0, y[::3], -1)
        model = self.fit(iris, ["mixture, tied"], labels=labels)
        twin = load_model(save_model(model, tmp_path / "model"))
        assert type(twin.best_estimator_) is PPC
        np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        assert twin.cluster_names_.tolist() == model.cluster_names_.tolist()
        assert np.isnan(twin.gain_.value)

    def test_parts_of_scikit_learn_are_refused(self, iris, tmp_path):
        with pytest.raises(TypeError, match=r"^candidate 'KMeans' votes and holds parts of scikit-learn"):
            save_model(self.fit(iris, [KMeans(n_init=1)]), tmp_path / "model")
        assert not (tmp_path / "model").exists()

    @pytest.mark.filterwarnings("ignore")
    def test_every_candidate_can_be_stored(self, iris, tmp_path):
        X, y, _ = iris
        labels = np.where(np.arange(50) % 4 == 0, y[::3], -1)
        for name in CANDIDATES:
            model = self.fit(iris, [name], labels=labels)
            twin = load_model(save_model(model, tmp_path / "model"))
            np.testing.assert_array_equal(twin.predict(X), model.predict(X), err_msg=name)

    @pytest.mark.parametrize(
        ("name", "change", "reason"),
        [
            ("forest", lambda a: a["children_"].__setitem__(0, (0, 1)), "children_: nodes are no leaves"),
            ("forest", lambda a: a["children_"].__setitem__(0, (-1, 1)), "children_: nodes are no leaves"),
            ("forest", lambda a: a["children_"].__setitem__(0, 10**6), "children_: nodes are no leaves"),
            ("forest", lambda a: a["roots_"].__setitem__(1, 10**6), "roots_: it names no node"),
            ("forest", lambda a: a["features_"].__setitem__(0, 4), "features_: it holds 4"),
            ("forest", lambda a: a["shares_"].__setitem__(0, 2.0), "shares_: it holds 2"),
            ("discriminant", lambda a: a["intercepts_"].__setitem__(0, np.nan), "intercepts_: it holds NaN"),
        ],
    )
    def test_forged_classifiers_are_refused(self, iris, tmp_path, name, change, reason):
        _, y, _ = iris
        labels = np.where(np.arange(50) % 4 == 0, y[::3], -1)
        folder = save_model(self.fit(iris, [f"{name} of groups"], labels=labels), tmp_path / "model")
        (file,) = folder.glob("arrays-*.npz")
        arrays = dict(np.load(file))
        change({key.rpartition("/")[2]: value for key, value in arrays.items() if key.startswith("members")})
        np.savez(file, **arrays)
        with pytest.raises(ModelFileError, match=f"members/0/fitted/{reason}"):
            load_model(folder)

    def test_candidates_that_are_estimators_are_no_text(self, iris, tmp_path):
        model = self.fit(iris, [PPC(covariance_type="tied")])
        with pytest.raises(TypeError, match="parameters/candidates/0 is a PPC, which cannot be stored"):
            save_model(model, tmp_path / "model")
        model.set_params(candidates="auto")
        twin = load_model(save_model(model, tmp_path / "model"))
        np.testing.assert_array_equal(twin.predict(iris[0]), model.predict(iris[0]))

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda c: c.pop("votes"), "votes: it is missing"),
            (lambda c: c.update(members=3), "members: it is missing or damaged"),
            (
                lambda c: c["members"][0].update({"class": "LinkedClustering"}),
                "'LinkedClustering' is no estima",
            ),
            (lambda c: c["members"][0].update({"class": []}), "'[]' is no estimator"),
            (lambda c: c["members"].append(3), "'' is no estimator of linkwise"),
            (lambda c: c["members"][1].pop("fitted"), "fitted: it is missing or damaged"),
            (
                lambda c: c["members"][1]["fitted"]["pairs"].append(["odd_", 3]),
                "members/1/fitted/odd_: this est",
            ),
            (
                lambda c: put(c["votes"], "names", {"kind": "list", "items": ["a"]}),
                "votes: it is not about 2",
            ),
            (lambda c: put(c["votes"], "names", 3), "votes/names: it must be a list"),
            (lambda c: c.update(votes=None), "votes/shares/0: it is not both here and in"),
            (lambda c: put(c["members"][0]["parameters"], "n_clusters", 9), "members/0/"),
            (
                lambda c: put(c["fitted"], "gain_", {"kind": "tuple", "items": [0.0]}),
                "gain_: it must be 3 values",
            ),
            (lambda c: put(c["parameters"], "effort", "much"), "effort must be one of"),
        ],
    )
    def test_forged_members_are_refused(self, several, tmp_path, change, reason):
        folder = save_model(several, tmp_path / "model")
        content = json.loads((folder / "model.json").read_text())
        change(content)
        (folder / "model.json").write_text(json.dumps(content))
        with pytest.raises(ModelFileError) as caught:
            load_model(folder)
        assert "\n" not in str(caught.value)
        assert reason in str(caught.value)


def test_what_a_stored_spectral_model_cannot_do(iris, tmp_path):
    X, _, _ = iris
    model = ConstrainedSpectralClustering(3, random_state=0).fit(X)
    twin = load_model(save_model(model, tmp_path / "heat"))
    with pytest.raises(ValueError, match="loaded from disk"):
        twin.update(None)
    with pytest.raises(TypeError, match="affinity='heat' or 'self_tuning' only"):
        save_model(ConstrainedSpectralClustering(3, affinity="rbf", random_state=0).fit(X), tmp_path / "rbf")


def test_a_model_is_replaced_but_nothing_else_is(iris, tmp_path):
    X, _, _ = iris
    folder = tmp_path / "model"
    save_model(PPC(2, random_state=0).fit(X), folder)
    save_model(PPC(3, random_state=0).fit(X), folder)
    assert load_model(folder).n_components == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    precious = tmp_path / "photos"
    precious.mkdir()
    with pytest.raises(FileExistsError, match="holds no model"):
        save_model(PPC(2).fit(X), precious)


def test_an_interrupted_write_leaves_the_old_model(iris, tmp_path, monkeypatch):
    X, _, _ = iris
    folder = tmp_path / "model"
    save_model(PPC(2, random_state=0).fit(X), folder)

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        save_model(PPC(3, random_state=0).fit(X), folder)
    assert load_model(folder).n_components == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


class Stranger(BaseEstimator):
    pass


def test_what_cannot_be_stored_is_refused(iris, tmp_path):
    X, _, links = iris
    with pytest.raises(TypeError, match="no estimator of linkwise"):
        save_model(Stranger(), tmp_path / "a")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(PPC(2), tmp_path / "a")
    model = PPC(2, random_state=0).fit(X, constraints=links)
    model.inference = lambda *_: None
    with pytest.raises(TypeError, match=r"parameters/inference is a function"):
        save_model(model, tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "Popen"}, "no estimator of linkwise"),
        ({"format": 99}, "Install a newer linkwise"),
        (None, "damaged"),
        ([], "not written by linkwise"),
    ],
)
def test_foreign_files_are_refused(iris, tmp_path, change, message):
    folder = save_model(PPC(2, random_state=0).fit(iris[0]), tmp_path / "model")
    path = folder / "model.json"
    content = json.loads(path.read_text())
    if isinstance(change, dict):
        path.write_text(json.dumps(content | change))
    else:
        path.write_text("{" if change is None else json.dumps(change))
    with pytest.raises(ValueError, match=message):
        load_model(folder)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no model\.json"):
        load_model(tmp_path / "nothing")


def test_feature_names_survive(iris, tmp_path):
    X, _, _ = iris
    twin = load_model(save_model(PPC(2, random_state=0).fit(pd.DataFrame(X)), tmp_path / "m"))
    assert twin.feature_names_in_.dtype == object
    assert twin.feature_names_in_.tolist() == X.columns.tolist()
