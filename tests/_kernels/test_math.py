"""Vectorisable exp and log against extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise._kernels import kernel, reassociating_kernel
from linkwise._kernels.math import EXP_CUTOFF, exp_nonpositive, log_positive


def _exp_of(x, result):
    for n in range(x.size):
        result[n] = exp_nonpositive(x[n])


def _log_of(x, result):
    for n in range(x.size):
        result[n] = log_positive(x[n])


_exp = kernel(_exp_of)


def ulps(value, exact):
    return np.abs(value.astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(value.dtype))


@pytest.mark.parametrize("compiled", [kernel, reassociating_kernel])
def test_exp(compiled):
    _exp = compiled(_exp_of)
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            -np.logspace(-20, np.log10(-EXP_CUTOFF), 20_000),
            rng.uniform(EXP_CUTOFF, 0.0, 100_000),
            -np.log(2.0) * (np.arange(1000) + 0.5),
            [0.0, -0.0],
        ]
    )
    x = x[x > EXP_CUTOFF]
    result = np.empty_like(x)
    _exp(x, result)
    assert ulps(result, np.exp(x.astype(np.longdouble))).max() < 2.0
    assert result[-1] == result[-2] == 1.0
    beyond = np.array([EXP_CUTOFF, np.nextafter(EXP_CUTOFF, -np.inf), 10 * EXP_CUTOFF, -np.inf, np.nan])
    result = np.ones_like(beyond)
    _exp(beyond, result)
    assert not result.any()


def test_exp_of_moderate_positive_numbers():
    x = np.linspace(0.0, 700.0, 10_001)
    result = np.empty_like(x)
    _exp(x, result)
    assert ulps(result, np.exp(x.astype(np.longdouble))).max() < 2.0


@pytest.mark.parametrize("compiled", [kernel, reassociating_kernel])
def test_log(compiled):
    _log = compiled(_log_of)
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            10.0 ** rng.uniform(-307, 308, 50_000),
            1.0 + 10.0 ** rng.uniform(-16, 0, 50_000),
            1.0 - 10.0 ** rng.uniform(-16, -1, 50_000),
            np.sqrt(0.5) * (1.0 + np.arange(-5, 6) * 2.0**-52),
            np.sqrt(2.0) * (1.0 + np.arange(-5, 6) * 2.0**-52),
            2.0 ** np.arange(-1022.0, 1024.0),
            [np.finfo(float).tiny, np.finfo(float).max],
        ]
    )
    result = np.empty_like(x)
    _log(x, result)
    exact = np.log(x.astype(np.longdouble))
    one = x == 1.0
    assert not result[one].any()
    assert ulps(result[~one], exact[~one]).max() < 3.0
