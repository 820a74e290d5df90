"""Clustering that listens to what people know."""

from linkwise.constraints import Constraints

__all__ = ["Constraints", "__version__"]

__version__ = "0.1.0.dev0"
