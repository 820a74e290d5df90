"""Options of the engines reach them through PPC and ConstrainedEM."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from linkwise import PPC, ConstrainedEM, Constraints
from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.inference.engines import engine_options
from linkwise.inference.exact.exact import exact_marginals
from linkwise.persistence import load_model, save_model
from tests.mixture.test_ppc import blobs

X, y = blobs(np.random.default_rng(0), 60, 2, 3, spread=3.0)
#: Loops of soft links, so that every engine has something to do.
LINKS = Constraints.sample(y, 60, overlap=True, certainty=0.9, random_state=0)


def fit(inference, options, **parameters):
    parameters = {"max_iter": 3, "random_state": 0, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PPC(3, inference=inference, inference_options=options, **parameters).fit(X, constraints=LINKS)


def test_every_engine_has_a_case():
    with_options = {name for name, options in engine_options("marginals").items() if options}
    assert with_options == {"auto", "exact", "mean_field", "gibbs", "belief_propagation"}


@pytest.mark.parametrize(
    ("engine", "mixing"),
    product(
        [
            ("mean_field", {"max_iter": 1, "tol": 0.0}),
            ("belief_propagation", {"max_iter": 1, "tol": 1e-12}),
            ("auto", {"max_table": 1, "approximate": "mean_field", "max_iter": 1, "tol": 0.0}),
        ],
        ["exact", "ignore"],
    ),
)
def test_iterations(engine, mixing):
    inference, options = engine
    few = fit(inference, options, mixing=mixing)
    many = fit(inference, {**options, "max_iter": 50}, mixing=mixing)
    assert few.inference_["n_iter"] == 1
    assert many.inference_["n_iter"] > 1
    assert not few.inference_["converged"]
    assert not np.array_equal(few.responsibilities_, many.responsibilities_)


def test_gibbs():
    few = fit("gibbs", {"max_sweeps": 40, "burn_in": 5, "n_chains": 1, "tol": 0.0})
    many = fit("gibbs", {"max_sweeps": 400, "burn_in": 5, "n_chains": 1, "tol": 0.0})
    assert few.inference_["n_iter"] < many.inference_["n_iter"]


def test_exact():
    with pytest.raises(InferenceBudgetExceeded):
        fit("exact", {"max_table": 9})
    assert fit("exact", {"max_table": 2**20}).inference_["exact"]


@pytest.mark.parametrize("approximate", ["mean_field", "gibbs", "belief_propagation"])
def test_auto_leaves_the_rest_to_another_engine(approximate):
    """Gibbs and mean field have no log Omega to differentiate, which is then left to plain auto."""
    options = {"max_table": 1, "approximate": approximate}
    if approximate == "gibbs":
        options |= {"max_sweeps": 100}
    model = fit("auto", options, max_iter=1, n_init=1)
    assert approximate in model.inference_["method"].split("+")
    assert np.isfinite(model.lower_bound_)


def test_work_of_one_call():
    hard = Constraints.sample(y, 40, overlap=True, random_state=0)
    parameters = {"max_iter": 3, "n_init": 1, "random_state": 0}
    limited = PPC(3, inference_options={"max_table": 1, "max_work": 1.0}, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "mean_field" in limited.fit(X, constraints=hard).inference_["method"]
        free = PPC(3, inference_options={"max_table": 1}, **parameters).fit(X, constraints=hard)
    assert "belief_propagation" in free.inference_["method"]


def test_an_engine_of_the_user():
    seen = []

    def mine(problem, rng, *, initial=None, n_threads=1, colour="red"):
        seen.append(colour)
        return exact_marginals(problem, rng)

    fit(mine, {"colour": "blue"})
    assert set(seen) == {"blue"}


@pytest.mark.parametrize("model_class", [PPC, ConstrainedEM])
@pytest.mark.parametrize(
    ("inference", "options", "error", "words"),
    [
        ("tree", {"max_iter": 3}, TypeError, "method 'tree' of marginals has no option 'max_iter'"),
        ("auto", {"speed": 3}, TypeError, "method 'auto' of marginals has no option 'speed'"),
        ("gibbs", {"n_chains": 0}, ValueError, "n_chains is 0: method 'gibbs'"),
        ("belief_propagation", {"damping": 1.5}, ValueError, "damping is 1.5: method 'belief_propagation'"),
        ("exact", {"max_table": "x"}, ValueError, "max_table is 'x': method 'exact'"),
        ("mean_field", [("tol", 1.0)], TypeError, "inference_options must be None or a dict"),
        ("wizard", None, ValueError, "no method 'wizard'"),
    ],
)
def test_checked_at_fit(model_class, inference, options, error, words):
    """Whether or not there are links."""
    model = model_class(2, inference=inference, inference_options=options)
    with pytest.raises(error, match=words):
        model.fit(X)


@pytest.mark.parametrize("model_class", [PPC, ConstrainedEM])
def test_kept_by_clones_and_files(model_class, tmp_path):
    options = {"max_table": 7, "approximate": "mean_field", "tol": 0.5}
    model = model_class(3, inference_options=options, random_state=0)
    assert clone(model).inference_options == options
    twin = load_model(save_model(model.fit(X), tmp_path / "model"))
    assert twin.inference_options == options
    plain = load_model(save_model(clone(model).set_params(inference_options=None).fit(X), tmp_path / "plain"))
    assert plain.inference_options is None
