"""What the papers claim, and how each claim is judged."""
