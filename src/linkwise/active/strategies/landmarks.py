"""Strategies that know rows only by coordinates: they see the landmarks, whatever the metric."""

from __future__ import annotations

from functools import wraps

import numpy as np
from numpy.typing import NDArray

from linkwise.active.knowledge import Knowledge
from linkwise.active.strategies.registry import Strategy

__all__ = ["among_landmarks"]


def among_landmarks(function: Strategy) -> Strategy:
    """The same strategy, but with the features of the landmarks for rows, if there is a landscape.

    Features are the rows themselves, or coordinates that stand for their distances if a metric was given.
    """

    @wraps(function)
    def strategy(knowledge: Knowledge, n_pairs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        landscape = knowledge.landscape
        if landscape is None:
            return function(knowledge, n_pairs, rng)
        answers = knowledge.answers._replace(pairs=landscape.place[knowledge.answers.pairs])
        seen = Knowledge(landscape.features, answers, knowledge.n_clusters)
        return landscape.rows[function(seen, n_pairs, rng)]

    return strategy
