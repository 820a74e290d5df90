"""log sum exp of rows against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from linkwise._kernels.math import log_sum_exp, log_sum_exp_rows


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e300])
def test_rows(scale):
    rng = np.random.default_rng(0)
    table = rng.normal(scale=scale, size=(200, 4))
    table[rng.random(table.shape) < 0.2] = -np.inf
    table[0] = -np.inf
    np.testing.assert_allclose(log_sum_exp_rows(table), logsumexp(table, axis=1), rtol=1e-14)
    for row in table[:20]:
        assert log_sum_exp(row) == pytest.approx(float(logsumexp(row)), rel=1e-14)


def test_no_rows():
    assert log_sum_exp_rows(np.empty((0, 3))).shape == (0,)
