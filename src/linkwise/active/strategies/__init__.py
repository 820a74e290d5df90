"""Strategies: which pairs to ask about next, each a function of what is known so far."""

from linkwise.active.strategies.auto import auto
from linkwise.active.strategies.explore_consolidate import explore_consolidate
from linkwise.active.strategies.information import information
from linkwise.active.strategies.min_max import min_max
from linkwise.active.strategies.npu import npu
from linkwise.active.strategies.random_pairs import random_pairs
from linkwise.active.strategies.registry import Strategy, find_strategy, strategy, strategy_names
from linkwise.active.strategies.spread import spread

__all__ = [
    "Strategy",
    "auto",
    "explore_consolidate",
    "find_strategy",
    "information",
    "min_max",
    "npu",
    "random_pairs",
    "spread",
    "strategy",
    "strategy_names",
]
