"""Names and colours."""

import pytest

from linkwise.raster import Legend


@pytest.mark.parametrize("n_classes", [1, 24, 25, 255, 700])
def test_colours_differ(n_classes):
    colours = Legend(range(n_classes)).colors
    assert len(set(colours)) == n_classes
    assert "#FFFFFF" not in colours
    assert len(Legend(range(n_classes)).colormap()) == n_classes + 1


def test_bad_legends():
    with pytest.raises(ValueError, match="at least one class"):
        Legend([])
    with pytest.raises(ValueError, match="two classes are named 'a'"):
        Legend(["a", "b", "a"])
    with pytest.raises(ValueError, match="2 classes and 1 colours"):
        Legend(["a", "b"], ["#000000"])
    for colour in ("red", "#12345", "#GG0000", "000000"):
        with pytest.raises(ValueError, match="the colour of 'a'"):
            Legend(["a"], [colour])
