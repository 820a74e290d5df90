"""``linkwise map``: from a raster and doubtful classes to a new legend and a new map."""

from linkwise.cli.map.command import map_raster

__all__ = ["map_raster"]
