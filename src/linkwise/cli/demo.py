"""``linkwise demo``: what links and beliefs gain, on data that come with the library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._pages import Page, TextTable
from linkwise.cli import options
from linkwise.cli.output import REPORT, Output, check_folder, write_bytes, write_text, writing_results

if TYPE_CHECKING:
    from numpy.typing import NDArray

_N_LINKS, _FLIP, _DRAWS = 40, 0.1, 3
_RING_LINKS = 60
_PIXEL_LINKS = 40


@dataclass(frozen=True)
class Gain:
    """One row of the table: a score without and with what people know."""

    task: str
    knowledge: str
    measure: str
    without: float
    with_it: float


@dataclass(frozen=True)
class Illustration:
    """A picture of the report, and the name of its file."""

    name: str
    png: bytes
    description: str
    caption: str


@dataclass(frozen=True)
class Chapter:
    """One part of the demo."""

    title: str
    text: list[str]
    gain: list[Gain]
    tables: list[TextTable]
    pictures: list[Illustration] = field(default_factory=list)


def chosen_method(out: Output) -> Chapter:
    """Two rings: links choose a method that can have such shapes, and most wrong links stand out."""
    from sklearn.preprocessing import StandardScaler

    from linkwise._pages import new_figure, png_of
    from linkwise.auto import LinkedClustering
    from linkwise.auto.summary import candidate_table, gain_in_words
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_rings
    from linkwise.displays import ClusterDisplay
    from linkwise.metrics import clustering_accuracy, match_clusters

    X, y = make_rings(150, random_state=0)
    scaled = StandardScaler().fit_transform(X)
    links = Constraints.sample(y, _RING_LINKS, flip=_FLIP, certainty=1 - _FLIP, random_state=0)
    with out.progress("rings"):
        plain = LinkedClustering(2, effort="quick", random_state=0).fit(scaled).labels_
        model = LinkedClustering(2, effort="quick", random_state=0).fit(scaled, constraints=links)
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, model.labels_)
    figure, axes = new_figure(2, size=(6.2, 4.4))
    for ax, (title, labels) in zip(
        axes, {"without links": plain, "with links": model.labels_}.items(), strict=True
    ):
        named = match_clusters(y, labels).apply(labels)
        ClusterDisplay.from_predictions(X, named, constraints=links, ax=ax)
        ax.set_title(title, fontsize=11)
    return Chapter(
        "The links choose the method: rings",
        [
            f"{len(y)} points on two rings. {_RING_LINKS} pairs were shown to a simulated annotator who says "
            '"same" or "different" and is wrong one time in ten. Every method is fitted without some of the '
            "links and asked about them. Those that answer best vote: here the ones that follow neighbours.",
            gain_in_words(model, links.n_pairs),
        ],
        [
            Gain(
                "two rings",
                f"{_RING_LINKS} pairs, one in ten wrong, {1 - _FLIP:.0%} sure",
                "accuracy",
                before,
                after,
            )
        ],
        candidate_table(model),
        [
            Illustration(
                "rings.png",
                png_of(figure),
                "Two rings, clustered without and with links",
                "Solid: must-links, dashed: cannot-links; broken ones red and crossed out.",
            )
        ],
    )


def noisy_links(out: Output) -> Chapter:
    """Iris with links of which one in ten is wrong: told how sure, they do no harm; as facts they do."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler

    from linkwise._pages import new_figure, png_of
    from linkwise.auto import LinkedClustering
    from linkwise.cli.options import hardened
    from linkwise.constraints import Constraints
    from linkwise.datasets import load_bundled
    from linkwise.displays import ClusterDisplay
    from linkwise.metrics import clustering_accuracy, match_clusters
    from linkwise.mixture.ppc import PPC

    X, y = load_bundled("iris")
    scaled = StandardScaler().fit_transform(X)

    def labels_with(told: Any) -> Any:
        return LinkedClustering(3, effort="quick", random_state=0).fit(scaled, constraints=told).labels_

    plain = {
        "k-means, no links": KMeans(3, n_init=10, random_state=0).fit_predict(scaled),
        "Gaussian mixture, no links": PPC(3, random_state=0).fit_predict(scaled),
        "LinkedClustering, no links": labels_with(None),
    }
    believed, doubted = (
        "LinkedClustering, links taken as facts",
        f"LinkedClustering, links {1 - _FLIP:.0%} sure",
    )
    accuracies: dict[str, list[float]] = {
        name: [clustering_accuracy(y, labels)] * _DRAWS for name, labels in plain.items()
    }
    accuracies |= {believed: [], doubted: []}
    shown: dict[str, NDArray[np.int64]] = {}
    drawn = []
    with out.progress("noisy links on iris", _DRAWS) as advance:
        for seed in range(_DRAWS):
            links = Constraints.sample(y, _N_LINKS, flip=_FLIP, certainty=1 - _FLIP, random_state=seed)
            drawn.append(links)
            for name, told in ((believed, hardened(links)), (doubted, links)):
                labels = labels_with(told)
                accuracies[name].append(clustering_accuracy(y, labels))
                shown.setdefault(name, labels)
            advance()
    figure, axes = new_figure(len(shown), size=(6.2, 4.4))
    for ax, (name, labels) in zip(axes, shown.items(), strict=True):
        named = match_clusters(y, labels).apply(labels)
        ClusterDisplay.from_predictions(X[:, [2, 1]], named, constraints=drawn[0], ax=ax)
        ax.set_title(name, fontsize=11)
        ax.set_xlabel("petal length (cm)")
        ax.set_ylabel("sepal width (cm)")
    rows = [[name, f"{np.mean(values):.3f}", f"{min(values):.3f}"] for name, values in accuracies.items()]
    before = max(accuracies[name][0] for name in plain)  # the best without links, known afterwards
    task = "iris, 3 species"
    knowledge = f"{_N_LINKS} pairs, one in ten wrong"
    measure = f"accuracy, mean of {_DRAWS} draws"
    return Chapter(
        "Noisy links: iris",
        [
            f"150 flowers of three species. {_N_LINKS} pairs were shown to a simulated annotator who says "
            f'"same" or "different" and is wrong one time in ten, in {_DRAWS} independent draws. Told with '
            "how sure they are, such links hardly matter where the best method without links is already "
            "right, and the wrong ones stand out as broken; taken as facts they do harm, because the wrong "
            "ones are obeyed, too. Before these draws nobody knows which method without links is the best."
        ],
        [
            Gain(
                task,
                f"{knowledge}, {1 - _FLIP:.0%} sure",
                measure,
                before,
                float(np.mean(accuracies[doubted])),
            ),
            Gain(task, f"{knowledge}, as facts", measure, before, float(np.mean(accuracies[believed]))),
        ],
        [TextTable(f"Accuracy over {_DRAWS} draws of links", ["", "mean", "worst"], rows)],
        [
            Illustration(
                "iris_links.png",
                png_of(figure),
                "Iris by cluster, with links drawn between flowers",
                "The first draw. Solid: must-links, dashed: cannot-links; broken ones red and crossed out.",
            )
        ],
    )


def new_classes(out: Output) -> Chapter:
    """Wine with bad classes (two cultivars in one, one under two names), corrected by beliefs."""
    from sklearn.preprocessing import StandardScaler

    from linkwise._pages import new_figure, png_of
    from linkwise.beliefs import ClassBeliefs
    from linkwise.cli.classes import decision_table, propose_classes
    from linkwise.datasets import load_bundled
    from linkwise.displays import BeliefDisplay
    from linkwise.metrics import pairwise_f1
    from linkwise.mixture.classes.report_views import evidence_lines

    X, y = load_bundled("wine")
    scaled = StandardScaler().fit_transform(X)
    cultivars = np.unique(y)
    halves = np.where(np.arange(len(y)) % 2 == 0, "sweet", "dessert")
    legend = np.where(y == cultivars[2], halves, "table")
    beliefs = ClassBeliefs.keep(np.unique(legend).tolist()).split("table").merge("sweet", "dessert", 0.5)
    model, report = propose_classes(out, scaled, legend, beliefs, {"covariance_type": "diag"}, repeats=3)
    evidence = TextTable("Why", ["evidence"], [[line] for line in evidence_lines(report)], 1)
    maps, axes = new_figure(2, size=(5.0, 3.8))
    BeliefDisplay.from_estimator(model, ax=axes)
    return Chapter(
        "New classes: wine",
        [
            '178 wines of three cultivars, under a bad legend: "table" lumps two cultivars, and one is '
            'called "sweet" in one cellar and "dessert" in another. The expert writes down two doubts: '
            "table should be split, sweet and dessert may be one. How many there are is left to the data."
        ],
        [
            Gain(
                "wine, bad legend",
                "2 doubts about 3 classes",
                "pairwise F with the cultivars",
                pairwise_f1(y, legend),
                pairwise_f1(y, model.labels_),
            )
        ],
        [decision_table(report), evidence],
        [
            Illustration(
                "wine_beliefs.png",
                png_of(maps),
                "Beliefs beside what came out",
                "Left: what was believed of each two classes. Right: how much they share their new classes.",
            ),
        ],
    )


def textures(out: Output) -> Chapter:
    """Four textures that single blocks do not tell apart, segmented with links between neighbours."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spatial, segments_png
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_texture_mosaic
    from linkwise.metrics import clustering_accuracy

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
        "An image from spatial links: textures",
        [
            f"Four textures of equal brightness, cut into {picture.n_samples} blocks of {block} x {block} "
            "pixels. A single block does not tell its texture for sure. Telling that neighbouring blocks "
            "belong together, with a certainty of 0.9, is enough (Lu & Leen 2007, experiment 4)."
        ],
        [Gain("texture mosaic", "neighbours, 90% sure", "blocks right", before, after)],
        [],
        [
            Illustration(
                "textures.png",
                segments_png(
                    picture,
                    {
                        f"without links: {before:.0%} right": plain,
                        f"with neighbour links: {after:.0%}": done.labels,
                    },
                ),
                "A mosaic of textures, labelled block by block and with links between neighbours",
                "The image, its blocks labelled one by one, and with soft links between neighbours.",
            )
        ],
    )


def pixels(out: Output) -> Chapter:
    """Objects that fade into the background, segmented with a few links between pixels."""
    from linkwise.cli import images
    from linkwise.cli.segment import segment_spectral, segments_png
    from linkwise.constraints import Constraints
    from linkwise.datasets import make_noisy_objects
    from linkwise.metrics import clustering_accuracy

    image, truth = make_noisy_objects(random_state=0)
    y = truth.ravel()
    picture = images.Picture(image[:, :, np.newaxis], np.ones(image.shape, dtype=bool))
    links = Constraints.sample(y, _PIXEL_LINKS, overlap=True, random_state=0)
    plain = segment_spectral(out, picture, 4, Constraints(len(y))).labels
    done = segment_spectral(out, picture, 4, links).labels
    before, after = clustering_accuracy(y, plain), clustering_accuracy(y, done)
    return Chapter(
        "An image from a few pixel links: shaded objects",
        [
            f"A disc, a bar and a triangle whose brightness fades into the background, {image.shape[0]} x "
            f'{image.shape[1]} pixels. {_PIXEL_LINKS} random pairs of pixels were labelled "same" or '
            '"different"; '
            "each link changes the affinities around both its ends (Lu & Carreira-Perpiñán 2008)."
        ],
        [Gain("shaded objects", f"{_PIXEL_LINKS} pairs of pixels", "pixels right", before, after)],
        [],
        [
            Illustration(
                "objects.png",
                segments_png(
                    picture,
                    {f"without links: {before:.0%} right": plain, f"with links: {after:.0%} right": done},
                    links,
                ),
                "Shaded objects, cut without and with links between pixels",
                "The image with the links, the cut without them and with them.",
            )
        ],
    )


def refusals(out: Output) -> Chapter:
    """Two mistakes people make, and the answers."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints

    def refusal(ask: Callable[[], Any]) -> str:
        try:
            ask()
        except InfeasibleConstraints as error:
            return str(error)
        raise AssertionError("these links were meant to contradict each other")

    kinds = Constraints(150, cannot_link=[(0, 50), (50, 100), (0, 100)])
    rows = [
        [
            "must-link 3-8 and 8-17, cannot-link 3-17",
            refusal(lambda: Constraints(150, must_link=[(3, 8), (8, 17)], cannot_link=[(3, 17)])),
        ],
        ["three flowers of three kinds, but two clusters", refusal(lambda: kinds.check(n_clusters=2))],
    ]
    return Chapter(
        "Links that cannot hold are refused, with the reason",
        [],
        [],
        [TextTable("Two mistakes people make", ["links", "answer"], rows, 2)],
    )


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where to write report.html and its pictures."),
    ] = Path("build/demo"),
    as_json: options.JsonOption = False,
) -> None:
    """Show in a minute what links gain: noisy links, a class redefinition, images divided by links.

    Everything is made from bundled data. Writes report.html, which needs nothing beside itself, and its PNGs.
    """
    out = Output(as_json)
    check_folder(output, "demo", [REPORT])
    began = time.perf_counter()
    makers: list[Callable[[Output], Chapter]] = [
        chosen_method,
        noisy_links,
        new_classes,
        textures,
        pixels,
        refusals,
    ]
    told = []
    for maker in makers:
        told.append(maker(out))
        out.say(f"done: {told[-1].title}")
    table = _gain_table([gain for chapter in told for gain in chapter.gain])
    out.say()
    out.table(table)
    report = Page("What links gain")
    report.text(
        "linkwise clusters data with what people know: these two belong together, these two do "
        "not, and how sure they are. Each section shows bundled data without and with such knowledge."
    )
    report.table(table)
    with writing_results(output, "demo") as draft:
        written = []
        for chapter in told:
            _tell(report, chapter)
            written += [write_bytes(draft / picture.name, picture.png) for picture in chapter.pictures]
        written.append(write_text(draft / REPORT, report.html()))
    files = [output / path.name for path in written]
    seconds = time.perf_counter() - began
    out.say(f"{seconds:.0f} s. Open {output / REPORT}")
    gains = [asdict(gain) for chapter in told for gain in chapter.gain]
    out.finish({"gains": gains, "files": files, "seconds": seconds})


def _tell(report: Page, chapter: Chapter) -> None:
    report.heading(chapter.title)
    for text in chapter.text:
        report.text(text)
    for table in chapter.tables:
        report.table(table)
    for picture in chapter.pictures:
        report.picture(picture.png, picture.description, picture.caption)


def _gain_table(gains: list[Gain]) -> TextTable:
    rows = [
        [
            gain.task,
            gain.knowledge,
            gain.measure,
            f"{gain.without:.3f}",
            f"{gain.with_it:.3f}",
            f"{gain.with_it - gain.without:+.3f}",
        ]
        for gain in gains
    ]
    return TextTable(
        "What the links gained", ["task", "knowledge", "measured by", "without", "with", "gain"], rows, 3
    )
