"""Sessions share their first look at the rows."""

from tests.first_clusterings import looked_at_anew, shared_first_clusterings

__all__ = ["looked_at_anew", "shared_first_clusterings"]
