"""Placeholder until the tests come."""

from linkwise.raster import areas  # noqa: F401
