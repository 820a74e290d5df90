"""Sessions share their first look at the rows, and choose among few clusterings of them."""

from tests.first_clusterings import all_candidates, few_for_sessions, looked_at_anew, shared_first_clusterings

__all__ = ["all_candidates", "few_for_sessions", "looked_at_anew", "shared_first_clusterings"]
