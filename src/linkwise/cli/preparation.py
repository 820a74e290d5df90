"""From columns of a file to the numbers an estimator sees, the same way for old rows and new ones."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.cli.errors import CommandError
from linkwise.cli.files import reading, write_json
from linkwise.cli.samples import Samples

if TYPE_CHECKING:
    import pandas

__all__ = ["Preparation", "load_prepared_model", "save_prepared_model"]

_FILE = "columns.json"


@dataclass(frozen=True)
class Preparation:
    """Which columns, and how they were scaled.

    Attributes
    ----------
    columns : list of str
        In the order of the estimator.
    centres, scales : list of float
        Each column becomes (x - centre) / scale.
    medians : list of float
        Of the training rows; for --impute on new rows.
    clusters : list of str
        Names of the clusters.
    """

    columns: list[str]
    centres: list[float]
    scales: list[float]
    medians: list[float]
    clusters: list[str]

    @classmethod
    def of(cls, samples: Samples, *, standardize: bool, clusters: list[str]) -> Preparation:
        """Learn from the training rows; constant columns are only centred."""
        values = samples.features.to_numpy()
        centres, scales = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if standardize:
            centres, spread = values.mean(axis=0), values.std(axis=0)
            # Rounding gives a constant column a spread of some 1e-16 of its size.
            constant = spread <= 1e-12 * np.maximum(np.abs(values).max(axis=0), 1e-300)
            scales = np.where(constant, 1.0, spread)
        medians = np.median(values, axis=0)
        names = [str(name) for name in samples.features.columns]
        return cls(names, centres.tolist(), scales.tolist(), medians.tolist(), clusters)

    def apply(self, features: pandas.DataFrame) -> pandas.DataFrame:
        """Scaled columns, in the order of the estimator."""
        return (features[self.columns] - np.array(self.centres)) / np.array(self.scales)


def save_prepared_model(path: str | Path, model: Any, preparation: Preparation) -> Path:
    """Write a new model folder: what ``linkwise.persistence`` writes, and the columns beside it."""
    from linkwise.persistence import save_model

    folder = save_model(model, path)
    write_json(folder / _FILE, asdict(preparation))
    return folder


def load_prepared_model(path: str | Path) -> tuple[Any, Preparation | None]:
    """Read a model folder; no preparation where the model was saved by ``save_model`` alone."""
    from linkwise.persistence import load_model

    # The path is that of the model or of the results it is part of.
    with reading(path, Path(path).parent):
        folder = Path(path)
        if not folder.exists():
            raise CommandError(
                f"{folder}: no such folder; pass the model folder that `linkwise fit -o` wrote"
            )
        if not (folder / "model.json").exists() and (folder / "model" / "model.json").exists():
            folder = folder / "model"
        model = load_model(folder)
        try:
            content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return model, None
        except (ValueError, RecursionError) as error:
            raise CommandError(f"{folder / _FILE} is damaged: {error}; fit the model again") from None
        return model, _checked_preparation(content, model, folder / _FILE)


def _checked_preparation(content: Any, model: Any, file: Path) -> Preparation:
    """What was read, if it is about the columns and clusters of the model."""
    names = [field.name for field in fields(Preparation)]
    if not isinstance(content, dict) or set(content) != set(names):
        raise CommandError(f"{file} was not written by this version of linkwise; fit the model again")
    n_columns, n_clusters = model.n_features_in_, _n_clusters(model)
    sizes = {"clusters": n_clusters, **dict.fromkeys(names[:-1], n_columns)}
    for name in names:
        values, kind = content[name], str if name in ("columns", "clusters") else float
        if not isinstance(values, list) or len(values) != sizes[name]:
            raise CommandError(f"{file}: {name} must be a list of {sizes[name]}; fit the model again")
        for place, value in enumerate(values):
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not (isinstance(value, str) if kind is str else number):
                wanted = "text" if kind is str else "a number"
                raise CommandError(f"{file}: {name}[{place}] must be {wanted}; fit the model again")
            if name == "scales" and not value > 0:
                raise CommandError(f"{file}: scales[{place}] must be above 0; fit the model again")
    return Preparation(**content)


def _n_clusters(model: Any) -> int:
    """Labels are 0 .. this - 1."""
    wanted = getattr(model, "n_clusters", None) or getattr(model, "n_components", None)
    return int(len(model.classes_) if wanted is None else wanted)
