"""``linkwise segment``: divide an image into regions by links between its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._arrays import Ints
from linkwise._pages import Page, TextTable
from linkwise.cli import options
from linkwise.cli.compare import links_kept
from linkwise.cli.errors import CommandError
from linkwise.cli.images import MOST_LABELS, Picture, label_png, pixel_links, read_picture
from linkwise.cli.output import REPORT, Output, check_folder, write_bytes, write_results, write_text
from linkwise.cli.tables import check_links

if TYPE_CHECKING:
    from linkwise.constraints import Constraints


# Larger pictures are fitted to a part of their cells: 256 x 256 tell the colours of regions well enough.
_MOST_FITTED = 2**16
# Pixels along the longer side of a picture that is drawn; more cannot be seen.
_MOST_DRAWN = 1000


class SegmentMethod(StrEnum):
    """What ``--method`` may be."""

    ppc = "ppc"
    spectral = "spectral"


class SegmentInference(StrEnum):
    """What ``--inference`` may be."""

    mean_field = "mean_field"
    belief_propagation = "belief_propagation"


@dataclass(frozen=True)
class Segmentation:
    """Labels of cells, those by colours alone (n,), and how many cells the model was fitted to if not all."""

    labels: Ints
    model: Any
    by_colour: Ints | None = None
    converged: bool = True
    n_fitted: int | None = None


def segment(
    image: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGE", help="PNG, JPEG, TIFF, GeoTIFF, ...; transparent pixels and nodata are left out."
        ),
    ],
    n_clusters: Annotated[int, typer.Option("-k", "--clusters", min=1, help="Number of regions.")],
    links: Annotated[
        Path | None,
        typer.Option(
            "--links",
            "-l",
            metavar="FILE",
            help="Links of pixels: columns y1, x1, y2, x2, kind; or i, j, kind, pixels in reading order.",
        ),
    ] = None,
    method: Annotated[
        SegmentMethod,
        typer.Option(
            "--method",
            "-m",
            help="ppc: colours, soft links between neighbours. spectral: distance, colours, your links.",
        ),
    ] = SegmentMethod.ppc,
    neighbours: Annotated[
        float,
        typer.Option(
            "--neighbours", min=0.5, max=1.0, help="ppc: probability that neighbours belong together."
        ),
    ] = 0.9,
    connectivity: Annotated[
        int, typer.Option("--connectivity", help="ppc: neighbours of a pixel, 4 or 8.")
    ] = 4,
    inference: Annotated[
        SegmentInference, typer.Option("--inference", help="ppc: how labels are inferred.")
    ] = SegmentInference.mean_field,
    contrast: Annotated[
        float,
        typer.Option(
            "--contrast",
            min=0.0,
            help="spectral: one standard deviation of colour counts as this many pixels of distance.",
        ),
    ] = 8.0,
    block: Annotated[
        int, typer.Option("--block", min=1, help="Label blocks of this side instead of pixels; for textures.")
    ] = 1,
    certainty: options.CertaintyOption = None,
    starts: options.StartsOption = 10,
    seed: options.SeedOption = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to write; IMAGE_segments by default."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Divide an image into regions.

    Writes labels.png (pixel values are the labels), segments.png (to look at) and report.html; of a raster
    with a georeference also labels.tif, which keeps it (pixel values are the labels + 1, 0 is no data).
    """
    if connectivity not in (4, 8):
        raise typer.BadParameter(f"{connectivity} is neither 4 nor 8.", param_hint="--connectivity")
    options.check_certainty(certainty, links)
    out = Output(as_json)
    folder = output or Path(f"{image.stem}_segments")
    check_folder(folder, "segment", ["labels.png", "labels.tif", "labels.qml", "segments.png", REPORT])
    picture = read_picture(image, block)
    if n_clusters > picture.n_samples:
        raise CommandError(
            f"-k {n_clusters} regions cannot be made of {picture.n_samples} pixels; ask for fewer"
        )
    if n_clusters > MOST_LABELS:
        raise CommandError(f"-k {n_clusters}: a label image holds up to {MOST_LABELS}; ask for fewer")
    wanted = pixel_links(links, picture, certainty)
    check_links(wanted, n_clusters)
    if method is SegmentMethod.ppc:
        done = segment_spatial(
            out,
            picture,
            n_clusters,
            wanted,
            neighbours=neighbours,
            connectivity=connectivity,
            inference=inference.value,
            n_init=starts,
            seed=seed,
        )
    else:
        done = segment_spectral(out, picture, n_clusters, wanted, contrast=contrast, n_init=starts, seed=seed)

    counts = np.bincount(done.labels, minlength=n_clusters)
    table = TextTable(
        "Regions",
        ["region", "blocks" if block > 1 else "pixels", "share"],
        [[str(k), str(count), f"{count / counts.sum():.1%}"] for k, count in enumerate(counts)],
    )
    out.table(table)
    if done.n_fitted is not None:
        out.say(_about_sample(done))
    if wanted.n_pairs:
        out.say(f"Links kept: {links_kept(wanted, done.labels)}")
    files = write_results(
        out, folder, "segment", lambda draft: _write(picture, done, wanted, table, draft, image, out)
    )
    out.finish(
        {
            "n_clusters": n_clusters,
            "sizes": counts,
            "n_links": wanted.n_pairs,
            "n_violated": int(wanted.violations(done.labels).sum()),
            "converged": bool(getattr(done.model, "converged_", True)) and done.converged,
            "n_fitted": done.n_fitted or picture.n_samples,
            "files": files,
        }
    )


def segment_spatial(
    out: Output,
    picture: Picture,
    n_clusters: int,
    links: Constraints,
    *,
    neighbours: float = 0.9,
    connectivity: int = 4,
    inference: str = "mean_field",
    n_init: int = 10,
    seed: int = 0,
) -> Segmentation:
    """PPC on the colours, with soft must-links between neighbours (Lu & Leen 2007, experiment 4).

    The start and the mixing weights are those of the mixture without links: starts with links to neighbours
    run into worse optima (on a texture mosaic 0.75 instead of 1.00 right in 7 of 16 fits), and the exact
    update of the weights takes 30 times as long for no better labels.
    """
    from linkwise.cli import large_images
    from linkwise.constraints import Constraints
    from linkwise.mixture.ppc import PPC

    X = picture.colours()
    lattice: dict[str, Any] = {"certainty": neighbours, "connectivity": connectivity}
    # Neighbours that are surely together leave nothing to infer in pieces.
    sampled = picture.n_samples > _MOST_FITTED and neighbours < 1.0
    rows = X
    if sampled:
        cells = large_images.cells_to_fit(picture, links, _MOST_FITTED)
        everything = large_images.sampled_links(picture, links, cells, _MOST_FITTED, **lattice)
        rows = X[cells]
    else:
        everything = Constraints.from_grid(picture.mask.shape, mask=picture.mask, **lattice) + links
    shared: dict[str, Any] = {"n_components": n_clusters, "random_state": seed}
    with out.progress("starting from colours alone"):
        plain = PPC(n_init=n_init, **shared).fit(rows)
    by_colour = np.asarray(plain.predict(X) if sampled else plain.labels_)
    if not everything.n_pairs:
        return Segmentation(by_colour, plain, by_colour, n_fitted=len(rows) if sampled else None)
    precisions = np.einsum("kij,klj->kil", plain.precisions_cholesky_, plain.precisions_cholesky_)
    model = PPC(
        inference=inference,
        mixing="fixed",
        weights_init=plain.weights_,
        means_init=plain.means_,
        precisions_init=precisions,
        **shared,
    )
    with out.progress("fitting with neighbours and links"):
        model.fit(rows, constraints=everything)
    if not sampled:
        return Segmentation(np.asarray(model.labels_), model, by_colour)
    with out.progress("labelling all cells"):
        hard = np.unique(links.pairs[np.isinf(links.weights)])
        fitted = np.asarray(model.labels_)[np.searchsorted(cells, hard)]
        found = large_images.label_cells(
            picture,
            large_images.log_probabilities(model, X),
            links,
            dict(zip(hard.tolist(), fitted.tolist(), strict=True)),
            coupling=float(np.log(neighbours) - np.log1p(-neighbours)),
            connectivity=connectivity,
            inference=inference,
            seed=seed,
        )
    return Segmentation(found.labels, model, by_colour, found.converged, len(cells))


def _about_sample(done: Segmentation) -> str:
    return (
        f"The image is large: the model was fitted to {done.n_fitted} of {len(done.labels)} cells, on a "
        "coarser lattice, and then all cells were labelled by it."
    )


def segment_spectral(
    out: Output,
    picture: Picture,
    n_clusters: int,
    links: Constraints,
    *,
    contrast: float = 8.0,
    n_init: int = 10,
    seed: int = 0,
) -> Segmentation:
    """Spectral clustering of places and colours, with links between pixels (Lu & Carreira-Perpinan 2008)."""
    from linkwise.spectral.constrained import ConstrainedSpectralClustering

    colours = picture.colours()
    spread = float(np.sqrt(colours.var(axis=0).sum()))
    scaled = colours * (contrast / spread if spread > 0 else 0.0)
    X = np.column_stack([picture.places(), scaled])
    # Places of pixels are regular: a graph without weights made more of 10 and 40 links (Rand .63 and .81,
    # against .61 and .79, on three noisy objects).
    # Pixels are marked by hand and few: links are trusted more than by default, and reach further.
    model = ConstrainedSpectralClustering(
        n_clusters, affinity="heat", softness=0.1, diffusion_time=20.0, n_init=n_init, random_state=seed
    )
    with out.progress("clustering the graph of pixels"):
        model.fit(X, constraints=links if links.n_pairs else None)
    return Segmentation(np.asarray(model.labels_), model)


def segments_png(picture: Picture, panels: dict[str, Ints], links: Constraints | None = None) -> bytes:
    """Draw the image beside one panel of labels for each title; links are drawn into the image."""
    from matplotlib.colors import ListedColormap

    from linkwise._pages import new_figure, png_of
    from linkwise.displays._drawing import COLOURS

    height, width = picture.pixels.shape[:2]
    step = max(1, max(height, width) // _MOST_DRAWN)
    place = {"interpolation": "nearest", "extent": (-0.5, width - 0.5, height - 0.5, -0.5)}
    size = (3.6, 0.5 + 3.4 * min(max(height / width, 0.3), 3.0))
    figure, axes = new_figure(1 + len(panels), size=size)
    axes[0].imshow(picture.shown()[::step, ::step], cmap="gray", **place)
    axes[0].set_title("image", fontsize=10)
    if links is not None and links.n_pairs:
        picture.draw_links(axes[0], links)
        axes[0].set_title("image and links (dashed: apart)", fontsize=10)
    for ax, (title, labels) in zip(axes[1:], panels.items(), strict=True):
        painted = np.ma.masked_less(picture.paint(labels)[::step, ::step], 0)
        n_colours = max(int(painted.max()) + 1, 1)
        colours = [COLOURS[number % len(COLOURS)] for number in range(n_colours)]
        ax.imshow(painted, cmap=ListedColormap(colours), vmin=-0.5, vmax=n_colours - 0.5, **place)
        ax.set_title(title, fontsize=10)
    for ax in axes:
        ax.set_xticks([])
        ax.set_yticks([])
    return png_of(figure)


def _write(
    picture: Picture,
    done: Segmentation,
    links: Constraints,
    table: TextTable,
    folder: Path,
    image: Path,
    out: Output,
) -> dict[str, Path]:
    painted = picture.paint(done.labels)
    files = {"labels": write_bytes(folder / "labels.png", label_png(painted))}
    if picture.georeference is not None:
        files["raster"] = _write_raster(folder / "labels.tif", painted, picture.georeference, len(table.rows))
    drawn = segments_png(picture, {f"{len(table.rows)} regions": done.labels}, links)
    files["segments"] = write_bytes(folder / "segments.png", drawn)
    report = Page(f"Regions of {image.name}", warnings=out.warnings)
    report.picture(drawn, "The image and its regions")
    report.table(table)
    if done.n_fitted is not None:
        report.text(_about_sample(done))
    if links.n_pairs:
        report.text(f"Links kept: {links_kept(links, done.labels)}.")
    files["report"] = write_text(folder / REPORT, report.html())
    return files


def _write_raster(path: Path, labels: Ints, georeference: tuple[Any, Any], n_regions: int) -> Path:
    """Write the labels + 1 of all pixels as a GeoTIFF; 0 is no data."""
    import xarray

    from linkwise.raster import write_map
    from linkwise.raster.classify import class_type

    crs, transform = georeference
    codes = xarray.DataArray((labels + 1).astype(class_type(n_regions)), dims=("y", "x"))
    codes = codes.rio.write_crs(crs).rio.write_transform(transform)
    write_map(path, codes, names=[f"region {number}" for number in range(n_regions)])
    return path
