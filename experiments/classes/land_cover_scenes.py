"""Land-cover data in place of the paper's MODIS scene, and what somebody who knows the land might believe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from experiments.framework.data_files import data_path, load_table
from linkwise.beliefs import ClassBeliefs

__all__ = [
    "SCENES",
    "Scene",
    "indian_pines_beliefs",
    "load_scene",
    "matogrosso_beliefs",
    "satimage_beliefs",
]

#: Numbers of clusters that are tried: from fewer than there are classes to about twice as many.
SCENES = {
    "satimage": (4, 6, 7, 8, 9, 10, 11, 12, 14),
    "modis_matogrosso": (4, 5, 6, 7, 8, 9, 10),
    "indian_pines": (12, 16, 20, 24, 28, 32, 36),
}
_N_FEATURES = 10


class Scene(NamedTuple):
    """Labelled rows of a scene.

    Attributes
    ----------
    X : (n, 10) float64
        Principal components of standardised features.
    y : (n,) ndarray
        Names of the classes.
    beliefs : ClassBeliefs
    pixels : (height, width, 10) float64 or None
        The same features of every pixel, of scenes that are images.
    labelled : (height, width) bool or None
        The pixels that are rows, in C order.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    beliefs: ClassBeliefs
    pixels: NDArray[np.float64] | None = None
    labelled: NDArray[np.bool_] | None = None


def satimage_beliefs() -> ClassBeliefs:
    """Beliefs about Statlog Landsat: the damp grey soils shade into each other, cotton and stubble vary.

    Returns
    -------
    ClassBeliefs

    Examples
    --------
    >>> from experiments.classes.land_cover_scenes import satimage_beliefs
    >>> beliefs = satimage_beliefs()
    >>> row, column = beliefs.classes.index("damp grey soil"), beliefs.classes.index("very damp grey soil")
    >>> float(beliefs.values[row, column])
    0.5
    """
    names = ["cotton crop", "damp grey soil", "grey soil", "red soil", "vegetation stubble"]
    return (
        ClassBeliefs.keep([*names, "very damp grey soil"])
        .merge("damp grey soil", "very damp grey soil", 0.5)
        .merge("damp grey soil", "grey soil", 0.3)
        .keep_whole("cotton crop", strength=0.1)
        .keep_whole("vegetation stubble", strength=0.1)
    )


def matogrosso_beliefs() -> ClassBeliefs:
    """Beliefs about MODIS series of Mato Grosso: savanna and pasture are many things, second crops alike.

    Returns
    -------
    ClassBeliefs

    Examples
    --------
    >>> from experiments.classes.land_cover_scenes import matogrosso_beliefs
    >>> len(matogrosso_beliefs().classes)
    7
    """
    names = ["Cerrado", "Forest", "Pasture", "Soy_Corn", "Soy_Cotton", "Soy_Fallow", "Soy_Millet"]
    return (
        ClassBeliefs.keep(names)
        .merge("Soy_Corn", "Soy_Millet", 0.5)
        .merge("Soy_Fallow", "Soy_Millet", 0.3)
        .keep_whole("Cerrado", strength=0.1)
        .keep_whole("Pasture", strength=0.1)
    )


def indian_pines_beliefs() -> ClassBeliefs:
    """Beliefs about AVIRIS Indian Pines in June, when the crops are small and soil and residue dominate.

    Corn and soybeans are named by how the field was tilled, so each crop's three classes shade into each
    other (.5). Mown and standing pasture may be one (.3); so may woods and the trees around buildings (.3),
    but the buildings, grass, trees and drives are a mixture by their very name and may fall apart (.1), and
    the largest class, soybeans with little tillage, covers many fields (.5). The rest stays as it is.

    Returns
    -------
    ClassBeliefs

    Examples
    --------
    >>> from experiments.classes.land_cover_scenes import indian_pines_beliefs
    >>> beliefs = indian_pines_beliefs()
    >>> len(beliefs.classes), int((beliefs.values > 0).sum() - 16) // 2
    (16, 8)
    """
    corn = ["Corn", "Corn-mintill", "Corn-notill"]
    soybeans = ["Soybean-clean", "Soybean-mintill", "Soybean-notill"]
    buildings = "Buildings-Grass-Trees-Drives"
    beliefs = ClassBeliefs.keep(
        [
            "Alfalfa", buildings, *corn, "Grass-pasture", "Grass-pasture-mowed", "Grass-trees",
            "Hay-windrowed", "Oats", *soybeans, "Stone-Steel-Towers", "Wheat", "Woods",
        ]
    )  # fmt: skip
    for crop in (corn, soybeans):
        for first, second in ((0, 1), (0, 2), (1, 2)):
            beliefs = beliefs.merge(crop[first], crop[second], 0.5)
    return (
        beliefs.merge("Grass-pasture", "Grass-pasture-mowed", 0.3)
        .merge("Woods", buildings, 0.3)
        .keep_whole(buildings, strength=0.1)
        .keep_whole("Soybean-mintill", strength=0.5)
    )


def load_scene(name: str) -> Scene:
    """A scene from the folder named by LINKWISE_DATA.

    Parameters
    ----------
    name : {"satimage", "modis_matogrosso", "indian_pines"}

    Returns
    -------
    Scene

    Raises
    ------
    DataMissing
    """
    reduction = PCA(_N_FEATURES, random_state=0)
    if name == "indian_pines":
        with np.load(data_path("indian_pines.npz"), allow_pickle=False) as stored:
            image, classes, names = stored["X"].astype(np.float64), stored["gt"], stored["class_names"]
        labelled = classes > 0
        scaler = StandardScaler().fit(image[labelled])
        X = reduction.fit_transform(scaler.transform(image[labelled]))
        pixels = reduction.transform(scaler.transform(image.reshape(-1, image.shape[2])))
        shape = (*labelled.shape, _N_FEATURES)
        return Scene(X, names[classes[labelled]], indian_pines_beliefs(), pixels.reshape(shape), labelled)
    beliefs = {"satimage": satimage_beliefs, "modis_matogrosso": matogrosso_beliefs}[name]()
    X, y = load_table(name)
    return Scene(reduction.fit_transform(StandardScaler().fit_transform(X)), y, beliefs)
