"""Options of every engine: each value either works or is refused with its name, before anything runs."""

from __future__ import annotations

import inspect
from pathlib import Path

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
        parameters = inspect.signature(find(engine).solve).parameters.values()
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
    with pytest.raises(ValueError, match=r"approximate is 'auto': method 'auto' of marginals needs one of"):
        marginals(FIELD, "auto", approximate="auto")


def test_options_are_checked_where_no_link_calls_the_engine():
    free = PottsField(np.zeros((2, 2)), [], [])
    for solve in SOLVERS.values():
        with pytest.raises(TypeError, match=r"method 'auto' of .* has no option 'max_sweep'"):
            solve(free, max_sweep=3)
        with pytest.raises(ValueError, match=r"^n_threads is 0"):
            solve(free, n_threads=0)


def test_a_refusal_is_one_line_that_names_the_engine_and_helps():
    with pytest.raises(TypeError) as refused:
        marginals(FIELD, "auto", burn_in=3)
    text = str(refused.value)
    assert "\n" not in text
    assert text.startswith("method 'auto' of marginals has no option 'burn_in'; ")
    assert "with approximate='belief_propagation' its options are max_table, approximate, max_work" in text
    assert text.endswith("('burn_in' is an option of gibbs)")
    with pytest.raises(
        ValueError, match=r"^tol is -1: method 'gibbs' of marginals needs a finite number >= 0; pass that$"
    ):
        marginals(FIELD, "gibbs", tol=-1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_options_of_a_function_are_those_of_its_signature(solver):
    def strict(problem, rng, *, initial=None, n_threads=1, depth=2):
        seen.append(depth)
        return reference(problem, rng)

    def lenient(problem, rng, **options):
        seen.append(options["depth"])
        return reference(problem, rng)

    seen: list[int] = []
    reference = {"marginals": find_marginals_engine, "best_labels": find_labels_engine}[solver]("exact").solve
    for engine in (strict, lenient):
        SOLVERS[solver](FIELD, engine, depth=5)
    assert seen == [5, 5]
    with pytest.raises(TypeError, match=f"method 'strict' of {solver} has no option 'width'; .* depth"):
        SOLVERS[solver](FIELD, strict, width=5)
    SOLVERS[solver](FIELD, "auto", approximate=strict, depth=5)


def test_what_marginals_engines_need():
    needs = {name: find_marginals_engine(name) for name in engine_options("marginals")}
    assert {name for name, engine in needs.items() if engine.uses_initial} == {"mean_field", "gibbs"}
    assert {name for name, engine in needs.items() if not engine.differentiable} == {"mean_field", "gibbs"}


def test_auto_needs_what_the_engine_it_uses_needs():
    assert find_marginals_engine("auto", {"approximate": "mean_field"}).uses_initial
    assert not find_marginals_engine("auto", {"approximate": "mean_field"}).differentiable
    assert find_marginals_engine("auto", {"approximate": "tree"}).differentiable


def test_a_function_says_itself_what_it_needs():
    def mine(problem, rng, *, initial=None, n_threads=1): ...

    assert find_marginals_engine(mine)[-2:] == (True, False)
    mine.uses_initial = False
    mine.differentiable = True
    assert find_marginals_engine(mine)[-2:] == (False, True)


def _numerical_gradient(method, unary, pairs, coupling, step=1e-5):
    gradient = np.zeros_like(unary)
    for place in np.ndindex(*unary.shape):
        values = []
        for sign in (1, -1):
            moved = unary.copy()
            moved[place] += sign * step
            values.append(
                marginals(
                    PottsField(moved, pairs, coupling), method, max_iter=10_000, tol=1e-13
                ).log_partition
                if method == "belief_propagation"
                else marginals(PottsField(moved, pairs, coupling), method).log_partition
            )
        gradient[place] = (values[0] - values[1]) / (2 * step)
    return gradient


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.ApproximationWarning")
@pytest.mark.parametrize(
    "method", [n for n in engine_options("marginals") if find_marginals_engine(n).differentiable]
)
def test_differentiable_means_that_the_gradient_of_the_log_partition_is_prob(method):
    unary = np.random.default_rng(1).normal(size=(4, 3))
    pairs, coupling = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)], [0.8, -1.0, 0.5, -np.inf, 0.3]
    prob = marginals(PottsField(unary, pairs, coupling), method).prob
    np.testing.assert_allclose(_numerical_gradient(method, unary, pairs, coupling), prob, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_page_on_inference_lists_the_options_of_every_engine(solver):
    page = (Path(__file__).parents[2] / "docs" / "guide" / "inference.md").read_text()
    table = page.split(f"| engine of `{solver}` | options |")[1].split("\n\n")[0]
    rows = {row.split("`")[1]: row for row in table.splitlines() if row.startswith("| `")}
    assert set(rows) == set(engine_options(solver))
    for engine, options in engine_options(solver).items():
        assert all(f"`{name}`" in rows[engine] for name in options), engine


def test_gibbs_never_sweeps_more_than_it_may():
    for max_sweeps in range(8, 40):
        assert marginals(FIELD, "gibbs", 0, max_sweeps=max_sweeps, tol=0.0).n_iter <= max_sweeps
