"""Other packages that cluster with links, on the same links as the leaderboard."""

from __future__ import annotations

from itertools import product

from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import SETS, WRONG
from experiments.leaderboard.leaderboard import leaderboard_trial
from experiments.leaderboard.peers import PEERS

__all__ = ["EXPERIMENTS", "other_packages_trial"]


def other_packages_trial(draw: int, set: str, flip: float) -> list[Row]:
    """Other packages with the leaderboard's links among 30 % of the rows.

    Each is called as its own documentation shows, with the true number of clusters; none takes a certainty.
    Those with hard links take part where all links are right. A fit is stopped after 20 seconds.

    Parameters
    ----------
    draw : int
        Repeat of the leaderboard that has the same links.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    flip : float
        Share of the links that are wrong.

    Returns
    -------
    list of dict
        "ari" of the rows without links and the share of links "kept", or "problem".
    """
    return leaderboard_trial(draw, draw, set, "30 %", flip, methods=PEERS)


def _settings(sets: tuple[str, ...]) -> list[Row]:
    return [{"set": name, "flip": flip} for flip, name in product((0.0, WRONG), sets)]


EXPERIMENTS = (
    Experiment(
        "other_packages",
        "Other packages with links on the leaderboard's sets",
        "beyond the papers",
        other_packages_trial,
        quick=Size(_settings(("iris",)), 1),
        full=Size(_settings(tuple(SETS)), 2),
        measures=("ari", "kept"),
        texts=("problem",),
    ),
)
