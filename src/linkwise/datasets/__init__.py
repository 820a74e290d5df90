"""Data for examples and tests: documented generators, and the sets bundled with scikit-learn.

Every generator takes ``random_state`` (an int, a ``Generator``, a ``RandomState`` or None). Point sets are
returned as ``(X, y)`` with the rows in random order, images as ``(image, truth)``;
:func:`make_eleven_gaussians` adds its matrix of beliefs.
"""

from linkwise.datasets.images import make_noisy_objects, make_occluder, make_texture_mosaic, texture_features
from linkwise.datasets.points import (
    make_four_blobs,
    make_ppc_artificial,
    make_rings,
    make_spirals,
    make_two_moons,
)
from linkwise.datasets.published import load_bundled, make_eleven_gaussians, make_waveform

__all__ = [
    "load_bundled",
    "make_eleven_gaussians",
    "make_four_blobs",
    "make_noisy_objects",
    "make_occluder",
    "make_ppc_artificial",
    "make_rings",
    "make_spirals",
    "make_texture_mosaic",
    "make_two_moons",
    "make_waveform",
    "texture_features",
]
