"""Outcomes that contradict a belief of ±1, against the words of their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkwise.mixture.classes.decisions import (
    contradiction_sentence,
    find_decisions,
    name_clusters,
)
from linkwise.mixture.classes.report import ClassReport

NAMES = ("crops", "mixed", "water")
#: crops in two clusters, mixed with crops in the first, water alone.
TABLE = np.array([[60, 40, 0], [50, 0, 0], [0, 0, 30]])


def report_of(beliefs, table=TABLE):
    return ClassReport(
        classes=NAMES,
        contingency=table,
        n_unlabelled=np.zeros(3, dtype=int),
        beliefs=np.asarray(beliefs, dtype=float),
        separability=np.full((3, 3), 0.25),
        adherence=0.0,
        criteria={"cbic": 1.0},
        n_occupied=3,
        certainty=np.array([0.9, 1.0, 0.8]),
        threshold=0.15,
        decisions=find_decisions(table, NAMES),
        legend=name_clusters(table, NAMES),
    )


def entry(a, b, value):
    beliefs = np.zeros((3, 3))
    beliefs[a, b] = beliefs[b, a] = value
    return beliefs


@pytest.mark.parametrize(
    ("beliefs", "outcome", "classes", "n_rows", "certainty"),
    [
        (entry(0, 1, -1.0), "merged", ("crops", "mixed"), 110, 0.9),
        (entry(0, 0, 1.0), "split", ("crops",), 100, 0.94),
        (entry(1, 1, -1.0), "whole", ("mixed",), 50, 0.9),
        (entry(2, 2, -1.0), "whole", ("water",), 30, 0.8),
        (entry(1, 2, 1.0), "apart", ("mixed", "water"), 80, (50 * 0.9 + 30 * 0.8) / 80),
    ],
)
def test_every_kind_is_found_and_said_everywhere(beliefs, outcome, classes, n_rows, certainty):
    report = report_of(beliefs)
    (found,) = report.contradictions
    assert (found["outcome"], found["classes"], found["n_rows"]) == (outcome, classes, n_rows)
    assert found["certainty"] == pytest.approx(certainty)
    assert abs(found["belief"]) == 1.0
    sentence = contradiction_sentence(found)
    assert ("belief 1 " if found["belief"] > 0 else "belief −1 ") in sentence
    assert f"certainty {certainty:.2f}" in sentence
    assert f"{n_rows}" in sentence
    assert sentence in str(report)
    assert sentence in report.to_html()
    told = [line for line in report.to_frame()["contradiction"] if line]
    # Two classes that stay apart are no decision, and neither is a class that a merge keeps whole.
    assert told == ([sentence] if outcome in ("merged", "split") or classes == ("water",) else [])


@pytest.mark.parametrize(
    "beliefs",
    [
        np.zeros((3, 3)),
        entry(0, 1, 1.0),
        entry(0, 0, -1.0),
        entry(2, 2, 1.0),
        entry(0, 2, -1.0),
        entry(0, 1, -0.99),
        entry(0, 0, 0.9),
    ],
)
def test_beliefs_that_hold_or_leave_doubt_are_not_listed(beliefs):
    report = report_of(beliefs)
    assert report.contradictions == []
    assert "Against" not in str(report)
    assert "Against" not in report.to_html()
    assert not any(report.to_frame()["contradiction"])


def test_a_scattered_class_contradicts_nothing():
    table = np.array([[1, 1, 1], [50, 0, 0], [0, 0, 30]])
    report = replace(report_of(entry(0, 1, 1.0)), contingency=table, threshold=0.5)
    assert report.contradictions == []
