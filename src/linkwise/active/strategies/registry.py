"""The strategies by name: one signature, one registry.

A strategy is a function of what is known; it keeps nothing of its own between two calls. To plug in another
one, pass such a function as ``strategy=``, or register it under a name::

    @strategy("my_strategy")
    def my_strategy(knowledge, n_pairs, rng): ...    # (n_pairs, 2) int64

It returns pairs of different rows that were not asked about before, the most useful one first, and fewer than
``n_pairs`` only where no pair is left. ``rng`` is seeded by the seed of the session and the number of
answers, so that a session that is taken up again asks the same question. Strategies that know rows only by
coordinates see the landmarks (``among_landmarks``), whatever the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from linkwise._arrays import Ints
from linkwise.active.knowledge import Knowledge

Strategy = Callable[[Knowledge, int, np.random.Generator], Ints]

_STRATEGIES: dict[str, Strategy] = {}


def strategy(name: str) -> Callable[[Strategy], Strategy]:
    """Register a strategy under a name; a name is given once."""

    def register(function: Strategy) -> Strategy:
        if name in _STRATEGIES:
            raise ValueError(f"there is a strategy {name!r} already; choose another name")
        _STRATEGIES[name] = function
        return function

    return register


def strategy_names() -> tuple[str, ...]:
    """Names of all strategies, in the order of the alphabet."""
    return tuple(sorted(_STRATEGIES))


def find_strategy(wanted: Any) -> Strategy:
    """The strategy of this name; a function is a strategy itself."""
    if callable(wanted):
        return wanted
    if isinstance(wanted, str) and wanted in _STRATEGIES:
        return _STRATEGIES[wanted]
    names = ", ".join(strategy_names())
    raise ValueError(
        f"strategy={wanted!r} is not known; choose one of {names}, or pass a function "
        "(knowledge, n_pairs, rng) that returns pairs of rows"
    )


def among_landmarks(function: Strategy) -> Strategy:
    """The same strategy, but with the features of the landmarks for rows, if there is a landscape.

    Features are the rows themselves, or coordinates that stand for their distances if a metric was given.
    """

    @wraps(function)
    def strategy(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> Ints:
        landscape = knowledge.landscape
        if landscape is None:
            return function(knowledge, n_pairs, rng)
        answers = knowledge.answers._replace(pairs=landscape.place[knowledge.answers.pairs])
        seen = Knowledge(landscape.features, answers, knowledge.n_clusters)
        return landscape.rows[function(seen, n_pairs, rng)]

    return strategy
