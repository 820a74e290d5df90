"""Embedding rows of further points against their definition, point by point."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.spectral.kernels import nearest_neighbours
from linkwise.spectral.out_of_sample import NeighbourExtension, extension_of


def slow_row(point, reference, rows, count):
    """Mean of the rows of the nearest reference points, weighted by inverse distance, of length one."""
    distances = np.array([np.sqrt(((point - other) ** 2).sum()) for other in reference])
    nearest = np.argsort(distances, kind="stable")[:count]
    if distances[nearest[0]] == 0.0:
        mean = rows[nearest[distances[nearest] == 0.0]].mean(axis=0)
    else:
        mean = np.average(rows[nearest], axis=0, weights=1.0 / distances[nearest])
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_further_points_get_the_weighted_mean_of_their_neighbours(count):
    rng = np.random.default_rng(count)
    reference, rows = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    extension = NeighbourExtension(reference, nearest_neighbours(reference), rows, count)
    further = np.concatenate([rng.normal(size=(20, 2)), reference[:4]])
    expected = [slow_row(point, reference, rows, count) for point in further]
    np.testing.assert_allclose(extension.rows(further), expected, atol=1e-9)
    np.testing.assert_array_equal(extension_of(extension.state()).rows(further), extension.rows(further))
