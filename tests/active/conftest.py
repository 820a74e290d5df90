"""Sessions share their first look at the rows, and choose among few clusterings of them."""

import pytest

from tests.first_clusterings import looked_at_anew, shared_first_clusterings

__all__ = ["looked_at_anew", "shared_first_clusterings"]


@pytest.fixture
def all_candidates():
    """For a test that needs what the fixture below takes away, the candidates that a user has."""


@pytest.fixture(autouse=True)
def _few_for_sessions(request):
    """Clusterings of the rows were half of the time of 600 tests, which are about answers and questions."""
    if "all_candidates" not in request.fixturenames:
        request.getfixturevalue("few_candidates")
