"""The diagnostics that every mixture stores, under the names that all estimators share."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import CPPC, PPC, ConstrainedEM, Constraints
from linkwise.persistence import load_model, save_model
from tests.mixture.test_ppc import blobs

KEYS = {"method", "exact", "converged", "n_iter", "parts", "details"}
X, y = blobs(np.random.default_rng(0), 90, 2, 3, spread=3.0)
WRONG = Constraints.sample(y, 25, flip=0.3, certainty=0.7, random_state=0)
HARD = Constraints.sample(y, 25, random_state=0)


def assert_objectives(model):
    assert isinstance(model.objective_, float)
    assert model.objective_ == model.lower_bound_
    assert isinstance(model.objectives_, np.ndarray)
    np.testing.assert_array_equal(model.objectives_, model.lower_bounds_)


@pytest.mark.parametrize(
    "model", [PPC(3, n_init=1, random_state=0), ConstrainedEM(3, n_init=1, random_state=0)]
)
@pytest.mark.parametrize("links", [None, WRONG, HARD])
def test_link_mixtures(model, links, tmp_path):
    if isinstance(model, ConstrainedEM):
        links = links and HARD
    model.fit(X, constraints=links)
    assert_objectives(model)
    expected = np.empty(0, dtype=bool) if links is None else links.violations(model.labels_)
    assert model.violations_.dtype == bool
    np.testing.assert_array_equal(model.violations_, expected)
    if links is WRONG:
        assert model.violations_.any()
    found = model.inference_
    assert set(found) == KEYS
    assert [type(found[key]) for key in ("method", "exact", "converged", "n_iter")] == [str, bool, bool, int]
    assert sum(found["parts"].values()) == len(X)
    assert set(found["method"].split("+")) <= set(found["parts"])
    assert set(found["details"]) == (set() if links is None else {"objective", "prior_exact", "reason"})
    twin = load_model(save_model(model, tmp_path / "model"))
    assert twin.inference_ == found
    np.testing.assert_array_equal(twin.violations_, model.violations_)
    assert_objectives(twin)


def test_iterations_of_an_approximate_engine():
    model = PPC(3, inference="mean_field", n_init=1, random_state=0).fit(X, constraints=WRONG)
    assert model.inference_["n_iter"] > 0
    assert model.inference_["parts"] == {
        "mean_field": len(np.unique(WRONG.pairs)),
        "independent": len(X) - len(np.unique(WRONG.pairs)),
    }


def test_a_later_fit_without_links_forgets_them():
    model = PPC(3, n_init=1, random_state=0).fit(X, constraints=WRONG).fit(X)
    assert model.violations_.shape == (0,)
    assert model.inference_["parts"] == {"independent": len(X)}
    assert not hasattr(model, "violation_probability_")


def test_beliefs():
    model = CPPC(random_state=0).fit(X, y)
    assert_objectives(model)
    assert not hasattr(model, "violations_")
    assert not hasattr(model, "inference_")
    with pytest.raises(AttributeError):
        CPPC().objective_  # noqa: B018
