"""Maps on disk: complete, resumable, or not there at all."""

from linkwise.raster import writing


def test_module_exists():
    assert writing.MapWriter
