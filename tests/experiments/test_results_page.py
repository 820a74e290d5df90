"""Verdicts follow from the tables by the stated rule, and the page is what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import EXPERIMENTS
from experiments.active.page import ASK_INCLUDES, ask_includes
from experiments.claims.all import CLAIMS
from experiments.framework.results_page import results_page
from experiments.framework.tables import TIDY
from experiments.framework.verdicts import (
    FAILS,
    HOLDS,
    PARTLY,
    against,
    by_majority,
    by_threshold,
    gains,
    mean_of,
    rows_of,
)  # fmt: skip
from experiments.leaderboard.page import INCLUDES, includes

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"


def row(mean, half=0.01, difference=None, **values):
    found = {**values, **dict.fromkeys(TIDY)}
    found.update(values)
    found.update(mean=mean, low=mean - half, high=mean + half, n=10)
    if difference is not None:
        found.update(
            difference=difference, difference_low=difference - half, difference_high=difference + half
        )
    return found


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_majority_rule(yes, undecided, no):
    verdict = by_majority(yes, undecided, no)
    if yes + undecided + no == 0:
        return
    assert (verdict == HOLDS) == (no == 0 and yes >= 2 * undecided)
    if verdict != HOLDS:
        assert (verdict == FAILS) == (yes == 0 or no > yes)


def test_nothing_measured_is_no_support():
    with pytest.raises(ValueError, match="no row of f"):
        rows_of([row(0.5, measure="g", method="A")], "f", method="A")
    assert by_threshold([1.0, 2.0], lambda value: value > 3) == FAILS
    assert by_threshold([1.0, 4.0], lambda value: value > 3) == PARTLY


def test_intervals_decide():
    rows = [row(0.6, difference=0.1), row(0.5, difference=0.005), row(0.4, difference=-0.1)]
    assert gains(rows) == (1, 1, 1)
    assert against(rows, [row(0.5), row(0.51), row(0.5)]) == (1, 1, 1)
    single = {**row(0.9), "low": None, "high": None}
    assert against([single], [row(0.1)]) == (0, 1, 0)


def test_one_row_is_asked_for():
    table = [row(0.5, measure="f", method="A", links=1), row(0.6, measure="f", method="A", links=2)]
    assert mean_of(table, "f", links=2) == 0.6
    with pytest.raises(ValueError, match="too many values"):
        mean_of(table, "f", method="A")


def judge(says, table):
    (claim,) = [claim for claim in CLAIMS if says in claim.says]
    return claim.judge(table).verdict


@pytest.mark.parametrize(
    ("wide", "verdict"),
    [
        ((10, 0.95, 0.2), HOLDS),
        ((12, 0.95, 0.2), FAILS),
        ((10, 0.85, 0.2), FAILS),
        ((10, 0.95, 0.05), FAILS),
    ],
)
def test_one_width_shows_all_of_figure_3(wide, verdict):
    """The narrow one has the wrong boundary; a boundary, a shape or an affinity alone is not enough."""
    table = [row(0.8, measure="r2", figure=3, method="no links", width=0.05)]
    for width, (boundary, share, affinity) in {0.05: (15, 0.95, 0.3), 0.2: wide}.items():
        of_width = {"method": "A", "width": width}
        table += [
            row(boundary, measure="boundary", figure=3, **of_width),
            row(share, measure="r2", figure=3, **of_width),
            row(affinity, measure="affinity", figure=4, **of_width),
            row(0.0, measure="affinity", figure=4, method="B", width=width),
        ]
    assert judge("splits a continuum", table) == verdict


def noisy_table(soft, hard, plain):
    """Accuracies of soft and hard PPC on the six sets, the same at both rates."""
    sets = ("artificial 1", "artificial 2", "artificial 3", "iris", "waveform", "pendigits")
    table = []
    for data, s, h in zip(sets, soft, hard, strict=True):
        for flip in (0.15, 0.3):
            for method, mean in (("soft PPC", s), ("hard PPC", h), ("GMM", plain)):
                setting = {"data": data, "flip": flip, "method": method}
                table.append(row(mean, difference=mean - plain, measure="accuracy", **setting))
                if method != "soft PPC":
                    table.append(row(s - mean, measure="soft_gain", **setting))
    return table


@pytest.mark.parametrize(
    ("soft", "verdict"), [([0.9] * 6, HOLDS), ([0.9, 0.9, 0.5, 0.9, 0.9, 0.6], PARTLY), ([0.6] * 6, FAILS)]
)
def test_soft_against_hard(soft, verdict):
    assert judge("soft PPC beats hard PPC", noisy_table(soft, [0.8] * 6, 0.7)) == verdict


def test_soft_and_hard_are_compared_draw_by_draw():
    """Their own intervals overlap, because draws differ much; those of the difference do not."""
    table = noisy_table([0.9] * 6, [0.8] * 6, 0.7)
    for found in table:
        if found["measure"] == "accuracy":
            found.update(low=found["mean"] - 0.3, high=found["mean"] + 0.3)
    assert judge("soft PPC beats hard PPC", table) == HOLDS
    earlier = [found for found in table if found["measure"] == "accuracy"]
    assert judge("soft PPC beats hard PPC", earlier) == FAILS


def test_soft_against_none_counts_five_sets():
    assert judge("same five sets", noisy_table([0.9, 0.9, 0.1, 0.9, 0.9, 0.9], [0.5] * 6, 0.7)) == HOLDS
    assert judge("same five sets", noisy_table([0.9, 0.9, 0.1, 0.9, 0.9, 0.6], [0.5] * 6, 0.7)) == PARTLY
    assert judge("same five sets", noisy_table([0.7] * 6, [0.5] * 6, 0.7)) == FAILS


def test_hard_is_best_on_the_third_set():
    assert judge("hard PPC is best", noisy_table([0.8] * 6, [0.5, 0.5, 0.9, 0.5, 0.5, 0.5], 0.7)) == HOLDS
    assert judge("hard PPC is best", noisy_table([0.8] * 6, [0.75] * 6, 0.7)) == FAILS


def test_speed_of_icm():
    def table(ratio):
        return [
            row(ratio, data=data, links=20, method=method, measure="ratio")
            for data in ("iris", "protein116", "letters_ijl")
            for method in ("belief_propagation", "lp")
        ]

    (claim,) = [claim for claim in CLAIMS if claim.experiment == "hmrf_times"]
    assert claim.judge(table(20.0)).verdict == HOLDS
    assert claim.judge(table(2.0)).verdict == FAILS


def test_every_claim_has_its_table():
    for claim in CLAIMS:
        assert claim.experiment in EXPERIMENTS
        assert (RESULTS / f"{claim.experiment}.csv").exists()
        assert not claim.says.endswith(".")


def test_every_experiment_was_run_in_full():
    for name in EXPERIMENTS:
        assert f'"command": "python -m experiments {name} --full"' in (RESULTS / f"{name}.json").read_text()


def test_page_is_what_the_tables_say():
    page = results_page(RESULTS)
    assert (DOCS / "research" / "results.md").read_text(encoding="utf-8") == page
    for claim in CLAIMS:
        assert claim.says in page
    parts = {**includes(RESULTS), **ask_includes(RESULTS)}
    assert set(parts) == {*INCLUDES, *ASK_INCLUDES}
    for name, text in parts.items():
        assert (RESULTS / name).read_text(encoding="utf-8") == text
