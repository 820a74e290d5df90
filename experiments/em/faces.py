"""Constrained EM on faces (Shental et al. 2003, figure 7)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from experiments.em.teachers import MEASURES, six_algorithms, teachers_links
from experiments.framework.data_files import data_path
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row

__all__ = ["EXPERIMENTS", "faces"]

#: Images that each teacher sorts; the paper does not say.
SUBSET_SIZE = 20

N_COMPONENTS = 60


def faces(draw: int, share: float) -> list[Row]:
    """Pairwise F of six algorithms on 640 faces of ten people (YaleB) in 60 principal components.

    The protocol of :func:`experiments.em.teachers.teachers` with 20 images a teacher. Pixels as they
    are: the paper centred the faces by optical flow. 64 images a person cannot determine a full covariance in
    60 dimensions and the paper does not say how it was kept regular; here all people share one.
    EM runs to the maximum.

    Parameters
    ----------
    draw : int
    share : float
        Share of the images that teachers see.

    Returns
    -------
    list of dict
        See :func:`experiments.em.teachers.six_algorithms`.
    """
    X, people = _faces()
    return six_algorithms(
        X, people, teachers_links(people, share, SUBSET_SIZE, draw), draw, covariance_type="tied"
    )


@cache
def _faces() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Principal components of the pixels, and the person."""
    with np.load(data_path("yaleb10_32x32.npz"), allow_pickle=False) as stored:
        pixels = stored["images"].reshape(len(stored["images"]), -1) / 255.0
        people = stored["subject"].astype(np.int64)
    return PCA(N_COMPONENTS, svd_solver="full").fit_transform(pixels), people


_SETTINGS = [{"share": share} for share in (0.5, 0.75)]

EXPERIMENTS = (
    Experiment(
        "faces",
        "Pairwise F of six algorithms on faces of which teachers sort 50 % or 75 %",
        "constrained EM, figure 7",
        faces,
        quick=Size(_SETTINGS, 3),
        full=Size(_SETTINGS, 30),
        measures=MEASURES,
        reference="EM",
    ),
)
