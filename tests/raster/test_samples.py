"""Placeholder until the tests come."""

from linkwise.raster import samples  # noqa: F401
