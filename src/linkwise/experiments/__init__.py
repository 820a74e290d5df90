"""The papers' experiments: independent trials, paired methods, confidence intervals."""

from importlib import import_module

from linkwise.experiments.experiment import Experiment, Outcome, Size

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Size"]

_MODULES = (
    "ppc_toy", "ppc_hard", "ppc_noise", "ppc_partial", "texture",
    "teachers", "faces", "weights", "widths",
    "cppc_groupings", "cppc", "coarse_classes", "land_cover",
    "hmrf", "hmrf_inference", "newsgroups",
    "spectral_figures", "spectral", "spectral_images",
    "engines", "leaderboard",
)  # fmt: skip

#: Every experiment by its name on the command line, in the order of the papers.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in _MODULES
    for experiment in import_module(f"{__name__}.{module}").EXPERIMENTS
}
