"""Inference in Potts fields: exact where possible, fast everywhere, honest about the rest."""

# Importing an engine registers it under its name.
from linkwise.inference import (  # noqa: F401
    auto,
    belief_propagation,
    exact,
    forest_descent,
    gibbs,
    icm,
    lp,
    max_product,
    mean_field,
    spanning_forest,
)
from linkwise.inference.api import best_labels, marginals
from linkwise.inference.field import PottsField
from linkwise.inference.registry import EngineLabels, EngineMarginals, labels_engine, marginals_engine
from linkwise.inference.results import BestLabels, Marginals

__all__ = [
    "BestLabels",
    "EngineLabels",
    "EngineMarginals",
    "Marginals",
    "PottsField",
    "best_labels",
    "labels_engine",
    "marginals",
    "marginals_engine",
]
