"""Belief propagation: sum-product and max-product messages on graphs with cycles."""

# Importing an engine registers it under its name.
from linkwise.inference.messages import max_product, sum_product  # noqa: F401
