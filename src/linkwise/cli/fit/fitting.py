"""Fit a method to rows that were read, once the number of clusters is chosen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise._arrays import Ints
from linkwise.cli.compare import TruthScores, score_truth
from linkwise.cli.errors import CommandError
from linkwise.cli.options import METHODS, MethodName, Settings, probabilities_of
from linkwise.cli.output import Output
from linkwise.cli.samples import Preparation, Samples
from linkwise.cli.tables import check_links

if TYPE_CHECKING:
    import pandas

    from linkwise.constraints import Constraints
    from linkwise.model_selection import ComponentSweep


@dataclass(frozen=True)
class Fit:
    """A fitted model with everything the outputs need."""

    samples: Samples
    links: Constraints
    method: str
    reason: str
    model: Any
    X: pandas.DataFrame
    preparation: Preparation
    labels: Ints
    probabilities: NDArray[np.floating] | None
    truth: TruthScores | None
    seconds: float
    sweep: ComponentSweep | None = None
    infeasible: Sequence[int] = ()

    @property
    def chosen_by_links(self) -> bool:
        """Tell whether ``model`` is a LinkedClustering."""
        return hasattr(self.model, "selection_")

    @property
    def named(self) -> bool:
        """Tell whether clusters have names, after the classes of labelled rows."""
        return hasattr(self.model, "cluster_names_")


def fit_samples(
    out: Output,
    samples: Samples,
    links: Constraints,
    method: MethodName,
    settings: Settings,
    *,
    standardize: bool = True,
    counts: Sequence[int] = (),
    repeats: int = 5,
) -> Fit:
    """Fit one method to rows that were read; of several ``counts`` of clusters the best is chosen first."""
    from linkwise.auto.estimator import allows

    if len(samples) < 2:
        raise CommandError(f"{samples.path} has 1 row; pass a file with two rows or more")
    if settings.n_clusters != "auto":
        check_links(links, settings.n_clusters, samples)
    name, reason = method.value, ""
    if settings.learn_noise is not False and name != "ppc":
        if method is not MethodName.auto:
            raise CommandError(f"--method {name} cannot learn how often links are wrong; use --method ppc")
        name, reason = "ppc", "only ppc learns how often links are wrong"
    if METHODS[name].only_hard and settings.soft:
        raise CommandError(
            f"--method {name} takes hard links only; leave --certainty and weights out, or use ppc"
        )
    preparation = Preparation.of(samples, standardize=standardize, clusters=[])
    X = preparation.apply(samples.features)
    sweep, infeasible = None, [k for k in counts if not allows(links, k)]
    if len(counts) > 1 and infeasible:
        out.say(f"The hard links need more than {infeasible[-1]} clusters; fewer were not tried.")
    if len(counts) > 1 and name == "auto":
        settings = replace(settings, n_clusters=[k for k in counts if k not in infeasible])
    elif len(counts) > 1:
        possible = [k for k in counts if k not in infeasible]
        # The starts of the final fit are shared out among the runs of each number.
        shared = METHODS[name].build(replace(settings, n_init=max(1, settings.n_init // repeats)))
        try:
            sweep = sweep_counts(
                out, shared, X, None, possible, constraints=links if links.n_pairs else None,
                n_repeats=repeats, random_state=settings.seed,
            )  # fmt: skip
        except ValueError as error:
            raise CommandError(f"-k {possible[0]}:{possible[-1]}: {error}") from None
        if sweep.at_edge == "upper" or (sweep.at_edge == "lower" and not infeasible):
            out.warn(
                f"{sweep.criterion} chooses {sweep.best_n_components} clusters, the {sweep.at_edge} edge of "
                "the range: the best number may lie beyond. Widen -k."
            )
        settings = replace(settings, n_clusters=sweep.best_n_components)
    model = METHODS[name].build(settings)
    began = time.perf_counter()
    with out.progress(f"fitting {name}"):
        model.fit(X, constraints=links if links.n_pairs or links.classes is not None else None)
    seconds = time.perf_counter() - began
    if name == "auto":
        _warn_of_edge(out, model, counts, infeasible)
    n_clusters = model.n_clusters_ if name == "auto" else settings.n_clusters
    names = getattr(model, "cluster_names_", np.arange(n_clusters)).tolist()
    preparation = replace(preparation, clusters=[str(one) for one in names])
    labels = np.asarray(model.labels_)
    return Fit(
        samples, links, name, reason, model, X, preparation, labels, probabilities_of(model, X),
        score_truth(samples.labels, labels), seconds, sweep, infeasible,
    )  # fmt: skip


def _warn_of_edge(out: Output, model: Any, counts: Sequence[int], infeasible: Sequence[int]) -> None:
    """Warn if the number of clusters that was chosen is the first or last of those that were tried."""
    tried = sorted({*counts} - {*infeasible}) or sorted({one.n_clusters for one in model.selection_})
    if len(tried) < 2:
        return
    edge = "lower" if model.n_clusters_ == tried[0] and tried[0] > 2 and not infeasible else ""
    edge = "upper" if model.n_clusters_ == tried[-1] else edge
    if edge:
        out.warn(
            f"{model.n_clusters_} clusters were chosen, the {edge} edge of what was tried ({tried[0]} to "
            f"{tried[-1]}): the best number may lie beyond. Pass a wider range with -k."
        )


def sweep_counts(
    out: Output, estimator: Any, X: Any, y: Any, counts: Sequence[int], *, ignored: str = "", **options: Any
) -> ComponentSweep:
    """Fit every number of clusters several times, with a bar; warnings that match ``ignored`` are dropped."""
    from linkwise.model_selection import ComponentSweep, sweep_components

    parts = []
    with out.progress("trying numbers of clusters", len(counts)) as advance, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=ignored)
        for k in counts:
            # Seeds depend on K and repeat alone, so that sweeps of one K each are parts of the whole.
            parts.append(sweep_components(estimator, X, y, n_components=k, **options))
            advance()
    return ComponentSweep(
        parts[0].criterion,
        tuple(run for part in parts for run in part.runs),
        {k: model for part in parts for k, model in part.typical.items()},
        {k: model for part in parts for k, model in part.best_runs.items()},
    )
