"""Maps of a real scene from a legend that is too coarse."""
