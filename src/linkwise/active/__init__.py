"""Which pair to ask about next, what the answers say so far, and when to stop."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.active.oracle import LabelOracle as LabelOracle
    from linkwise.active.session import ActiveClustering as ActiveClustering
    from linkwise.active.session import suggest_pairs as suggest_pairs

__all__ = ["ActiveClustering", "LabelOracle", "suggest_pairs"]

__getattr__ = resolver(
    __name__,
    {
        "ActiveClustering": "linkwise.active.session",
        "LabelOracle": "linkwise.active.oracle",
        "suggest_pairs": "linkwise.active.session",
    },
)
