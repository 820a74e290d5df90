"""Clustering that listens to what people know."""

from linkwise.constraints import Constraints
from linkwise.mixture.constrained_em import ConstrainedEM
from linkwise.mixture.ppc import PPC

__all__ = ["PPC", "ConstrainedEM", "Constraints", "__version__"]

__version__ = "0.1.0.dev0"
