"""What was compared, in words and tables: from records that are known."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.auto import CandidateRecord, Gain
from linkwise.auto.summary import candidate_table, chosen_in_words, count_table, gain_in_words


class Chosen:
    """What tables read of a LinkedClustering."""

    n_clusters, n_clusters_ = 3, 3

    def __init__(self, records=(), gain=(np.nan, np.nan, np.nan)):
        self.selection_ = [CandidateRecord(*record) for record in records]
        self.gain_ = Gain(*gain)


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (
            (0.1, 0.04, 0.16),
            "gained about 0.100 (90 % interval 0.040 to 0.160): the clusters keep that much more",
        ),
        ((0.1, -0.04, 0.24), "gained about 0.100 (90 % interval -0.040 to 0.240)"),
        (
            (-0.1, -0.24, 0.04),
            "lost about 0.100 (90 % interval -0.040 to 0.240): the clusters keep that much less",
        ),
        (
            (-0.1, -0.16, -0.04),
            "lost about 0.100 (90 % interval 0.040 to 0.160): the clusters keep that much less",
        ),
        ((0.0, 0.0, 0.0), "gained about 0.000: the clusters keep the same share"),
    ],
)
def test_gain_in_words(gain, words):
    told = gain_in_words(Chosen(gain=gain), 20)
    assert words in told
    assert ("certain" in told) == (gain[1] <= 0 <= gain[2])


@pytest.mark.parametrize(
    ("n_clusters", "classes", "told"),
    [
        ("auto", (), True),
        ([2, 3], (), True),
        ("auto", ("ash", "oak", "elm"), False),
        ([3], (), False),
        (np.int64(3), (), False),
    ],
)
def test_how_the_number_of_clusters_was_chosen(n_clusters, classes, told):
    model = Chosen()
    model.n_clusters, model.classes_ = n_clusters, classes
    for n_links in (0, 3):
        assert ("chosen by the silhouette" in gain_in_words(model, n_links)) == told


def test_gain_where_all_methods_use_links():
    model = Chosen([("spectral", True, 3, 0.8, 0.05, 1.0, True, "")])
    assert gain_in_words(model, 20).endswith("no method without links was compared.")


def test_tables_of_records():
    records = [
        ("spectral", True, 2, 0.7, 0.1, 0.0, False, ""),
        ("spectral", True, 3, 0.8, 0.05, 0.6, False, ""),
        ("mixture", True, 3, np.nan, np.nan, 0.0, False, "singular"),
        ("k-means, no links", False, 3, 0.9, 0.03, 0.4, False, ""),
        ("consensus", True, 3, 0.85, 0.04, 1.0, True, "2 candidates vote"),
    ]
    model = Chosen(records)
    (table,) = candidate_table(model)
    assert table.rows == [
        ["all votes together", "0.850 ± 0.040", "1.00"],
        ["k-means, no links", "0.900 ± 0.030", "0.40"],
        ["spectral", "0.800 ± 0.050", "0.60"],
        ["mixture", "failed", "–"],
    ]
    (counts,) = count_table(model)
    assert counts.rows == [
        ["2", "", "spectral", "0.700 ± 0.100"],
        ["3", "chosen", "k-means, no links", "0.900 ± 0.030"],
    ]
    assert chosen_in_words(model) == "vote of 2 of 3 candidates"
    one = Chosen([("spectral", True, 3, 0.8, 0.05, 1.0, True, "")])
    assert chosen_in_words(one) == "spectral"
    assert count_table(one) == []
    assert candidate_table(Chosen([("spectral", True, 3, np.nan, np.nan, 1.0, True, "")])) == []
