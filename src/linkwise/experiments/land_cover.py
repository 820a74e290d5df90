"""Land-cover legends redefined by CPPC, in place of the paper's MODIS scene; the beliefs are written down."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkwise.beliefs import ClassBeliefs
from linkwise.experiments.data_files import load_table
from linkwise.mixture.class_report import ClassReport
from linkwise.mixture.cppc import CPPC
from linkwise.model_selection import sweep_components

__all__ = ["land_cover_legend", "matogrosso_beliefs", "satimage_beliefs"]


def satimage_beliefs() -> ClassBeliefs:
    """Beliefs about Statlog Landsat: the damp grey soils shade into each other, cotton and stubble vary.

    Returns
    -------
    ClassBeliefs

    Examples
    --------
    >>> from linkwise.experiments.land_cover import satimage_beliefs
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
    >>> from linkwise.experiments.land_cover import matogrosso_beliefs
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


def land_cover_legend(
    scene: str = "satimage", confidence: float = 2.0, n_repeats: int = 3, random_state: int = 0
) -> tuple[list[str], list[list[Any]]]:
    """New legend of a land-cover data set: what became of each class at the K that cBIC chooses.

    Parameters
    ----------
    scene : {"satimage", "modis_matogrosso"}
    confidence : float
        Pull of a whole class on a row, in nats; at the 0.25 of the default, classes believed whole (+1) still
        fall apart.
    n_repeats : int
        Fits for each K.
    random_state : int

    Returns
    -------
    head, rows
        Decision, classes, clusters with their rows, share of the classes' rows in them, separability beside
        belief, and the share of the repeats at this K that agree. The last row says K and its edge.
    """
    X, y = load_table(scene)
    beliefs = {"satimage": satimage_beliefs, "modis_matogrosso": matogrosso_beliefs}[scene]()
    X = PCA(10, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    model = CPPC(beliefs=beliefs, confidence=confidence, criterion_weight=0.25, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is in the table
        sweep = sweep_components(
            model, X, y, n_components=range(4, 15), n_repeats=n_repeats, random_state=random_state
        )
    frame = ClassReport.from_sweep(sweep).to_frame()
    rows: list[list[Any]] = [
        [
            row.decision,
            row.classes,
            ", ".join(f"{name} [{count}]" for name, count in zip(row.clusters, row.counts, strict=True)),
            float(row.coverage),
            float(row.separability),
            float(row.belief),
            float(row.share_of_runs),
        ]
        for row in frame.itertuples()
    ]
    edge = " (edge of the range)" if sweep.at_edge else ""
    nothing = [float("nan")] * 4
    rows.append(["K", f"{sweep.best_n_components}{edge}", f"{sweep.best.n_occupied_} occupied", *nothing])
    head = ["decision", "classes", "clusters", "covered", "separability", "belief", "repeats"]
    return head, rows
