"""Choose among clusterings by the links themselves: :class:`LinkedClustering`."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.auto.choice import Gain as Gain
    from linkwise.auto.consensus import Consensus as Consensus
    from linkwise.auto.estimator import CandidateRecord as CandidateRecord
    from linkwise.auto.estimator import LinkedClustering as LinkedClustering

__all__ = ["CandidateRecord", "Consensus", "Gain", "LinkedClustering"]

__getattr__ = resolver(
    __name__,
    {
        "CandidateRecord": "linkwise.auto.estimator",
        "Consensus": "linkwise.auto.consensus",
        "Gain": "linkwise.auto.choice",
        "LinkedClustering": "linkwise.auto.estimator",
    },
)
