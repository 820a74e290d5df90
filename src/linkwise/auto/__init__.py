"""Choose among clusterings by the links themselves: :class:`LinkedClustering`."""

from linkwise.auto.choice import Gain
from linkwise.auto.consensus import Consensus
from linkwise.auto.estimator import CandidateRecord, LinkedClustering

__all__ = ["CandidateRecord", "Consensus", "Gain", "LinkedClustering"]
