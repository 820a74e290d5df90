"""Every claim of the five papers that was put to the test, paper by paper."""

from linkwise.experiments.claims_classes import CPPC
from linkwise.experiments.claims_em import CONSTRAINED_EM
from linkwise.experiments.claims_geometry import HMRF, SPECTRAL
from linkwise.experiments.claims_ppc import PPC
from linkwise.experiments.verdicts import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (*PPC, *CONSTRAINED_EM, *CPPC, *HMRF, *SPECTRAL)
