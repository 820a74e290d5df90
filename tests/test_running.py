"""Warnings of many runs are issued once for each place that warned."""

import warnings

from linkwise._running import warn_once


class SummedUpWarning(UserWarning):
    """A warning that the caller sums up itself."""


def runs(messages):
    with warn_once() as summed_up:
        summed_up.add(SummedUpWarning)
        for message in messages:
            warnings.warn(message, stacklevel=1)
        warnings.warn("left to the caller", SummedUpWarning, stacklevel=1)


def test_each_place_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs([f"run {number} has empty clusters" for number in range(3)])
        runs(["one and the same"] * 3)
    assert [str(warning.message) for warning in caught] == [
        "run 0 has empty clusters (and 2 more like it in other runs)",
        "one and the same",
    ]
    assert {warning.filename for warning in caught} == {__file__}
