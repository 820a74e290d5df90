"""Planes on small rows: what they keep apart, and what they do with rows that are equal or few."""

import numpy as np
import pytest

from linkwise.workbench.pictures import Pictures, discriminant_plane, principal_plane, spectral_plane


def test_the_discriminant_plane_keeps_apart_what_principal_components_hide():
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    X = np.column_stack(
        [30 * rng.normal(size=300), 30 * rng.normal(size=300), 4.0 * labels + rng.normal(size=300)]
    )

    def spread(points):
        means = np.stack([points[labels == k].mean(axis=0) for k in range(3)])
        return np.ptp(means, axis=0).max() / points[labels == 0].std(axis=0).max()

    assert spread(discriminant_plane(X, labels)) > 3.0
    assert spread(principal_plane(X)) < 1.0
    assert discriminant_plane(X, labels % 2).shape == (300, 2)
    assert np.array_equal(discriminant_plane(X, np.zeros(300)), principal_plane(X))


@pytest.mark.parametrize(
    "X", [np.zeros((10, 3)), np.arange(3.0)[:, None], np.repeat([[0.0, 0], [9, 9]], 20, axis=0)]
)
def test_odd_rows_have_a_place(X):
    pictures = Pictures(X, lambda: (1, np.arange(len(X)) % 2))
    for one in pictures.listed():
        version, points = pictures.points(one["name"])
        assert points.shape == (len(X), 2)
        assert np.isfinite(points).all()
        assert version == int(one["name"] == "discriminant")


def test_the_graph_of_few_rows_places_the_others():
    rng = np.random.default_rng(0)
    side = np.arange(2500) % 2
    points = spectral_plane(rng.normal(size=(2500, 2)) + 40.0 * side[:, None])
    gap = np.abs(points[side == 0].mean(axis=0) - points[side == 1].mean(axis=0))
    assert (gap / points[side == 0].std(axis=0)).max() > 3.0


def test_a_new_picture_is_not_turned_over():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) + 9.0 * np.eye(3)[np.arange(90) % 3]
    labels = [(1, np.arange(90) % 3), (2, (np.arange(90) + 1) % 3)]
    pictures = Pictures(X, lambda: labels[0])
    first = pictures.points("discriminant")[1]
    labels.pop(0)
    version, second = pictures.points("discriminant")
    assert version == 2
    assert ((first * second).sum(axis=0) > 0.0).all()
