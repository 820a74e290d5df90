"""Pixels to samples and back."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from linkwise import Constraints
from linkwise.cli.errors import CommandError
from linkwise.cli.images import label_png, pixel_links, read_picture


def test_links_by_number_and_by_place_are_the_same(files, tmp_path):
    rows = pd.read_csv(files / "pixel_links.csv")
    places = {"y1": rows["i"] // 43, "x1": rows["i"] % 43, "y2": rows["j"] // 43, "x2": rows["j"] % 43}
    pd.DataFrame({**places, "kind": rows["kind"]}).to_csv(tmp_path / "places.csv", index=False)
    picture = read_picture(files / "objects.png")
    by_number = pixel_links(files / "pixel_links.csv", picture, None)
    assert by_number == Constraints.read_csv(files / "pixel_links.csv", 43 * 43)
    assert pixel_links(tmp_path / "places.csv", picture, None) == by_number
    soft = pixel_links(tmp_path / "places.csv", picture, 0.9)
    assert np.allclose(np.abs(soft.weights), 0.5 * np.log(9))


def test_transparent_pixels_and_blocks(tmp_path):
    """An image of 5 x 7 pixels in blocks of 2, the second of which holds a transparent pixel."""
    table = np.zeros((5, 7, 4), dtype=np.uint8)
    table[:, :, 3] = 255
    table[1, 2, 3] = 0
    table[:, :, 0] = np.arange(7)
    Image.fromarray(table).save(tmp_path / "image.png")
    picture = read_picture(tmp_path / "image.png", block=2)
    assert picture.mask.tolist() == [[True, False, True], [True, True, True]]
    assert picture.places().tolist() == [[0, 0], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert picture.colours().shape == (5, 5)
    painted = picture.paint(np.arange(5))
    assert painted.shape == (4, 6)
    assert painted[[0, 1, 2, 3], [1, 2, 3, 5]].tolist() == [0, -1, 3, 4]
    links = tmp_path / "links.csv"
    links.write_text("y1,x1,y2,x2,kind\n0,1,3,4,cannot\n")
    assert pixel_links(links, picture, None) == Constraints(5, cannot_link=[(0, 4)])
    for content, words in (
        ("0,0,1,1", "lies in one block"),
        ("0,0,1,2", "transparent"),
        ("0,0,4,0", "leaves"),
    ):
        links.write_text(f"y1,x1,y2,x2,kind\n{content},must\n")
        with pytest.raises(CommandError, match=words):
            pixel_links(links, picture, None)


def test_grey_that_means_transparent_is_left_out(tmp_path):
    """PNG files may name one grey value that is transparent instead of holding an alpha channel."""
    table = np.array([[0, 51, 255], [255, 51, 0]], dtype=np.uint8)
    Image.fromarray(table).save(tmp_path / "grey.png", transparency=255)
    picture = read_picture(tmp_path / "grey.png")
    assert picture.mask.tolist() == [[True, True, False], [False, True, True]]
    assert picture.colours().ravel().tolist() == [0.0, 0.2, 0.2, 0.0]


@pytest.mark.parametrize(
    ("table", "channels"),
    [
        (np.array([[0, 255], [51, 0]], dtype=np.uint8), 1),
        (np.array([[0, 65535], [13107, 0]], dtype=np.uint16), 1),
        (np.dstack([np.array([[0, 255], [51, 0]], dtype=np.uint8)] * 3), 1),
        (np.dstack([np.array([[0, 255], [51, 0]], dtype=np.uint8)] + [np.ones((2, 2), np.uint8)] * 2), 3),
    ],
)
def test_brightness_of_all_kinds_of_images(tmp_path, table, channels):
    Image.fromarray(table).save(tmp_path / "image.png")
    picture = read_picture(tmp_path / "image.png")
    assert picture.pixels.shape == (2, 2, channels)
    assert np.allclose(picture.pixels[:, :, 0], [[0, 1], [0.2, 0]])


def test_labels_are_the_values_of_the_png():
    labels = np.array([[0, 3], [-1, 254]])
    image = Image.open(io.BytesIO(label_png(labels)))
    assert image.mode == "P"
    assert np.asarray(image).tolist() == [[0, 3], [255, 254]]
    assert image.convert("RGBA").getpixel((0, 1))[3] == 0
    assert image.convert("RGBA").getpixel((0, 0)) == (0x00, 0x72, 0xB2, 255)
    with pytest.raises(CommandError, match="up to 255 labels, not 256"):
        label_png(np.array([[255]]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("y1,x1,y2,x2,kind,confidence\n0,0,3,4,must,0.9\n", "unknown columns: 'confidence'"),
        ("y1,x1,y2,x2,kind\n0,0,3,4,must,0.9\n", "line 2: more cells"),
        ("y1,x1,y2,x2,kind,weight\n0,0,3,4,must\n", "line 2: fewer cells"),
        ("y1,x1,y2,x2,kind,x1\n0,0,3,4,must,1\n", "several columns named 'x1'"),
        ("y1,x1,y2,x2,kind\n0,0,3,1_0,must\n", "line 2: x2 is '1_0'"),
        (f"y1,x1,y2,x2,kind\n0,0,3,{2**64},must\n", "line 2: x2 is"),
        ("y1,x1,y2,x2\n0,0,3,4\n", "no column kind"),
    ],
)
def test_links_by_pixel_follow_the_rules_of_all_links(tmp_path, content, words):
    Image.fromarray(np.zeros((6, 6), dtype=np.uint8)).save(tmp_path / "image.png")
    picture = read_picture(tmp_path / "image.png")
    (tmp_path / "links.csv").write_text(content)
    with pytest.raises(CommandError, match=words):
        pixel_links(tmp_path / "links.csv", picture, None)
    (tmp_path / "links.csv").write_text("Y1,X1,Y2,X2,Kind,Certainty\n0,0,3,4,must,0.9\n")
    assert pixel_links(tmp_path / "links.csv", picture, None) == Constraints(36, [(0, 22)], certainty=0.9)
