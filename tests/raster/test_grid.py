"""Placeholder until the tests come."""

from linkwise.raster import grid  # noqa: F401
