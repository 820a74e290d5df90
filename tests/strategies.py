"""Random values for property tests, drawn in one step: one draw of Hypothesis takes a tenth of a millisecond.

Failures name the seed, by which they can be repeated; what is drawn within a step does not shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st


def made_by(make: Callable[[Random], Any]) -> st.SearchStrategy:
    """Whatever a function makes with the random numbers that it is given."""
    return st.randoms(use_true_random=True).map(make)


def size(random: Random, least: int, most: int) -> int:
    """A number of things; the fewest and the most come up often."""
    return random.choice([least, min(least + 1, most), most, *[random.randint(least, most)] * 3])


def random_pairs(random: Random, n: int, most: int) -> list[tuple[int, int]]:
    """At most so many pairs of different rows, also repeated and in either order."""
    return [tuple(random.sample(range(n), 2)) for _ in range(size(random, 0, most))]
