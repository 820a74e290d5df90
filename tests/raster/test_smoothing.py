"""Placeholder until the tests come."""

from linkwise.raster import smoothing  # noqa: F401
