"""The new legend: what the classes of the samples become, or a mixture that was fitted before."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._arrays import Floats, Ints
from linkwise._validation import listed
from linkwise.cli import options
from linkwise.cli.classes import propose_classes, read_beliefs, sweep_classes
from linkwise.cli.errors import CommandError
from linkwise.cli.output import Output
from linkwise.cli.samples import Preparation, load_prepared_model

if TYPE_CHECKING:
    from linkwise.beliefs import ClassBeliefs
    from linkwise.mixture.classes.report import ClassReport
    from linkwise.raster import TrainingRows

#: Belief that a class is whole, where -k allows more classes and no beliefs were given.
_MAY_FALL_APART = 0.1
#: The name that a cluster without labelled rows has, see ``name_clusters``.
_EMPTY = "(none)"


@dataclass(frozen=True)
class FitSettings:
    """What the user chose about the fit; ``counts`` are the numbers of -k."""

    counts: str | None
    criterion: str | None
    confidence: float
    repeats: int
    covariance: str
    standardize: bool
    seed: int


@dataclass(frozen=True)
class NewLegend:
    """Names of the new classes and the mixture that tells them, in the units of ``preparation``.

    ``whole`` also has clusters without samples. ``labels`` (n,) of the samples are 0 to K - 1; a mixture that
    was fitted before has neither labels nor a report.
    """

    names: list[str]
    mixture: Any
    whole: Any
    preparation: Preparation
    labels: Ints | None = None
    report: ClassReport | None = None

    def after_scaling(self, model: Any) -> Any:
        """Chain the scaling and a model, for bands as they are in the raster."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = np.array(self.preparation.centres), np.array(self.preparation.scales)
        scaler.var_, scaler.n_features_in_, scaler.n_samples_seen_ = scaler.scale_**2, len(scaler.mean_), 0
        return make_pipeline(scaler, model)


def beliefs_about(path: Path | None, rows: TrainingRows, settings: FitSettings) -> ClassBeliefs:
    """Read the beliefs; without a file classes stay apart, and whole unless -k asks for other numbers."""
    from linkwise.beliefs import ClassBeliefs

    present = sorted(set(rows.y.tolist()))
    if len(present) < 2:
        raise CommandError(
            f"all samples are {present[0]!r}; a map needs samples of two classes or more: add some"
        )
    if path is not None:
        return read_beliefs(path, present)
    kept = ClassBeliefs.keep(present)
    return kept if settings.counts is None else kept.keep_whole(*present, strength=_MAY_FALL_APART)


def refuse_edited(path: Path, beliefs: ClassBeliefs) -> None:
    """Refuse to write beliefs over a table of an earlier run into which somebody wrote a doubt."""
    from linkwise.beliefs import ClassBeliefs

    if not path.exists():
        return
    found = ClassBeliefs.from_csv(path)
    kept = ClassBeliefs.keep(found.classes)
    if found not in (kept, kept.keep_whole(*found.classes, strength=_MAY_FALL_APART), beliefs):
        raise CommandError(
            f"{path} has beliefs of yours, which would be replaced; pass it with --beliefs, or remove it"
        )


def new_legend(
    out: Output, rows: TrainingRows, bands: Sequence[str], beliefs: ClassBeliefs, settings: FitSettings
) -> NewLegend:
    """Fit the classes of the samples with the beliefs about them."""
    preparation = _preparation(rows.X, bands, settings.standardize)
    X, given = preparation.scaled(rows.X), rows.y
    chosen = {"confidence": settings.confidence, "covariance_type": settings.covariance}
    repeated = {"repeats": settings.repeats, "seed": settings.seed}
    if settings.counts is None:
        model, report = propose_classes(out, X, given, beliefs, chosen, **repeated)
    else:
        counts = options.parse_counts(settings.counts, len(X))
        sweep, report = sweep_classes(
            out, X, given, beliefs, counts, chosen, criterion=settings.criterion or "cbic", **repeated
        )
        model = sweep.best
    smaller, names, numbers = _occupied(model, report.legend)
    named = replace(preparation, clusters=list(report.legend))
    return NewLegend(names, smaller, model, named, numbers[np.asarray(model.labels_)], report)


def stored_legend(path: Path, bands: Sequence[str]) -> NewLegend:
    """Read a mixture that ``linkwise classes``, ``linkwise fit`` or an earlier ``linkwise map`` wrote."""
    from linkwise.mixture.prediction import FittedMixture

    model, preparation = load_prepared_model(path)
    if not isinstance(model, FittedMixture):
        raise CommandError(
            f"{path} holds a {type(model).__name__}, which gives no probabilities; pass a mixture, such as "
            "`linkwise classes -o` or `linkwise fit --method ppc -o` writes"
        )
    if model.n_features_in_ != len(bands):
        raise CommandError(
            f"{path} was fitted to {model.n_features_in_} bands, but the raster has {len(bands)}; pass the "
            "bands it was fitted to, in the same order (--bands)"
        )
    known = list(bands) if preparation is None else preparation.columns
    if known != list(bands) and sorted(known) == sorted(bands):
        raise CommandError(
            f"{path} was fitted to the same bands in another order; pass --bands {','.join(known)}"
        )
    if preparation is None:
        preparation = Preparation.bare(bands, None, model)
    smaller, names, _ = _occupied(model, preparation.clusters)
    return NewLegend(names, smaller, model, preparation)


def renamed(legend: NewLegend, wanted: Sequence[str]) -> NewLegend:
    """Give new classes other names: ``open (a)=pasture``."""
    names, clusters = list(legend.names), list(legend.preparation.clusters)
    for text in wanted:
        old, _, new = (part.strip() for part in text.partition("="))
        if not new:
            raise CommandError(f"--rename {text!r} has no new name; write it as 'open (a)=pasture'")
        if old not in legend.names:
            raise CommandError(f"--rename: there is no class {old!r}; name one of {listed(legend.names, 12)}")
        names[legend.names.index(old)] = clusters[legend.preparation.clusters.index(old)] = new
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CommandError(f"--rename leaves two classes named {twice!r}; give them different names")
    return replace(legend, names=names, preparation=replace(legend.preparation, clusters=clusters))


def _preparation(X: Floats, bands: Sequence[str], standardize: bool) -> Preparation:
    """Learn the scales of the bands from the samples."""
    import pandas

    from linkwise.cli.samples import Samples

    samples = Samples(Path(), pandas.DataFrame(X, columns=list(bands)))
    return Preparation.of(samples, standardize=standardize, clusters=[])


def _occupied(model: Any, names: Sequence[str]) -> tuple[Any, list[str], Ints]:
    """Leave out clusters without samples: the mixture, the names, and new numbers, -1 for none."""
    kept = np.array([name != _EMPTY for name in names])
    numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    if kept.all():
        return model, list(names), numbers
    smaller = copy.copy(model)
    shared = ("precisions_cholesky_", "covariances_") if model.covariance_type == "tied" else ()
    for name in ("weights_", "means_", "precisions_cholesky_", "covariances_"):
        if name not in shared:
            setattr(smaller, name, getattr(model, name)[kept])
    smaller.weights_ = smaller.weights_ / smaller.weights_.sum()
    return smaller, [name for name, keep in zip(names, kept, strict=True) if keep], numbers
