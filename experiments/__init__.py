"""The papers' experiments: independent trials, paired methods, confidence intervals."""

from importlib import import_module

from experiments.framework.experiment import Experiment, Outcome, Size

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Size"]

_MODULES = (
    "ppc.toy", "ppc.hard", "ppc.noise", "ppc.optimum", "ppc.partial", "ppc.texture",
    "em.teachers", "em.faces", "em.weights", "em.widths",
    "classes.groupings", "classes.readings", "classes.coarse", "classes.mislabelled",
    "classes.land_cover",
    "hmrf.curves", "hmrf.inference", "hmrf.newsgroups",
    "spectral.figures", "spectral.curves", "spectral.images",
    "ppc.engines", "leaderboard.leaderboard", "leaderboard.hard_groups", "leaderboard.few_labels",
    "leaderboard.other_packages", "leaderboard.unknown_number", "active.ask", "maps.sinop",
)  # fmt: skip

#: Every experiment by its name on the command line, in the order of the papers.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in _MODULES
    for experiment in import_module(f"{__name__}.{module}").EXPERIMENTS
}
