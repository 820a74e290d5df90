"""Maps from rasters: read a stack of bands, take training rows, classify window by window, write a map.

A scene is never in memory as a whole: it is read, classified, smoothed and written window by window, and one
core classifies faster than most disks read. So scenes larger than memory need neither Dask nor threads.
"""

try:
    import pyogrio  # noqa: F401
    import pyproj  # noqa: F401
    import rasterio  # noqa: F401
    import rioxarray  # noqa: F401
    import shapely  # noqa: F401
    import xarray  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'linkwise.raster needs further packages ({error}); install them with pip install "linkwise[raster]"'
    ) from error

from linkwise.raster.areas import ClassArea, areas
from linkwise.raster.classify import classify, iter_windows
from linkwise.raster.legend import Legend
from linkwise.raster.samples import TrainingRows, training_rows
from linkwise.raster.stack import read_stack
from linkwise.raster.writing import MapWriter, fingerprint, write_map

__all__ = [
    "ClassArea",
    "Legend",
    "MapWriter",
    "TrainingRows",
    "areas",
    "classify",
    "fingerprint",
    "iter_windows",
    "read_stack",
    "training_rows",
    "write_map",
]
