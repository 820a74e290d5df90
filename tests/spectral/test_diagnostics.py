"""What every spectral estimator stores about a fit, under the names that all estimators share."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import ConstrainedSpectralClustering, Constraints, SpectralLearning
from linkwise.datasets import make_rings
from linkwise.persistence import load_model, save_model
from tests.repeats import LONG

MODELS = [
    ConstrainedSpectralClustering(2, random_state=0),
    ConstrainedSpectralClustering(2, solver="landmark", n_landmarks=60, random_state=0),
    ConstrainedSpectralClustering(2, solver="signed_laplacian", random_state=0),
    ConstrainedSpectralClustering(2, solver="basis", random_state=0),
    ConstrainedSpectralClustering(3, algorithm="B", random_state=0),
    SpectralLearning(2, affinity="heat", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:60])
@pytest.mark.parametrize("n_samples", [150, 400] if LONG else [150])
def test_violations_and_objectives(model, n_samples, tmp_path):
    X, y = make_rings(n_samples, random_state=0)
    links = Constraints.sample(y, 30, flip=0.3, random_state=0)
    model.fit(X, constraints=links)
    np.testing.assert_array_equal(model.violations_, links.violations(model.labels_))
    assert model.violations_.mean() == pytest.approx(model.violation_rate_)
    assert isinstance(model.objective_, float)
    assert model.objective_ == model.objectives_[-1]
    assert model.objective_ == pytest.approx(model.eigenvalues_.sum())
    sign = -1.0 if getattr(model, "solver_", "") == "signed_laplacian" else 1.0
    assert (sign * np.diff(model.objectives_) >= -1e-9).all()
    twin = load_model(save_model(model, tmp_path / "model"))
    np.testing.assert_array_equal(twin.violations_, model.violations_)
    np.testing.assert_array_equal(twin.objectives_, model.objectives_)
    model.fit(X)
    assert model.violations_.shape == (0,)
    assert model.violations_.dtype == bool


def test_the_objective_bounds_the_cut_of_every_clustering():
    """Shi & Malik: K minus the trace is the least cut that real vectors reach, so no labels cut less."""
    X, y = make_rings(150, random_state=0)
    model = ConstrainedSpectralClustering(2, random_state=0).fit(X)
    affinity = model.affinity_matrix_
    degrees = affinity.sum(axis=1)
    for labels in (y, model.labels_):
        sides = [labels == k for k in range(2)]
        cut = sum(1.0 - affinity[np.ix_(side, side)].sum() / degrees[side].sum() for side in sides)
        assert 2.0 - model.objective_ <= cut + 1e-9
