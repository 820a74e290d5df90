"""What every K-means estimator stores about a fit, under the names that all estimators share."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import Constraints, COPKMeans, HMRFKMeans, MPCKMeans, PCKMeans
from linkwise.inference.engines import engine_options
from linkwise.inference.local_search.icm import icm
from linkwise.persistence import load_model, save_model

KEYS = {"method", "exact", "converged", "n_iter", "parts", "details"}
rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 30)
X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y] + rng.normal(size=(90, 2))
WRONG = Constraints.sample(y, 40, flip=0.3, certainty=0.6, overlap=True, random_state=0)
HARD = Constraints.sample(y, 40, overlap=True, random_state=0)
SOFT_MODELS = [HMRFKMeans, PCKMeans, MPCKMeans]


def assert_diagnostics(model, links, folder):
    found = model.inference_
    expected = np.empty(0, dtype=bool) if links is None else links.violations(model.labels_)
    assert model.violations_.dtype == bool
    np.testing.assert_array_equal(model.violations_, expected)
    assert isinstance(model.objective_, float)
    assert model.objectives_.ndim == 1
    assert model.objective_ == model.objectives_[-1]
    assert set(found) == KEYS
    assert [type(found[key]) for key in ("method", "exact", "converged", "n_iter")] == [str, bool, bool, int]
    assert sum(found["parts"].values()) == len(X)
    assert set(found["method"].split("+")) <= set(found["parts"])
    twin = load_model(save_model(model, folder / "model"))
    np.testing.assert_equal(twin.inference_, found)
    np.testing.assert_array_equal(twin.violations_, model.violations_)
    np.testing.assert_array_equal(twin.objectives_, model.objectives_)


@pytest.mark.parametrize("kind", SOFT_MODELS)
@pytest.mark.parametrize("links", [None, WRONG, HARD])
@pytest.mark.parametrize("compute_gap", [False, True])
def test_soft(kind, links, compute_gap, tmp_path):
    model = kind(3, n_init=2, compute_gap=compute_gap, random_state=0).fit(X, constraints=links)
    assert_diagnostics(model, links, tmp_path)
    if links is WRONG:
        assert model.violations_.any()
    assert set(model.inference_["details"]) == ({"gaps"} if compute_gap else set())


@pytest.mark.parametrize("links", [None, HARD])
def test_hard(links, tmp_path):
    model = COPKMeans(3, random_state=0).fit(X, constraints=links)
    assert_diagnostics(model, links, tmp_path)
    assert model.inertia_ == model.objective_
    assert not model.violations_.any()
    assert model.inference_["exact"]
    assert model.inference_["details"] == {"n_unproven": 0}


def test_engines_of_hard_links():
    """Far from their conflicts rows are independent; the others are solved by branch and bound."""
    pairs = [(row, row + 1) for row in range(0, 20, 2)]
    model = COPKMeans(3, random_state=0).fit(X, constraints=Constraints(len(X), cannot_link=pairs))
    assert model.inference_["method"] == "branch_and_bound"
    assert set(model.inference_["parts"]) == {"independent", "branch_and_bound"}
    assert 0 < model.inference_["parts"]["branch_and_bound"] <= 20


def test_a_later_fit_without_links_forgets_them():
    model = PCKMeans(3, compute_gap=True, random_state=0).fit(X, constraints=WRONG)
    model.set_params(compute_gap=False).fit(X)
    assert model.violations_.shape == (0,)
    assert model.inference_ == {
        "method": "independent", "exact": True, "converged": True, "n_iter": 0,
        "parts": {"independent": len(X)}, "details": {},
    }  # fmt: skip


OPTIONS = [(engine, name) for engine, options in engine_options("best_labels").items() for name in options]


class TestInferenceOptions:
    """Options reach every engine, from every estimator."""

    @pytest.mark.parametrize("kind", SOFT_MODELS)
    @pytest.mark.parametrize(("engine", "option"), OPTIONS)
    def test_every_option_is_checked(self, kind, engine, option):
        """Also without links, and naming the engine and the option."""
        model = kind(3, inference=engine, inference_options={option: object()})
        with pytest.raises(ValueError, match=rf"^{option} is .*method '{engine}'"):
            model.fit(X)
        with pytest.raises(TypeError, match=f"method '{engine}'.* has no option 'max_sweep'"):
            kind(3, inference=engine, inference_options={"max_sweep": 1}).fit(X)

    @pytest.mark.parametrize("kind", SOFT_MODELS)
    def test_options_reach_the_engine(self, kind):
        seen = []

        def engine(problem, rng, *, initial=None, n_threads=1, depth=0):
            seen.append(depth)
            return icm(problem, rng, initial=initial, n_threads=n_threads)

        kind(3, inference=engine, inference_options={"depth": 7}, random_state=0).fit(X, constraints=WRONG)
        assert set(seen) == {7}

    @pytest.mark.parametrize(
        ("engine", "options"),
        [
            ("belief_propagation", {"max_iter": 1}),
            ("exact", {"max_table": 1, "time_limit": 0.0}),
            ("auto", {"max_iter": 1}),
        ],
    )
    def test_options_change_the_answer(self, engine, options):
        links = Constraints.sample(y, 200, flip=0.3, certainty=0.6, overlap=True, random_state=0)
        fits = [
            PCKMeans(
                3, n_init=2, inference=engine, inference_options=chosen, max_iter=2, tol=1e9, random_state=0
            ).fit(X, constraints=links)
            for chosen in (None, options)
        ]
        assert fits[0].inference_ != fits[1].inference_

    def test_no_dict(self):
        with pytest.raises(TypeError, match="inference_options must be None or a dict"):
            PCKMeans(3, inference_options=["max_iter"]).fit(X)

    def test_stored_models_keep_them(self, tmp_path):
        model = PCKMeans(3, inference="icm", inference_options={"max_iter": 9}, random_state=0)
        twin = load_model(save_model(model.fit(X, constraints=WRONG), tmp_path / "model"))
        assert twin.inference_options == {"max_iter": 9}
