"""Criteria against their formulas written out in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise.mixture.classes.criteria import assigned_likelihoods, class_criteria


def literal(log_likelihood, log_density, log_weight, K, p, n_labelled, adherence, w):
    N = len(log_density)
    rss = sum((1.0 - math.exp(value)) ** 2 for value in log_density)
    paper = N * math.log(rss / N)
    return {
        "bic": -2 * log_likelihood + p * math.log(N),
        "icl": -2 * sum(a + b for a, b in zip(log_density, log_weight, strict=True)) + p * math.log(N),
        "cbic": (1 - w) * (-2 * log_likelihood)
        + w * n_labelled * math.log(max(adherence, 1 / n_labelled))
        + p * math.log(N),
        "bic_paper": paper + K * math.log(N),
        "cbic_paper": (1 - w) * paper + w * N * math.log(adherence) + K * math.log(N),
    }


def criteria(log_likelihood, log_density, log_weight, K, p, n_labelled, adherence, w):
    fit = assigned_likelihoods(log_likelihood, np.array(log_density), np.array(log_weight))
    return class_criteria(
        fit, n_components=K, n_parameters=p, n_labelled=n_labelled, adherence=adherence, criterion_weight=w
    )  # fmt: skip


def test_formulas():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 30))
        arguments = (
            float(rng.normal(scale=50)), rng.normal(-1, 2, n).tolist(), rng.uniform(-4, 0, n).tolist(),
            int(rng.integers(1, 9)), int(rng.integers(1, 99)), int(rng.integers(1, n + 1)),
            float(rng.uniform(1e-6, 1)), float(rng.uniform(0, 1)),
        )  # fmt: skip
        expected, found = literal(*arguments), criteria(*arguments)
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name


def test_perfect_adherence_is_floored_where_the_paper_takes_log_0():
    perfect = criteria(-100.0, [-1.0] * 50, [0.0] * 50, 2, 5, 40, 0.0, 0.2)
    near = criteria(-100.0, [-1.0] * 50, [0.0] * 50, 2, 5, 40, 1 / 40, 0.2)
    assert perfect["cbic_paper"] == -math.inf
    assert perfect["cbic"] == near["cbic"]
    assert perfect["cbic"] == pytest.approx(160 - 0.2 * 40 * math.log(40) + 5 * math.log(50))


@pytest.mark.parametrize(("weight", "other"), [(0.0, "bic"), (0.0, "bic_paper")])
def test_weight_zero_leaves_the_beliefs_out(weight, other):
    found = criteria(-100.0, [-1.0] * 50, [0.0] * 50, 2, 5, 40, 0.0, weight)
    assert found["c" + other] == pytest.approx(found[other])


def test_densities_beyond_the_range_of_floats():
    found = criteria(1e6, [1000.0, 1000.0], [0.0, 0.0], 1, 1, 2, 0.5, 0.0)
    assert found["bic_paper"] == pytest.approx(2 * (2000.0 + math.log(2) - math.log(2)) + math.log(2))


def test_units_shift_cbic_alike_for_every_model_but_not_the_paper_s():
    """Dividing D features by c adds D log c to every log-density."""
    rng = np.random.default_rng(0)
    n, d = 60, 3
    fits = [
        (rng.normal(-4, 1, n) + gain, np.log(np.full(n, 1 / K)), K, p, adherence)
        for K, p, gain, adherence in ((2, 10, 0.0, 0.2), (5, 40, 1.5, 0.05))
    ]

    def differences(unit):
        values = []
        for log_density, log_weight, K, p, adherence in fits:
            shifted = log_density + d * math.log(unit)
            values.append(criteria(shifted.sum(), shifted, log_weight, K, p, n, adherence, 0.25))
        return {name: values[1][name] - values[0][name] for name in values[0]}

    metres, kilometres = differences(1.0), differences(1000.0)
    for name in ("bic", "icl", "cbic"):
        assert kilometres[name] == pytest.approx(metres[name])
    # The better fit wins in one unit and loses in the other.
    assert metres["bic_paper"] < 20 < kilometres["bic_paper"]


def test_likelihoods_of_parts_add():
    rng = np.random.default_rng(0)
    density, weight = rng.normal(-1, 2, 20), rng.uniform(-4, 0, 20)
    density[3] = 400.0
    whole = assigned_likelihoods(5.0, density, weight)
    parts = assigned_likelihoods(2.0, density[:7], weight[:7]) + assigned_likelihoods(
        3.0, density[7:], weight[7:]
    )
    assert parts == pytest.approx(whole, rel=1e-12)
