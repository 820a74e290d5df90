"""Which pair to ask about next, what the answers say so far, and when to stop."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.active.oracle import LabelOracle as LabelOracle

__all__ = ["LabelOracle"]

__getattr__ = resolver(
    __name__,
    {
        "LabelOracle": "linkwise.active.oracle",
    },
)
