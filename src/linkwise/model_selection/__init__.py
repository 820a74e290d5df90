"""Choose the number of clusters; split data without cutting links."""

from linkwise.model_selection.folds import ConstraintKFold
from linkwise.model_selection.sweep import ComponentSweep, SweepRun, sweep_components

__all__ = ["ComponentSweep", "ConstraintKFold", "SweepRun", "sweep_components"]
