"""Sessions share their first look at the rows, and choose among few clusterings of them."""

from tests.first_clusterings import few_for_sessions, looked_at_anew, shared_first_clusterings

__all__ = ["few_for_sessions", "looked_at_anew", "shared_first_clusterings"]
