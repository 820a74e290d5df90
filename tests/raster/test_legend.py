"""Placeholder until the tests come."""

from linkwise.raster import legend  # noqa: F401
