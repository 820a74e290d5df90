"""How many clusters, and splits of the data that leave links whole."""

from linkwise.model_selection.folds import ConstraintKFold
from linkwise.model_selection.recommendation import recommend_method
from linkwise.model_selection.sweep import ComponentSweep, SweepRun, sweep_components

__all__ = ["ComponentSweep", "ConstraintKFold", "SweepRun", "recommend_method", "sweep_components"]
