"""Inference in Potts fields: exact where that is cheap, approximate elsewhere; results say which."""

# Importing an engine registers it under its name.
from linkwise.inference import auto, exact, gibbs, local_search, lp, mean_field, messages  # noqa: F401
from linkwise.inference.api import best_labels, marginals
from linkwise.inference.engines import (
    BestLabels,
    EngineLabels,
    EngineMarginals,
    Marginals,
    labels_engine,
    marginals_engine,
)
from linkwise.inference.field import PottsField

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
