"""Choose the number of clusters and the estimator; split data without cutting links."""

from linkwise.model_selection.folds import ConstraintKFold
from linkwise.model_selection.recommendation import recommend_method
from linkwise.model_selection.sweep import ComponentSweep, SweepRun, sweep_components

__all__ = ["ComponentSweep", "ConstraintKFold", "SweepRun", "recommend_method", "sweep_components"]
