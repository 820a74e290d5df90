"""Options of every engine: each value either works or is refused with its name, before anything runs."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from linkwise.exceptions import InferenceBudgetExceeded
from linkwise.inference import PottsField, best_labels, marginals
from linkwise.inference.engines import engine_options, find_labels_engine, find_marginals_engine

SOLVERS = {"marginals": marginals, "best_labels": best_labels}
#: A loop, so that no engine gets away with the answer of a tree.
FIELD = PottsField(
    np.random.default_rng(0).normal(size=(4, 3)), [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0, -2.0, 0.5, -np.inf]
)
VALUES = [
    "seven",
    None,
    [1],
    True,
    float("nan"),
    float("inf"),
    -1,
    -0.5,
    0,
    0.0,
    1,
    1.0,
    1.5,
    8,
    2**63,
    1e300,
]


def every_option():
    for solver in SOLVERS:
        for engine, options in engine_options(solver).items():
            for name, option in options.items():
                yield pytest.param(solver, engine, name, option, id=f"{solver}-{engine}-{name}")


def allowed(option, value):
    """The meaning of a declaration, written a second time."""
    if value is None:
        return option.optional
    if option.kind in ("choice", "engine"):
        return False
    if isinstance(value, bool | str | list):
        return False
    if option.kind == "whole" and not isinstance(value, int):
        return False
    return option.least <= value < option.below and not (option.above_least and value == option.least)


@pytest.mark.parametrize(("solver", "engine", "name", "option"), list(every_option()))
def test_every_value_works_or_is_refused(solver, engine, name, option):
    for value in VALUES:
        if allowed(option, value):
            try:
                answer = SOLVERS[solver](FIELD, engine, 0, **{name: value})
            except InferenceBudgetExceeded:
                assert name == "max_table"
                continue
            table = answer.prob if solver == "marginals" else answer.score
            assert np.isfinite(table).all()
        else:
            with pytest.raises(ValueError, match=rf"^{name} is "):
                SOLVERS[solver](FIELD, engine, 0, **{name: value})


@pytest.mark.parametrize(("solver", "engine", "name", "option"), list(every_option()))
def test_choices_work(solver, engine, name, option):
    words = option.choices
    if option.kind == "engine":
        words = tuple(other for other in engine_options(solver) if other != "auto")
    for word in words:
        SOLVERS[solver](FIELD, engine, 0, **{name: word})


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_option_of_every_engine_is_declared(solver):
    find = {"marginals": find_marginals_engine, "best_labels": find_labels_engine}[solver]
    for engine, options in engine_options(solver).items():
        parameters = inspect.signature(find(engine)[1]).parameters.values()
        own = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"initial", "n_threads"}
        assert own == set(options), engine


@pytest.mark.parametrize("solver", SOLVERS)
def test_unknown_options_are_refused_with_the_known_ones(solver):
    for engine, options in engine_options(solver).items():
        with pytest.raises(
            TypeError, match=f"method '{engine}' of {solver} has no option 'max_sweep'"
        ) as refused:
            SOLVERS[solver](FIELD, engine, 0, max_sweep=3)
        assert all(name in str(refused.value) for name in options)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_threads", [0, -1, 1.5, "two", True])
def test_threads_are_counted(solver, n_threads):
    with pytest.raises(ValueError, match=r"^n_threads is "):
        SOLVERS[solver](FIELD, n_threads=n_threads)


def test_auto_takes_the_options_of_the_engine_it_uses():
    """Also where nothing is left to that engine, so that a mistake does not wait for a harder field."""
    marginals(FIELD, "auto", 0, max_iter=5, damping=0.5)
    marginals(FIELD, "auto", 0, approximate="gibbs", max_sweeps=20)
    with pytest.raises(ValueError, match=r"^damping is 2"):
        marginals(FIELD, "auto", damping=2)
    with pytest.raises(TypeError, match="no option 'max_sweeps'"):
        marginals(FIELD, "auto", max_sweeps=20)
    with pytest.raises(ValueError, match="approximate is 'auto': use one of"):
        marginals(FIELD, "auto", approximate="auto")


def test_gibbs_never_sweeps_more_than_it_may():
    for max_sweeps in range(8, 40):
        assert marginals(FIELD, "gibbs", 0, max_sweeps=max_sweeps, tol=0.0).n_iter <= max_sweeps
