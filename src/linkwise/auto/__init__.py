"""Choose among clusterings by the links themselves: :class:`LinkedClustering`."""

from linkwise.auto.estimator import LinkedClustering

__all__ = ["LinkedClustering"]
