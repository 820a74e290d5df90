"""The estimators for data beyond the memory of one machine, computed with Dask."""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'linkwise.dask needs Dask ({error}); install it with pip install "linkwise[dask]"'
    ) from error

from linkwise.dask.auto import LinkedClustering
from linkwise.dask.classes import CPPC
from linkwise.dask.kmeans import HMRFKMeans, MPCKMeans, PCKMeans
from linkwise.dask.mixture import PPC, ConstrainedEM

__all__ = ["CPPC", "PPC", "ConstrainedEM", "HMRFKMeans", "LinkedClustering", "MPCKMeans", "PCKMeans"]
