"""Labels improved step by step: iterated conditional modes and forest descent."""

# Importing an engine registers it under its name.
from linkwise.inference.local_search import forest_descent, icm  # noqa: F401
