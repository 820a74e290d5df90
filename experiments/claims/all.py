"""Every claim of the five papers that was put to the test, paper by paper."""

from experiments.claims.classes import CPPC
from experiments.claims.em import CONSTRAINED_EM
from experiments.claims.geometry import HMRF, SPECTRAL
from experiments.claims.ppc import PPC
from experiments.framework.verdicts import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (*PPC, *CONSTRAINED_EM, *CPPC, *HMRF, *SPECTRAL)
