"""Pictures of clusters, links, beliefs, criteria and kernels; they need matplotlib: ``linkwise[plot]``.

Every display holds the arrays of one picture; its class methods make and draw it, and ``plot(ax=None)``
draws it again, on given axes or in a new figure. Clusters differ in colour and in marker, kinds of
links in their dashes, and violated links carry a cross, so that the pictures can be read in grey and by
colour-blind eyes.

Legends stand beside the axes where the figure has a layout engine (``plt.subplots(layout="constrained")``,
which new figures get), otherwise inside them.
"""

from linkwise.displays.annotators import AnnotatorDisplay
from linkwise.displays.belief_map import BeliefDisplay, SeparabilityDisplay
from linkwise.displays.class_map import ClassMapDisplay
from linkwise.displays.clusters import ClusterDisplay
from linkwise.displays.constraint_graph import ConstraintGraphDisplay
from linkwise.displays.convergence import ConvergenceDisplay
from linkwise.displays.criterion import CriterionDisplay
from linkwise.displays.density import DensityDisplay
from linkwise.displays.kernel import KernelDisplay
from linkwise.displays.link_curve import LinkCurveDisplay

__all__ = [
    "AnnotatorDisplay",
    "BeliefDisplay",
    "ClassMapDisplay",
    "ClusterDisplay",
    "ConstraintGraphDisplay",
    "ConvergenceDisplay",
    "CriterionDisplay",
    "DensityDisplay",
    "KernelDisplay",
    "LinkCurveDisplay",
    "SeparabilityDisplay",
]
