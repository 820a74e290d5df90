"""Gaussian mixtures that obey links (PPC, ConstrainedEM) and beliefs about classes (CPPC)."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.mixture.classes.decisions import stability as stability
    from linkwise.mixture.classes.relabel import Relabelling as Relabelling
    from linkwise.mixture.classes.relabel import relabel as relabel
    from linkwise.mixture.classes.report import ClassReport as ClassReport
    from linkwise.mixture.constrained_em import ConstrainedEM as ConstrainedEM
    from linkwise.mixture.cppc import CPPC as CPPC
    from linkwise.mixture.ppc import PPC as PPC
    from linkwise.mixture.ppc import DoubtfulAnswer as DoubtfulAnswer

_MODULES = {
    "CPPC": "linkwise.mixture.cppc",
    "ClassReport": "linkwise.mixture.classes.report",
    "ConstrainedEM": "linkwise.mixture.constrained_em",
    "DoubtfulAnswer": "linkwise.mixture.ppc",
    "PPC": "linkwise.mixture.ppc",
    "Relabelling": "linkwise.mixture.classes.relabel",
    "relabel": "linkwise.mixture.classes.relabel",
    "stability": "linkwise.mixture.classes.decisions",
}

__all__ = [*_MODULES]

__getattr__ = resolver(__name__, _MODULES)
