"""The engines by name: one signature for marginals, one for labels.

An engine is a function of a reduced :class:`~linkwise.inference.problem.Problem`. To plug in another one,
write such a function and pass it as ``method=``, or register it under a name, with the options it takes::

    @marginals_engine("my_engine", max_iter=whole(1))
    def my_engine(problem, rng, *, initial=None, n_threads=1, max_iter=100) -> EngineMarginals: ...

Options are checked here, for every engine and however it is called, before it starts. The types
of what inference returns are here, too.
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

__all__ = [
    "BestLabels",
    "EngineLabels",
    "EngineMarginals",
    "Marginals",
    "Option",
    "choice",
    "engine_name",
    "engine_options",
    "find_labels_engine",
    "find_marginals_engine",
    "labels_engine",
    "marginals_engine",
    "number",
    "whole",
]

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
    """What an option of an engine may be.

    Attributes
    ----------
    kind : {"whole", "number", "choice", "engine"}
        ``engine`` is the name of another engine, or a function; its options are taken as well.
    least : float
        Smallest value of a number.
    above_least : bool
        The smallest value itself is not allowed.
    below : float
        A number is smaller than this.
    choices : tuple of str
    optional : bool
        None is allowed.
    """

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
    """The engine that another one leaves part of the work to."""
    return Option("engine")


_N_THREADS = whole(1)


class _Record(NamedTuple):
    """A registered engine."""

    engine: Callable[..., Any]
    options: Mapping[str, Option]


_MARGINALS: dict[str, _Record] = {}
_LABELS: dict[str, _Record] = {}


def marginals_engine(name: str, **options: Option) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineMarginals``."""
    return _register(_MARGINALS, "marginals", name, options)


def labels_engine(name: str, **options: Option) -> Callable[..., Any]:
    """Register ``engine(problem, rng, *, initial=None, n_threads=1, **options) -> EngineLabels``."""
    return _register(_LABELS, "best_labels", name, options)


def find_marginals_engine(
    method: str | Callable[..., EngineMarginals],
) -> tuple[str, Callable[..., EngineMarginals]]:
    """Name and function of a marginals engine given by name or as a function."""
    return _find(method, _MARGINALS, "marginals")


def find_labels_engine(method: str | Callable[..., EngineLabels]) -> tuple[str, Callable[..., EngineLabels]]:
    """Name and function of a labels engine given by name or as a function."""
    return _find(method, _LABELS, "best_labels")


def engine_options(caller: Literal["marginals", "best_labels"]) -> dict[str, Mapping[str, Option]]:
    """Options of every registered engine of ``marginals`` or of ``best_labels``."""
    engines = {"marginals": _MARGINALS, "best_labels": _LABELS}[caller]
    return {name: record.options for name, record in engines.items()}


def _register(
    engines: dict[str, _Record], caller: str, name: str, options: Mapping[str, Option]
) -> Callable[..., Any]:
    def register(engine: Callable[..., Any]) -> Callable[..., Any]:
        defaults = {key: value.default for key, value in inspect.signature(engine).parameters.items()}

        @functools.wraps(engine)
        def checked(
            problem: Any, rng: np.random.Generator, *, initial: Any = None, n_threads: int = 1, **given: Any
        ) -> Any:
            n_threads = _checked(n_threads, "n_threads", _N_THREADS, engines)
            known: dict[str, Option | None] = dict(options)
            for key, option in options.items():
                if option.kind == "engine":
                    _checked(given.get(key, defaults[key]), key, option, engines)
                    known.update(_options_of(given.get(key, defaults[key]), engines, given))
            for key, value in list(given.items()):
                if key not in known:
                    raise TypeError(
                        f"method {name!r} of {caller} has no option {key!r}; "
                        + (f"its options are {', '.join(known)}" if known else "it takes no options")
                    )
                given[key] = _checked(value, key, known[key], engines)
            return engine(problem, rng, initial=initial, n_threads=n_threads, **given)

        engines[name] = _Record(checked, options)
        return checked

    return register


def _options_of(
    method: Any, engines: Mapping[str, _Record], given: Mapping[str, Any]
) -> dict[str, Option | None]:
    """Options of an engine that another one uses; a function of the user's takes what is given."""
    return dict.fromkeys(given) if callable(method) else dict(engines[method].options)


def _checked(value: Any, name: str, option: Option | None, engines: Mapping[str, _Record]) -> Any:
    """The value, numbers as an int or a float; one that the option does not allow is refused."""
    if option is None or (option.optional and value is None):
        return value
    if option.kind in ("choice", "engine"):
        words = option.choices or tuple(engine for engine in engines if engine != "auto")
        fits = (isinstance(value, str) and value in words) or (option.kind == "engine" and callable(value))
        allowed = f"use one of {', '.join(words)}"
    else:
        kind = numbers.Integral if option.kind == "whole" else numbers.Real
        fits = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
        fits = fits and bool(option.least <= value < option.below)
        fits = fits and not (option.above_least and value == option.least)
        if option.kind == "whole":
            allowed = f"it must be a whole number from {option.least:.0f} to {option.below - 1:.0f}"
        else:
            allowed = f"it must be a finite number {'>' if option.above_least else '>='} {option.least:g}"
            allowed += f" and below {option.below:g}" if option.below < np.inf else ""
        allowed += ", or None" if option.optional else ""
    if not fits:
        raise ValueError(f"{name} is {value!r}: {allowed}")
    if option.kind == "whole":
        return int(value)
    return float(value) if option.kind == "number" else value


def _find(method: Any, engines: dict[str, _Record], caller: str) -> tuple[str, Callable[..., Any]]:
    if callable(method):
        return getattr(method, "__name__", type(method).__name__), method
    if method not in engines:
        known = ", ".join(sorted(engines, key=lambda name: name != "auto"))
        raise ValueError(f"{caller} has no method {method!r}; use one of {known}, or an engine function")
    return method, engines[method].engine


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
        How many points each engine answered for.
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
