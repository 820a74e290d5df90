"""The papers' experiments as functions that return tables; ``make reproduce`` prints them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from linkwise.experiments.engines import engine_accuracy
from linkwise.experiments.ppc import iris_hard_links, iris_noise_level, noisy_links
from linkwise.experiments.widths import link_graph_widths

__all__ = [
    "EXPERIMENTS",
    "engine_accuracy",
    "iris_hard_links",
    "iris_noise_level",
    "link_graph_widths",
    "noisy_links",
]

#: Name on the command line and the function that returns (head, rows).
EXPERIMENTS: dict[str, Callable[[], tuple[list[str], list[list[Any]]]]] = {
    "link_graph_widths": link_graph_widths,
    "engine_accuracy": engine_accuracy,
    "iris_hard_links": iris_hard_links,
    "iris_noisy_links": noisy_links,
    "wine_noisy_links": partial(noisy_links, "wine", "diag"),
    "iris_noise_level": iris_noise_level,
}
