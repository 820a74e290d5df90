"""Links between samples: the class that carries them, its builders, and files of links."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.constraints.constraints import Constraints as Constraints
    from linkwise.constraints.evidence import Judgements as Judgements

__all__ = ["Constraints", "Judgements"]

# Resolved when asked for, so that reading a file of links does not load numba.
__getattr__ = resolver(
    __name__,
    {"Constraints": "linkwise.constraints.constraints", "Judgements": "linkwise.constraints.evidence"},
)
