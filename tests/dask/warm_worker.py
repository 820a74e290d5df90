"""What a worker of the tests needs is imported and its kernels are loaded, before it is forked from here.

Imported by name in the process from which ``test_cluster.py`` forks workers, and nowhere else.
"""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from linkwise.dask import CPPC, PPC
from tests.dask.dask_cases import blobs, lazy, links_of, quietly

X, Y = blobs(30)
ROWS = lazy(X, ((10, 20), (1, 2)))

with dask.config.set(scheduler="synchronous"):
    dd.from_pandas(pd.DataFrame(X), npartitions=2).to_dask_array(lengths=True).compute()
    quietly(lambda: PPC(3, n_init=1, max_iter=2).fit(ROWS, constraints=links_of(Y, "noisy")))
    for beliefs in (None, np.full((3, 3), -0.5) + np.eye(3)):
        quietly(lambda beliefs=beliefs: CPPC(3, beliefs=beliefs, init="paper", max_iter=1).fit(ROWS, Y))
