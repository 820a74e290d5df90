"""Mixtures on data at the ends of floating point: a finite result that scale and offset leave alone, or a
message that names the column."""

from __future__ import annotations

import re
import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from linkwise import CPPC, PPC, ConstrainedEM, Constraints
from tests.repeats import examples

Y = np.repeat([0, 1, 2], 20)
BASE = np.random.default_rng(0).normal(size=(60, 3)) + 8.0 * np.eye(3)[Y]
LINKS = Constraints.sample(Y, 10, random_state=0)
SPACING = {np.float64: np.finfo(np.float64).eps, np.float32: np.finfo(np.float32).eps}


def data_of(offset, scale, constant, dtype):
    """BASE moved and scaled, some columns constant; None where it cannot be written in the type."""
    with np.errstate(over="ignore", under="ignore"):
        X = BASE * scale
        X[:, :constant] = 1.0
        X = (X + offset).astype(dtype)
    return X if np.isfinite(X).all() else None


def fit(model_class, X, *, linked=True, **options):
    """Fit, with every RuntimeWarning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        if model_class is CPPC:
            return CPPC(3, random_state=0, **options).fit(X, Y)
        return model_class(3, random_state=0, **options).fit(X, constraints=LINKS if linked else None)


@cache
def fit_of_base(model_class):
    """For tests that change nothing in it."""
    return fit(model_class, BASE)


def check_finite(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for name in ("weights_", "means_", "covariances_", "precisions_cholesky_", "lower_bounds_"):
            assert np.isfinite(getattr(model, name)).all(), name
        assert np.isfinite(model.score_samples(X)).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)
        assert np.isfinite(model.sample(5)[0]).all()


powers = st.sampled_from([-300, -140, -30, -12, -3, 0, 3, 12, 30, 130, 150, 300])


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    model_class=st.sampled_from([PPC, ConstrainedEM, CPPC]),
    covariance_type=st.sampled_from(["full", "tied", "diag", "spherical"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    offset=st.sampled_from([0.0, 1.0, -1e4, 1e9, -1e15, 1e30, -1e120, 1e300]),
    power=powers,
    constant=st.sampled_from([0, 0, 1, 3]),
    start=st.sampled_from(["constraints", "kmeans", "random"]),
    linked=st.booleans(),
    per_cluster=st.sampled_from([1, 1, 2]),
)
def test_finite_and_invariant_or_refused(
    model_class, covariance_type, dtype, offset, power, constant, start, linked, per_cluster
):
    scale = 10.0**power
    X = data_of(offset, scale, constant, dtype)
    assume(X is not None)
    # Regularisation is in the units of the data; where its square leaves floating point, any will do.
    reg_covar = 1e-6 * scale**2 if -130 <= power <= 130 else 1e-6
    options = {"covariance_type": covariance_type, "reg_covar": reg_covar}
    if model_class is not CPPC:
        options |= {"init_params": start, "linked": linked}
    if model_class is PPC:
        options["components_per_cluster"] = per_cluster
    spread = np.ptp(X.astype(np.float64), axis=0)
    if float(np.abs(X).max()) > 1e140:
        column = int(np.abs(X).max(axis=0).argmax())
        with pytest.raises(ValueError, match=rf"column {column} holds .* whose square overflows; divide"):
            fit(model_class, X, **options)
        return
    try:
        model = fit(model_class, X, **options)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        # Columns that hold one value, to the digits of their type, may leave a covariance without rank.
        assert (spread <= 100.0 * SPACING[dtype] * np.abs(X).max(axis=0)).any(), refusal
        assert re.search(r"feature \d|column \d", refusal), refusal
        return
    check_finite(model, X)
    # Digits enough to tell the rows apart, and a regularisation that scales with them.
    if not constant and -130 <= power <= 130 and abs(offset) * SPACING[dtype] <= 1e-4 * scale:
        options["reg_covar"] = 1e-6
        plain = fit(model_class, BASE, **options)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        relative = (model.means_ - offset) / scale
        np.testing.assert_allclose(
            relative, plain.means_, atol=max(1e-3, 10 * abs(offset) * SPACING[dtype] / scale)
        )


@pytest.mark.parametrize("model_class", [PPC, ConstrainedEM, CPPC])
class TestMessages:
    def test_names_column_row_and_fix(self, model_class):
        X = BASE.copy()
        X[7, 1] = -3e200
        with pytest.raises(ValueError, match=r"column 1 holds -3e\+200 in row 7, .*; divide .* by 1e\+200"):
            fit(model_class, X)
        frame = pd.DataFrame(X, columns=["height", "mass", "age"])
        with pytest.raises(ValueError, match=r"column 1 \('mass'\) holds -3e\+200"):
            fit(model_class, frame)

    def test_new_rows_too(self, model_class):
        model = fit_of_base(model_class)
        far = BASE[:3].copy()
        far[2, 0] = 1e200
        for method in (model.predict, model.predict_proba, model.score_samples):
            with pytest.raises(ValueError, match=r"column 0 holds 1e\+200 in row 2"):
                method(far)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("distance", [1e3, 1e12, 1e25, 1e37])
    def test_far_rows_have_probabilities(self, model_class, dtype, distance):
        model = fit_of_base(model_class)
        far = np.vstack([BASE, [[distance, 0.0, -distance]]]).astype(dtype)
        check_finite(model, far)

    @pytest.mark.parametrize(
        ("covariance_type", "value"),
        product(["full", "tied", "diag", "spherical"], [0.0, 1e9, 0.1, -1e120]),
    )
    def test_one_value_throughout(self, model_class, covariance_type, value):
        X = np.full((60, 3), value)
        model = fit(model_class, X, covariance_type=covariance_type)
        check_finite(model, X)
        np.testing.assert_allclose(model.means_, value, rtol=1e-12)
        if covariance_type in ("diag", "spherical"):
            np.testing.assert_allclose(model.covariances_, 1e-6)


def test_variance_of_zero_names_the_feature():
    X = BASE.copy()
    X[:, 2] = 5.0
    with pytest.raises(ValueError, match=r"a variance is 0\) at feature 2"):
        fit(PPC, X, covariance_type="diag", reg_covar=0.0)
    with pytest.raises(ValueError, match="stops at feature 2"):
        fit(PPC, X, covariance_type="full", reg_covar=0.0)
