"""The engines by name: one signature for marginals, one for labels, and what each engine needs.

An engine is a function of a reduced :class:`~linkwise.inference.problem.Problem`. To plug in another one,
pass such a function as ``method=``, or register it under a name with the options it takes::

    @marginals_engine("my_engine", uses_initial=False, max_iter=whole(1))
    def my_engine(problem, rng, *, initial=None, n_threads=1, max_iter=100) -> EngineMarginals: ...

The options of an engine are checked here, before it starts. The result types of inference are here, too.
"""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Counts beyond this are a mistake: no engine would come to an end.
_LARGEST = 2**31 - 1


class EngineMarginals(NamedTuple):
    """Answer of a marginals engine, in the numbering of its problem; fields as in ``Marginals``."""

    prob: NDArray[np.float64]
    log_partition: float
    agreement: NDArray[np.float64]
    exact: bool
    converged: bool = True
    n_iter: int = 0
    log_partition_kind: str = "exact"
    details: Mapping[str, Any] = {}


class EngineLabels(NamedTuple):
    """Answer of a labels engine, in the numbering of its problem; fields as in ``BestLabels``."""

    labels: NDArray[np.int64]
    upper_bound: float | None
    optimal: bool
    converged: bool = True
    n_iter: int = 0
    details: Mapping[str, Any] = {}


class Option(NamedTuple):
    """What an option of an engine may be; ``engine`` is the name of another engine, or a function."""

    kind: Literal["whole", "number", "choice", "engine"]
    least: float = 0.0
    above_least: bool = False
    below: float = np.inf
    choices: tuple[str, ...] = ()
    optional: bool = False


def whole(least: int) -> Option:
    """A whole number from ``least`` to 2 ** 31 - 1."""
    return Option("whole", least, below=_LARGEST + 1)


def number(*, positive: bool = False, below: float = np.inf, optional: bool = False) -> Option:
    """A finite number >= 0 or > 0, below a limit."""
    return Option("number", above_least=positive, below=below, optional=optional)


def choice(*choices: str) -> Option:
    """One of some words."""
    return Option("choice", choices=choices)


def engine_name() -> Option:
    """The engine that does part of the work of another one; its options are taken as well."""
    return Option("engine")


class Engine(NamedTuple):
    """An engine with checked options; ``differentiable``: ``prob`` is the gradient of ``log_partition``."""

    name: str
    solve: Callable[..., Any]
    options: dict[str, Any]
    uses_initial: bool
    differentiable: bool


class _Registered(NamedTuple):
    """A registered engine; ``options`` is None for a function that takes any keyword."""

    name: str
    solve: Callable[..., Any]
    options: Mapping[str, Option | None] | None


_Caller = Literal["marginals", "best_labels"]
_REGISTRY: dict[_Caller, dict[str, _Registered]] = {"marginals": {}, "best_labels": {}}
_ARGUMENTS = ("initial", "n_threads")


def marginals_engine(
    name: str, *, uses_initial: bool = True, differentiable: bool = False, **options: Option
) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineMarginals``.

    Parameters
    ----------
    name : str
        What users pass as ``method``.
    uses_initial : bool, default=True
        The engine starts from ``initial``. Without, EM does not keep the last posterior for it.
    differentiable : bool, default=False
        The gradient of ``log_partition`` with respect to the unary scores is ``prob``. Only then does a
        mixture use the engine for the normaliser of its prior, too; otherwise ``auto`` serves there.
    **options : Option
        The keyword arguments of the engine beside ``initial`` and ``n_threads``, and what they may be.

    Returns
    -------
    callable
        A decorator that returns the engine itself.
    """
    return _register("marginals", name, uses_initial, differentiable, options)


def labels_engine(name: str, *, uses_initial: bool = True, **options: Option) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineLabels``.

    Parameters
    ----------
    name : str
        What users pass as ``method``.
    uses_initial : bool, default=True
        The engine starts from ``initial``.
    **options : Option
        As in :func:`marginals_engine`.

    Returns
    -------
    callable
        A decorator that returns the engine itself.
    """
    return _register("best_labels", name, uses_initial, False, options)


def _register(
    caller: _Caller, name: str, uses_initial: bool, differentiable: bool, options: Mapping[str, Option]
) -> Callable[..., Any]:
    def register(engine: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY[caller][name] = _Registered(name, engine, options)
        _without_options.cache_clear()
        # A user's function says the same with attributes of its own.
        engine.uses_initial = uses_initial  # type: ignore[attr-defined]
        engine.differentiable = differentiable  # type: ignore[attr-defined]
        return engine

    return register


def engine_options(caller: Literal["marginals", "best_labels"]) -> dict[str, Mapping[str, Option]]:
    """Options of every registered engine of ``marginals`` or of ``best_labels``."""
    return {
        name: {key: option for key, option in (found.options or {}).items() if option is not None}
        for name, found in _REGISTRY[caller].items()
    }


def find_marginals_engine(
    method: str | Callable[..., EngineMarginals], options: Mapping[str, Any] | None = None
) -> Engine:
    """The marginals engine of this name, or this function, with its options checked."""
    if isinstance(method, str) and options is not None and not options and method in _REGISTRY["marginals"]:
        return _without_options(method)._replace(options={})
    return _find("marginals", method, options or {})


@functools.cache
def _without_options(method: str) -> Engine:
    """The marginals engine of this name; kept, because every step of EM asks for it."""
    return _find("marginals", method, {})


def find_labels_engine(
    method: str | Callable[..., EngineLabels], options: Mapping[str, Any] | None = None
) -> Engine:
    """The labels engine of this name, or this function, with its options checked."""
    return _find("best_labels", method, options or {})


_ONE_THREAD = 1


def checked_threads(n_threads: int) -> int:
    """The number of threads as an int; anything but a whole number >= 1 is refused."""
    if n_threads is _ONE_THREAD:  # as in most steps of EM
        return n_threads
    return int(_checked(n_threads, "n_threads", whole(1), "inference", ()))


def _find(caller: _Caller, method: Any, given: Mapping[str, Any]) -> Engine:
    """Look the engine up, check its options, and add what an engine that it uses takes and needs."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f'inference_options must be None or a dict, got {given!r}; pass for example {{"max_iter": 50}}'
        )
    found = _look_up(caller, method)
    title = f"method {found.name!r} of {caller}"
    words = tuple(name for name in _REGISTRY[caller] if name != "auto")
    uses_initial = getattr(found.solve, "uses_initial", True)
    differentiable = getattr(found.solve, "differentiable", False)
    known = dict(found.options or {})
    uses = ""
    takes_any = found.options is None
    for key, option in list(known.items()):
        if option is not None and option.kind == "engine":
            default = _default(found.solve, key)
            other = _look_up(caller, _checked(given.get(key, default), key, option, title, words))
            known |= {name: taken for name, taken in (other.options or {}).items() if name not in known}
            takes_any = takes_any or other.options is None
            uses_initial = uses_initial or getattr(other.solve, "uses_initial", True)
            differentiable = differentiable and getattr(other.solve, "differentiable", False)
            uses = f"with {key}={other.name!r} "
    options = {}
    for key, value in given.items():
        if key not in known and not takes_any:
            raise TypeError(f"{title} has no option {key!r}; {uses + _help(caller, key, known)}")
        options[key] = _checked(value, key, known.get(key), title, words)
    return Engine(found.name, found.solve, options, uses_initial, differentiable)


@functools.cache
def _default(solve: Callable[..., Any], key: str) -> Any:
    """The default of an engine's option; kept, because every step of EM asks for it."""
    return inspect.signature(solve).parameters[key].default


def _look_up(caller: _Caller, method: Any) -> _Registered:
    engines = _REGISTRY[caller]
    if callable(method):
        for found in engines.values():
            if found.solve is method:
                return found
        name = getattr(method, "__name__", type(method).__name__)
        parameters = list(inspect.signature(method).parameters.values())[2:]
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return _Registered(name, method, None)
        return _Registered(name, method, {key.name: None for key in parameters if key.name not in _ARGUMENTS})
    if method not in engines:
        names = ", ".join(sorted(engines, key=lambda name: name != "auto"))
        raise ValueError(f"{caller} has no method {method!r}; use one of {names}, or an engine function")
    return engines[method]


def _help(caller: _Caller, key: str, known: Mapping[str, Any]) -> str:
    """What to write instead of an unknown option: the known ones, and engines that have this one."""
    others = [name for name, found in _REGISTRY[caller].items() if key in (found.options or {})]
    text = f"its options are {', '.join(known)}" if known else "it takes no options"
    return text + (f" ({key!r} is an option of {', '.join(others)})" if others else "")


def _checked(value: Any, name: str, option: Option | None, title: str, engines: tuple[str, ...]) -> Any:
    """The value, numbers as an int or a float; one that the option does not allow is refused."""
    if option is None or (option.optional and value is None):
        return value
    if option.kind in ("choice", "engine"):
        words = option.choices or engines
        fits = (isinstance(value, str) and value in words) or (option.kind == "engine" and callable(value))
        allowed = f"one of {', '.join(words)}"
    else:
        kind = numbers.Integral if option.kind == "whole" else numbers.Real
        fits = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
        fits = fits and bool(option.least <= value < option.below)
        fits = fits and not (option.above_least and value == option.least)
        if option.kind == "whole":
            allowed = f"a whole number from {option.least:.0f} to {option.below - 1:.0f}"
        else:
            allowed = f"a finite number {'>' if option.above_least else '>='} {option.least:g}"
            allowed += f" and below {option.below:g}" if option.below < np.inf else ""
        allowed += ", or None" if option.optional else ""
    if not fits:
        raise ValueError(f"{name} is {value!r}: {title} needs {allowed}; pass that")
    if option.kind == "whole":
        return int(value)
    return float(value) if option.kind == "number" else value


@dataclass(frozen=True)
class Marginals:
    """Marginal probabilities of a field, and how far they can be trusted.

    Attributes
    ----------
    prob : (n, K)
        P(z_i = k).
    log_partition : float
        log sum_z exp(score(z)), or what ``log_partition_kind`` says.
    agreement : (m,)
        P(z_i == z_j) for each pair of the field.
    exact : bool
        True only if every number above is exact (up to rounding).
    converged : bool
        False if any approximate part stopped at its iteration limit.
    n_iter : int
        Sweeps of the approximate part; 0 if there was none.
    method : str
        The engines that were used, joined by ``+``.
    log_partition_kind : {"exact", "lower_bound", "upper_bound", "bethe", "approximation", "unavailable"}
        ``lower_bound`` comes from mean field, ``upper_bound`` from dropped penalties; ``bethe`` and
        ``approximation`` may err to either side; ``unavailable`` comes with NaN.
    parts : mapping of str to int
        How many points each engine solved.
    details : mapping
        Diagnostics of the engines: traces, Monte Carlo errors, widths, dropped links.

    Examples
    --------
    >>> from linkwise.inference import PottsField, marginals
    >>> result = marginals(PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [float("inf")]))
    >>> result.exact, result.agreement
    (True, array([1.]))
    """

    prob: NDArray[np.float64]
    log_partition: float
    agreement: NDArray[np.float64]
    exact: bool
    converged: bool
    n_iter: int
    method: str
    log_partition_kind: str = "exact"
    parts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BestLabels:
    """A labelling of high score, with a bound where one is known.

    Attributes
    ----------
    labels : (n,) int64
    score : float
        ``field.score(labels)``, evaluated on the labels themselves.
    upper_bound : float or None
        No labelling scores more than this; None if no bound was computed.
    optimal : bool
        True only if the labelling is proven to have the highest score (up to rounding).
    converged : bool
    n_iter : int
    method : str
        The engines that were used, joined by ``+``.
    parts, details : mapping
        As in :class:`Marginals`.

    Examples
    --------
    >>> from linkwise.inference import PottsField, best_labels
    >>> best = best_labels(PottsField([[0.0, 0.0], [0.0, 1.0]], [(0, 1)], [2.0]))
    >>> best.labels, best.score, best.optimal
    (array([1, 1]), 1.0, True)
    """

    labels: NDArray[np.int64]
    score: float
    upper_bound: float | None
    optimal: bool
    converged: bool
    n_iter: int
    method: str
    parts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
