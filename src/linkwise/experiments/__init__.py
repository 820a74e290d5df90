"""The papers' experiments: independent trials, paired methods, confidence intervals."""

from linkwise.experiments import (
    coarse_classes,
    cppc,
    cppc_groupings,
    engines,
    faces,
    hmrf,
    hmrf_inference,
    land_cover,
    leaderboard,
    newsgroups,
    ppc_hard,
    ppc_noise,
    ppc_partial,
    ppc_toy,
    spectral,
    spectral_figures,
    spectral_images,
    teachers,
    texture,
    weights,
    widths,
)
from linkwise.experiments.experiment import Experiment, Outcome, Size

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Size"]

#: Every experiment by its name on the command line.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (
        coarse_classes,
        cppc,
        cppc_groupings,
        engines,
        faces,
        hmrf,
        hmrf_inference,
        land_cover,
        leaderboard,
        newsgroups,
        ppc_hard,
        ppc_noise,
        ppc_partial,
        ppc_toy,
        spectral,
        spectral_figures,
        spectral_images,
        teachers,
        texture,
        weights,
        widths,
    )
    for experiment in module.EXPERIMENTS
}
