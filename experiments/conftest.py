"""Doctests of experiments choose among few candidates: of 20 the longest took 7 s."""

from __future__ import annotations

import pytest

_KEPT = (
    "boundaries, smooth",
    "spectral, near",
    "mixture, tied",
    "discriminant of groups",
    "k-means, no links",
)


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """One candidate of each kind; what is printed does not depend on who was compared."""
    # Here, because tests/conftest.py has to set the number of threads before numpy is imported.
    from linkwise.auto import candidates

    few = {name: candidates.CANDIDATES[name] for name in _KEPT}
    monkeypatch.setattr(candidates, "CANDIDATES", few)
    monkeypatch.setattr(candidates, "_QUICK", tuple(filter(few.get, candidates._QUICK)))
