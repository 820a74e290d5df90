"""Two images: objects that fade into the background, and textures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.cli.demo.chapter import Chapter, Gain, Illustration
from linkwise.cli.output import Output

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise.cli.images import Picture
    from linkwise.constraints import Constraints

_PIXEL_LINKS = 40


def _panel(picture: Picture, labels: NDArray[np.int64] | None, links: Constraints | None = None) -> bytes:
    """Draw the image with links, or a map of labels, by itself, so that it can be read on a phone."""
    from matplotlib.colors import ListedColormap

    from linkwise._pages import new_figure, png_of
    from linkwise.displays._style import COLOURS

    figure, ax = new_figure(size=(3.2, 3.2))
    if labels is None:
        ax.imshow(picture.shown(), cmap="gray", interpolation="nearest")
    else:
        painted = picture.paint(labels)
        colours = ListedColormap(list(COLOURS[: int(painted.max()) + 1]))
        ax.imshow(painted, cmap=colours, interpolation="nearest")
    if links is not None:
        picture.draw_links(ax, links)
    ax.set_axis_off()
    return png_of(figure)


def objects(out: Output) -> Chapter:
    """Objects that fade into the background, segmented with a few links between pixels."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spectral
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_noisy_objects
    from linkwise.metrics import clustering_accuracy, match_clusters

    image, truth = make_noisy_objects(random_state=0)
    y = truth.ravel()
    picture = images.Picture(image[:, :, np.newaxis], np.ones(image.shape, dtype=bool))
    links = Constraints.sample(y, _PIXEL_LINKS, overlap=True, random_state=0)
    plain = segment_spectral(out, picture, 4, Constraints(len(y))).labels
    done = segment_spectral(out, picture, 4, links).labels
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, done)
    return Chapter(
        "Objects in an image, from 40 pairs of pixels",
        [
            f"A disc, a bar and a triangle whose brightness fades into the background, {image.shape[0]} x "
            f"{image.shape[1]} pixels. Of {_PIXEL_LINKS} pairs of pixels it is known whether they belong to "
            "the same thing. Each link also acts on the pixels near its two ends (Lu & Carreira-Perpiñán "
            "2008)."
        ],
        [Gain("shaded objects", f"{_PIXEL_LINKS} pairs of pixels", "pixels right", before, after)],
        [],
        [
            Illustration(
                "objects_image.png",
                _panel(picture, None, links),
                "A noisy grey image with 40 links drawn into it",
                "The image and the links. Solid: same thing, dashed: not.",
            ),
            Illustration("objects_truth.png", _panel(picture, y), "The three true objects", "The truth."),
            Illustration(
                "objects_without.png",
                _panel(picture, match_clusters(y, plain).apply(plain)),
                "Regions found without links, which ignore the objects",
                f"Without links: {before:.0%} of the pixels right.",
            ),
            Illustration(
                "objects_with.png",
                _panel(picture, match_clusters(y, done).apply(done)),
                "Regions found with links, which follow the objects",
                f"With links: {after:.0%} right.",
            ),
        ],
        code="links = Constraints(n_pixels, must_link=same, cannot_link=different)\n"
        "ConstrainedSpectralClustering(4).fit(features, constraints=links).labels_",
        command="linkwise segment photo.png -k 4 --method spectral --links pixels.csv -o regions",
    )


def textures(out: Output) -> Chapter:
    """Four textures that are hard to tell from single blocks, segmented with links between neighbours."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spatial
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_texture_mosaic
    from linkwise.metrics import clustering_accuracy, match_clusters

    block = 7
    image, truth = make_texture_mosaic(block=block, random_state=0)
    y = truth[::block, ::block].ravel()
    brightness = (image - image.min()) / np.ptp(image)
    picture = images.Picture(
        brightness[:, :, np.newaxis], np.ones(truth[::block, ::block].shape, dtype=bool), block
    )
    done = segment_spatial(out, picture, 4, Constraints(picture.n_samples), n_init=5)
    plain = done.by_colour
    assert plain is not None
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, done.labels)
    return Chapter(
        "Textures, from the knowledge that neighbours belong together",
        [
            f"Four textures of equal brightness, cut into {picture.n_samples} blocks of {block} x {block} "
            "pixels. A single block is not enough to know its texture. That neighbouring blocks "
            "belong together, with a certainty of 0.9, is enough (Lu & Leen 2007, experiment 4)."
        ],
        [Gain("texture mosaic", "neighbours, 90% sure", "blocks right", before, after)],
        [],
        [
            Illustration(
                "textures_image.png", _panel(picture, None), "Four textures in four quarters", "The image."
            ),
            Illustration("textures_truth.png", _panel(picture, y), "Four quarters", "The truth."),
            Illustration(
                "textures_without.png",
                _panel(picture, match_clusters(y, plain).apply(plain)),
                "Blocks labelled one by one, speckled",
                f"Without links: {before:.0%} of the blocks right.",
            ),
            Illustration(
                "textures_with.png",
                _panel(picture, match_clusters(y, done.labels).apply(done.labels)),
                "Blocks labelled with links between neighbours: four quarters",
                f"With links: {after:.0%} right.",
            ),
        ],
        code="links = Constraints.from_grid((32, 32), certainty=0.9)\n"
        "PPC(4, warm_start=True).fit(blocks).fit(blocks, constraints=links).labels_",
        command="linkwise segment photo.png -k 4 --block 7 -o regions",
    )
