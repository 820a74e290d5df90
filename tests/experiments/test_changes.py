"""Verdicts that changed are told apart from those that stay, and every figure comes from a file."""

from __future__ import annotations

import json

import pytest

from experiments.claims.all import CLAIMS
from experiments.claims.causes import CAUSES
from experiments.framework.changes import EARLIER, changes_section, is_older
from experiments.framework.verdicts import FAILS, HOLDS, PARTLY, Claim, Finding

RUN = {"date": "2026-01-01", "trials": 5, "seconds": 1.0}


def claim(says, experiment="one", tried=""):
    return Claim("Paper", "figure 1", says, experiment, lambda table: Finding("", HOLDS), tried=tried)


@pytest.fixture
def section(tmp_path):
    """Write earlier verdicts and two records, of which "one" was run again; return the section."""

    def write(judged, earlier):
        stored = [
            {
                "experiment": c.experiment,
                "where": c.where,
                "says": c.says,
                "verdict": verdict,
                "measured": text,
            }
            for c, (text, verdict) in earlier
        ]
        (tmp_path / EARLIER).write_text(
            json.dumps({"experiments": {"one": RUN, "two": RUN}, "claims": stored})
        )
        (tmp_path / "one.json").write_text(json.dumps({**RUN, "seconds": 2.0}))
        (tmp_path / "two.json").write_text(json.dumps(RUN))
        tables = {"one": [{"mean": 0.25}], "two": []}
        return changes_section(tmp_path, judged, tables, {"one": "EM runs longer"})

    return write


def parts_of(text):
    changed, _, stays = text.partition("### Verdicts that stay")
    return changed, stays


def test_a_changed_verdict_has_both_figures_and_the_cause(section):
    better = claim("links help")
    changed, stays = parts_of(section([(better, Finding("0.9", HOLDS))], [(better, Finding("0.5", FAILS))]))
    row = next(line for line in changed.splitlines() if "links help" in line)
    assert row.split(" | ")[1:] == ["**does not hold**: 0.5", "**holds**: 0.9", "EM runs longer |"]
    assert "links help" not in stays


def test_a_verdict_that_stays_says_what_was_tried(section):
    open_claim = claim("links help", tried=lambda table: f"ten starts: {table[0]['mean']:.2f}")
    found = [(open_claim, Finding("0.6", PARTLY))]
    changed, stays = parts_of(section(found, [(open_claim, Finding("0.5", PARTLY))]))
    row = next(line for line in stays.splitlines() if "links help" in line)
    assert row.split(" | ")[1:] == ["**partly**: 0.6", "0.5", "EM runs longer. ten starts: 0.25 |"]
    assert "None changed" in changed


def test_what_holds_as_before_is_in_neither_table(section):
    good = claim("links help")
    assert "links help" not in section([(good, Finding("0.9", HOLDS))], [(good, Finding("0.8", HOLDS))])


def test_experiments_that_were_not_run_again_are_named(section):
    first, second = claim("links help"), claim("links harm", "two")
    judged = [(first, Finding("0.6", PARTLY)), (second, Finding("0.5", FAILS))]
    text = section(judged, judged)
    assert "Run again: one. Not run again: two." in text
    row = next(line for line in text.splitlines() if "links harm" in line)
    assert row.split(" | ")[1:] == ["**does not hold**: 0.5", "the same", "Not run again |"]


def test_no_section_without_earlier_verdicts(tmp_path):
    assert changes_section(tmp_path, [], {}, {}) == ""


def test_causes_are_of_experiments_with_claims():
    assert set(CAUSES) <= {claim.experiment for claim in CLAIMS}
    assert all(not text.endswith(".") for text in CAUSES.values())


def test_fewer_trials_than_before_are_told(section, tmp_path):
    open_claim = claim("links help")
    judged = [(open_claim, Finding("0.6", PARTLY))]
    assert "Unfinished" not in section(judged, judged)
    (tmp_path / "one.json").write_text(json.dumps({**RUN, "trials": 3}))
    text = changes_section(tmp_path, judged, {"one": []}, {"one": "EM runs longer"})
    assert "**Unfinished**: 3 trials, 5 before" in text


def test_rows_of_another_date_are_told(section, tmp_path):
    open_claim = claim("links help")
    judged = [(open_claim, Finding("0.6", PARTLY))]
    section(judged, judged)
    kept = [{"date": "2026-01-01", "rows": 4, "sources": {"abc": 5}}]
    (tmp_path / "one.json").write_text(json.dumps({**RUN, "trials": 3, "kept": kept}))
    text = changes_section(tmp_path, judged, {"one": []}, {"one": "EM runs longer"})
    assert "Run again in part: 3 trials; the other rows are of 2026-01-01. EM runs longer" in text
    assert "Unfinished" not in text


def test_a_claim_may_have_a_cause_of_its_own(section):
    other = claim("k-means stays")._replace(cause="Nothing was changed")
    text = section([(other, Finding("0.6", FAILS))], [(other, Finding("0.5", PARTLY))])
    row = next(line for line in text.splitlines() if "k-means stays" in line)
    assert row.endswith("| Nothing was changed |")
    assert "EM runs longer" not in row


def test_tables_older_than_their_experiment_are_marked(section, tmp_path):
    section([], [])
    causes = {"one": "EM runs longer", "two": "EM runs longer"}
    assert not is_older(tmp_path, "one", causes)  # run again
    assert is_older(tmp_path, "two", causes)
    assert not is_older(tmp_path, "two", {})  # not changed
