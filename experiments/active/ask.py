"""Which questions: labels after 5 to 200 answers, by strategy, with right, wrong and unsure answers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import product

from sklearn.metrics import adjusted_rand_score, rand_score

from experiments.active.curves import CHECKPOINTS, Curve, cobras_curve, linked_curve, session_curve
from experiments.active.figure import draw_ask
from experiments.active.summary import draw_measure, keeps_draws
from experiments.framework.experiment import Experiment, Size
from experiments.framework.summary import Row
from experiments.leaderboard.data import SETS, load_set
from linkwise.active import LabelOracle

__all__ = ["CONDITIONS", "EXPERIMENTS", "METHODS", "ask_trial"]

#: Rows of a set at most, as in the leaderboard.
N_ROWS = 400

#: How the person answers.
CONDITIONS = {
    "right": {},
    "10 % wrong": {"error_rate": 0.1},
    "10 % unsure": {"unsure_rate": 0.1},
}

#: Who asks, and how labels are found.
METHODS: dict[str, Curve] = {
    "ActiveClustering": session_curve("auto"),
    "spread": session_curve("spread"),
    "npu": session_curve("npu"),
    "min_max": session_curve("min_max"),
    "explore_consolidate": session_curve("explore_consolidate"),
    "random": session_curve("random"),
    "COBRAS": cobras_curve,
    "random, LinkedClustering": linked_curve,
}

#: LinkedClustering takes seconds for each checkpoint, so it has fewer of them.
_FEWER = {"random, LinkedClustering": (0, 10, 25, 50, 100, 200)}


def ask_trial(
    draw: int, set: str, condition: str, method: str, checkpoints: tuple[int, ...] = CHECKPOINTS
) -> list[Row]:
    """One method asks a person, and its labels are scored on the way.

    At most 400 rows of a set. Nobody tells the number of clusters. Answers come from the classes: all right;
    one in ten wrong; or one in ten "unsure". Whether a pair gets a wrong answer does not depend on who asks.
    All methods but COBRAS and "random, LinkedClustering" get their labels from ``ActiveClustering``, so that
    the questions are compared and not the labels.

    Parameters
    ----------
    draw : int
        Seed of the method and of the wrong answers.
    set : str
        A name in :data:`experiments.leaderboard.data.SETS`.
    condition : str
        A name in :data:`CONDITIONS`.
    method : str
        A name in :data:`METHODS`.
    checkpoints : tuple of int
        Numbers of answers after which labels are scored.

    Returns
    -------
    list of dict
        One row: "ari_m", the adjusted Rand index of all rows after m answers; "covered_m", whether the
        interval of the session held the share of right pairs; and "seconds" of a question. Methods that are
        compared draw by draw have the index once more, under the name of this draw.
    """
    X, y = load_set(set, N_ROWS)
    oracle = LabelOracle(y, random_state=zlib.crc32(f"{set} {draw}".encode()), **CONDITIONS[condition])
    checkpoints = tuple(m for m in checkpoints if m in _FEWER.get(method, CHECKPOINTS))
    row: Row = {"method": method}
    for found in METHODS[method](X, oracle, checkpoints, draw):
        m = found.n_answers
        row[f"ari_{m}"] = float(adjusted_rand_score(y, found.labels))
        if m and keeps_draws(condition, method):
            row[draw_measure(m, draw)] = row[f"ari_{m}"]
        if found.interval is not None and m:
            low, high = found.interval
            row[f"covered_{m}"] = float(low <= rand_score(y, found.labels) <= high)
        if m and found.seconds is not None:
            row["seconds"] = found.seconds / m
    return [row]


def _settings(sets: Iterable[str], methods: Iterable[str] = METHODS) -> list[Row]:
    """All settings, the sets innermost: a run that is cut short has looked at all sets."""
    return [
        {"set": name, "condition": condition, "method": method}
        for condition, method, name in product(CONDITIONS, methods, sets)
    ]


_N_DRAWS = 5

EXPERIMENTS = (
    Experiment(
        "ask",
        "Labels after 5 to 200 answers, by who asks",
        "beyond the papers",
        ask_trial,
        quick=Size(_settings(("iris",)), 1),
        full=Size(_settings(SETS), _N_DRAWS),
        measures=(
            *(f"ari_{m}" for m in CHECKPOINTS),
            *(f"covered_{m}" for m in CHECKPOINTS if m),
            *(draw_measure(m, draw) for m in CHECKPOINTS if m for draw in range(_N_DRAWS)),
            "seconds",
        ),
        chart=draw_ask,
    ),
)
