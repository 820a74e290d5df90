"""Which pair to ask about next, what the answers say so far, and when to stop."""

__all__: list[str] = []
