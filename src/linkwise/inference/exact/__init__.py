"""Exact inference: trees, junction trees, minimum cuts, integer programs."""

# Importing an engine registers it under its name.
from linkwise.inference.exact import exact, forest  # noqa: F401
