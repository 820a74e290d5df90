"""Long sessions: when all rows are looked at again, and the core of rows that is searched for groups."""
