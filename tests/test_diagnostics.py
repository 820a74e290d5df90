"""Every estimator stores its diagnostics under the same names."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import linkwise
from linkwise import CPPC, ConstrainedEM, Constraints, COPKMeans
from linkwise._exports import ESTIMATORS

X, y = make_blobs(80, centers=[[0, 0], [4, 0], [0, 4]], random_state=0)
HARD = Constraints.sample(y, 20, random_state=0)
SOFT = Constraints.sample(y, 20, flip=0.2, certainty=0.8, random_state=0)
KEYS = {"method": str, "exact": bool, "converged": bool, "n_iter": int, "parts": dict, "details": dict}


@pytest.mark.parametrize("with_links", [True, False])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_the_same_names_everywhere(name, with_links):
    kind = getattr(linkwise, name)
    links = (HARD if kind in (ConstrainedEM, COPKMeans) else SOFT) if with_links else None
    model = kind(3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y) if kind is CPPC else model.fit(X, constraints=links)
    assert isinstance(model.objective_, float)
    assert model.objectives_.ndim == 1
    assert model.objective_ == pytest.approx(model.objectives_[-1])
    assert not hasattr(model, "n_violated_")
    assert not hasattr(model, "objective_history_")
    if kind is CPPC:
        assert not hasattr(model, "violations_")
        return
    assert model.violations_.dtype == bool
    broken = np.empty(0, dtype=bool) if links is None else links.violations(model.labels_)
    np.testing.assert_array_equal(model.violations_, broken)
    if hasattr(model, "inference_"):
        assert {key: type(value) for key, value in model.inference_.items()} == KEYS
        assert set(model.inference_["method"].split("+")) <= set(model.inference_["parts"])
        assert sum(model.inference_["parts"].values()) == len(X)
    else:
        assert "Spectral" in name
